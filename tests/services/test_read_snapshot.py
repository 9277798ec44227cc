"""Reading a cluster into one snapshot."""

import json
import re
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from moto import mock_aws

from taskgov import keys
from taskgov.adapters.dynamodb import Table
from taskgov.contracts.steps import Cause, ReadSnapshotRequest
from taskgov.errors import InvalidRequestError, LockLostError, NotFoundError, ThrottledError, UpstreamError
from taskgov.ports import LOCK_SECONDS
from taskgov.services.read_snapshot import ReadSnapshot
from taskgov.services.take_snapshot import TakeSnapshot
from taskgov.snapshot.codec import snapshot_from_json
from taskgov.snapshot.leaving import Reserved
from taskgov.snapshot.reservations import TRAINING_PLAN, Period, Reservation
from taskgov.snapshot.unreadable import UnreadableItem
from tests.support.governance_table import governance_table
from tests.support.memory import (
    CLUSTER_ARN,
    NOON,
    FixedClock,
    FixedKubernetes,
    InMemoryDocuments,
    InMemoryHyperPod,
    InMemoryState,
    cluster_description,
)
from tests.support.plans import instances, policy, target
from tests.support.refusals import REFUSED

CAUSE = Cause(event_id="e-1", source="taskgov.operator", detail_type="Reconcile Requested", at=NOON)
POLICY = """
apiVersion: taskgov/v1
cluster: {name: ml-cluster, arn: "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdefghijkl"}
teams:
  - name: team-a
    share: [{instanceType: ml.g5.8xlarge, percent: 50}]
"""


def node(instance_id: str, *, ready: bool = True) -> dict[str, Any]:
    return {
        "metadata": {
            "name": f"hyperpod-{instance_id}",
            "creationTimestamp": "2026-11-20T08:00:00Z",
            "labels": {"node.kubernetes.io/instance-type": "ml.g5.8xlarge"},
        },
        "spec": {},
        "status": {
            "allocatable": {"cpu": "31", "memory": "120Gi", "nvidia.com/gpu": "1"},
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }


class World:
    def __init__(self) -> None:
        self.hyperpod = InMemoryHyperPod()
        self.documents = InMemoryDocuments()
        self.kubernetes = FixedKubernetes([node("i-0aaaaaaaaaaaaaaaa"), node("i-0bbbbbbbbbbbbbbbb")])
        self.state = InMemoryState()
        self.clock = FixedClock()
        self.hyperpod.create_quota(CLUSTER_ARN, "team-a", instances(1), target("team-a"))
        self.hyperpod.create_scheduler_config(CLUSTER_ARN, "policy", policy(training=70))
        self.take = TakeSnapshot(self.hyperpod, self.kubernetes, self.documents, self.state, self.clock)

    def read(self) -> Any:
        request = ReadSnapshotRequest(cluster_arn=CLUSTER_ARN, run_id="run-1", cause=CAUSE)
        return ReadSnapshot(self.take, self.documents, self.state)(request)

    def write_policy(self, text: str = POLICY) -> None:
        self.documents.put("policies/ml-cluster.yaml", text.encode(), "application/yaml")


@pytest.fixture
def world() -> World:
    return World()


def test_a_snapshot_holds_what_every_side_says(world: World) -> None:
    world.write_policy()
    result = world.read()
    snapshot = snapshot_from_json(world.documents.get(result.snapshot))
    assert snapshot.cluster.name == result.cluster_name == "ml-cluster"
    assert [each.instance_type for each in snapshot.nodes] == ["ml.g5.8xlarge"] * 2
    assert [quota.name for quota in snapshot.quotas] == ["team-a"]
    assert snapshot.scheduler_config is not None
    assert snapshot.policy is not None
    assert snapshot.policy.teams[0].share[0].percent == 50
    assert snapshot.policy_version


def test_a_snapshot_holds_the_writes_that_were_refused(world: World) -> None:
    world.state.record_refusal(CLUSTER_ARN, REFUSED)
    assert snapshot_from_json(world.documents.get(world.read().snapshot)).refusals == (REFUSED,)


def test_the_generation_is_the_one_before_anything_was_read(world: World) -> None:
    world.state.mark_dirty(CLUSTER_ARN, "ml-cluster", CAUSE, NOON)
    assert world.read().generation == 1


def test_what_belongs_to_the_cluster_is_recorded_for_events_that_do_not_say(world: World) -> None:
    world.read()
    assert world.state.owners == {"quota0000001": CLUSTER_ARN, "schedconf001": CLUSTER_ARN}


def test_whose_the_quotas_are_is_read_by_the_hundred_and_only_where_the_stamp_does_not_say_it() -> None:
    calls: list[str] = []
    with mock_aws():
        table = Table(governance_table())
        events = table._table.meta.client.meta.events
        events.register("before-call.dynamodb", lambda model, params, **_: calls.append(asked(model.name, params)))
        world = World()
        world.take = replace(world.take, state=table)
        world.state = table  # type: ignore[assignment]

        def requests_of_a_look() -> dict[str, int]:
            calls.clear()
            world.read()
            return dict(Counter(call for call in calls if call.endswith("QUOTA#")))

        for number in range(1, 200):
            world.hyperpod.create_quota(CLUSTER_ARN, f"team-{number}", instances(1), target(f"team-{number}"))
        assert requests_of_a_look() == {"BatchGetItem QUOTA#": 2, "GetItem QUOTA#": 1, "PutItem QUOTA#": 201}
        assert requests_of_a_look() == {}
        added = world.hyperpod.create_quota(CLUSTER_ARN, "team-new", instances(1), target("team-new"))
        assert requests_of_a_look() == {"BatchGetItem QUOTA#": 3, "GetItem QUOTA#": 1, "PutItem QUOTA#": 1}
        assert table.cluster_of(added.resource_id) == table.cluster_of("schedconf001") == CLUSTER_ARN
        assert requests_of_a_look() == {}
        table._table.delete_item(Key=keys.owner(added.resource_id))
        world.clock.advance(days=1)
        assert requests_of_a_look() == {"BatchGetItem QUOTA#": 3, "GetItem QUOTA#": 1, "PutItem QUOTA#": 1}
        table._table.delete_item(Key=keys.owner(added.resource_id))
        table._table.delete_item(Key=keys.lineage(CLUSTER_ARN))  # the table is found to be restored
        assert requests_of_a_look() == {"BatchGetItem QUOTA#": 3, "GetItem QUOTA#": 1, "PutItem QUOTA#": 1}


def asked(operation: str, params: Any) -> str:
    """Return what a request to the table does, and how the first partition key in it begins."""
    found = re.search(r'"((?:CLUSTER|QUOTA|DOCUMENT)#|SWITCH)', params["body"].decode())
    assert found is not None
    return f"{operation} {found[1]}"


def test_since_when_a_node_is_unhealthy_outlives_the_run(world: World) -> None:
    world.read()
    world.kubernetes.node_objects[1] = node("i-0bbbbbbbbbbbbbbbb", ready=False)
    world.clock.advance(minutes=1)
    world.read()
    world.clock.advance(minutes=5)
    snapshot = snapshot_from_json(world.documents.get(world.read().snapshot))
    assert [each.unhealthy_since for each in snapshot.nodes] == [None, NOON.replace(minute=1)]


def test_only_a_run_writes_what_it_records_of_nodes(world: World) -> None:
    world.take(CLUSTER_ARN)
    assert world.documents.find("memory/ml-cluster/nodes.json") is None
    world.read()
    assert json.loads(world.documents.find("memory/ml-cluster/nodes.json") or b"")


def test_a_document_that_breaks_rules_leaves_its_violations_and_no_policy(world: World) -> None:
    world.write_policy(POLICY.replace("percent: 50", "percent: 150").replace("taskgov/v1", "taskgov/v9"))
    snapshot = world.take("ml-cluster")
    assert snapshot.policy is None
    assert {violation.path for violation in snapshot.policy_violations} == {
        "apiVersion",
        "teams[0].share[0].percent",
    }


def test_a_cluster_without_a_document_has_none(world: World) -> None:
    snapshot = world.take("ml-cluster")
    assert (snapshot.policy, snapshot.policy_version, snapshot.policy_violations) == (None, None, ())


def test_a_stop_switch_that_cannot_be_read_is_reported_as_such(world: World) -> None:
    world.state.stopped = None
    assert world.take("ml-cluster").stopped is None


def test_a_damaged_memory_of_nodes_is_an_error_that_says_what_to_do(world: World) -> None:
    world.documents.put("memory/ml-cluster/nodes.json", b"{", "application/json")
    with pytest.raises(InvalidRequestError, match="delete it"):
        world.take("ml-cluster")


def test_a_cluster_that_eks_does_not_orchestrate_is_refused(world: World) -> None:
    world.hyperpod.descriptions = [cluster_description(Orchestrator={"Slurm": {}})]
    with pytest.raises(InvalidRequestError, match="not orchestrated by EKS"):
        world.take("ml-cluster")


def test_reading_renews_the_lock_of_its_run_as_long_as_it_reads(world: World) -> None:
    world.write_policy()
    world.state.lock[CLUSTER_ARN] = ("run-1", 4, world.clock.now().timestamp() + 10)
    request = ReadSnapshotRequest(cluster_arn=CLUSTER_ARN, run_id="run-1", lock_owner="run-1", fencing_token=4)
    ReadSnapshot(world.take, world.documents, world.state)(request)
    assert world.state.lock[CLUSTER_ARN][2] == world.clock.now().timestamp() + LOCK_SECONDS
    world.state.lock[CLUSTER_ARN] = ("run-2", 5, world.clock.now().timestamp() + 10)
    with pytest.raises(LockLostError):
        ReadSnapshot(world.take, world.documents, world.state)(request)


@pytest.mark.parametrize("half", [{"lockOwner": "run-1"}, {"fencingToken": 1}])
def test_half_a_lock_is_refused(half: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequestError, match="lockOwner and fencingToken belong together"):
        ReadSnapshotRequest.parse({"clusterArn": CLUSTER_ARN, "runId": "run-1", **half})


def test_each_look_of_a_run_raises_the_serial_of_table_and_bucket(world: World) -> None:
    for serial in (1, 2):
        snapshot = snapshot_from_json(world.documents.get(world.read().snapshot))
        stored = world.documents.find("memory/ml-cluster/state.json")
        assert stored is not None
        assert snapshot.state == world.state.stamp(CLUSTER_ARN)
        assert snapshot.state is not None
        assert (snapshot.state.serial, json.loads(stored)["serial"]) == (serial, serial)
        assert snapshot.state.lineage == json.loads(stored)["lineage"]


def test_a_look_that_was_cut_short_between_table_and_bucket_is_no_loss(world: World) -> None:
    world.read()
    kept = world.documents.stored["memory/ml-cluster/state.json"]
    for _ in range(3):
        world.clock.advance(hours=1)
        world.read()
        world.documents.stored["memory/ml-cluster/state.json"] = kept  # what the look wrote there never arrived
    world.clock.advance(hours=1)
    snapshot = snapshot_from_json(world.documents.get(world.read().snapshot))
    assert snapshot.state is not None
    assert snapshot.state.restored is None


def test_a_look_that_belongs_to_no_run_raises_nothing(world: World) -> None:
    world.take(CLUSTER_ARN)
    assert world.state.stamp(CLUSTER_ARN) is None


@pytest.mark.parametrize("key", ["memory/ml-cluster/nodes.json", "memory/ml-cluster/state.json"])
def test_a_node_that_is_unhealthy_when_the_memory_is_gone_has_just_turned(world: World, key: str) -> None:
    world.read()
    world.read()
    del world.documents.stored[key]
    world.kubernetes.node_objects[1] = node("i-0bbbbbbbbbbbbbbbb", ready=False)
    world.clock.advance(minutes=1)
    snapshot = snapshot_from_json(world.documents.get(world.read().snapshot))
    moments = [(each.found_healthy, each.unhealthy_since) for each in snapshot.nodes]
    assert moments == [(True, None), (True, NOON.replace(minute=1))]


def test_one_call_reads_who_governs_the_cluster(world: World) -> None:
    world.hyperpod.put_tag(CLUSTER_ARN, "taskgov:stack:elder", NOON.isoformat())
    world.hyperpod.tagged.calls.clear()
    snapshot = snapshot_from_json(world.documents.get(world.read().snapshot))
    assert [claim.lineage for claim in snapshot.claims] == ["elder"]
    assert world.hyperpod.tagged.calls == ["tags"]


def test_an_item_that_cannot_be_read_is_in_the_snapshot_and_stops_nothing(world: World) -> None:
    world.state.unreadable = (UnreadableItem("CLUSTER#arn", "QUOTA#quota0000001", "its schema is 9"),)
    snapshot = snapshot_from_json(world.documents.get(world.read().snapshot))
    assert snapshot.unreadable == world.state.unreadable


def test_nodes_that_nobody_lists_stay_in_the_snapshots(world: World) -> None:
    world.write_policy()
    world.read()
    world.kubernetes.node_objects.clear()
    for minute in (1, 60):
        world.clock.advance(minutes=minute)
        snapshot = snapshot_from_json(world.documents.get(world.read().snapshot))
        assert [each.name for each in snapshot.gone] == ["hyperpod-i-0aaaaaaaaaaaaaaaa", "hyperpod-i-0bbbbbbbbbbbbbbbb"]


def test_nodes_of_a_training_plan_say_when_they_leave_also_when_it_cannot_be_read_later(world: World) -> None:
    plan = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/spring"
    group = {"InstanceGroupName": "bought", "InstanceType": "ml.g5.8xlarge", "TrainingPlanArn": plan}
    world.hyperpod.descriptions = [cluster_description(InstanceGroups=[group])]
    labels = world.kubernetes.node_objects[0]["metadata"]["labels"]
    labels["sagemaker.amazonaws.com/instance-group-name"] = "bought"
    period = Period(NOON, NOON + timedelta(hours=10))
    for reservation in (
        Reservation(plan, TRAINING_PLAN, "Active", (period,)),
        Reservation.silent(plan, TRAINING_PLAN, "throttled"),
    ):
        world.hyperpod.machines.bought = Reserved((reservation,))
        snapshot = snapshot_from_json(world.documents.get(world.read().snapshot))
        assert snapshot.cluster.instance_groups[0].training_plan == plan
        assert snapshot.reservations == (reservation,)
        assert [node.leaves_at for node in snapshot.nodes] == [NOON + timedelta(hours=9.5), None]


def test_a_look_that_fails_records_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.read()
    before = world.documents.find("memory/ml-cluster/nodes.json")
    world.kubernetes.node_objects.clear()
    world.clock.advance(minutes=1)
    monkeypatch.setattr(world.hyperpod, "quotas", _down)
    assert world.read().unreadable == f"UpstreamError: quotas of {CLUSTER_ARN}: down"
    assert world.documents.find("memory/ml-cluster/nodes.json") == before


def _down(cluster_arn: str, _: Any = None) -> Any:
    raise UpstreamError(f"quotas of {cluster_arn}: down")


def test_a_look_is_kept_only_when_it_was_successful_to_its_end(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.read()
    assert world.state.last_look(CLUSTER_ARN) == NOON
    world.clock.advance(minutes=1)
    monkeypatch.setattr(world.hyperpod, "quotas", _down)
    assert world.read().unreadable == f"UpstreamError: quotas of {CLUSTER_ARN}: down"
    assert world.state.last_look(CLUSTER_ARN) == NOON


def test_a_look_at_an_eks_cluster_is_kept_by_its_name_too(world: World) -> None:
    """A schedule has no ARN of it: it names the document."""
    world.hyperpod.descriptions[0]["Orchestrator"]["Eks"]["ClusterArn"] = CLUSTER_ARN
    world.read()
    assert (world.state.last_look(CLUSTER_ARN), world.state.last_look("ml-cluster")) == (NOON, NOON)


class TestAClusterThatCannotBeRead:
    """It is answered, not raised: the alarms of the function and of the state machine are not for it."""

    @pytest.mark.parametrize(
        ("port", "method"),
        [
            ("hyperpod", "describe_cluster"),
            ("hyperpod", "cluster_nodes"),
            ("hyperpod", "quotas"),
            ("hyperpod", "scheduler_config"),
            ("kubernetes", "nodes"),
            ("kubernetes", "kueue_objects"),
            ("hyperpod", "tags"),
        ],
    )
    @pytest.mark.parametrize(
        ("error", "said"),
        [
            (UpstreamError("403 Forbidden"), "UpstreamError: 403 Forbidden"),
            (NotFoundError("no Kueue"), "Error: no Kueue"),
            (KeyError("ClusterName"), "the answer cannot be read (KeyError at "),
        ],
    )
    def test_says_why(
        self, world: World, monkeypatch: pytest.MonkeyPatch, port: str, method: str, error: Exception, said: str
    ) -> None:
        monkeypatch.setattr(getattr(world, port), method, raising(error))
        assert said in world.read().unreadable

    def test_is_one_that_was_deleted(self, world: World) -> None:
        world.hyperpod.descriptions = []
        assert world.read().unreadable == f"NothingToReadError: cluster {CLUSTER_ARN}"

    def test_is_one_without_eks(self, world: World) -> None:
        world.hyperpod.descriptions = [cluster_description(Orchestrator={"Slurm": {}})]
        assert "not orchestrated by EKS" in world.read().unreadable

    def test_is_one_that_describes_itself_in_another_form(self, world: World) -> None:
        world.hyperpod.descriptions[0].pop("ClusterStatus")
        assert "the answer cannot be read (KeyError at take_snapshot.py:" in world.read().unreadable

    def test_is_said_in_no_more_words_than_a_state_carries(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(world.kubernetes, "nodes", raising(UpstreamError("\u0001" * 300_000)))
        said = world.read().unreadable
        assert said.startswith("UpstreamError: ")
        assert 7_900 < len(json.dumps(said)) < 8_100

    @pytest.mark.parametrize("method", ["nodes", "kueue_objects"])
    def test_is_one_whose_own_api_throttles(self, world: World, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
        monkeypatch.setattr(world.kubernetes, method, raising(ThrottledError("429")))
        assert world.read().unreadable == "ThrottledError: 429"

    @pytest.mark.parametrize(
        ("port", "method", "error"),
        [
            ("hyperpod", "quotas", ThrottledError("the account's rate")),
            ("state", "applied_quotas", UpstreamError("the table is down")),
            ("state", "generation", UpstreamError("the table is down")),
            ("documents", "policy", UpstreamError("the bucket is down")),
            ("documents", "put", KeyError("a defect")),
        ],
    )
    def test_is_no_account_that_throttles_and_no_stack_that_fails(
        self, world: World, monkeypatch: pytest.MonkeyPatch, port: str, method: str, error: Exception
    ) -> None:
        monkeypatch.setattr(getattr(world, port), method, raising(error))
        with pytest.raises(type(error)):
            world.read()


def raising(error: Exception) -> Any:
    def call(*_: Any, **__: Any) -> Any:
        raise error

    return call
