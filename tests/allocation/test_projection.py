"""The cluster as some changes leave it: quotas, cluster policy, queues, and the scheduler with its work."""

from dataclasses import replace
from typing import Any

import pytest

from taskgov.allocation.plan import Change, ChangeKind, Reason
from taskgov.allocation.projection import Projection, model_of
from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.hyperpod.model import ClusterSchedulerConfig, ComputeQuota, SchedulerConfig
from taskgov.kueue.render import render
from taskgov.scheduling import Budget, KueueModel, Strategy
from taskgov.snapshot.model import ManagerSettings, Snapshot
from tests.allocation.work import SCHEDULER, job, queues
from tests.allocation.world import G5, document, quota, row, snapshot
from tests.support.plans import creation, deletion, low_write, policy, policy_change, second_write, update

SHARING = {"ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 100}}
EKS_ARN = "arn:aws:eks:us-east-1:111122223333:cluster/ml-cluster"
FAIR = SchedulerConfig.model_validate({"FairShare": "Enabled"})


def lending(team: str, count: int, **fields: Any) -> ComputeQuota:
    return quota(team, row(Count=count), settings=SHARING, **fields)


def world(
    *jobs: dict[str, Any], a: int = 2, b: int = 2, scheduler: ClusterSchedulerConfig | None = SCHEDULER
) -> Snapshot:
    quotas = [lending("a", a), lending("b", b)]
    return snapshot(quotas=quotas, kueue=queues(quotas, *jobs), scheduler_config=scheduler)


def nominal(scheduler: KueueModel, team: str) -> int:
    """The GPUs that a team's queue has."""
    return scheduler.quota(f"hyperpod-ns-{team}-clusterqueue").nominal.get(f"{G5}/nvidia.com/gpu", 0)


def running(projection: Projection) -> list[str]:
    keys = projection.model.workloads()
    return sorted(key.split("/")[1] for key in keys if projection.model.admission(key) is not None)


def keeping(change: Change) -> Change:
    """The same write of numbers, by which a team goes on lending and borrowing."""
    sharing = lending("a", 1).compute_quota_config.resource_sharing_config
    return replace(change, after=change.after.model_copy(update={"resource_sharing_config": sharing}))


def test_nothing_written_is_the_cluster_as_it_is() -> None:
    before = world(job("a", "one", 2))
    projection = Projection.of(before)
    assert projection.snapshot() == before
    assert projection.quotas == {each.compute_quota_id: each for each in before.quotas}
    assert projection.scheduler_config == SCHEDULER.scheduler_config
    assert (nominal(projection.model, "a"), running(projection)) == (2, ["one"])


def test_a_write_changes_the_queue_and_no_work_until_the_queues_settle() -> None:
    projection = Projection.of(world(job("a", "runs", 2), job("a", "waits", 3, minute=1)))
    projection.write([keeping(update(0, "a", "id-a", 2, 5))])
    assert (nominal(projection.model, "a"), nominal(projection.model, "b")) == (5, 2)
    assert running(projection) == ["runs"]
    assert projection.settle(Budget(100)).settled
    assert running(projection) == ["runs", "waits"]


def test_a_copy_goes_its_own_way() -> None:
    projection = Projection.of(world(job("a", "runs", 2), job("a", "waits", 3, minute=1)))
    twin = projection.copy()
    twin.write([keeping(update(0, "a", "id-a", 2, 5))])
    twin.settle(Budget(100))
    assert (nominal(projection.model, "a"), running(projection)) == (2, ["runs"])
    assert projection.snapshot() == world(job("a", "runs", 2), job("a", "waits", 3, minute=1))


def test_the_low_write_gives_and_the_second_takes() -> None:
    projection = Projection.of(world(a=4))
    projection.write([low_write(0, "a", "id-a", 4, 1)])
    assert nominal(projection.model, "a") == 1
    projection.write([second_write(1, "a", "id-a", 1, 3)])
    assert nominal(projection.model, "a") == 3


def test_the_queues_are_those_that_the_scheduler_has() -> None:
    projection = Projection.of(world())
    projection.write([keeping(update(0, "a", "id-a", 2, 1)), creation(1, "c", 1)])
    assert sorted(projection.queues) == sorted(projection.model.cluster_queues())
    rendered = render(projection.quotas.values(), None, InstanceTypeTable())
    made = {each["metadata"]["name"]: each["spec"] for each in rendered.cluster_queues}
    assert {name: each["spec"] for name, each in projection.queues.items()} == made


def test_who_has_been_evicted_has_left() -> None:
    before = world(job("a", "told", 2))
    scheduler = model_of(before)
    scheduler.evict("hyperpod-ns-a/told", before.taken_at, reason="Preempted", message="told")
    told = replace(before, kueue=replace(before.kueue, workloads=(scheduler.workload("hyperpod-ns-a/told"),)))
    projection = Projection.of(told)
    assert running(projection) == []
    assert projection.model.pending("hyperpod-ns-a-clusterqueue")[0] == ["hyperpod-ns-a/told"]
    assert model_of(told).admission("hyperpod-ns-a/told") is not None


def on_hold() -> Snapshot:
    before = world()
    edited = tuple({**each, "spec": {**each["spec"], "stopPolicy": "Hold"}} for each in before.kueue.cluster_queues)
    return replace(before, kueue=replace(before.kueue, cluster_queues=edited))


def test_queues_are_as_the_cluster_has_them_but_for_supposed_ones() -> None:
    before = on_hold()
    assert _held(Projection.of(before)) == ["a", "b"]
    assert _held(Projection.of(before, [update(0, "a", "id-a", 2, 1)])) == ["a", "b"]
    assert _held(Projection.of(before, teams=["b"])) == ["a"]
    assert Projection.of(before, [update(0, "a", "id-a", 2, 1)]).snapshot() == before


def test_a_write_leaves_what_no_quota_says_or_puts_it_back() -> None:
    changes = [update(0, "a", "id-a", 2, 1)]
    projection = Projection.of(on_hold())
    assert projection.may_put_back(changes)
    leaves, puts_back = (projection.copy(puts_back=puts_back) for puts_back in (False, True))
    for each in (leaves, puts_back):
        each.write(changes)
        assert nominal(each.model, "a") == 1
    assert (_held(leaves), _held(puts_back)) == (["a", "b"], ["b"])
    assert not Projection.of(world()).may_put_back(changes)


def test_on_a_cluster_without_hyperpod_a_write_is_the_whole_queue() -> None:
    eks = "arn:aws:eks:us-east-1:111122223333:cluster/ml"
    cluster = {"name": "ml", "arn": eks, "backend": "kueue"}
    governed = replace(on_hold(), policy=document(pool=False, cluster=cluster))
    projection = Projection.of(governed)
    projection.write([update(0, "a", "id-a", 2, 1)])
    assert _held(projection) == ["b"]
    assert not projection.may_put_back([update(0, "b", "id-b", 2, 1)])


def test_what_is_created_has_a_queue_of_its_own() -> None:
    projection = Projection.of(on_hold())
    projection.write([deletion(0, "a", "id-a", 2)])
    assert _held(projection) == ["a", "b"]
    projection.write([creation(1, "a", 2)])
    assert _held(projection) == ["b"]


def test_a_quota_without_a_queue_gets_one_unless_it_never_was_in_force_or_its_type_is_unknown() -> None:
    quotas = [lending("a", 2), lending("b", 1, status="CreateFailed"), quota("c", row("ml.x9.large", Count=1))]
    projection = Projection.of(snapshot(quotas=quotas, scheduler_config=SCHEDULER))
    assert list(projection.model.cluster_queues()) == ["hyperpod-ns-a-clusterqueue"]
    assert nominal(projection.model, "a") == 2


def test_what_is_created_takes_work() -> None:
    projection = Projection.of(world(job("c", "early", 1)))
    projection.write([creation(0, "c", 1)])
    projection.settle(Budget(100))
    assert running(projection) == ["early"]


def test_a_quota_that_is_deleted_gives_its_work_nothing_and_takes_it_back_when_it_is_created_again() -> None:
    projection = Projection.of(world(job("a", "runs", 2), job("a", "waits", 5, minute=1)))
    projection.write([deletion(0, "a", "id-a", 2)])
    projection.settle(Budget(100))
    assert (nominal(projection.model, "a"), running(projection)) == (0, ["runs"])
    projection.write([creation(1, "a", 7)])
    projection.settle(Budget(100))
    assert running(projection) == ["runs", "waits"]


def test_to_delete_what_never_was_in_force_changes_nothing_for_the_scheduler() -> None:
    before = world(job("a", "runs", 2))
    failed = before.quotas[0].model_copy(update={"status": "CreateFailed"})
    projection = Projection.of(replace(before, quotas=(failed, before.quotas[1])))
    signature = projection.model.signature()
    projection.write([replace(deletion(0, "a", "id-a", 2), before=None)])
    assert (projection.model.signature(), nominal(projection.model, "a")) == (signature, 2)


def test_a_switch_of_fair_sharing_restarts_the_manager_and_work_runs_on() -> None:
    projection = Projection.of(world(job("a", "runs", 4), job("a", "waits", 1, minute=1)))
    projection.settle(Budget(100))
    assert not projection.model.config.fair_sharing
    projection.write([policy_change(0, SCHEDULER.scheduler_config, FAIR)])
    assert projection.model.config.fair_sharing
    assert running(projection) == ["runs"]
    assert projection.model.pending("hyperpod-ns-a-clusterqueue")[0] == ["hyperpod-ns-a/waits"]
    projection.settle(Budget(100))
    assert running(projection) == ["runs"]


V1BETA2 = {"apiVersion": "config.kueue.x-k8s.io/v1beta2"}
SHARES_FAIRLY = {**V1BETA2, "fairSharing": {"preemptionStrategies": ["LessThanInitialShare"]}}


def managed(before: Snapshot, configuration: dict[str, Any]) -> Snapshot:
    return replace(before, manager=ManagerSettings(configuration))


def test_the_managers_configuration_counts_before_the_cluster_policy() -> None:
    config = Projection.of(managed(world(), SHARES_FAIRLY)).model.config
    assert (config.fair_sharing, config.strategies) == (True, (Strategy.LESS_THAN_INITIAL_SHARE,))
    fair = SCHEDULER.model_copy(update={"scheduler_config": FAIR})
    assert not Projection.of(managed(world(scheduler=fair), V1BETA2)).model.config.fair_sharing


def test_a_write_of_a_quota_leaves_the_managers_configuration() -> None:
    projection = Projection.of(managed(world(), SHARES_FAIRLY))
    projection.write([keeping(update(0, "a", "id-a", 2, 3))])
    assert projection.model.config.fair_sharing


def test_the_add_on_configures_the_manager_by_the_cluster_policy() -> None:
    projection = Projection.of(managed(world(), V1BETA2))
    projection.write([policy_change(0, SCHEDULER.scheduler_config, FAIR)])
    assert projection.model.config.fair_sharing


def test_where_no_add_on_is_the_manager_stays_as_it_is_configured() -> None:
    text = document(pool=False, cluster={"name": "ml-cluster", "arn": EKS_ARN, "backend": "kueue"})
    for before, fair in ((managed(world(), V1BETA2), False), (world(), True)):
        projection = Projection.of(replace(before, policy=text))
        projection.write([policy_change(0, SCHEDULER.scheduler_config, FAIR)])
        assert projection.model.config.fair_sharing is fair


def test_a_configuration_that_was_looked_for_in_vain_is_assumed_and_named() -> None:
    assert not Projection.of(world()).model.not_modelled
    unread = replace(world(), manager=ManagerSettings(unread="get configmap: 403"))
    [named] = Projection.of(unread).model.not_modelled
    assert (named.feature, named.name) == ("AssumedConfiguration", "kueue-manager-config")


def test_another_class_of_priority_decides_who_comes_first() -> None:
    label = {"kueue.x-k8s.io/priority-class": "urgent-priority"}
    early, late = job("a", "early", 3, minute=1), job("a", "late", 3, minute=2)
    late = {**late, "metadata": {**late["metadata"], "labels": label}}
    before = world(a=2, b=0)
    before = replace(before, kueue=replace(before.kueue, workloads=(early, late)))
    projection = Projection.of(before)
    projection.write([policy_change(0, SCHEDULER.scheduler_config, policy(urgent=90))])
    projection.write([keeping(update(1, "a", "id-a", 2, 3))])
    projection.settle(Budget(100))
    assert running(projection) == ["late"]


def test_classes_of_the_cluster_policy_count_where_the_cluster_does_not_have_them_yet() -> None:
    early, late = job("a", "early", 2, minute=1), job("a", "late", 2, minute=2)
    late = {**late, "metadata": {**late["metadata"], "labels": {"kueue.x-k8s.io/priority-class": "urgent-priority"}}}
    before = world(scheduler=SCHEDULER.model_copy(update={"scheduler_config": policy(urgent=90)}))
    projection = Projection.of(replace(before, kueue=replace(before.kueue, workloads=(early, late))))
    projection.write([update(0, "b", "id-b", 2, 0)])
    projection.settle(Budget(100))
    assert running(projection) == ["late"]


def test_without_a_cluster_policy_in_force_work_is_served_in_order() -> None:
    fair = SCHEDULER.model_copy(update={"scheduler_config": FAIR})
    assert Projection.of(world(scheduler=fair)).model.config.fair_sharing
    failed = fair.model_copy(update={"status": "CreateFailed"})
    assert not Projection.of(world(scheduler=failed)).model.config.fair_sharing
    projection = Projection.of(world(scheduler=fair))
    change = policy_change(0, FAIR, SchedulerConfig())
    projection.write([replace(change, kind=ChangeKind.DELETE_SCHEDULER_CONFIG, reason=Reason.RECOVERY)])
    assert not projection.model.config.fair_sharing


def test_a_settlement_takes_from_the_budget_and_stops_when_it_is_spent() -> None:
    jobs = [job("a", f"job-{number}", 1, minute=number) for number in range(6)]
    before = world(a=6)
    before = replace(before, kueue=replace(before.kueue, workloads=tuple(jobs)))
    projection, budget = Projection.of(before), Budget(4)
    settlement = projection.settle(budget)
    assert (settlement.settled, settlement.loop, budget.left, len(running(projection))) == (False, (), 0, 4)


@pytest.mark.parametrize("broken", [{"metadata": {}}, {"metadata": {"name": "q"}, "spec": {"resourceGroups": [{}]}}])
def test_objects_that_cannot_be_read_are_refused(broken: dict[str, Any]) -> None:
    before = world()
    with pytest.raises((KeyError, ValueError)):
        Projection.of(replace(before, kueue=replace(before.kueue, cluster_queues=(broken,))))


def _held(projection: Projection) -> list[str]:
    queues = projection.queues.items()
    return sorted(name.split("-")[2] for name, queue in queues if queue["spec"]["stopPolicy"] == "Hold")


def test_projections_of_one_snapshot_do_not_change_one_another() -> None:
    before = world(job("a", "one", 2), job("b", "two", 2), job("a", "three", 2))
    first, second, resting = Projection.of(before), Projection.of(before), Projection.of(before)
    twin, lowered = first.copy(), [keeping(update(0, "a", "id-a", 2, 1))]
    first.write(lowered)
    steps, other_steps = Budget(100), Budget(100)
    assert second.settle(steps) == resting.settle(other_steps)
    assert 0 < steps.left == other_steps.left < 100
    second.write(lowered)
    of_all = (first, second, twin, resting, Projection.of(before))
    assert [nominal(projection.model, "a") for projection in of_all] == [1, 1, 2, 2, 2]
    model_of(before).finish("hyperpod-ns-a/one", before.taken_at)
    assert model_of(before).admission("hyperpod-ns-a/one") is not None


def test_a_cluster_comes_to_rest_within_the_budget_that_is_asked_for() -> None:
    before = world(job("a", "one", 2), job("b", "two", 2), job("a", "three", 2))
    assert Projection.of(before).settle(Budget(100)).settled
    assert not Projection.of(before).settle(Budget(0)).settled
