"""The handlers in functions/, over one cluster in memory: what Lambda would run, without the account."""

import contextlib
import importlib.util
import io
import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from types import ModuleType, SimpleNamespace
from typing import Any, Final
from unittest.mock import patch

from taskgov.errors import GovernanceError
from taskgov.services.apply_change import ApplyChange, ApplyChanges
from taskgov.services.claim_cluster import ClaimCluster
from taskgov.services.estimate_starts import EstimateStarts
from taskgov.services.failures import Raised
from taskgov.services.keep_work import KeepWork
from taskgov.services.plan_quotas import PlanQuotas
from taskgov.services.read_queue import ReadQueue
from taskgov.services.read_snapshot import ReadSnapshot
from taskgov.services.receive_event import ReceiveEvent
from taskgov.services.step_inputs import LastPlan
from taskgov.services.take_order import Rights, TakeOrder
from taskgov.services.verify_plan import VerifyPlan
from taskgov.services.work_record import RecordedWork
from tests.fuzz.samples import EVENTS, ROOT, audit_of
from tests.services.test_take_order import InMemoryBook
from tests.support.clusters import GovernedCluster
from tests.support.memory import CLUSTER_ARN, InMemoryTags, InMemoryWorkflow, RecordingFailures

OWN_ROLE: Final = "arn:aws:iam::111122223333:role/own"
USE_CASE: Final = {"apply_change": "apply_changes"}
"""The name of the use case in a handler's module, where it is not the function's."""
CONTEXT: Final = SimpleNamespace(
    function_name="fuzz",
    memory_limit_in_mb=512,
    invoked_function_arn="arn:aws:lambda:us-east-1:111122223333:function:fuzz",
    aws_request_id="00000000-0000-4000-8000-000000000000",
    get_remaining_time_in_millis=lambda: 60_000,
)


@dataclass
class Log:
    """Keeps the lines of a handler, each of which must be JSON."""

    lines: list[tuple[str, str, Mapping[str, Any]]] = field(default_factory=list)

    def info(self, message: str, *, extra: Mapping[str, Any]) -> None:
        self._keep("info", message, extra)

    def warning(self, message: str, *, extra: Mapping[str, Any]) -> None:
        self._keep("warning", message, extra)

    def error(self, message: str, *, extra: Mapping[str, Any]) -> None:
        self._keep("error", message, extra)

    def _keep(self, level: str, message: str, extra: Mapping[str, Any]) -> None:
        json.dumps(extra)
        self.lines.append((level, message, extra))


@dataclass
class Functions:
    """The functions of a stack that governs one cluster."""

    cluster: GovernedCluster
    book: InMemoryBook = field(default_factory=InMemoryBook)
    workflow: InMemoryWorkflow = field(default_factory=InMemoryWorkflow)
    log: Log = field(default_factory=Log)

    def __call__(self, name: str, event: Any) -> Any:
        """Return a function's answer to an event, both as JSON."""
        module, use_case = handler_of(name), self._use_case(name)
        given = json.loads(json.dumps(event))
        with (
            patch.object(module, USE_CASE.get(name, name), lambda: use_case),
            patch.object(module, "logger", self.log),
            contextlib.redirect_stdout(io.StringIO()),
        ):
            return json.loads(json.dumps(module.handler(given, CONTEXT)))

    def _use_case(self, name: str) -> Callable[..., Any]:
        cluster = self.cluster
        backend, documents, state, clock = cluster.hyperpod, cluster.documents, cluster.state, cluster.clock
        nobody_follows: Any = cluster.kubernetes
        make: dict[str, Callable[[], Callable[..., Any]]] = {
            "receive_event": lambda: ReceiveEvent(backend, state, self.workflow, clock, OWN_ROLE),
            "take_order": lambda: TakeOrder(self.book, Rights, clock),
            "read_snapshot": lambda: ReadSnapshot(cluster.take_snapshot(), documents, state),
            "plan_quotas": lambda: PlanQuotas(documents),
            "apply_change": lambda: ApplyChanges(
                ApplyChange(backend, documents, state, clock, read_plan=LastPlan()),
                ClaimCluster(InMemoryTags(), state, clock),
            ),
            "verify_plan": lambda: VerifyPlan(backend, documents, state, clock, read_plan=LastPlan()),
            "publish_usage": lambda: cluster.publish_usage(
                keep_work=KeepWork(documents, RecordingFailures(), timedelta(minutes=1))
            ),
            "estimate_starts": lambda: EstimateStarts(
                ReadQueue(backend, cluster.kubernetes, nobody_follows, clock, documents),
                documents,
                RecordedWork(documents),
                Raised(),
                lambda: 0.0,
                180,
            ),
            "audit_cluster": lambda: audit_of(cluster, cluster.take_snapshot()),
        }
        return make[name]()


def record(message: str, event: Any) -> dict[str, Any]:
    """Return an event, or the text that came instead of one, as SQS delivers it."""
    body = event if isinstance(event, str) else json.dumps(event)
    return {**EVENTS["receive_event.sqs"]["Records"][0], "messageId": message, "body": body}


@cache
def handler_of(function: str) -> ModuleType:
    """Return the module of a function's handler, as Lambda imports it."""
    path = ROOT / "functions" / function / "app.py"
    spec = importlib.util.spec_from_file_location(f"fuzzed_{function}", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    with patch.dict(os.environ, {"POWERTOOLS_METRICS_NAMESPACE": "fuzz"}):
        spec.loader.exec_module(module)
    return module


EXECUTION: Final = "arn:aws:states:us-east-1:111122223333:execution:reconcile:ml-cluster-5-run"
TOKEN: Final = 5


def run(call: Functions, run_id: str, mode: str = "plan", *, locked: bool = False) -> None:
    """Let the functions do what the state machine has them do in one run, in its order.

    `locked`: the lock is in the table already. What the state machine's `Catch` handles, an error of the domain, ends
    the run here too, by `publish_usage`.
    """
    lock = {"lockOwner": EXECUTION, "fencingToken": TOKEN}
    if not locked:
        call.cluster.state.lock[CLUSTER_ARN] = (EXECUTION, TOKEN, None)
    cause = {"eventId": "e-1", "source": "s", "detailType": "t", "at": call.cluster.clock.now().isoformat()}
    end: dict[str, Any] = {"clusterArn": CLUSTER_ARN, "runId": run_id, "cause": cause, "startedAt": cause["at"]}
    try:
        end |= _up_to_the_end(call, {"clusterArn": CLUSTER_ARN, "runId": run_id, "cause": cause} | lock, mode)
    except GovernanceError as error:
        end |= {"outcome": "failed", "error": str(error)}
    call("publish_usage", {"applied": 0, **end})


def _up_to_the_end(call: Functions, given: dict[str, Any], mode: str) -> dict[str, Any]:
    seen = call("read_snapshot", given)
    if "unreadable" in seen:
        return {"outcome": "unreadable", "error": seen["unreadable"]}
    planned = call("plan_quotas", {"snapshot": seen["snapshot"], "applyMode": mode, "needsApprover": False})
    end = {"outcome": planned["outcome"], "plan": planned["plan"], "snapshot": seen["snapshot"]}
    if planned["outcome"] != "apply":
        return end
    lock = {name: given[name] for name in ("clusterArn", "lockOwner", "fencingToken")} | {"plan": planned["plan"]}
    due, written = 0, 0
    while due < planned["changeCount"]:
        step = call("apply_change", {**lock, "index": due, "count": planned["changeCount"]})
        assert step["next"] > due
        due, written = step["next"], written + step["written"]
        call.cluster.hyperpod.settle()
        call("verify_plan", {**lock, "next": due})
    return {**end, "outcome": "applied", "applied": written, "begun": [planned["plan"]]}
