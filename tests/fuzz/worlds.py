"""What is fed with damaged samples: events, orders, documents, items of the table, what steps are given and read."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from random import Random
from typing import Any, Final, cast

import yaml

from taskgov import errors
from taskgov.adapters.dynamodb import APPLIED, POLICY, REFUSED, STAMP, Table
from taskgov.adapters.kubernetes.trimming import kept, trimmed, trimmed_node, trimmed_workload
from taskgov.backends.plain_eks.backend import PlainEks
from taskgov.contracts.steps import Cause
from taskgov.errors import GovernanceError
from taskgov.policy.parse import parse_policy
from taskgov.services.failures import Raised
from taskgov.snapshot.codec import snapshot_from_json, snapshot_to_json
from taskgov.snapshot.health import node_fault
from taskgov.snapshot.identity import Loss, RestoredState, StateStamp
from taskgov.snapshot.model import KueueObjects
from taskgov.snapshot.readable import KINDS as KINDS_OF_KUEUE
from taskgov.snapshot.records import AppliedPolicy, AppliedQuota
from tests.fuzz.handlers import Functions, record, run
from tests.fuzz.mutation import ODD, mutated, written
from tests.fuzz.samples import DOCUMENT, EVENTS, RICH, busy, governed
from tests.fuzz.stored import read_a_snapshot, read_what_was_stored
from tests.fuzz.table import read_the_table
from tests.services.test_take_order import PLAN, REQUEST, InMemoryBook
from tests.support.clusters import GovernedCluster
from tests.support.memory import CLUSTER_ARN, NOON
from tests.support.plans import instances, policy, target
from tests.support.refusals import REFUSED as _REFUSED

NOBODY: Final[Any] = None
"""What listing clusters does not ask."""
STEPS: Final = (
    "read_snapshot",
    "plan_quotas",
    "apply_change",
    "verify_plan",
    "publish_usage",
    "estimate_starts",
    "audit_cluster",
)
NOT_EVENTS: Final = {*STEPS, "publish_usage.all", "env", "receive_event.sqs", "take_order"}


def take_events(draw: Random) -> None:
    """Take one to three damaged events and a good one, in one batch: the good one counts, whatever the others are."""
    call = Functions(governed())
    names = [draw.choice(sorted(EVENTS.keys() - NOT_EVENTS)) for _ in range(draw.choice((1, 1, 2, 3)))]
    bodies: list[Any] = [written(mutated(EVENTS[name], draw), draw).decode(errors="replace") for name in names]
    place = draw.randrange(len(bodies) + 1)
    bodies.insert(place, EVENTS["hyperpod_node_health"])
    answer = call("receive_event", {"Records": [record(str(number), body) for number, body in enumerate(bodies)]})
    failed = {each["itemIdentifier"] for each in answer["batchItemFailures"]}
    assert failed <= {str(number) for number in range(len(bodies))} - {str(place)}
    refused = [said for level, _, said in call.log.lines if level == "error"]
    assert {said["record"] for said in refused} == failed
    for said in refused:
        assert issubclass(getattr(errors, said["error"]), GovernanceError)
        assert said["reason"]
    assert set(call.cluster.state.generations) == {CLUSTER_ARN}
    assert {arn for arn, _ in call.workflow.started.values()} == {CLUSTER_ARN}


ORDERS: Final[tuple[dict[str, Any], ...]] = (
    {"action": "approve", "clusterArn": CLUSTER_ARN, "planId": PLAN},
    {"action": "stop", "reason": "node maintenance"},
    {"action": "apply", "clusterArn": CLUSTER_ARN, "planId": PLAN},
    {"action": "reconcile", "clusterArn": CLUSTER_ARN, "retryRefused": True},
    {
        "action": "unlock",
        "clusterArn": CLUSTER_ARN,
        "owner": "a run",
        "fencingToken": 5,
        "expires": 1_800_000_000,
        "reason": "it is gone",
    },
    {
        "action": "put-document",
        "clusterArn": CLUSTER_ARN,
        "clusterName": "ml-cluster",
        "text": yaml.safe_dump(DOCUMENT),
        "claim": "ci",
    },
)


def take_an_order(draw: Random) -> None:
    """Answer a damaged request with a status, and with a reason where it is refused."""
    event = {**EVENTS["take_order"], "body": json.dumps(draw.choice(ORDERS))}
    if draw.random() < 0.7:
        event["body"] = written(mutated(json.loads(event["body"]), draw), draw).decode(errors="replace")
    else:
        event = mutated(event, draw)
    answer = Functions(governed(), InMemoryBook({(CLUSTER_ARN, PLAN): REQUEST}))("take_order", event)
    body = json.loads(answer["body"])
    assert answer["statusCode"] in {200, 400, 403, 404, 409}
    assert answer["statusCode"] == 200 or (body["error"] and body["message"])


def read_a_document(draw: Random) -> None:
    """Let a run that may write, and the listing of clusters, read a damaged document."""
    cluster = governed()
    cluster.documents.stored["policies/ml-cluster.yaml"] = written(mutated(RICH, draw), draw)
    PlainEks(NOBODY, cluster.documents, Raised(), NOBODY, NOBODY, NOBODY, {"ml-cluster"}.__contains__).clusters()
    run(Functions(cluster), "run-1", "apply")


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
    Functions(cluster)("audit_cluster", EVENTS["audit_cluster"])


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
    """Give a function a damaged input whose pointers lead to what a run stored; the lock of the input is held."""
    name = draw.choice(sorted(STEPS))
    cluster = governed()
    cluster.documents.stored["policies/ml-cluster.yaml"] = yaml.safe_dump(DOCUMENT).encode()
    call = Functions(cluster)
    run(call, "run-1")
    sample = json.loads(json.dumps(EVENTS[name]))
    for kind in ("plan", "snapshot"):
        if kind in sample:
            key = max(key for key in cluster.documents.stored if key.startswith(f"{kind}s/"))
            sample[kind] = {**sample[kind], "key": key, "sha256": sha256(cluster.documents.stored[key]).hexdigest()}
    if "lockOwner" in sample:
        cluster.state.lock[CLUSTER_ARN] = (sample["lockOwner"], sample["fencingToken"], None)
    call(name, mutated(sample, draw))


@dataclass
class _OddCluster(GovernedCluster):
    """Kueue's objects are as given, whatever quotas say."""

    odd: KueueObjects = field(default_factory=KueueObjects)

    def _kueue(self) -> KueueObjects:
        return self.odd


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
    call = Functions(_OddCluster(**vars(cluster), odd=KueueObjects(**seen)))
    match draw.randrange(4):
        case 0:
            run(call, "run-1", "apply")
        case 1:
            call("publish_usage", {"clusterArn": CLUSTER_ARN})
        case 2:
            call("estimate_starts", {"clusterArn": CLUSTER_ARN})
        case _:
            call("audit_cluster", EVENTS["audit_cluster"])
    snapshot = snapshot_from_json(snapshot_to_json(call.cluster.take_snapshot()(CLUSTER_ARN)))
    known = {"", *(node.name for node in before.nodes)}
    if [each.name in known for each in snapshot.unreadable_objects if each.kind == "Node"] == [True]:
        assert [node.name for node in snapshot.nodes if node_fault(node)] == [], "a node that is odd is no lost node"


KINDS: Final[tuple[Callable[[Random], None], ...]] = (
    take_events,
    take_an_order,
    read_a_document,
    plan_a_document,
    read_an_item,
    read_the_table,
    take_a_step,
    read_what_was_stored,
    read_a_snapshot,
    look_at_odd_objects,
)
