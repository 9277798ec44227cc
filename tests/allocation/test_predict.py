"""What a plan would do to running and waiting work, on the queues of the first walkthrough (seed 000)."""

from dataclasses import replace
from typing import Any

import pytest

from taskgov.allocation import effects as effects_module
from taskgov.allocation import path as path_module
from taskgov.allocation import predict
from taskgov.allocation.plan import Outcome, Plan, Prediction, WorkloadEffect
from taskgov.allocation.planner import plan_quotas
from taskgov.allocation.predict import Player
from taskgov.allocation.projection import Projection
from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.hyperpod.model import SchedulerConfig
from taskgov.scheduling import FixedPoint
from taskgov.scheduling.objects import Admission
from taskgov.snapshot.model import Snapshot
from tests.allocation.work import SCHEDULER, job, queues
from tests.allocation.world import G5, NOW, document, fixed, nodes, quota, row, snapshot

SHARING = {"ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 50}}


def world(a: int, b: int, *jobs: dict[str, Any], today: tuple[int, int] = (2, 2), **sections: Any) -> Snapshot:
    quotas = [
        quota("team-a", row(Count=today[0]), settings=SHARING),
        quota("team-b", row(Count=today[1]), settings=SHARING),
    ]
    policy = document(
        fixed("team-a", row(Count=a), **SHARING), fixed("team-b", row(Count=b), **SHARING), pool=False, **sections
    )
    return snapshot(policy, nodes(sum(today)), quotas, kueue=queues(quotas, *jobs), scheduler_config=SCHEDULER)


def plan_of(each: Snapshot) -> Plan:
    return plan_quotas(each, mode="apply")


def effects(each: Snapshot) -> list[tuple[str, str]]:
    prediction = plan_of(each).prediction
    assert prediction.simulated
    return [(effect.effect, effect.name) for effect in prediction.effects]


def test_a_job_starts_in_the_quota_that_a_plan_brings() -> None:
    each = world(3, 1, job("team-a", "big", 3), today=(1, 3))
    assert effects(each) == [("starts", "big")]


def test_a_job_that_runs_on_borrowed_quota_is_preempted_by_the_owner_of_new_quota() -> None:
    each = world(1, 3, job("team-a", "borrower", 3, minute=1), job("team-b", "owner", 3, minute=2))
    [preempted, starts] = plan_of(each).prediction.effects
    assert preempted == WorkloadEffect(
        namespace="hyperpod-ns-team-a",
        name="borrower",
        team="team-a",
        effect="preempted",
        gpus=3,
        because="InCohortReclamation, by team-b/owner",
        wave=2,
        task="team-a/borrower",
    )
    assert (starts.effect, starts.name) == ("starts", "owner")
    plan = plan_of(each)
    assert plan.prediction.preempted_gpus == 3
    assert [(change.wave, change.preempts) for change in plan.changes] == [
        (1, ()),
        (2, ("hyperpod-ns-team-a/borrower",)),
    ]
    assert plan.changes[1].because.endswith("; wave 2 preempts team-a/borrower")


def test_what_would_have_happened_without_the_plan_is_not_its_doing() -> None:
    each = world(3, 2, job("team-a", "waiting", 2, minute=1), today=(2, 2))
    kueue = each.kueue
    pending = tuple({**item, "status": {}} for item in kueue.workloads)
    each = replace(each, nodes=nodes(5), kueue=replace(kueue, workloads=pending))
    assert effects(each) == []


def test_running_work_stays_when_its_quota_is_lowered_and_nobody_reclaims() -> None:
    assert effects(world(1, 3, job("team-a", "running", 2))) == []


def test_a_job_that_would_have_started_waits_when_the_quota_goes() -> None:
    each = world(0, 4, job("team-a", "waiting", 2))
    pending = tuple({**item, "status": {}} for item in each.kueue.workloads)
    assert effects(replace(each, kueue=replace(each.kueue, workloads=pending))) == [("waits", "waiting")]


def test_more_preemption_than_allowed_blocks_the_plan() -> None:
    jobs = job("team-a", "borrower", 3, minute=1), job("team-b", "owner", 3, minute=2)
    assert plan_of(world(1, 3, *jobs, guardrails={"maxPreemptedGpus": 2})).outcome is Outcome.BLOCKED
    assert plan_of(world(1, 3, *jobs, guardrails={"maxPreemptedGpus": 3})).outcome is Outcome.APPLY


def test_a_new_team_gets_its_queue_in_the_simulation() -> None:
    each = world(2, 2, job("team-c", "early", 1))
    policy = document(*(fixed(f"team-{name}", row(Count=count)) for name, count in (("a", 2), ("b", 1), ("c", 1))))
    assert effects(replace(each, policy=policy)) == [("starts", "early")]


def test_objects_that_cannot_be_read_predict_nothing_and_say_so() -> None:
    each = world(1, 3, job("team-a", "running", 2))
    broken = replace(each.kueue, cluster_queues=({"metadata": {}},))
    prediction = plan_of(replace(each, kueue=broken)).prediction
    assert not prediction.simulated
    assert "cannot be read" in prediction.not_modelled[0]


def test_without_work_or_without_changes_nothing_has_an_effect() -> None:
    assert plan_of(world(1, 3)).prediction == Prediction(simulated=True)
    assert plan_of(world(2, 2, job("team-a", "running", 2))).prediction == Prediction(simulated=True)


def test_the_prediction_does_not_change_the_snapshot() -> None:
    each = world(1, 3, job("team-a", "borrower", 3, minute=1), job("team-b", "owner", 3, minute=2))
    assert plan_of(each) == plan_of(each)
    assert each.taken_at == NOW
    assert G5 in str(each.kueue.cluster_queues)


def test_what_everything_at_once_would_preempt_is_not_asked_where_the_shortest_path_preempts_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[object] = []

    def ask(choice: object) -> frozenset[str]:
        asked.append(choice)
        return frozenset()

    monkeypatch.setattr(path_module._Choice, "_preempted_at_once", ask)
    assert effects(world(3, 1, job("team-a", "big", 3), today=(1, 3))) == [("starts", "big")]
    assert not asked


def test_rules_that_let_jobs_preempt_each_other_for_ever_predict_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    endless = FixedPoint((), settled=False, loop=("b/two", "a/one"))
    monkeypatch.setattr(Projection, "settle", lambda *_: endless)
    prediction = plan_of(world(3, 1, job("team-a", "big", 3), today=(1, 3))).prediction
    words = "workloads would preempt one another forever: a/one, b/two"
    assert prediction == Prediction(simulated=False, not_modelled=(words,))


def test_a_prediction_whose_budget_is_used_up_says_at_least_these_and_lets_nothing_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(predict, "MODEL_STEPS", 1)
    plan = plan_of(world(3, 1, job("team-a", "big", 3), today=(1, 3), guardrails={"maxPreemptedGpus": 100}))
    assert plan.prediction.simulated
    assert not plan.prediction.is_complete
    why = "the 1 model steps of a prediction are used up"
    assert plan.prediction.not_predicted == (f"wave 1 and the following was not simulated: {why}",)
    assert plan.outcome is Outcome.BLOCKED
    assert any("1 model steps" in verdict.because for verdict in plan.guardrails if not verdict.passed)


@pytest.mark.parametrize(
    ("namespace", "queue", "want"),
    [
        ("hyperpod-ns-team-a", "hyperpod-ns-team-b-clusterqueue", "team-b"),
        ("research", "hyperpod-ns-team-b-clusterqueue", "team-b"),
        ("hyperpod-ns-team-a", "research-queue", "team-a"),
        ("research", "research-queue", "research-queue"),
    ],
)
def test_a_job_is_its_queue_s_team_s_or_else_its_namespace_s(namespace: str, queue: str, want: str) -> None:
    assert effects_module._effect(f"{namespace}/big", "", "starts", Admission(queue, ()), "", ()).team == want


@pytest.mark.parametrize(("fair", "few", "many"), [("Disabled", 100_000, 40_000), ("Enabled", 100_000, 29_000)])
def test_the_budget_goes_by_the_number_of_queues_with_and_without_fair_sharing(fair: str, few: int, many: int) -> None:
    scheduler = SCHEDULER.model_copy(update={"scheduler_config": SchedulerConfig.model_validate({"FairShare": fair})})

    def steps(teams: int) -> int:
        quotas = [quota(f"t{number}", row(Count=1)) for number in range(teams)]
        return Player(snapshot(None, (), quotas, scheduler_config=scheduler), (), InstanceTypeTable()).steps

    assert (steps(20), steps(100)) == (few, many)


def racked(team: str, name: str, instances: int, **fields: Any) -> dict[str, Any]:
    """A workload whose pods have to be near one another."""
    workload = job(team, name, instances, **fields)
    workload["spec"]["podSets"][0]["topologyRequest"] = {"required": "rack"}
    return workload


def uncertain(plan: Plan) -> dict[str, tuple[str, tuple[str, ...]]]:
    return {each.name: (each.effect, each.uncertain) for each in plan.prediction.effects}


def test_an_effect_on_work_that_competes_with_topology_is_not_certain() -> None:
    plan = plan_of(world(4, 0, racked("team-a", "waits", 4)))
    [effect] = plan.prediction.effects
    assert (effect.effect, effect.uncertain) == ("starts", ("TopologyAwareScheduling",))
    assert effect.because.endswith("; not certain: topology")
    assert plan.prediction.not_modelled == ("TopologyAwareScheduling (Workload hyperpod-ns-team-a/waits)",)
    [certain] = plan_of(world(4, 0, job("team-a", "waits", 4))).prediction.effects
    assert certain.uncertain == ()


BORROWERS = (job("team-b", "one", 2), job("team-b", "two", 2))


def test_who_may_be_preempted_because_of_the_plan_is_an_effect_and_the_guardrail_counts_it() -> None:
    """By quota it is enough to preempt one borrower; the pods that wait may need the racks of the other."""
    waits = racked("team-a", "waits", 3, minute=1)
    plan = plan_of(world(3, 3, *BORROWERS, waits, today=(2, 4), guardrails={"maxPreemptedGpus": 2}))
    assert uncertain(plan) == {
        "waits": ("starts", ("TopologyAwareScheduling",)),
        "one": ("preempted", ("TopologyAwareScheduling",)),
        "two": ("may be preempted", ("TopologyAwareScheduling",)),
    }
    assert (plan.prediction.preempted_gpus, plan.prediction.may_be_preempted_gpus) == (2, 2)
    [stop] = [verdict for verdict in plan.guardrails if not verdict.passed]
    assert stop.because == (
        "2 GPUs would be preempted, and 2 more may be (not certain: topology); the most allowed is 2."
    )
    allowed = world(3, 3, *BORROWERS, waits, today=(2, 4), guardrails={"maxPreemptedGpus": 4})
    assert plan_of(allowed).outcome is Outcome.APPLY


def test_where_all_is_followed_nobody_may_be_preempted_besides() -> None:
    plan = plan_of(world(3, 3, *BORROWERS, job("team-a", "waits", 3, minute=1), today=(2, 4)))
    assert uncertain(plan) == {"waits": ("starts", ()), "one": ("preempted", ())}
    assert (plan.prediction.preempted_gpus, plan.prediction.may_be_preempted_gpus) == (2, 0)


def test_who_may_be_preempted_without_the_plan_is_not_its_doing() -> None:
    """Work that waits within its quota may take what is borrowed, whatever the plan writes."""
    borrows, waits = job("team-b", "borrows", 3), racked("team-a", "waits", 2, minute=1)
    waits["spec"]["podSets"][0]["template"]["spec"]["nodeSelector"] = {"rack": "none"}
    plan = plan_of(world(3, 3, borrows, waits, today=(4, 2)))
    assert "borrows" not in uncertain(plan)


def test_what_is_not_followed_is_named_where_nothing_waits() -> None:
    prediction = plan_of(world(3, 1, racked("team-b", "runs", 1))).prediction
    assert (prediction.effects, prediction.is_complete) == ((), True)
    assert prediction.not_modelled == ("TopologyAwareScheduling (Workload hyperpod-ns-team-b/runs)",)
