"""The product's own functions and commands, run from one call to the next.

A function is stopped at each of its calls to the world. To go on it is run again from its beginning, and given the
answers that it had: nothing of it is copied, and what it will do next is known from what it has been told. The time
that it sees is that of its last answer, so that any time may pass before its next call arrives.
"""

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from functools import cache
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest.mock import patch

from taskgov.adapters.dynamodb import Table
from taskgov.allocation.codec import plan_from_json, plan_to_json
from taskgov.contracts.steps import ApplyChangeRequest, Pointer, ReadSnapshotRequest, VerifyPlanRequest
from taskgov.errors import ConflictError, GovernanceError
from taskgov.hyperpod.model import ComputeQuota
from taskgov.ports import Execution, Written
from taskgov.services import read_snapshot
from taskgov.services.apply_change import ApplyChange, ApplyChanges
from taskgov.services.read_snapshot import ReadSnapshot
from taskgov.services.receive_event import Hinted, ReceiveEvent
from taskgov.services.step_inputs import stored_plan
from taskgov.services.verify_plan import VerifyPlan
from taskgov_cli import manual_lock, manual_writes
from taskgov_cli.deployed import RefusedError
from taskgov_cli.manual_writes import ManualWrites
from tests.protocol.table import SORT_KEY, condition_failed, text, typed
from tests.support.memory import CLUSTER_ARN, EKS_ARN
from tests.support.plans import instances, plan_of, target, update

EPOCH = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)
QUOTA = "quota0000001"
TEAM = "team-a"
DIGEST = "0" * 64
EXECUTION = "arn:aws:states:us-east-1:111122223333:execution:reconcile:"
INTERRUPTED = text({"interrupted": True})
"""What a command is told beside its answers: Ctrl-C, before the answer that follows."""


class Answer(NamedTuple):
    """What a call was answered, as JSON, and when."""

    at: int
    body: str


class Call(NamedTuple):
    """A call that a function is about to make, as JSON."""

    kind: str
    body: str


class Done(NamedTuple):
    """How a function ended: its result as JSON, or the name of its error."""

    result: str
    error: str | None = None


class _StoppedError(BaseException):
    """The function is at a call that has no answer yet."""


class World:
    """What a function sees of the world: each call is answered from what is known, or ends the try."""

    def __init__(self, started: int, answers: tuple[Answer, ...]) -> None:
        self.seconds = started
        self.call: Call | None = None
        self._answers = list(answers)

    def ask(self, kind: str, body: Any) -> Any:
        """Return the answer to a call, or stop the function here."""
        if self.call is not None or not self._answers:
            self.call = self.call or Call(kind, text(body))
            raise _StoppedError
        answer = self._answers.pop(0)
        self.seconds = answer.at
        if answer.body == INTERRUPTED:
            signal.raise_signal(signal.SIGINT)
            return self.ask(kind, body)
        return json.loads(answer.body)

    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=self.seconds)


class _Resource:
    """boto3's table: the state of the cluster is the world's; records of writes are nobody's concern here."""

    def __init__(self, world: World) -> None:
        self._world = world

    def update_item(self, **arguments: Any) -> dict[str, Any]:
        assert arguments["Key"]["sk"] == SORT_KEY, "only the state of a cluster is updated"
        answer = self._world.ask("update", typed(arguments))
        if not answer["met"]:
            raise condition_failed("UpdateItem")
        return {"Attributes": answer["item"]} if "item" in answer else {}

    def get_item(self, Key: dict[str, str], **_: Any) -> dict[str, Any]:  # noqa: N803 boto3's name
        if Key["sk"] == "CLUSTER":
            return {"Item": {"clusterArn": CLUSTER_ARN}}
        if Key["sk"] != SORT_KEY:
            return {}
        return {"Item": self._world.ask("get", Key)["item"]}

    def put_item(self, Item: dict[str, Any], **_: Any) -> None:  # noqa: N803 boto3's name
        assert Item["sk"] != SORT_KEY, "the state of a cluster is updated, never put"

    def query(self, **_: Any) -> dict[str, Any]:
        return {"Items": []}


class _HyperPod:
    """One quota; a write is made at its version, as SageMaker's TargetVersion has it."""

    def __init__(self, world: World) -> None:
        self._world = world

    def quota(self, quota_id: str) -> ComputeQuota:
        return _quota(self._world.ask("look", {}))

    def quotas(self, _: str, __: Any = None) -> tuple[ComputeQuota, ...]:
        return (self.quota(QUOTA),)

    def scheduler_config(self, _: str, __: Any = None) -> None:
        return None

    def tags(self, _: str) -> dict[str, str]:
        return {}

    def update_quota(self, quota_id: str, version: int, config: Any, _: Any) -> Written:
        (row,) = config.compute_quota_resources
        answer = self._world.ask("write", {"version": version, "content": row.count})
        if "conflict" in answer:
            raise ConflictError("the version is another by now")
        return Written(quota_id, answer["version"])


@cache
def _quota_of(version: int, content: int) -> ComputeQuota:
    return ComputeQuota(
        compute_quota_id=QUOTA,
        compute_quota_arn=f"{CLUSTER_ARN}/{QUOTA}",
        name=TEAM,
        compute_quota_version=version,
        status="Updated",
        compute_quota_config=instances(content),
        compute_quota_target=target(TEAM),
    )


def _quota(seen: dict[str, int]) -> ComputeQuota:
    return _quota_of(seen["version"], seen["content"])


class _Documents:
    """A document's pointer says what is in it."""

    def put(self, key: str, body: Any, _: str) -> Pointer:
        return Pointer(bucket="bucket", key=str(body), sha256=DIGEST)

    def get(self, pointer: Pointer) -> Any:
        return _plan(pointer.key)


@cache
def _plan(key: str) -> Any:
    seen = json.loads(key)
    return plan_to_json(plan_of(update(0, TEAM, QUOTA, seen["content"], seen["facts"], seen["version"])))


class _TakeSnapshot:
    def __init__(self, world: World) -> None:
        self._world, self.clock = world, world
        self.identity, self.backends = SimpleNamespace(keep=lambda *_: None), _HyperPod(world)

    def __call__(self, *_: Any, **__: Any) -> Any:
        seen = self._world.ask("look", {})
        return SimpleNamespace(
            seen=seen,
            quotas=(),
            scheduler_config=None,
            state=None,
            policy_version=None,
            cluster=SimpleNamespace(name="ml-cluster", arn=CLUSTER_ARN, eks_arn=EKS_ARN),
            taken_at=self._world.now(),
        )


class _Workflow:
    def __init__(self, world: World) -> None:
        self._world = world

    def start(self, cluster_arn: str, cause: Any, name: str) -> bool:
        assert cluster_arn == CLUSTER_ARN
        return bool(self._world.ask("start", {"name": name})["started"])

    def execution(self, arn: str) -> Execution | None:
        if not arn.startswith(EXECUTION):
            return None
        return Execution(arn, self._world.ask("describe", {"arn": arn})["status"], EPOCH)


class _Unlisted:
    """HyperPod for events: they all name their cluster."""

    def clusters(self) -> tuple[str, ...]:
        return (CLUSTER_ARN,)

    def knows(self, cluster_arn: str) -> bool:
        return cluster_arn == CLUSTER_ARN


def _made(service: Any, world: World, **others: Any) -> Any:
    """Make a service of the product with what it requests by name."""
    known = {
        "backends": _HyperPod(world),
        "documents": _Documents(),
        "state": Table(_Resource(world)),  # type: ignore[arg-type]
        "clock": world,
        "read_plan": stored_plan,
        "take_snapshot": _TakeSnapshot(world),
        "workflow": _Workflow(world),
        "claim": lambda _: None,
        "own_role_arn": "arn:aws:iam::111122223333:role/own",
    } | others
    return service(**{field.name: known[field.name] for field in fields(service)})


def _read(world: World, payload: dict[str, Any]) -> Any:
    with patch.object(read_snapshot, "snapshot_to_store", lambda snapshot: text(snapshot.seen)):
        return _made(ReadSnapshot, world)(ReadSnapshotRequest.parse(payload)).to_json()


def _apply(world: World, payload: dict[str, Any]) -> Any:
    one = _made(ApplyChange, world)
    return _made(ApplyChanges, world, apply_change=one)(ApplyChangeRequest.parse(payload)).to_json()


def _verify(world: World, payload: dict[str, Any]) -> Any:
    return _made(VerifyPlan, world)(VerifyPlanRequest.parse(payload)).to_json()


def _receive(world: World, event: dict[str, Any]) -> Any:
    receive = _made(ReceiveEvent, world, backends=_Unlisted())
    hinted = receive(event)
    if not isinstance(hinted, Hinted):
        return {}
    marked = receive.mark({"event": hinted})
    for error in marked.failed.values():
        raise error
    return {"started": marked.started}


def _apply_by_hand(world: World, payload: dict[str, Any]) -> Any:
    """Write the quota by hand, as `taskgov apply` does: take the lock, look, write at the version seen, verify."""
    with _locked(world, payload["owner"]) as (place, held):
        pointer = Pointer(bucket="bucket", key=text(world.ask("look", {})), sha256=DIGEST)
        plan = plan_from_json(_plan(pointer.key))
        return {"trouble": ManualWrites(place, CLUSTER_ARN, pointer, held).apply(plan, [])}


def _roll_back(world: World, payload: dict[str, Any]) -> Any:
    """Take the last write of the quota back, as `taskgov rollback` does: the fact before it, at the present version."""
    with _locked(world, payload["owner"]) as (place, held):
        seen = world.ask("look", {})
        if not seen["content"]:
            return {"trouble": None}  # nothing was written yet
        before = {"content": seen["content"] - 1, "facts": seen["content"], "version": seen["version"] - 1}
        pointer = Pointer(bucket="bucket", key=text(before), sha256=DIGEST)
        plan = plan_from_json(_plan(pointer.key))
        return {"trouble": ManualWrites(place, CLUSTER_ARN, pointer, held).restore(plan, {0}, [])}


@contextmanager
def _locked(world: World, owner: str) -> Iterator[tuple[Any, Any]]:
    """Hold the lock of the cluster as a person's command does."""
    table = _Resource(world)
    place: Any = SimpleNamespace(
        table=table,
        state=Table(table),  # type: ignore[arg-type]
        backends=_HyperPod(world),
        documents=_Documents(),
    )
    with (
        patch.object(manual_lock, "request_run", lambda *_: world.ask("request", {})),
        patch.object(manual_lock, "SystemClock", lambda: world),
        patch.object(manual_writes, "SystemClock", lambda: world),
        manual_lock.locked(place, CLUSTER_ARN, owner) as held,
    ):
        yield place, held


COMMANDS = {"command": _apply_by_hand, "rollback": _roll_back}
KINDS: dict[str, Callable[[World, dict[str, Any]], Any]] = {
    "ReadSnapshot": _read,
    "ApplyChange": _apply,
    "VerifyPlan": _verify,
    "receive": _receive,
    **COMMANDS,
}


class Running(NamedTuple):
    """A function under way: nothing else decides what it does next."""

    kind: str
    payload: str
    started: int
    answers: tuple[Answer, ...] = ()


@cache
def next_of(running: Running) -> Call | Done:
    """Return the call that a function makes next, or its end."""
    world = World(running.started, running.answers)
    try:
        result = KINDS[running.kind](world, json.loads(running.payload))
    except _StoppedError:
        assert world.call is not None
        return world.call
    except (GovernanceError, RefusedError) as error:
        return Done("null", type(error).__name__)
    # A function that swallowed the stop still waits for its answer.
    return world.call or Done(text(result))


def forget() -> None:
    """Forget what functions do: their code has been changed."""
    next_of.cache_clear()
