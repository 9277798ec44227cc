"""What is fed with damaged samples: events, documents, items of the table, what steps are given and what they read."""

import json
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final, cast

import yaml

from taskgov.adapters.dynamodb import APPLIED, POLICY, REFUSED, STAMP, Table
from taskgov.adapters.kubernetes.trimming import kept, trimmed, trimmed_node, trimmed_workload
from taskgov.allocation.codec import plan_to_json
from taskgov.allocation.lease_book import lease_book
from taskgov.allocation.planner import plan_quotas
from taskgov.backends.plain_eks.backend import PlainEks
from taskgov.contracts.steps import (
    ApplyChangeRequest,
    AuditClusterRequest,
    Cause,
    PlanQuotasRequest,
    PublishUsageRequest,
    ReadSnapshotRequest,
    StepModel,
    VerifyPlanRequest,
)
from taskgov.policy.parse import parse_policy
from taskgov.services.failures import Raised
from taskgov.services.measure_usage import measure_usage
from taskgov.services.read_snapshot import ReadSnapshot
from taskgov.services.receive_event import Hinted, ReceiveEvent
from taskgov.snapshot.codec import snapshot_from_json, snapshot_to_json
from taskgov.snapshot.health import node_fault
from taskgov.snapshot.identity import Loss, RestoredState, StateStamp
from taskgov.snapshot.model import KueueObjects
from taskgov.snapshot.readable import KINDS as KINDS_OF_KUEUE
from taskgov.snapshot.records import AppliedPolicy, AppliedQuota
from taskgov.usage.cluster_usage import cluster_usage
from tests.fuzz.mutation import ODD, mutated, written
from tests.fuzz.samples import DOCUMENT, RICH, ROOT, audit_of, busy, governed
from tests.fuzz.stored import read_a_snapshot, read_what_was_stored
from tests.support.memory import (
    CLUSTER_ARN,
    NOON,
    FixedClock,
    InMemoryHyperPod,
    InMemoryState,
    InMemoryWorkflow,
)
from tests.support.plans import instances, policy, target
from tests.support.refusals import REFUSED as _REFUSED

NOBODY: Final[Any] = None
"""What listing clusters does not ask."""
EVENTS: Final = {path.stem: json.loads(path.read_text()) for path in sorted((ROOT / "events").glob("*.json"))}
STEPS: Final[Mapping[str, type[StepModel]]] = {
    "read_snapshot": ReadSnapshotRequest,
    "plan_quotas": PlanQuotasRequest,
    "apply_change": ApplyChangeRequest,
    "verify_plan": VerifyPlanRequest,
    "publish_usage": PublishUsageRequest,
    "audit_cluster": AuditClusterRequest,
}
NOT_EVENTS: Final = {*STEPS, "publish_usage.all", "env", "receive_event.sqs"}


def take_an_event(draw: Random) -> None:
    name = draw.choice(sorted(EVENTS.keys() - NOT_EVENTS))
    event = mutated(EVENTS[name], draw)
    state, workflow = InMemoryState(), InMemoryWorkflow()
    receive = ReceiveEvent(InMemoryHyperPod(), state, workflow, FixedClock(), "arn:aws:iam::111122223333:role/own")
    outcome = receive(event)
    if isinstance(outcome, Hinted):
        marked = receive.mark({"one": outcome})
        for error in marked.failed.values():
            raise error
    assert set(state.generations) <= {CLUSTER_ARN}
    assert {arn for arn, _ in workflow.started.values()} <= {CLUSTER_ARN}


def read_a_document(draw: Random) -> None:
    body = written(mutated(RICH, draw), draw)
    cluster = governed()
    cluster.documents.stored["policies/ml-cluster.yaml"] = body
    PlainEks(NOBODY, cluster.documents, Raised(), NOBODY, NOBODY, NOBODY, {"ml-cluster"}.__contains__).clusters()
    snapshot = cluster.take_snapshot()("ml-cluster")
    plan_to_json(plan_quotas(snapshot, mode="plan"))
    assert snapshot.policy is not None or snapshot.policy_violations


def plan_a_document(draw: Random) -> None:
    """Plan and audit documents that are valid: damage that breaks no rule."""
    for _ in range(20):
        body = written(mutated(RICH, draw), draw)
        if parse_policy(body).document is not None:
            break
    else:
        return
    cluster = governed()
    cluster.documents.stored["policies/ml-cluster.yaml"] = body
    audit = audit_of(cluster, cluster.take_snapshot())
    audit(AuditClusterRequest(cluster_arn=CLUSTER_ARN, run_id="run-1"))


class _OddTable:
    """Answers with the items that it was given, whatever is asked."""

    def __init__(self, items: list[dict[str, Any]]) -> None:
        self.items = items

    def get_item(self, **_: Any) -> dict[str, Any]:
        return {"Item": self.items[0]} if self.items else {}

    def query(self, **_: Any) -> dict[str, Any]:
        return {"Items": self.items}

    def update_item(self, **_: Any) -> dict[str, Any]:
        return {"Attributes": {"generation": 1, **self.items[0]}}  # the update itself adds to it

    def put_item(self, **_: Any) -> dict[str, Any]:
        return {}


CAUSE: Final = Cause(event_id="e-1", source="s", detail_type="t", at=NOON)
_APPLIED: Final = AppliedQuota("quota0000001", 1, instances(2), target("team-a"), "plan-1", NOON)
_POLICY: Final = AppliedPolicy("schedconf001", 1, policy(training=70), "plan-1", NOON)
_STAMP: Final = StateStamp("own", 3, NOON, RestoredState(Loss.TABLE_BEHIND, NOON, "it is older"))
_LOCK: Final = {
    "lockOwner": "run",
    "lockExpires": 1_800_000_000,
    "fencingToken": 2,
    "askedBy": "run",
    "askedUntil": 1_800_000_000,
    "lockPlan": json.dumps({"bucket": "b", "key": "plans/x.json", "sha256": "0" * 64}),
    "lockPlanToken": 2,
}
KEY: Final = {"pk": f"CLUSTER#{CLUSTER_ARN}"}


def hold(table: Table) -> None:
    table.hold_lock(CLUSTER_ARN, "run", 2, NOON)


ITEMS: Final[tuple[tuple[dict[str, Any], Callable[[Table], object]], ...]] = (
    (
        {"generation": 3, "lockOwner": "run", "lockExpires": 1_800_000_000, "fencingToken": 2},
        lambda table: (
            table.generation(CLUSTER_ARN),
            table.mark_dirty(CLUSTER_ARN, "ml-cluster", CAUSE, NOON),
        ),
    ),
    (
        {"record": json.loads(APPLIED.kept(_APPLIED))},
        lambda table: (table.applied_quotas(CLUSTER_ARN), table.applied_quota(CLUSTER_ARN, "quota0000001")),
    ),
    (
        {"record": json.loads(POLICY.kept(_POLICY))},
        lambda table: table.applied_policy(CLUSTER_ARN),
    ),
    (
        {"by": "ana", "at": "2026-11-20T09:00:00+00:00", "eventName": "UpdateComputeQuota"},
        lambda table: table.edits(CLUSTER_ARN),
    ),
    ({"lockOwner": "run", "fencingToken": 2}, hold),
    ({"clusterArn": CLUSTER_ARN}, lambda table: table.cluster_of("quota0000001")),
    ({"on": True, "by": "ana"}, lambda table: table.stop_switch()),
    (
        {"lineage": "own", "serial": 3, "record": json.loads(STAMP.kept(_STAMP))},
        lambda table: table.stamp(CLUSTER_ARN),
    ),
    ({"at": "2026-11-20T09:00:00+00:00"}, lambda table: table.last_look(CLUSTER_ARN)),
    (
        {"sk": "RUN#2026-11-20T09:00:00+00:00#run-1", "endedAt": "2026-11-20T09:00:00+00:00"},
        lambda table: table.last_run(CLUSTER_ARN),
    ),
    (_LOCK, lambda table: (table.lock_of(CLUSTER_ARN).looks_old(NOON), table.lock_of(CLUSTER_ARN).is_held(NOON))),
    ({"author": "ana", "acceptedBy": "ben", "claim": "ci"}, lambda table: table.authorship("ml-cluster", "v1")),
    ({"record": json.loads(REFUSED.kept(_REFUSED))}, lambda table: table.refusals(CLUSTER_ARN)),
)


def read_an_item(draw: Random) -> None:
    sample, reads = draw.choice(ITEMS)
    item = mutated(sample, draw)
    if not isinstance(item, dict):
        return
    if "record" in item and draw.random() < 0.9:
        item["record"] = written(item["record"], draw).decode(errors="replace")
    reads(Table(cast("Any", _OddTable([{"sk": "EDIT#quota0000001", **KEY, **item}]))))


def take_a_step(draw: Random) -> None:
    name = draw.choice(sorted(STEPS))
    request = STEPS[name].parse(mutated(EVENTS[name], draw))
    cluster = governed()
    if isinstance(request, PublishUsageRequest):
        plan = cluster.documents.put("plans/x.json", plan_to_json(plan_quotas(cluster.snapshot(), mode="plan")), "")
        request = request.model_copy(update={"plan": plan if request.plan else None})
        cluster.publish_usage()(request)
    elif isinstance(request, ReadSnapshotRequest):
        ReadSnapshot(cluster.take_snapshot(), cluster.documents, cluster.state)(request)


def look_at_odd_objects(draw: Random) -> None:
    """Look at a cluster with odd objects of Kubernetes: the look, the plan, the measuring and the audit go on."""
    cluster = busy()
    cluster.documents.stored["policies/ml-cluster.yaml"] = yaml.safe_dump(DOCUMENT).encode()
    take = cluster.take_snapshot()
    before = take(CLUSTER_ARN, remember=True)
    cluster.clock.advance(hours=3)
    kinds: dict[str, list[Any]] = {"nodes": cluster.kubernetes.node_objects}
    kinds |= {name: list(getattr(cluster.kubernetes.kueue, name)) for name in KINDS_OF_KUEUE}
    found = json.loads(json.dumps(kinds))
    for kind in draw.sample(sorted(kind for kind in found if found[kind]), draw.choice((1, 1, 2))):
        place = draw.randrange(len(found[kind]))
        found[kind][place] = mutated(found[kind][place], draw) if draw.random() < 0.95 else draw.choice(ODD)
    trims: dict[str, Any] = {"nodes": trimmed_node, "workloads": trimmed_workload}
    seen: dict[str, Any] = {
        kind: tuple(kept(item, trims.get(kind, trimmed)) for item in items) for kind, items in found.items()
    }
    cluster.kubernetes.node_objects = list(seen.pop("nodes"))
    cluster.kubernetes.kueue = KueueObjects(**seen)
    snapshot = snapshot_from_json(snapshot_to_json(take(CLUSTER_ARN, remember=True)))
    match draw.randrange(3):
        case 0:
            plan_to_json(plan_quotas(snapshot, mode="apply"))
        case 1:
            measure_usage(cluster_usage(snapshot), snapshot.taken_at, lease_book(snapshot))
        case _:
            audit = audit_of(cluster, take)
            audit(AuditClusterRequest(cluster_arn=CLUSTER_ARN, run_id="run-1"))
    known = {"", *(node.name for node in before.nodes)}
    if [each.name in known for each in snapshot.unreadable_objects if each.kind == "Node"] == [True]:
        assert [node.name for node in snapshot.nodes if node_fault(node)] == [], "a node that is odd is no lost node"


KINDS: Final[tuple[Callable[[Random], None], ...]] = (
    take_an_event,
    read_a_document,
    plan_a_document,
    read_an_item,
    take_a_step,
    read_what_was_stored,
    read_a_snapshot,
    look_at_odd_objects,
)
