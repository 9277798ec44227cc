"""What did a run leave behind? Every write, the records, the counts: judged by `invariants`.

Nothing here asks the product: what it keeps is read as the JSON that it is.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from moto.dynamodb.models import dynamodb_backends
from moto.dynamodb.models.dynamo_type import DynamoType
from moto.sqs.models import sqs_backends

from tests.faults.steps import LockSeen

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from taskgov_embedded.aws_api.aws_requests import Call
    from taskgov_embedded.walkthrough.world import World

APPLIER = "ApplyChangeRole"
WRITES = frozenset(
    f"{verb}{kind}" for verb in ("Create", "Update", "Delete") for kind in ("ComputeQuota", "ClusterSchedulerConfig")
)

CLOSED_BY_ANOTHER = "-stopped"
"""How the id of a run ends whose record somebody else kept, as it ended without one."""
_KEEPS = re.compile(r"(Put|Update)Item")


@dataclass(frozen=True, slots=True)
class Write:
    """One write that took effect: `config` is what holds from then on, None when it was deleted."""

    place: int
    """Which call it was, of all: many happen at the same moment of the simulated clock."""
    at: datetime
    resource: str
    """The name that the resource has."""
    config: Any
    by_automation: bool


@dataclass(frozen=True, slots=True)
class Record:
    """A run as the table remembers it."""

    place: int
    """Which call first kept it, of all."""
    run_id: str
    outcome: str
    started: datetime
    ended: datetime
    applied: int
    error: str
    planned: tuple[tuple[str, Any], ...] | None
    """What its plan writes: each resource by its name, and what it is to hold. None without a plan."""
    written: frozenset[str]
    """What it says that it wrote: `team/name` of quotas, `cluster policy`."""
    closed_by_another: bool
    """Whether the run ended without a record of its own, and somebody else kept one."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything since the disturbance began."""

    before: Mapping[str, Any]
    """Name of quota or cluster policy -> what it held."""
    writes: tuple[Write, ...]
    records: tuple[Record, ...]
    counted: Mapping[str, float]
    """Metric name -> sum of what functions published."""
    preempted: int
    capacity: int
    locked_until: datetime | None
    dead_letters: int
    running: int
    unsettled: tuple[str, ...]
    """Quotas and cluster policy whose status is neither Created nor Updated, each with its status."""
    now: datetime
    locks: tuple[LockSeen, ...]
    """The lock after each write of the automation and each call about the lock."""
    notices: tuple[tuple[str, str], ...]
    """Subject and text of what was sent to people."""

    def state(self, until: int | None = None) -> dict[str, Any]:
        """Return what every resource held just before a call, now by default."""
        held = dict(self.before)
        for write in self.writes:
            if until is None or write.place < until:
                held[write.resource] = write.config
        return {name: config for name, config in held.items() if config is not None}


class Witness:
    """Begin it before the disturbance; ask it for the evidence afterwards."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._calls, self._results = len(world.stack.calls), len(world.stack.results)
        self._names: dict[str, str] = {}
        self._teams: dict[str, str] = {}
        self._before = self._held()
        self._earlier = {item["sk"] for item in self._items("RUN#")}
        self._read: dict[str, Record] = {}
        self._preempted = _preemptions(world)
        self._locks: list[LockSeen] = []
        world.stack.account.requests.listeners.append(self._look_at_the_lock)

    def evidence(self) -> Evidence:
        """Return what there is now."""
        world = self._world
        return Evidence(
            before=self._before,
            writes=tuple(self._writes()),
            records=tuple(self._records()),
            counted=self._counted(),
            preempted=_preemptions(world) - self._preempted,
            capacity=sum(node.message is None for node in world.cluster.nodes()),
            locked_until=self._locked_until(),
            dead_letters=self._dead_letters(),
            running=world.stack.executions.running(world.stack.physical("ReconcileStateMachine")),
            unsettled=tuple(self._unsettled()),
            now=world.clock.now,
            locks=tuple(self._locks),
            notices=tuple(self._notices()),
        )

    def _look_at_the_lock(self, call: Call) -> None:
        """Keep who has the lock now, if a call wrote a quota in the automation's name, or the lock."""
        if call.error is not None:
            return
        writes = None
        if call.service == "sagemaker" and call.operation in WRITES and APPLIER in call.principal.name:
            writes = self._write(0, call).resource
        elif call.service != "dynamodb" or call.params.get("Key", {}).get("sk") != {"S": "STATE"}:
            return
        for state in self._items("STATE"):
            self._locks.append(LockSeen.of(call, writes, state))

    def _notices(self) -> Iterable[tuple[str, str]]:
        for call in self._world.stack.calls[self._calls :]:
            if (call.service, call.operation, call.error) == ("sns", "Publish", None):
                yield call.params.get("Subject", ""), call.params["Message"]

    def _held(self) -> dict[str, Any]:
        sagemaker, held = self._world.stack.sagemaker, {}
        for quota in sagemaker.quotas(self._world.cluster_arn):
            self._names[quota["ComputeQuotaId"]] = quota["Name"]
            self._teams[quota["ComputeQuotaTarget"]["TeamName"]] = quota["Name"]
            held[quota["Name"]] = quota["ComputeQuotaConfig"]
        policy = sagemaker.scheduler_config(self._world.cluster_arn)
        if policy:
            self._names[policy["ClusterSchedulerConfigId"]] = policy["Name"]
            held[policy["Name"]] = policy["SchedulerConfig"]
        return held

    def _unsettled(self) -> Iterable[str]:
        sagemaker, arn = self._world.stack.sagemaker, self._world.cluster_arn
        policy = sagemaker.scheduler_config(arn)
        for held in (*sagemaker.quotas(arn), *([policy] if policy else [])):
            if held["Status"] not in {"Created", "Updated"}:
                yield f"{held['Name']} is {held['Status']}"

    def _writes(self) -> Iterable[Write]:
        for place, call in enumerate(self._world.stack.calls[self._calls :]):
            if call.service == "sagemaker" and call.operation in WRITES and call.error is None:
                yield self._write(place, call)

    def _write(self, place: int, call: Call) -> Write:
        params, result = call.params, call.result or {}
        identity = [{**params, **result}.get(name) for name in ("ComputeQuotaId", "ClusterSchedulerConfigId")]
        object_id = next(known for known in identity if known)
        name = self._names.setdefault(object_id, params.get("Name", object_id))
        config = params.get("ComputeQuotaConfig") or params.get("SchedulerConfig")
        return Write(place, call.time, name, config, APPLIER in call.principal.name)

    def _records(self) -> Iterable[Record]:
        """Return what there is on record since; a record that is as it was is not read again."""
        for item in self._items("RUN#"):
            if item["sk"] not in self._earlier:
                text = repr(item)
                if text not in self._read:
                    self._read[text] = self._record(item)
                yield self._read[text]

    def _items(self, prefix: str) -> list[dict[str, Any]]:
        """Return the cluster's items whose sort key begins so, read from the emulated table itself: that is quick."""
        place = self._world.stack.place
        table = dynamodb_backends[place.account][place.region].tables[self._world.stack.physical("GovernanceTable")]
        kept = table.items.get(DynamoType({"S": f"CLUSTER#{self._world.cluster_arn}"}), {})
        found = [
            kept[key].to_json()["Attributes"]
            for key in sorted(kept, key=lambda key: str(key.value))
            if str(key.value).startswith(prefix)
        ]
        return [{name: next(iter(value.values())) for name, value in item.items()} for item in found]

    def _dead_letters(self) -> int:
        """Return how many messages lie in the intake's dead-letter queue, read from the emulated queue itself."""
        place, url = self._world.stack.place, self._world.stack.physical("IntakeDeadLetterQueue")
        queue = sqs_backends[place.account][place.region].get_queue(url.rpartition("/")[2])
        return int(queue.approximate_number_of_messages)

    def _record(self, item: Mapping[str, Any]) -> Record:
        run_id = item["sk"].rpartition("#")[2]
        return Record(
            place=self._place_of(item["sk"]),
            run_id=run_id,
            closed_by_another=run_id.endswith(CLOSED_BY_ANOTHER),
            outcome=item["outcome"],
            started=datetime.fromisoformat(item["startedAt"]).astimezone(UTC),
            ended=datetime.fromisoformat(item["endedAt"]).astimezone(UTC),
            applied=int(item["applied"]),
            error=item.get("error", ""),
            planned=self._planned(json.loads(item["plan"])) if item.get("plan") else None,
            written=frozenset(resource["S"] for resource in item.get("written", ())) | self._told(item),
        )

    def _planned(self, place: Mapping[str, str]) -> tuple[tuple[str, Any], ...]:
        """Read what the plan at this place in the bucket writes."""
        stored = self._world.stack.client("s3").get_object(Bucket=place["bucket"], Key=place["key"])["Body"].read()
        return tuple((change["name"], change["after"]) for change in json.loads(stored)["changes"])

    def _told(self, item: Mapping[str, Any]) -> frozenset[str]:
        """Return what the record of a run that was stopped says in words: teams with versions, and the policy."""
        if not item["sk"].endswith(CLOSED_BY_ANOTHER):
            return frozenset()
        text = item.get("error", "")
        teams = re.findall(r"([\w-]+) at version", text.partition("; written: ")[2])
        policy = {"cluster policy"} if "the cluster policy was written" in text else set()
        return frozenset({f"{team}/{self._teams[team]}" for team in teams} | policy)

    def _place_of(self, record: str) -> int:
        """Return which call first kept a record."""
        for place, call in enumerate(self._world.stack.calls[self._calls :]):
            key = call.params.get("Item") or call.params.get("Key") or {}
            keeps = call.service == "dynamodb" and call.error is None and _KEEPS.match(call.operation)
            if keeps and key.get("sk", {}).get("S") == record:
                return place
        raise AssertionError(f"no call kept the record {record}")

    def _counted(self) -> Mapping[str, float]:
        sums: dict[str, float] = defaultdict(float)
        for result in self._world.stack.results[self._results :]:
            for datum in result.metrics:
                sums[datum.name] += sum(datum.values)
        return dict(sums)

    def _locked_until(self) -> datetime | None:
        (state,) = self._items("STATE")
        return datetime.fromtimestamp(int(state["lockExpires"]), UTC) if "lockOwner" in state else None


def _preemptions(world: World) -> int:
    return sum(len(cycle.preempted) for cycle in world.cluster.cycles)
