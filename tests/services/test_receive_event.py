"""Taking events in: which cluster becomes dirty, and whether a run follows."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import create_autospec

import pytest

from taskgov.contracts.events import Ignored
from taskgov.contracts.steps import Cause
from taskgov.errors import InvalidRequestError, MalformedEventError, ThrottledError, UpstreamError
from taskgov.ports import Execution, Lock
from taskgov.services.receive_event import Hinted, Marked, ReceiveEvent, execution_name
from tests.support.memory import (
    CLUSTER_ARN,
    NOON,
    UNREADABLE,
    FixedClock,
    InMemoryHyperPod,
    InMemoryState,
    InMemoryWorkflow,
    cluster_description,
)
from tests.support.plans import instances, policy, target
from tests.support.refusals import REFUSED

OWN_ROLE = "arn:aws:iam::111122223333:role/taskgov-ApplyChangeRole"
OTHER_ARN = CLUSTER_ARN[:-1] + "m"
EVENTS = Path(__file__).parents[2] / "events"


class World:
    def __init__(self) -> None:
        self.hyperpod = InMemoryHyperPod()
        self.state = InMemoryState()
        self.workflow = InMemoryWorkflow()
        self.quota_id = self.hyperpod.create_quota(CLUSTER_ARN, "team-a", instances(2), target("team-a")).resource_id
        self.hyperpod.create_scheduler_config(CLUSTER_ARN, "policy", policy(training=70))
        self.use_case = ReceiveEvent(self.hyperpod, self.state, self.workflow, FixedClock(), OWN_ROLE)

    def receive(self, *events: Mapping[str, Any]) -> Marked | Ignored:
        """Take events in that come in one batch; the answer of an event that is ignored when nothing else is there."""
        read = [self.use_case(each) for each in events]
        hinted = {str(number): each for number, each in enumerate(read) if isinstance(each, Hinted)}
        if not hinted and isinstance(read[0], Ignored):
            return read[0]
        return self.use_case.mark(hinted)


@pytest.fixture
def world() -> World:
    return World()


def event(source: str, detail_type: str, detail: Mapping[str, Any], event_id: str = "11111111-aaaa") -> dict[str, Any]:
    return {
        "version": "0",
        "id": event_id,
        "source": source,
        "detail-type": detail_type,
        "account": "111122223333",
        "time": "2026-11-20T12:00:00Z",
        "region": "us-east-1",
        "resources": [],
        "detail": detail,
    }


def state_change(arn: str = CLUSTER_ARN, event_id: str = "11111111-aaaa") -> dict[str, Any]:
    detail = {"ClusterArn": arn, "ClusterName": "ml-cluster", "ClusterStatus": "InService", "InstanceGroups": []}
    return event("aws.sagemaker", "SageMaker HyperPod Cluster State Change", detail, event_id)


def call(name: str, parameters: Mapping[str, Any], *, role: str | None = None, **more: Any) -> dict[str, Any]:
    identity: dict[str, Any] = {"type": "IAMUser", "arn": "arn:aws:iam::111122223333:user/ana", "userName": "ana"}
    if role:
        identity = {
            "type": "AssumedRole",
            "arn": "arn:aws:sts::111122223333:assumed-role/taskgov-ApplyChangeRole/x",
            "sessionContext": {"sessionIssuer": {"type": "Role", "arn": role}},
        }
    detail = {
        "eventSource": "sagemaker.amazonaws.com",
        "eventName": name,
        "eventTime": "2026-11-20T12:00:00Z",
        "userIdentity": identity,
        "requestParameters": parameters,
        "responseElements": None,
        **more,
    }
    return event("aws.sagemaker", "AWS API Call via CloudTrail", detail)


def test_an_event_marks_its_cluster_and_starts_a_run(world: World) -> None:
    assert world.receive(state_change()) == Marked((CLUSTER_ARN,), started=1, failed={})
    assert world.state.generation(CLUSTER_ARN) == 1
    assert list(world.workflow.started) == ["ml-cluster-1-11111111"]


def test_while_a_run_holds_the_lock_only_the_generation_moves(world: World) -> None:
    world.state.lock[CLUSTER_ARN] = ("run-1", 1, NOON.timestamp() + 60)
    assert world.receive(state_change()) == Marked((CLUSTER_ARN,), started=0, failed={})
    assert world.state.generation(CLUSTER_ARN) == 1
    assert not world.workflow.started


def test_the_same_event_twice_marks_twice_and_harms_nothing(world: World) -> None:
    world.receive(state_change())
    world.receive(state_change())
    assert world.state.generation(CLUSTER_ARN) == 2


def test_events_that_come_together_mark_a_cluster_once(world: World) -> None:
    events = [state_change(event_id=f"{number}1111111-aaaa") for number in range(1, 10)]
    assert world.receive(*events) == Marked((CLUSTER_ARN,), started=1, failed={})
    assert world.state.generation(CLUSTER_ARN) == 1
    assert list(world.workflow.started) == ["ml-cluster-1-11111111"]


def test_of_events_that_come_together_those_of_a_cluster_that_cannot_be_marked_fail_alone(world: World) -> None:
    world.hyperpod.descriptions.append(cluster_description("other", OTHER_ARN))
    own = world.state.mark_dirty

    def mark_dirty(cluster_arn: str, *about: Any) -> Any:
        if cluster_arn == OTHER_ARN:
            raise ThrottledError("later")
        return own(cluster_arn, *about)

    world.state.mark_dirty = mark_dirty  # type: ignore[method-assign, assignment]
    marked = world.receive(state_change(OTHER_ARN), state_change(), state_change(OTHER_ARN))
    assert isinstance(marked, Marked)
    assert (marked.cluster_arns, marked.started) == ((CLUSTER_ARN,), 1)
    assert list(marked.failed) == ["0", "2"]


def test_a_cluster_that_an_event_names_by_name_only_is_looked_up(world: World) -> None:
    asked = event("taskgov.operator", "Reconcile Requested", {"clusterName": "ml-cluster"})
    assert world.receive(asked) == Marked((CLUSTER_ARN,), started=1, failed={})


def test_a_cluster_that_is_unknown_is_ignored_with_its_name(world: World) -> None:
    outcome = world.receive(event("taskgov.operator", "Reconcile Requested", {"clusterName": "nobody"}))
    assert isinstance(outcome, Ignored)
    assert "nobody" in outcome.reason


def test_events_of_invented_clusters_leave_nothing_behind(world: World) -> None:
    arns = [f"arn:aws:{of}:us-east-1:111122223333:cluster/{n:012}" for of in ("sagemaker", "eks") for n in range(5)]
    asked = [
        event("taskgov.operator", "Reconcile Requested", {"clusterArn": arn, "by": "\x1b[31meve" * 100}) for arn in arns
    ]
    marked = world.receive(*asked, state_change())
    assert isinstance(marked, Marked)
    assert (marked.cluster_arns, marked.unknown, dict(marked.failed)) == ((CLUSTER_ARN,), tuple(arns), {})
    assert list(world.state.generations) == [CLUSTER_ARN]
    assert [arn for arn, _ in world.workflow.started.values()] == [CLUSTER_ARN]


def test_a_cluster_that_was_marked_before_is_not_asked_for_again(world: World) -> None:
    world.receive(state_change())
    world.hyperpod.descriptions.clear()  # a list or description may come late
    marked = world.receive(state_change())
    assert isinstance(marked, Marked)
    assert marked.cluster_arns == (CLUSTER_ARN,)


def test_what_a_stranger_writes_is_kept_short_and_visible(world: World) -> None:
    called = {"eventSource": "sagemaker.amazonaws.com", "eventName": "UpdateCluster"}
    who = {"userIdentity": {"arn": "\x1b[31meve\n" * 100}, "requestParameters": {"clusterName": "ml-cluster"}}
    hinted = world.use_case(event("aws.sagemaker", "AWS API Call via CloudTrail", called | who))
    assert isinstance(hinted, Hinted)
    assert hinted.hint.cause.by is not None
    assert len(hinted.hint.cause.by) == 200
    assert hinted.hint.cause.by.startswith("\\x1b[31meve\\n")


def test_what_the_sender_of_a_request_calls_himself_is_not_kept(world: World) -> None:
    asked = event("taskgov.operator", "Reconcile Requested", {"clusterArn": CLUSTER_ARN, "by": "maria"})
    hinted = world.use_case(asked)
    assert isinstance(hinted, Hinted)
    assert hinted.hint.cause.by is None


def test_whom_the_signed_entry_names_is_kept(world: World) -> None:
    ana = "arn:aws:iam::111122223333:user/ana"
    hinted = world.use_case(event("taskgov.orders", "Run Ordered", {"clusterArn": CLUSTER_ARN, "by": ana}))
    assert isinstance(hinted, Hinted)
    assert hinted.hint.cause.by == ana


def test_a_resync_marks_every_cluster(world: World) -> None:
    world.hyperpod.descriptions.append(cluster_description("other", OTHER_ARN))
    outcome = world.receive(event("taskgov.schedule", "Resync Due", {}))
    assert outcome == Marked((CLUSTER_ARN, OTHER_ARN), started=2, failed={})


@pytest.mark.parametrize("name", ["UpdateComputeQuota", "DeleteComputeQuota"])
def test_a_call_that_names_a_quota_only_leads_to_its_cluster(name: str, world: World) -> None:
    assert world.receive(call(name, {"computeQuotaId": world.quota_id})) == Marked((CLUSTER_ARN,), started=1, failed={})


def test_a_quota_that_is_gone_leads_to_its_cluster_if_it_was_seen_before(world: World) -> None:
    gone = call("DeleteComputeQuota", {"computeQuotaId": "quota0000009"})
    assert isinstance(world.receive(gone), Ignored)
    world.state.remember_resources(CLUSTER_ARN, ["quota0000009"])
    assert world.receive(gone) == Marked((CLUSTER_ARN,), started=1, failed={})


def test_a_call_on_the_cluster_policy_leads_to_its_cluster(world: World) -> None:
    changed = call("UpdateClusterSchedulerConfig", {"clusterSchedulerConfigId": "schedconf001"})
    assert world.receive(changed) == Marked((CLUSTER_ARN,), started=1, failed={})


def ordered(**detail: Any) -> dict[str, Any]:
    given = {"clusterArn": CLUSTER_ARN, "by": "arn:aws:iam::111122223333:user/ana", **detail}
    return event("taskgov.orders", "Run Ordered", given)


def refused(world: World, team: str, *, minutes: int) -> None:
    """Let a write be refused so long after the order."""
    at = NOON + timedelta(minutes=minutes)
    world.state.record_refusal(CLUSTER_ARN, replace(REFUSED, subject=f"{team}/{team}-quota", at=at))


def test_an_order_to_retry_forgets_what_was_refused_before_it_also_when_it_comes_again(world: World) -> None:
    refused(world, "team-a", minutes=-5)
    world.receive(ordered(retryRefused=True))
    assert world.state.refusals(CLUSTER_ARN) == ()
    refused(world, "team-b", minutes=5)
    world.receive(ordered(retryRefused=True))
    assert [each.subject for each in world.state.refusals(CLUSTER_ARN)] == ["team-b/team-b-quota"]


@pytest.mark.parametrize(
    "asked",
    [
        ordered(),
        ordered(retryRefused=False),
        event("taskgov.operator", "Reconcile Requested", {"clusterArn": CLUSTER_ARN, "retryRefused": True}),
        event("taskgov.schedule", "Recheck Due", {"clusterArn": CLUSTER_ARN, "retryRefused": True}),
    ],
    ids=["an order of a run", "an order that says no", "anybody's event on the bus", "a schedule's event"],
)
def test_nothing_else_forgets_what_was_refused(world: World, asked: dict[str, Any]) -> None:
    refused(world, "team-a", minutes=-5)
    world.receive(asked)
    assert [each.subject for each in world.state.refusals(CLUSTER_ARN)] == ["team-a/team-a-quota"]


@pytest.mark.parametrize("source", ["taskgov.orders", "taskgov.operator"])
def test_only_the_entry_says_that_a_lock_was_freed(world: World, source: str) -> None:
    told = ordered(unlocked="lock of a run freed by hand: it is gone")
    if source == "taskgov.operator":
        told |= {"source": source, "detail-type": "Reconcile Requested"}
    world.receive(told)
    found = [(run.outcome, run.started_at, run.cause and (run.cause.by, run.cause.what)) for run in world.state.runs]
    said = ("arn:aws:iam::111122223333:user/ana", "lock of a run freed by hand: it is gone")
    assert found == ([("unlocked", NOON, said)] if source == "taskgov.orders" else [])


def test_who_edited_a_quota_by_hand_is_recorded(world: World) -> None:
    world.receive(call("UpdateComputeQuota", {"computeQuotaId": world.quota_id}))
    (edit,) = world.state.edits(CLUSTER_ARN)
    assert (edit.compute_quota_id, edit.at) == (world.quota_id, NOON)
    assert "ana" in edit.by


def test_an_edit_by_a_tool_is_recorded_with_the_tool(world: World) -> None:
    event = call("UpdateComputeQuota", {"computeQuotaId": world.quota_id})
    event["detail"]["userAgent"] = "cloudformation.amazonaws.com"
    world.receive(event)
    (edit,) = world.state.edits(CLUSTER_ARN)
    assert edit.tool == "CloudFormation"


def test_the_project_s_own_writes_are_recognised(world: World) -> None:
    outcome = world.receive(call("UpdateComputeQuota", {"computeQuotaId": world.quota_id}, role=OWN_ROLE))
    assert isinstance(outcome, Ignored)
    assert world.state.edits(CLUSTER_ARN) == ()


def test_a_call_that_failed_changed_nothing_and_is_ignored(world: World) -> None:
    failed = call("UpdateComputeQuota", {"computeQuotaId": world.quota_id}, errorCode="ConflictException")
    assert isinstance(world.receive(failed), Ignored)


def test_an_event_of_a_known_kind_that_cannot_be_read_is_an_error(world: World) -> None:
    with pytest.raises(MalformedEventError):
        world.receive(event("aws.sagemaker", "SageMaker HyperPod Cluster State Change", {"ClusterArn": 7}))
    assert world.state.generations == {}


def test_an_event_that_nobody_asked_for_is_ignored(world: World) -> None:
    assert isinstance(world.receive(event("my.app", "Something Else", {})), Ignored)


EXECUTIONS = "arn:aws:states:us-east-1:111122223333:execution:reconcile:"


def ended(world: World, name: str, status: str = "ABORTED", cluster_arn: str | None = None) -> dict[str, Any]:
    """End an execution that holds nothing; return its event, with its input or without."""
    arn = EXECUTIONS + name
    world.workflow.executions[arn] = Execution(arn, status, NOON)
    given = json.dumps({"clusterArn": cluster_arn}) if cluster_arn else None
    detail = {"executionArn": arn, "status": status, "input": given}
    return event("aws.states", "Step Functions Execution Status Change", detail)


@pytest.mark.parametrize("status", ["ABORTED", "TIMED_OUT"])
@pytest.mark.parametrize(
    ("name", "cluster_arn"),
    {
        "by its input": ("anything", CLUSTER_ARN),
        "by its name": ("ml-cluster-12-7bf73129", None),
        "by its name, made of the ARN": (f"{CLUSTER_ARN.rpartition('/')[2]}-12-7bf73129", None),
    }.values(),
    ids=["by its input", "by its name", "by its name, made of the ARN"],
)
def test_a_run_follows_one_that_was_broken_off_before_it_had_the_lock(
    name: str, cluster_arn: str | None, status: str, world: World
) -> None:
    assert world.receive(ended(world, name, status, cluster_arn)) == Marked((CLUSTER_ARN,), started=1, failed={})


@pytest.mark.parametrize("status", ["FAILED", "SUCCEEDED"])
def test_no_run_follows_one_that_ended_by_itself_and_holds_nothing(status: str, world: World) -> None:
    assert isinstance(world.receive(ended(world, "ml-cluster-12-7bf73129", status, CLUSTER_ARN)), Ignored)


def test_the_lock_of_one_that_failed_without_freeing_it_is_freed_and_a_run_follows(world: World) -> None:
    name = "ml-cluster-12-7bf73129"
    lease = NOON.timestamp() + 300
    world.state.lock[CLUSTER_ARN] = (EXECUTIONS + name, 3, lease)
    assert world.receive(ended(world, name, "FAILED")) == Marked((CLUSTER_ARN,), started=1, failed={})
    assert world.state.lock[CLUSTER_ARN] == (EXECUTIONS + name, 3, 0)


@pytest.mark.parametrize(("status", "started"), [("ABORTED", 1), ("RUNNING", 0)])
def test_a_hint_frees_a_lock_that_looks_old_when_its_owner_is_over(status: str, started: int, world: World) -> None:
    name, lease = "ml-cluster-12-7bf73129", NOON.timestamp() + 100
    ended(world, name, status)
    world.state.lock[CLUSTER_ARN] = (EXECUTIONS + name, 3, lease)
    hint = event("taskgov.schedule", "Recheck Due", {"clusterArn": CLUSTER_ARN})
    assert world.receive(hint) == Marked((CLUSTER_ARN,), started=started, failed={})
    assert world.state.lock[CLUSTER_ARN] == (EXECUTIONS + name, 3, 0 if started else lease)


@pytest.mark.parametrize("name", ["9f0c6a52-0b6e-4f3c-8b1e-2f4f5b0c7d11", "no-cluster-1-7bf73129", "by hand!"])
def test_without_its_input_an_execution_that_names_no_cluster_is_ignored(name: str, world: World) -> None:
    assert isinstance(world.receive(ended(world, name)), Ignored)
    assert world.state.generations == {}


def test_a_name_that_no_cluster_can_have_is_ignored(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(_: str) -> None:
        raise InvalidRequestError("clusterName failed to satisfy constraint")

    monkeypatch.setattr(world.hyperpod, "describe_cluster", refuses)
    assert isinstance(world.receive(ended(world, "by hand!")), Ignored)


SAMPLES = sorted(
    file
    for file in (Path(__file__).parents[2] / "events").glob("*.json")
    if "detail-type" in json.loads(file.read_text())
)


@pytest.mark.parametrize("file", SAMPLES, ids=[file.stem for file in SAMPLES])
def test_every_sample_event_may_come_twice(file: Path, world: World) -> None:
    sample = json.loads(file.read_text())
    first, second = world.receive(sample), world.receive(sample)
    assert type(first) is type(second)
    assert len(world.workflow.started) == sum(world.state.generations.values())


def stopped(world: World, *, named: bool) -> Mapping[str, Any]:
    """Let a run hold the lock of the cluster and be stopped; return the event of its end."""
    name = "step_functions_execution_status_change" + ("" if named else ".no_input")
    event: dict[str, Any] = json.loads((EVENTS / f"{name}.json").read_text())
    arn = event["detail"]["executionArn"]
    world.workflow.executions[arn] = Execution(arn, "ABORTED", NOON)
    world.state.lock[CLUSTER_ARN] = (arn, 3, NOON.timestamp() + 300)
    return event


@pytest.mark.parametrize("named", [True, False])
def test_items_that_cannot_be_read_do_not_keep_the_lock_of_a_stopped_run(world: World, *, named: bool) -> None:
    event = stopped(world, named=named)
    world.state.unreadable = UNREADABLE
    marked = world.receive(event)
    assert isinstance(marked, Marked)
    assert marked.started == 1
    assert not world.state.lock_of(CLUSTER_ARN).is_held(NOON)


def test_a_cluster_whose_lock_cannot_be_read_does_not_hide_the_one_whose_run_was_stopped(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.hyperpod.descriptions.insert(0, cluster_description("other", OTHER_ARN))
    event, real = stopped(world, named=False), world.state.lock_of

    def lock_of(arn: str) -> Lock:
        if arn == OTHER_ARN:
            raise UpstreamError("the table holds 'x' in the place of a whole number")
        return real(arn)

    monkeypatch.setattr(world.state, "lock_of", lock_of)
    marked = world.receive(event)
    assert isinstance(marked, Marked)
    assert marked.cluster_arns == (CLUSTER_ARN,)
    with pytest.raises(UpstreamError, match="whole number"):  # it may be the one: the event comes again
        world.receive(ended(world, "no-cluster-1-7bf73129"))


def test_clusters_whose_long_names_begin_alike_have_executions_of_their_own() -> None:
    """One event concerns both, such as the resync, and their generations are equal."""
    cause = Cause(event_id="7bf73129-1428", source="taskgov.schedule", detail_type="Resync Due", at=NOON)
    long = [f"{'a' * 90}-{end}" for end in ("east", "west")]
    names = [execution_name(name, 12, cause) for name in long]
    assert len({*names}) == 2
    assert all(len(name) <= 80 and name.endswith("-12-7bf73129") for name in names)


def test_the_end_of_an_execution_is_of_the_cluster_with_the_long_name() -> None:
    named = [f"arn:aws:eks:us-east-1:111122223333:cluster/{'a' * 90}-{end}" for end in ("east", "west")]
    clusters = create_autospec(InMemoryHyperPod, instance=True)
    clusters.clusters.return_value = named
    receive = ReceiveEvent(clusters, InMemoryState(), InMemoryWorkflow(), FixedClock(), "")
    cause = Cause(event_id="7bf73129-1428", source="s", detail_type="t", at=NOON)
    for arn in named:
        assert receive._started_for(execution_name(arn.rpartition("/")[2], 12, cause)) == (arn,)
