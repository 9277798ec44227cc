"""Publishing usage each minute, and the end of each run."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from taskgov.allocation.codec import plan_to_json
from taskgov.allocation.plan import Outcome, Plan
from taskgov.contracts.steps import (
    Cause,
    Pointer,
    PublishUsageRequest,
    PublishUsageResult,
    ReadSnapshotRequest,
    WroteChanges,
)
from taskgov.errors import (
    GovernanceError,
    InvalidRequestError,
    NotFoundError,
    ThrottledError,
    UpstreamError,
)
from taskgov.findings import Finding, Severity
from taskgov.ports import ClusterAccess, Measurement, OnUnreadable
from taskgov.services.happenings import RECENT
from taskgov.services.new_preemptions import MOST_FAILED
from taskgov.services.publish_usage import PublishUsage
from taskgov.snapshot.model import KueueObjects, ManagerSettings
from taskgov.snapshot.records import AppliedQuota
from tests.support.clusters import G5, GPU, GovernedCluster
from tests.support.memory import (
    CLUSTER_ARN,
    EKS_ARN,
    NOON,
    InMemoryHyperPod,
    InMemoryState,
    RecordingBus,
    RecordingFailures,
    RecordingMeter,
    RecordingNotices,
    cluster_description,
)
from tests.support.plans import plan_of, update

OTHER_ARN = "arn:aws:sagemaker:us-east-1:111122223333:cluster/otherother00"
CAUSE = Cause(
    event_id="e-1", source="aws.sagemaker", detail_type="x", at=NOON - timedelta(seconds=90), what="a node left"
)


class UsageMeter(RecordingMeter):
    """Records usage and runs; how old looks are is tested by itself (`test_look_ages`)."""

    def record(self, cluster_name: str, measurements: Iterable[Measurement]) -> None:
        super().record(cluster_name, (one for one in measurements if one.name != "SecondsSinceLook"))


@dataclass
class Published:
    """A use case over a world, and what came out of it."""

    cluster: GovernedCluster
    bus: RecordingBus = field(default_factory=RecordingBus)
    notices: RecordingNotices = field(default_factory=RecordingNotices)
    meter: RecordingMeter = field(default_factory=UsageMeter)
    failures: RecordingFailures = field(default_factory=RecordingFailures)

    def publish(self, request: PublishUsageRequest | None = None) -> int:
        return self.use_case(request or PublishUsageRequest()).published

    @property
    def use_case(self) -> PublishUsage:
        return self.cluster.publish_usage(bus=self.bus, notices=self.notices, meter=self.meter, failures=self.failures)

    def values(self, name: str) -> list[float]:
        return [each.value for _, each in self.meter.recorded if each.name == name]


def a_world() -> Published:
    cluster = GovernedCluster().with_fair_share().with_nodes(2)
    return Published(cluster.with_team("team-a", used={GPU: "6"}).with_team("team-b", used={GPU: "1"}))


def the_end(world: Published, outcome: str, plan: Plan | None = None, **more: Any) -> PublishUsageRequest:
    stored = world.cluster.documents.put("plans/x.json", plan_to_json(plan), "application/json") if plan else None
    return PublishUsageRequest(
        cluster_arn=CLUSTER_ARN,
        run_id="run-1",
        outcome=outcome,
        plan=stored,
        cause=CAUSE,
        started_at=NOON - timedelta(seconds=60),
        **more,
    )


A_PLAN = plan_of(update(0, "team-a", "quota0000000", 2, 1))


def test_the_schedule_of_an_earlier_release_measures_the_usage_of_every_cluster() -> None:
    world = a_world()
    assert world.publish() == len(world.meter.recorded) > 0
    assert {name for name, _ in world.meter.recorded} == {"ml-cluster"}
    assert world.values("ClusterUnreadable") == [0]
    assert sorted(world.values("Borrowed")) == [0, 2]
    assert (world.bus.published, world.notices.sent, world.cluster.state.runs) == ([], [], [])


@pytest.mark.parametrize("cluster", [CLUSTER_ARN, "ml-cluster"])
def test_one_cluster_is_looked_at_and_no_other(cluster: str) -> None:
    world = a_world()
    world.cluster.hyperpod.descriptions.append(cluster_description("other", OTHER_ARN))
    assert world.publish(PublishUsageRequest(cluster_arn=cluster)) == len(world.meter.recorded) > 0
    assert {name for name, _ in world.meter.recorded} == {"ml-cluster"}
    assert world.values("ClusterUnreadable") == [0]


def test_a_look_that_comes_twice_counts_no_time_and_no_preemption_twice() -> None:
    world = a_world()
    world.cluster.with_preempted("one", "team-a", by="team-b", gpus=4)
    look = PublishUsageRequest(cluster_arn=CLUSTER_ARN)
    world.publish(look)
    kept = world.cluster.documents.stored["memory/ml-cluster/use.json.gz"]
    world.publish(look)
    assert world.cluster.documents.stored["memory/ml-cluster/use.json.gz"] == kept
    assert world.values("Preemptions") == [1]


def test_a_cluster_that_is_gone_is_no_failure() -> None:
    world = a_world()
    asked = PublishUsageRequest(cluster_arn=OTHER_ARN)
    assert world.use_case(asked) == PublishUsageResult(published=0)
    assert world.failures.reported == []


def test_a_cluster_that_cannot_be_described_is_reported_and_is_no_error_of_the_function() -> None:
    world = a_world()
    world.cluster.hyperpod.describe_cluster = failing(ThrottledError("slow down"))  # type: ignore[method-assign,assignment]
    assert world.use_case(PublishUsageRequest(cluster_arn=CLUSTER_ARN)).unreadable == 1
    assert world.failures.reported == [("abcdefghijkl", "describe the cluster", "ThrottledError")]


def failing(error: Exception) -> Callable[[str], Any]:
    def fail(_: str) -> Any:
        raise error

    return fail


def test_a_cluster_without_eks_is_left_out() -> None:
    world = a_world()
    world.cluster.hyperpod.descriptions.append(cluster_description("slurm", OTHER_ARN, Orchestrator={"Slurm": {}}))
    world.publish()
    assert {name for name, _ in world.meter.recorded} == {"ml-cluster"}


@dataclass
class FailingKubernetes:
    """Answers for one EKS cluster and fails for the others."""

    cluster: GovernedCluster
    error: Exception

    def nodes(self, cluster: ClusterAccess) -> list[Any]:
        if cluster.eks_cluster_arn != EKS_ARN:
            raise self.error
        return list(self.cluster.kubernetes.node_objects)

    def kueue_objects(self, cluster: ClusterAccess) -> KueueObjects:
        if cluster.eks_cluster_arn != EKS_ARN:
            raise self.error
        return self.cluster.kubernetes.kueue

    def manager_settings(self, cluster: ClusterAccess) -> ManagerSettings:
        return ManagerSettings()


def publish_with_a_second_cluster(world: Published, error: Exception) -> int:
    """Put a cluster that cannot be read before the one that can."""
    eks = {"Eks": {"ClusterArn": "arn:aws:eks:us-east-1:111122223333:cluster/other"}}
    world.cluster.hyperpod.descriptions.insert(0, cluster_description("other", OTHER_ARN, Orchestrator=eks))
    take = replace(world.cluster.take_snapshot(), kubernetes=FailingKubernetes(world.cluster, error))
    return replace(world.use_case, take_snapshot=take)(PublishUsageRequest()).published


@pytest.mark.parametrize("error", [ThrottledError("slow down"), KeyError("items"), OverflowError(), RecursionError()])
def test_a_cluster_that_fails_does_not_stop_the_others_and_is_reported(error: Exception) -> None:
    world = a_world()
    assert publish_with_a_second_cluster(world, error) == len(world.meter.recorded) > 0
    assert {name for name, _ in world.meter.recorded} == {"ml-cluster"}
    known = type(error).__name__ if isinstance(error, GovernanceError) else "UpstreamError"
    assert world.failures.reported == [("other", "measure the usage", known)]


def test_that_no_cluster_can_be_measured_is_reported_for_each_and_is_no_error_of_the_function() -> None:
    world = a_world()
    world.cluster.hyperpod.descriptions = [
        cluster_description(name, OTHER_ARN, ClusterStatus=None, Orchestrator={"Eks": {"ClusterArn": "other"}})
        for name in ("one", "two")
    ]
    take = replace(world.cluster.take_snapshot(), kubernetes=FailingKubernetes(world.cluster, KeyError("items")))
    result = replace(world.use_case, take_snapshot=take)(PublishUsageRequest())
    assert (result.published, result.unreadable) == (0, 2)
    assert len(world.failures.reported) == 2


def test_each_preemption_is_counted_once_however_often_usage_is_published() -> None:
    world = a_world()
    world.cluster.with_preempted("one", "team-a", by="team-b", gpus=4)
    for _ in range(3):
        world.publish()
    assert world.values("Preemptions") == [1]
    assert world.values("PreemptedGpuSeconds") == [4 * 3600]


def test_a_preemption_whose_mark_fails_is_reported_and_all_else_is_published(monkeypatch: pytest.MonkeyPatch) -> None:
    world = a_world()
    for number in range(3):
        world.cluster.with_preempted(f"job-{number}", "team-a", by="team-b", gpus=1)
    count_once = world.cluster.state.count_once

    def throttled(arn: str, identity: str, *more: Any, **named: Any) -> bool:
        if "job-1" in identity:
            raise ThrottledError("write ONCE")
        return count_once(arn, identity, *more, **named)

    monkeypatch.setattr(world.cluster.state, "count_once", throttled)
    world.publish()
    assert ("ml-cluster", "mark a preemption as counted", "ThrottledError") in world.failures.reported
    assert (world.values("Preemptions"), len(world.values("QuotaUsed")) > 0) == ([2], True)
    monkeypatch.undo()
    world.publish()
    assert world.values("Preemptions") == [2, 1], "the next measurement counts it"


def test_what_teams_were_notified_of_only_saves_queries_and_may_be_out_of_reach(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = a_world()
    world.cluster.with_preempted("job", "team-a", by="team-b", gpus=1)
    find = world.cluster.documents.find

    def unreachable(key: str) -> bytes | None:
        if key.endswith("told.json"):
            raise UpstreamError(f"read {key}: down")
        return find(key)

    monkeypatch.setattr(world.cluster.documents, "find", unreachable)
    for _ in range(2):
        world.publish()
    assert world.values("Preemptions") == [1]
    assert ("ml-cluster", "read what teams were notified of", "UpstreamError") in world.failures.reported


def test_a_table_that_takes_no_mark_is_not_asked_for_each_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    world = a_world()
    for number in range(20):
        world.cluster.with_preempted(f"job-{number}", "team-a", by="team-b", gpus=1)

    def down(*_: Any, **__: Any) -> bool:
        raise UpstreamError("write ONCE: down")

    monkeypatch.setattr(world.cluster.state, "count_once", down)
    world.publish()
    marks = [doing for _, doing, _ in world.failures.reported if doing == "mark a preemption as counted"]
    assert len(marks) == MOST_FAILED
    assert world.values("QuotaUsed")


def test_the_table_is_asked_about_a_preemption_in_one_minute_alone() -> None:
    world, asked = a_world(), list[str]()
    for number in range(20):
        world.cluster.with_preempted(f"job-{number}", "team-a", by="team-b", gpus=4)
    count_once = world.cluster.state.count_once

    def counted(arn: str, identity: str, *more: Any, **named: Any) -> bool:
        asked.append(identity)
        return count_once(arn, identity, *more, **named)

    world.cluster.state.count_once = counted  # type: ignore[method-assign,assignment]
    world.publish()
    assert len([identity for identity in asked if not identity.startswith("told-")]) == 20
    asked.clear()
    for _ in range(3):
        world.publish()
    assert asked == []
    assert world.values("Preemptions") == [20]


def test_a_measurement_marks_so_many_preemptions_and_the_next_ones_mark_the_others_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Teams are notified of each once, however waits take up what a measurement may report."""
    for name in ("new_preemptions", "tell_teams"):
        monkeypatch.setattr(f"taskgov.services.{name}.MOST_AT_ONCE", 20)
    world, asked = a_world(), list[str]()
    document = {
        "apiVersion": "taskgov/v1",
        "cluster": {"name": "ml-cluster", "arn": CLUSTER_ARN},
        "teams": [{"name": "team-a", "quota": {"ComputeQuotaResources": [{"InstanceType": G5, "Count": 1}]}}],
        "notices": {"pendingMinutes": 30},
    }
    world.cluster.documents.stored["policies/ml-cluster.yaml"] = json.dumps(document).encode()
    for number in range(50):
        world.cluster.with_preempted(f"job-{number}", "team-a", by="team-b", gpus=4)
        world.cluster.with_waiting(f"wait-{number}", "team-a", gpus=4, minutes=6000)
    count_once = world.cluster.state.count_once

    def counted(arn: str, identity: str, *more: Any, **named: Any) -> bool:
        if not identity.startswith("told-"):
            asked.append(identity)
        return count_once(arn, identity, *more, **named)

    monkeypatch.setattr(world.cluster.state, "count_once", counted)
    asks = []
    for _ in range(8):
        asked.clear()
        world.publish()
        asks.append(len(asked))
    assert asks == [20, 20, 10, 0, 0, 0, 0, 0]
    assert world.values("Preemptions") == [20, 20, 10]
    assert world.bus.published[0][0] == "Task Waiting Too Long"
    told = [detail["id"] for _, detail in world.bus.published]
    assert len([one for one in told if one.startswith("preempted-")]) == 50
    assert len(told) == len(set(told)) == 100
    del world.cluster.documents.stored["memory/ml-cluster/told.json"]
    asked.clear()
    for _ in range(4):
        world.publish()
    assert (len(asked), len(world.bus.published)) == (20, 100), "marks show what was sent before the memory was lost"


def test_teams_are_notified_of_all_but_the_preemptions_that_could_not_be_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = a_world()
    for number in range(2):
        world.cluster.with_preempted(f"job-{number}", "team-a", by="team-b", gpus=4)
    count_once = world.cluster.state.count_once

    def throttled(arn: str, identity: str, *more: Any, **named: Any) -> bool:
        if identity.startswith("uid-job-1"):
            raise ThrottledError("write ONCE")
        return count_once(arn, identity, *more, **named)

    monkeypatch.setattr(world.cluster.state, "count_once", throttled)
    world.publish()
    assert [detail["task"] for _, detail in world.bus.published] == ["job-0"]
    monkeypatch.undo()
    world.publish()
    assert [detail["task"] for _, detail in world.bus.published] == ["job-0", "job-1"]


def test_the_same_workload_preempted_again_counts_again() -> None:
    world = a_world()
    world.cluster.with_preempted("one", "team-a", by="team-b", gpus=4, minutes=20)
    world.publish()
    world.cluster.workloads.clear()
    world.cluster.with_preempted("one", "team-a", by="team-b", gpus=4, minutes=2)
    world.publish()
    assert world.values("Preemptions") == [1, 1]


def test_a_preemption_that_is_older_than_the_memory_of_it_is_not_counted_again() -> None:
    world = a_world()
    world.cluster.with_preempted("old", "team-a", by="team-b", gpus=4, minutes=int(RECENT.total_seconds() / 60))
    world.publish()
    assert world.values("Preemptions") == []


def test_a_run_that_applied_its_plan_leaves_a_record_an_event_and_metrics() -> None:
    world = a_world()
    published = world.publish(the_end(world, "applied", A_PLAN, applied=1))
    assert published == len(world.meter.recorded)
    assert world.values("ChangesApplied") == [1]
    assert world.values("EventToAppliedSeconds") == [90]
    assert sorted(world.values("Borrowed")) == [0, 2]
    [(detail_type, detail)] = world.bus.published
    assert (detail_type, detail["planId"], detail["runId"]) == ("Quota Changes Applied", "plan-1", "run-1")
    [record] = world.cluster.state.runs
    assert (record.outcome, record.plan_id, record.applied, record.cause) == ("applied", "plan-1", 1, CAUSE)
    assert (record.started_at, record.ended_at) == (NOON - timedelta(seconds=60), NOON)
    assert world.notices.sent == []


def test_a_run_whose_answer_was_lost_is_not_published_again() -> None:
    world = a_world()
    end = the_end(world, "applied", A_PLAN, applied=1)
    first = world.publish(end)
    assert world.publish(end) == 0
    assert (len(world.meter.recorded), len(world.bus.published), len(world.cluster.state.runs)) == (first, 1, 1)


def test_another_run_of_the_same_execution_is_published_too() -> None:
    world = a_world()
    end = the_end(world, "applied", A_PLAN, applied=1)
    for started in (end.started_at, NOON):
        world.publish(end.model_copy(update={"started_at": started}))
    assert world.values("ChangesApplied") == [1, 1]


@dataclass
class UnreadableRecords(InMemoryState):
    """A table that answers no query of the records of writes."""

    def applied_quotas(self, cluster_arn: str, on_unreadable: OnUnreadable | None = None) -> tuple[AppliedQuota, ...]:
        raise ThrottledError("list QUOTA#")


TWO_WRITES = plan_of(update(0, "team-a", "quota0000000", 2, 1), update(1, "team-b", "quota0000001", 1, 2))


@pytest.mark.parametrize(
    ("answered", "written", "unknown"),
    [
        ((0, 1), ("team-a/team-a", "team-b/team-b"), None),
        ((0,), ("team-a/team-a",), "team-b/team-b"),
        ((), (), "team-a/team-a, team-b/team-b"),
    ],
)
def test_a_run_whose_records_cannot_be_read_names_what_is_known_and_what_is_not(
    answered: tuple[int, ...], written: tuple[str, ...], unknown: str | None
) -> None:
    world = Published(GovernedCluster(state=UnreadableRecords()))
    end = the_end(world, "unfinished", TWO_WRITES, applied=len(answered), error="ThrottledError: slow down")
    assert end.plan is not None
    world.publish(end.model_copy(update={"begun": (end.plan,), "wrote": (WroteChanges(plan=0, changes=answered),)}))
    (record,) = world.cluster.state.runs
    assert (record.written, record.applied) == (written, len(written))
    doubt = "; not known whether written (ThrottledError: list QUOTA#): "
    assert record.error == "ThrottledError: slow down" + (doubt + unknown if unknown else "")


def test_writes_that_no_plan_of_the_run_has_are_refused() -> None:
    world = a_world()
    end = the_end(world, "applied", A_PLAN)
    wrong = end.model_copy(update={"begun": (end.plan,), "wrote": (WroteChanges(plan=0, changes=(7,)),)})
    with pytest.raises(InvalidRequestError, match="a change that its plan has not"):
        world.publish(wrong)


@dataclass
class UnmarkableState(InMemoryState):
    """A table that takes no mark of a run's end."""

    def count_once(self, cluster_arn: str, identity: str, now: datetime, *, by: str | None = None) -> bool:
        if identity.startswith("end-of-run/"):
            raise ThrottledError("put item")
        return super().count_once(cluster_arn, identity, now, by=by)


@dataclass
class UnconfirmableState(InMemoryState):
    """A table that cannot record that people were notified."""

    def confirm_once(self, cluster_arn: str, identity: str, now: datetime) -> None:
        raise ThrottledError("put item")


def test_a_run_that_cannot_be_marked_is_published_and_says_so() -> None:
    world = Published(GovernedCluster(state=UnmarkableState()))
    answer = world.use_case(the_end(world, "applied", A_PLAN, applied=1))
    assert answer.unmarked == "ThrottledError: put item"
    assert world.values("ChangesApplied") == [1]


def test_blocked_changes_are_reported_once_a_day() -> None:
    world = a_world()
    for run in ("run-1", "run-2"):
        end = the_end(world, "blocked", replace(A_PLAN, outcome=Outcome.BLOCKED))
        world.publish(end.model_copy(update={"run_id": run}))
    assert [subject for subject, _ in world.notices.sent] == ["taskgov: quota changes blocked on ml-cluster"]
    world.cluster.clock.advance(days=1)
    end = the_end(world, "blocked", replace(A_PLAN, outcome=Outcome.BLOCKED))
    world.publish(end.model_copy(update={"run_id": "run-3"}))
    assert len(world.notices.sent) == 2
    assert len(world.bus.published) == 3


def test_a_run_that_is_published_again_after_it_notified_people_does_not_notify_them_again() -> None:
    """Its function died when it measured, or before it could keep that the run was published."""
    world = Published(GovernedCluster(state=UnmarkableState()))
    end = the_end(world, "unfinished", error="ThrottledError: slow down")
    for _ in range(2):
        world.use_case(end)
    assert [subject for subject, _ in world.notices.sent] == ["taskgov: quota changes unfinished on ml-cluster"]


def test_a_notice_that_no_try_of_its_run_could_send_is_sent_by_the_next_run() -> None:
    world = a_world()
    world.notices.fails = UpstreamError("SNS does not answer")
    first = the_end(world, "failed", error="UpstreamError: list nodes: 503")
    for _ in range(4):
        with pytest.raises(UpstreamError, match="SNS does not answer"):
            world.publish(first)
    world.notices.fails = None
    world.publish(first.model_copy(update={"run_id": "run-2"}))
    assert [subject for subject, _ in world.notices.sent] == ["taskgov: run failed on ml-cluster"]


def test_a_notice_that_cannot_be_confirmed_is_sent_and_the_fault_is_reported() -> None:
    world = Published(GovernedCluster(state=UnconfirmableState()))
    world.use_case(the_end(world, "unfinished", error="ThrottledError: slow down"))
    assert len(world.notices.sent) == 1
    assert world.failures.reported == [("ml-cluster", "record whether people were notified", "ThrottledError")]


def test_an_incident_in_a_plan_is_reported_even_when_nothing_is_changed() -> None:
    world = a_world()
    incident = Finding("floors-above-capacity", Severity.INCIDENT, "ml.g5.12xlarge", "Floors are above capacity.")
    world.publish(the_end(world, "nothing-to-do", replace(plan_of(), findings=(incident,))))
    assert [subject for subject, _ in world.notices.sent] == ["taskgov: incident on ml-cluster"]


def test_a_run_that_failed_is_reported_without_asking_again_what_failed() -> None:
    world = a_world()
    world.publish(the_end(world, "failed", error="UpstreamError: list nodes: 503"))
    assert world.values("RunsFailed") == [1]
    assert world.values("Borrowed") == []
    [(subject, text)] = world.notices.sent
    assert subject == "taskgov: run failed on ml-cluster"
    assert "list nodes: 503" in text


def test_a_run_whose_cluster_cannot_be_read_counts_for_that_cluster_and_for_no_failure() -> None:
    world = a_world()
    world.publish(the_end(world, "unreadable", error="UpstreamError: list nodes: 403"))
    assert world.failures.reported == [("ml-cluster", "read the cluster for a run", "UpstreamError")]
    assert (world.values("RunsFailed"), world.values("RunsUnfinished")) == ([0], [0])
    assert world.values("Borrowed") == [], "what made the run end would end the measuring too"
    assert [detail_type for detail_type, _ in world.bus.published] == ["Quota Cluster Unreadable"]
    assert [(record.outcome, record.error) for record in world.cluster.state.runs] == [
        ("unreadable", "UpstreamError: list nodes: 403")
    ]
    assert world.notices.sent == [], "the alarm ClusterUnreadable tells it"


@pytest.mark.parametrize("documents_can_be_listed", [True, False])
def test_a_run_that_cannot_read_a_cluster_that_nobody_took_in_is_on_record_and_rings_nothing(
    *, documents_can_be_listed: bool
) -> None:
    world = a_world()

    def governed() -> Callable[[str], bool]:
        if not documents_can_be_listed:
            raise UpstreamError("list policy documents: 503")
        return lambda _: False

    event = the_end(world, "unreadable", error="UpstreamError: list nodes: 403")
    replace(world.use_case, governed=governed)(event)
    assert len(world.failures.reported) == (0 if documents_can_be_listed else 1)
    assert [record.outcome for record in world.cluster.state.runs] == ["unreadable"]


def test_a_cluster_that_describes_itself_in_another_form_is_named_by_its_arn() -> None:
    world = a_world()
    world.cluster.hyperpod.descriptions[0].pop("ClusterName")
    world.publish(the_end(world, "unreadable", error="UpstreamError: describe cluster: the answer cannot be read"))
    assert world.bus.published[0][1]["clusterName"] == "abcdefghijkl"


@dataclass
class SilentHyperPod(InMemoryHyperPod):
    """SageMaker while it cannot be reached."""

    def describe_cluster(self, cluster: str) -> dict[str, Any]:
        raise UpstreamError("describe cluster: connection refused")


def test_a_run_that_failed_because_sagemaker_is_down_is_reported_all_the_same() -> None:
    world = Published(GovernedCluster(hyperpod=SilentHyperPod()))
    world.publish(the_end(world, "failed", error="UpstreamError: describe cluster: connection refused"))
    assert [detail_type for detail_type, _ in world.bus.published] == ["Quota Run Failed"]
    assert world.bus.published[0][1]["clusterName"] == "abcdefghijkl"


def test_a_run_whose_usage_cannot_be_measured_is_published_and_says_why() -> None:
    world = Published(GovernedCluster(hyperpod=SilentHyperPod()))
    answer = world.use_case(the_end(world, "applied", A_PLAN, applied=1))
    assert answer.unmeasured == "UpstreamError: describe cluster: connection refused"
    assert [detail_type for detail_type, _ in world.bus.published] == ["Quota Changes Applied"]
    assert world.values("ChangesApplied") == [1]


@dataclass
class FailingBus(RecordingBus):
    def publish(self, detail_type: str, detail: Any) -> None:
        raise ThrottledError("put events")


def test_a_run_is_on_record_even_when_the_bus_refuses_its_event() -> None:
    world = a_world()
    use_case = replace(world.use_case, bus=FailingBus())
    with pytest.raises(ThrottledError):
        use_case(the_end(world, "applied", A_PLAN, applied=1))
    assert [record.run_id for record in world.cluster.state.runs] == ["run-1"]
    assert world.meter.recorded == []  # counted when the step is tried again


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        (PublishUsageRequest(cluster_arn=CLUSTER_ARN, outcome="applied"), "runId and startedAt"),
        (
            PublishUsageRequest(cluster_arn=CLUSTER_ARN, outcome="apply", run_id="r", started_at=NOON),
            "'apply' is not an outcome of a run",
        ),
    ],
    ids=["without a run", "an outcome of a plan"],
)
def test_an_end_that_makes_no_sense_is_refused(request_: PublishUsageRequest, says: str) -> None:
    world = a_world()
    with pytest.raises(InvalidRequestError, match=says):
        world.publish(request_)
    assert world.bus.published == []


def test_a_plan_that_is_not_there_any_more_is_an_error() -> None:
    world = a_world()
    gone = Pointer(bucket="bucket", key="plans/gone.json", sha256="0" * 64)
    with pytest.raises(NotFoundError):
        world.publish(the_end(world, "applied").model_copy(update={"plan": gone}))


@pytest.mark.parametrize("field", ["applied", "fencingToken"])
@pytest.mark.parametrize("number", [10**400, -1])
def test_a_number_that_no_run_has_is_refused_by_name(field: str, number: int) -> None:
    kind = PublishUsageRequest if field == "applied" else ReadSnapshotRequest
    with pytest.raises(InvalidRequestError, match=field):
        kind.parse({"clusterArn": CLUSTER_ARN, "runId": "r", "lockOwner": "r", "cause": CAUSE.to_json(), field: number})


PAGES = {"reports/ml-cluster/teams/team-a.html", "reports/ml-cluster/teams/team-b.html"}


def pages_of(world: Published) -> set[str]:
    return {key for key in world.cluster.documents.stored if key.startswith("reports/")}


def test_a_run_leaves_a_page_for_each_team_and_the_schedule_none() -> None:
    world = a_world()
    world.publish()
    assert pages_of(world) == set()
    world.publish(the_end(world, "applied", A_PLAN, applied=1))
    assert pages_of(world) == PAGES
    assert b"team-a" in world.cluster.documents.stored["reports/ml-cluster/teams/team-a.html"]


def test_a_run_that_failed_leaves_the_pages_as_they_are() -> None:
    world = a_world()
    world.publish(the_end(world, "failed", error="it broke"))
    assert pages_of(world) == set()


def test_a_page_that_cannot_be_written_is_reported_and_the_run_is_published_once() -> None:
    world = a_world()
    told: list[str] = []

    class Reporting(RecordingFailures):
        def report(self, cluster_name: str, what: str, error: Exception) -> None:
            told.append(f"{cluster_name}: {what}: {error}")

    def full(_snapshot: object) -> None:
        raise ThrottledError("slow down")

    use_case = replace(world.use_case, write_pages=full, failures=Reporting())
    answer = use_case(the_end(world, "applied", A_PLAN, applied=1))
    assert (answer.unmeasured, answer.unmarked) == (None, None)
    assert told == ["ml-cluster: write the pages of the teams: slow down"]
    assert use_case(the_end(world, "applied", A_PLAN, applied=1)).published == 0


class Ended(BaseException):
    """The function ends: out of time, or its process died."""


def test_a_run_that_cannot_be_marked_as_published_ends_at_once() -> None:
    """A crash after its metrics would count them twice: notices to teams and pages are left to the next measurement."""

    def ends(*_: object) -> None:
        raise Ended

    dies: Any = ends
    world = Published(GovernedCluster(state=UnmarkableState()))
    use_case = replace(world.use_case, tell_teams=dies, write_pages=dies)
    answer = use_case(the_end(world, "applied", A_PLAN, applied=1))
    assert (answer.unmarked, answer.unmeasured) == ("ThrottledError: put item", None)


def test_a_function_that_ends_while_it_notifies_teams_has_counted_the_run_and_a_retry_counts_nothing_again() -> None:
    """Where telling came between metrics and mark, each of its calls was a moment in which a retry counted twice."""

    def ends(*_: object) -> None:
        raise Ended

    dies: Any = ends
    world = a_world()
    world.cluster.with_preempted("p", "team-b", by="team-a", gpus=2)
    end = the_end(world, "applied", A_PLAN, applied=1)
    with pytest.raises(Ended):
        replace(world.use_case, tell_teams=dies)(end)
    counted = list(world.meter.recorded)
    assert sum(world.values("Preemptions")) == 1
    assert world.publish(end) == 0
    assert world.meter.recorded == counted
