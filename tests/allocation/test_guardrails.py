from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from taskgov.allocation.applied_record import remember
from taskgov.allocation.capacity import TypeCapacity, count_capacity
from taskgov.allocation.codec import changes_sha256
from taskgov.allocation.exchange import exchange
from taskgov.allocation.goals import goals_of
from taskgov.allocation.guardrails import judge
from taskgov.allocation.plan import GuardrailVerdict, Outcome, Plan, Prediction, WorkloadEffect
from taskgov.allocation.planner import plan_quotas
from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.policy.document import CapacityRules, Guardrails
from taskgov.snapshot.model import InstanceGroup, Snapshot
from taskgov.snapshot.records import AppliedQuota, PastQuota
from tests.allocation.world import (
    G5,
    NOW,
    P5,
    applied,
    broken,
    document,
    fixed,
    minutes,
    nodes,
    quota,
    row,
    share,
    snapshot,
)


def shrinking(to: int = 6, **guardrails: Any) -> Snapshot:
    """team-a has 8 and is promised fewer."""
    policy = document(fixed("team-a", row(Count=to)), guardrails=guardrails, pool=False)
    return snapshot(policy, nodes(max(to, 8)), [quota("team-a", row(Count=8))])


def starting(**guardrails: Any) -> Snapshot:
    """team-a has nothing and is guaranteed 4."""
    return replace(shrinking(4, **guardrails), quotas=())


def capacities(world: Snapshot) -> Mapping[str, TypeCapacity]:
    types = {row.instance_type for each in world.quotas for row in each.compute_quota_config.compute_quota_resources}
    return count_capacity(world.nodes, CapacityRules(), NOW, InstanceTypeTable(), instance_types=types)


def failed(plan: Plan) -> list[GuardrailVerdict]:
    return [verdict for verdict in plan.guardrails if not verdict.passed]


def stopped_by(world: Snapshot) -> list[str]:
    plan = plan_quotas(world, mode="apply")
    assert (plan.outcome in {Outcome.BLOCKED, Outcome.NEEDS_APPROVAL}) == bool(failed(plan))
    return [verdict.guardrail for verdict in failed(plan)]


NO_NODES = replace(shrinking(), nodes=())
SUNDAYS = {"cron": "0 3 * * sun", "minutes": 60}

CASES: Mapping[str, tuple[Snapshot, list[str]]] = {
    "no guardrail stops nothing": (shrinking(), []),
    "the stop switch stops everything": (replace(shrinking(), stopped=True), ["stop-switch"]),
    "a stop switch that cannot be read is taken as on": (replace(shrinking(), stopped=None), ["stop-switch"]),
    "a quarter less is within 25 %": (shrinking(maxDecreasePercent=25), []),
    "three of eight less is beyond 25 %": (shrinking(5, maxDecreasePercent=25), ["max-decrease"]),
    "an increase is never a decrease": (shrinking(9, maxDecreasePercent=0), []),
    "a quarter more is within 25 %": (shrinking(10, maxIncreasePercent=25), []),
    "three of eight more is beyond 25 %": (shrinking(11, maxIncreasePercent=25), ["max-increase"]),
    "twice as much is within 100 %": (shrinking(16, maxIncreasePercent=100), []),
    "a decrease is never an increase": (shrinking(7, maxIncreasePercent=0), []),
    "what rises from nothing has no percentage": (starting(maxIncreasePercent=0), []),
    "five GPUs are beneath a minimum of six": (shrinking(5, minimumQuota={"team-a": 6}), ["minimum-quota"]),
    "six GPUs keep a minimum of six": (shrinking(6, minimumQuota={"team-a": 6}), []),
    "outside its window nothing is changed": (shrinking(changeWindows=[SUNDAYS]), ["change-window"]),
    "inside its window it is": (shrinking(changeWindows=[SUNDAYS, {"cron": "0 12 20 11 *", "minutes": 1}]), []),
    "a window that cannot be read is closed": (
        shrinking(changeWindows=[{"cron": "never", "minutes": 5}]),
        ["change-window"],
    ),
    "a time zone that cannot be read is closed": (
        shrinking(changeWindows=[{**SUNDAYS, "timeZone": "Mars/Olympus"}]),
        ["change-window"],
    ),
    "no predicted preemption is within any limit": (shrinking(maxPreemptedGpus=0), []),
}


@pytest.mark.parametrize(("world", "want"), CASES.values(), ids=CASES.keys())
def test_guardrails_stop(world: Snapshot, want: list[str]) -> None:
    assert stopped_by(world) == want


def test_what_was_stopped_and_what_would_let_it_through_is_said() -> None:
    plan = plan_quotas(shrinking(5, maxDecreasePercent=25), mode="apply")
    [verdict] = failed(plan)
    assert verdict.because == "team-a ml.g5.8xlarge 8 -> 5 falls by 37.5 % in one step; the most allowed is 25 %."
    assert (
        verdict.remedy
        == "raise guardrails.maxDecreasePercent to 37.5, or lower the quota in steps (guardrails.onLimit: partial)"
    )
    assert plan.changes[0].guardrails == (verdict,)


def test_a_minimum_that_is_known_says_the_numbers_and_no_more() -> None:
    [verdict] = failed(plan_quotas(shrinking(5, minimumQuota={"team-a": 6}), mode="apply"))
    assert verdict.because == "team-a would have 5 accelerators; its minimum is 6."
    assert verdict.remedy == "lower guardrails.minimumQuota.team-a, or bring nodes back"


def test_an_increase_that_was_stopped_says_what_would_let_it_through() -> None:
    plan = plan_quotas(shrinking(11, maxIncreasePercent=25), mode="apply")
    [verdict] = failed(plan)
    assert verdict.because == "team-a ml.g5.8xlarge 8 -> 11 rises by 37.5 % in one step; the most allowed is 25 %."
    assert (
        verdict.remedy
        == "raise guardrails.maxIncreasePercent to 37.5, or raise the quota in steps (guardrails.onLimit: partial)"
    )


def test_what_rises_from_nothing_is_let_through_and_said_so() -> None:
    plan = plan_quotas(starting(maxIncreasePercent=0), mode="apply")
    [verdict] = plan.changes[0].guardrails
    assert verdict.passed
    assert verdict.because == "team-a ml.g5.8xlarge 0 -> 4: it was zero before, and zero has no percentage."


def test_in_plan_mode_a_guardrail_is_shown_and_the_changes_are_planned() -> None:
    plan = plan_quotas(shrinking(5, maxDecreasePercent=25), mode="plan")
    assert (plan.outcome, [verdict.guardrail for verdict in failed(plan)]) == (Outcome.PLANNED, ["max-decrease"])


def test_a_closed_window_says_when_it_opens_and_the_plan_is_looked_at_again_then() -> None:
    plan = plan_quotas(shrinking(changeWindows=[{**SUNDAYS, "timeZone": "Europe/Berlin"}]), mode="apply")
    opens = datetime(2026, 11, 22, 2, 0, tzinfo=UTC)
    assert plan.recheck_at == opens
    assert failed(plan)[0].because == "No change window is open; the next one: 2026-11-22 02:00 UTC."


def test_an_empty_node_list_is_taken_for_a_failed_reading() -> None:
    policy = document(share("team-a", 100))
    world = snapshot(policy, (), [quota("team-a", row(Count=3))])
    assert stopped_by(world) == ["nodes-seen"]
    assert plan_quotas(world, mode="apply").outcome is Outcome.NEEDS_APPROVAL


def test_a_cluster_that_was_scaled_to_zero_has_no_nodes_to_see() -> None:
    policy = document(share("team-a", 100))
    world = snapshot(policy, (), [quota("team-a", row(Count=3))])
    facts = replace(world.cluster, instance_groups=(InstanceGroup("workers", (), 0, 0),))
    assert stopped_by(replace(world, cluster=facts)) == []


def test_the_shared_pool_may_shrink_as_it_must() -> None:
    policy = document(fixed("team-a", row(Count=4)), guardrails={"maxDecreasePercent": 10})
    quotas = [quota("team-a", row(Count=4)), quota("shared-pool", row(Count=4))]
    assert stopped_by(snapshot(policy, (*nodes(4), *broken(4)), quotas)) == []


def lease(start: float, end: float, count: int = 2) -> dict[str, Any]:
    hours = {"start": NOW + timedelta(hours=start), "end": NOW + timedelta(hours=end)}
    return {"to": "team-a", "from": "team-b", "instanceType": G5, "count": count, "reason": "deadline", **hours}


def lending(now_a: int, now_b: int, *leases: Mapping[str, Any], written: float = 2) -> Snapshot:
    """Two teams with 4 each; what was written so many hours ago; no decrease is allowed."""
    policy = document(
        fixed("team-a", row(Count=4)),
        fixed("team-b", row(Count=4)),
        leases=leases,
        guardrails={
            "maxDecreasePercent": 0,
            "maxDecreasePerPeriod": {"percent": 0, "hours": 48},
            "maxIncreasePercent": 0,
            "maxIncreasePerPeriod": {"percent": 0, "hours": 48},
        },
        pool=False,
    )
    quotas = [quota("team-a", row(Count=now_a)), quota("team-b", row(Count=now_b))]
    return snapshot(policy, nodes(8), quotas, applied=tuple(written_before(each, hours=written) for each in quotas))


def written_before(each: Any, *, hours: float, history: tuple[PastQuota, ...] | None = ()) -> AppliedQuota:
    return AppliedQuota(
        compute_quota_id=each.compute_quota_id,
        version=each.compute_quota_version,
        config=each.compute_quota_config,
        target=each.compute_quota_target,
        plan_id="plan-1",
        at=NOW - timedelta(hours=hours),
        history=history,
    )


def test_what_a_lease_moves_is_neither_decrease_nor_increase() -> None:
    assert stopped_by(lending(4, 4, lease(-1, 24))) == []


def test_what_a_lease_takes_back_is_neither_decrease_nor_increase() -> None:
    assert stopped_by(lending(6, 2, lease(-24, -1))) == []


def test_a_lease_that_started_long_ago_excuses_no_later_decrease() -> None:
    world = lending(6, 2, lease(-24, 24))
    world = replace(world, nodes=nodes(7))
    assert set(stopped_by(world)) == {"max-decrease", "max-decrease-per-period"}


def test_a_lease_that_ended_before_the_last_write_excuses_nothing() -> None:
    assert set(stopped_by(lending(6, 4, lease(-24, -3)))) == {"max-decrease", "max-decrease-per-period"}


def in_period(history: tuple[PastQuota, ...] | None, to: int = 6) -> Snapshot:
    world = shrinking(to, maxDecreasePerPeriod={"percent": 40, "hours": 24})
    return replace(world, applied=(written_before(world.quotas[0], hours=1, history=history),))


def ten(hours_ago: float) -> tuple[PastQuota, ...]:
    config = quota("team-a", row(Count=12)).compute_quota_config
    return (PastQuota(until=NOW - timedelta(hours=hours_ago), config=config),)


def test_a_period_counts_from_the_most_a_team_had_in_it() -> None:
    assert stopped_by(in_period(ten(hours_ago=23))) == ["max-decrease-per-period"]


def test_what_was_before_the_period_does_not_count() -> None:
    assert stopped_by(in_period(ten(hours_ago=25))) == []


def test_a_past_that_cannot_be_read_stops_the_plan() -> None:
    assert stopped_by(in_period(None)) == ["max-decrease-per-period"]
    assert stopped_by(grown(None)) == ["max-increase-per-period"]


def grown(history: tuple[PastQuota, ...] | None, to: int = 10) -> Snapshot:
    """From 8 to 10, where no more than 40 % in a day is allowed and only 25 % is asked for now."""
    world = shrinking(to, maxIncreasePerPeriod={"percent": 40, "hours": 24})
    return replace(world, applied=(written_before(world.quotas[0], hours=1, history=history),))


def had(*past: tuple[int, float]) -> tuple[PastQuota, ...]:
    """So many instances, until so many hours ago."""
    return tuple(
        PastQuota(until=NOW - timedelta(hours=ago), config=quota("team-a", row(Count=count)).compute_quota_config)
        for count, ago in past
    )


GROWTH = {
    "a period counts from the least a team had in it": (had((7, 23)), ["max-increase-per-period"]),
    "what was before the period is not its least": (had((2, 25)), []),
    "what a team had before it lost nodes is no measure of growth": (had((16, 3)), []),
    "a moment at nothing is not the least": (had((8, 3), (0, 2)), []),
    "a moment at nothing does not hide what was less": (had((2, 3), (0, 2)), ["max-increase-per-period"]),
}


@pytest.mark.parametrize(("history", "want"), GROWTH.values(), ids=GROWTH.keys())
def test_growth_in_a_period(history: tuple[PastQuota, ...], want: list[str]) -> None:
    assert stopped_by(grown(history)) == want


def test_the_words_of_a_period_name_the_least_and_what_would_let_it_through() -> None:
    [verdict] = failed(plan_quotas(grown(had((5, 23))), mode="apply"))
    assert verdict.because == (
        "team-a ml.g5.8xlarge 8 -> 10 rises by 100 % from the least in 24 h (5); the most allowed is 40 %."
    )
    assert verdict.remedy == "wait, or raise guardrails.maxIncreasePerPeriod.percent to 100"


def test_each_write_leaves_its_past_and_forgets_what_is_older_than_the_longest_period() -> None:
    world = shrinking()
    [change] = plan_quotas(world, mode="apply").changes
    old = PastQuota(until=NOW - timedelta(days=31), config=world.quotas[0].compute_quota_config)
    recent = replace(old, until=NOW - timedelta(days=30))
    before = written_before(world.quotas[0], hours=1, history=(old, recent))
    kept = remember(change, before, quota_id="id-team-a", version=2, plan_id="plan-2", now=NOW)
    stood = world.quotas[0].compute_quota_config
    assert [(past.until, past.config) for past in kept.history or ()] == [(recent.until, stood), (NOW, stood)]
    assert (kept.version, kept.config, kept.promise) == (2, change.after, change.promise)


def test_a_past_that_was_not_read_is_not_made_up() -> None:
    world = shrinking()
    [change] = plan_quotas(world, mode="apply").changes
    before = written_before(world.quotas[0], hours=1, history=None)
    assert remember(change, before, quota_id="i", version=2, plan_id="p", now=NOW).history is None


def test_only_writes_of_quotas_are_recorded() -> None:
    world = snapshot(document(schedulerConfig={"FairShare": "Enabled"}, pool=False))
    [change] = plan_quotas(world, mode="apply").changes
    with pytest.raises(ValueError, match="is not the change of a quota"):
        remember(change, None, quota_id="i", version=1, plan_id="p", now=NOW)


def moving(gpus_allowed: int) -> Snapshot:
    """16 GPUs move from team-b to team-a."""
    policy = document(
        fixed("team-a", row(P5, Count=4)),
        fixed("team-b", row(P5, Count=2)),
        guardrails={"approveAbove": {"changedGpus": gpus_allowed}},
        pool=False,
    )
    return snapshot(policy, nodes(6, P5), [quota("team-a", row(P5, Count=2)), quota("team-b", row(P5, Count=4))])


def test_sixteen_gpus_that_change_hands_count_once() -> None:
    world = moving(16)
    goals = goals_of(world, plan_quotas(world, mode="apply").changes)
    assert exchange(goals, capacities(world)).gpus == 16


def test_up_to_the_threshold_no_approval_is_needed() -> None:
    assert plan_quotas(moving(16), mode="apply").outcome is Outcome.APPLY


def test_above_the_threshold_a_person_has_to_approve_exactly_these_changes() -> None:
    world = moving(15)
    plan = plan_quotas(world, mode="apply")
    assert plan.outcome is Outcome.NEEDS_APPROVAL
    assert plan_quotas(world, mode="apply", approved_changes=changes_sha256(plan)).outcome is Outcome.APPLY
    assert plan_quotas(world, mode="apply", approved_changes="another").outcome is Outcome.NEEDS_APPROVAL


def test_an_approval_holds_when_the_world_moves_but_the_changes_do_not() -> None:
    world = moving(15)
    approved = changes_sha256(plan_quotas(world, mode="apply"))
    later = replace(world, taken_at=NOW + minutes(30), nodes=nodes(6, P5, "renamed"))
    assert plan_quotas(later, mode="apply", approved_changes=approved).outcome is Outcome.APPLY


def test_an_approval_does_not_lift_a_guardrail() -> None:
    world = replace(moving(15), stopped=True)
    approved = changes_sha256(plan_quotas(world, mode="apply"))
    assert plan_quotas(world, mode="apply", approved_changes=approved).outcome is Outcome.BLOCKED


def verdicts_of(prediction: Prediction, **guardrails: Any) -> dict[str, bool]:
    world = shrinking()
    changes = plan_quotas(world, mode="apply").changes
    judged = judge(world, Guardrails.model_validate(guardrails), changes, [], prediction, capacities(world))
    return {verdict.guardrail: verdict.passed for verdict in judged.verdicts}


def test_more_predicted_preemption_than_allowed_stops_the_plan() -> None:
    eight = Prediction(simulated=True, preempted_gpus=8)
    assert verdicts_of(eight, maxPreemptedGpus=8)["max-preempted-gpus"]
    assert not verdicts_of(eight, maxPreemptedGpus=7)["max-preempted-gpus"]
    assert not verdicts_of(eight, approveAbove={"preemptedGpus": 7})["approval"]


def test_what_may_be_preempted_counts_as_preempted() -> None:
    effect = WorkloadEffect("ns", "w", "team-a", "may be preempted", 3, "", uncertain=("MultiKueue",))
    unsure = Prediction(simulated=True, effects=(effect,), preempted_gpus=2, may_be_preempted_gpus=3)
    assert verdicts_of(unsure, maxPreemptedGpus=5)["max-preempted-gpus"]
    assert not verdicts_of(unsure, maxPreemptedGpus=4)["max-preempted-gpus"]
    assert verdicts_of(unsure, approveAbove={"preemptedGpus": 5})["approval"]
    assert not verdicts_of(unsure, approveAbove={"preemptedGpus": 4})["approval"]


def test_what_cannot_be_predicted_is_stopped_where_it_is_limited() -> None:
    unknown = Prediction(simulated=False, not_modelled=("a new kind of queue",))
    assert not verdicts_of(unknown, maxPreemptedGpus=100)["max-preempted-gpus"]
    assert not verdicts_of(unknown, approveAbove={"preemptedGpus": 100})["approval"]
    assert "max-preempted-gpus" not in verdicts_of(unknown)


def test_what_is_predicted_in_part_is_stopped_where_it_is_limited() -> None:
    some = Prediction(simulated=True, preempted_gpus=2, not_predicted=("the queues after wave 2",))
    world = shrinking()
    guardrails = Guardrails.model_validate({"maxPreemptedGpus": 100, "approveAbove": {"preemptedGpus": 100}})
    changes = plan_quotas(world, mode="apply").changes
    _, limited, asked = judge(world, guardrails, changes, [], some, capacities(world)).verdicts
    assert (limited.passed, asked.passed) == (False, False)
    assert limited.because == (
        "At least 2 GPUs would be preempted; the most allowed is 100. What was not predicted: the queues after wave 2."
    )
    assert limited.remedy == (
        "change fewer quotas at once, or remove guardrails.maxPreemptedGpus to continue without a prediction"
    )
    assert asked.because == (
        "At least 2 GPUs would be preempted. More than 100 need approval. "
        "What was not predicted: the queues after wave 2."
    )


def test_without_changes_no_guardrail_has_anything_to_say() -> None:
    world = replace(shrinking(8), stopped=True)
    plan = plan_quotas(world, mode="apply")
    assert (plan.outcome, plan.guardrails) == (Outcome.NOTHING_TO_DO, ())
    assert applied(world, plan) == world
