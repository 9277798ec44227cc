"""Plans beside writes that were refused."""

from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest

from benchmarks import worlds
from taskgov.allocation.around_refusals import around_refusals
from taskgov.allocation.capacity import count_capacity
from taskgov.allocation.plan import Outcome, Plan, Reason
from taskgov.allocation.planner import plan_quotas, row_sources
from taskgov.allocation.refusals import refused_write
from taskgov.allocation.sources import Cause
from taskgov.allocation.type_around_refusals import Quota
from taskgov.findings import Finding, Severity
from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.hyperpod.model import ComputeQuotaConfig, ComputeQuotaResource
from taskgov.policy.document import CapacityRules
from taskgov.snapshot.model import Snapshot
from taskgov.snapshot.records import RefusalError
from tests.allocation.refusal_world import later, plan_of, played, settled, written
from tests.allocation.world import G5, NOW, P5, config, counts, document, fixed, minutes, nodes, quota, row, snapshot
from tests.prove.facts import facts_of
from tests.prove.goal import snapshot_after
from tests.prove.path import waves_of
from tests.prove.writing import write_path

POOL = "shared-pool"
STANDS = {"alpha": 4, "beta": 3, "gamma": 2, POOL: 1}
WANTED = {"alpha": 3, "beta": 2, "gamma": 4}


def world() -> Snapshot:
    """10 nodes; alpha, beta, gamma and the pool have 4, 3, 2, 1 and are to have 3, 2, 4, 1."""
    policy = document(*(fixed(team, row(Count=count)) for team, count in WANTED.items()))
    return snapshot(policy, nodes(10), [quota(team, row(Count=count)) for team, count in STANDS.items()])


def subject(team: str) -> str:
    return f"{team}/{team}-quota"


def held(now: Snapshot) -> dict[str, int]:
    return {
        each.compute_quota_target.team_name: sum(
            row.count or 0 for row in each.compute_quota_config.compute_quota_resources
        )
        for each in now.quotas
    }


def all_written(now: Snapshot, plan: Plan) -> Snapshot:
    return written(now, plan, plan.changes)


def test_what_a_refused_write_was_to_take_is_given_back() -> None:
    plan = plan_of(world())
    now = played(world(), plan, {subject("gamma")})
    assert held(now) == {"alpha": 3, "beta": 2, "gamma": 2, POOL: 1}
    again = plan_of(now)
    assert {each.team: (each.before, each.after) for each in again.changes} == {
        each.team: (each.before, each.after) for each in again.changes if each.team in {"alpha", "beta"}
    }
    after = all_written(now, again)
    assert held(after) == STANDS
    assert plan_of(after).changes == ()


@pytest.mark.parametrize("refused", [each for n in (1, 2, 3) for each in combinations(sorted(STANDS), n)], ids=" ".join)
def test_nobody_is_lowered_for_what_is_refused(refused: tuple[str, ...]) -> None:
    after, _ = settled(world(), {subject(team) for team in refused})
    if "gamma" in refused:
        assert held(after) == STANDS
    assert sum(held(after).values()) == 10
    assert all(held(after)[team] == STANDS[team] for team in refused)


def test_what_is_given_back_because_of_anothers_refusal_has_that_as_its_reason() -> None:
    again = plan_of(played(world(), plan_of(world()), {subject("gamma")}))
    assert {each.team: each.reason for each in again.changes} == {"alpha": Reason.REFUSAL, "beta": Reason.REFUSAL}


def test_a_quota_that_is_left_alone_is_no_room_beside_a_refusal() -> None:
    """Alpha is refused its lower number, and zeta is not in the document: of seven nodes none is left for delta."""
    policy = document(fixed("alpha", row(Count=2)), fixed("delta", row(Count=4)), pool=False)
    stands = [quota("alpha", row(Count=4)), quota("delta", row(Count=2)), quota("zeta", row(Count=1))]
    now = snapshot(policy, nodes(7), stands)
    after, _ = settled(now, {subject("alpha")})
    assert held(after) == {"alpha": 4, "delta": 2, "zeta": 1}
    # Delta is told of the refusal; it does not only find no room for what it would take.
    assert {finding.code for finding in plan_of(after).findings} == {"team-not-in-policy", "write-refused"}


def test_what_is_wanted_is_asked_for_again_when_it_differs() -> None:
    now = played(world(), plan_of(world()), {subject("gamma")})
    policy = document(fixed("alpha", row(Count=3)), fixed("beta", row(Count=2)), fixed("gamma", row(Count=3)))
    assert counts(plan_of(replace(now, policy=policy))) == {"alpha": 3, "beta": 2, "gamma": 3, POOL: 2}


def test_what_was_refused_is_asked_for_again_after_a_day() -> None:
    now = played(world(), plan_of(world()), {subject("gamma")})
    almost, after = later(now, hours=23, minutes=59), later(now, hours=24)
    assert counts(plan_of(almost))["gamma"] == 2
    assert plan_of(almost).recheck_at == after.taken_at
    assert counts(plan_of(after)) == {"alpha": 3, "beta": 2, "gamma": 4, POOL: 1}


def test_the_source_of_a_number_names_the_refusal() -> None:
    now = played(world(), plan_of(world()), {subject("gamma")})
    sources = row_sources(now)
    gamma = sources["gamma"][G5, ""]
    assert gamma.sources[-1].cause is Cause.REFUSED
    assert "gamma-quota was refused (limit-reached)" in gamma.sources[-1].because
    assert sources["alpha"][G5, ""].sources[-1].cause is Cause.REFUSED_TO_ANOTHER
    assert {team: trail[G5, ""].amounts["Count"] for team, trail in sources.items()} == STANDS


def finding_of(plan: Plan) -> Finding:
    (found,) = [each for each in plan.findings if each.code == "write-refused"]
    return found


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (RefusalError.LIMIT_REACHED, "Service Quotas"),
        (RefusalError.VALIDATION, "policy document"),
        (RefusalError.NOT_FOUND, "created again"),
        (RefusalError.ACCESS_DENIED, "apply_change"),
        (RefusalError.FAILED_TO_SETTLE, "failure reason"),
    ],
)
def test_a_refused_write_is_reported_with_what_would_let_it_through(error: RefusalError, words: str) -> None:
    now = played(world(), plan_of(world()), {subject("gamma")}, error=error)
    found = finding_of(plan_of(now))
    assert (found.severity, found.subject) == (Severity.ERROR, "gamma")
    assert f"({error.value}): no more. The plan does not ask again before 2026-11-2" in found.because
    assert words in found.remedy
    assert "taskgov reconcile ml-cluster --retry-refused" in found.remedy


def test_a_refusal_of_what_nobody_wants_any_more_is_not_reported() -> None:
    now = played(world(), plan_of(world()), {subject("gamma")})
    as_it_is = document(*(fixed(team, row(Count=STANDS[team])) for team in WANTED))
    assert "write-refused" not in {each.code for each in plan_of(replace(now, policy=as_it_is)).findings}


def test_a_refused_lowering_lets_others_rise_as_far_as_there_is_room() -> None:
    """Alpha and beta give one each, gamma and delta take one each; alpha is refused before anybody gave."""
    teams = {"alpha": (4, 3), "beta": (3, 2), "gamma": (2, 3), "delta": (1, 2)}
    policy = document(*(fixed(team, row(Count=after)) for team, (_, after) in teams.items()), pool=False)
    now = snapshot(policy, nodes(10), [quota(team, row(Count=before)) for team, (before, _) in teams.items()])
    after, _ = settled(now, {subject("alpha")})
    assert held(after) == {"alpha": 4, "beta": 2, "gamma": 2, "delta": 2}


def test_what_has_nothing_to_do_with_a_refusal_goes_forward() -> None:
    policy = document(
        fixed("alpha", row(Count=3)),
        fixed("beta", row(Count=3), row(P5, Count=1)),
        fixed("gamma", row(Count=4)),
        fixed("delta", row(P5, Count=3)),
    )
    stands = [
        quota("alpha", row(Count=4)),
        quota("beta", row(Count=3), row(P5, Count=2)),
        quota("gamma", row(Count=3)),
        quota("delta", row(P5, Count=2)),
    ]
    after, _ = settled(snapshot(policy, [*nodes(10), *nodes(4, P5)], stands), {subject("gamma")})
    rows = {
        each.compute_quota_target.team_name: each.compute_quota_config.compute_quota_resources for each in after.quotas
    }
    said = {team: {each.instance_type: each.count for each in mine} for team, mine in rows.items()}
    assert said == {"alpha": {G5: 4}, "beta": {G5: 3, P5: 1}, "gamma": {G5: 3}, "delta": {P5: 3}}


def test_settings_of_a_team_that_keeps_its_number_are_written_all_the_same() -> None:
    teams = [
        fixed("alpha", row(Count=3), PreemptTeamTasks="Never"),
        fixed("beta", row(Count=2)),
        fixed("gamma", row(Count=4)),
    ]
    now = played(world(), plan_of(world()), {subject("gamma")})
    after, _ = settled(replace(now, policy=document(*teams)), {subject("gamma")})
    alpha = next(each for each in after.quotas if each.compute_quota_target.team_name == "alpha")
    assert held(after) == STANDS
    assert alpha.compute_quota_config.preempt_team_tasks == "Never"


def test_a_new_quota_that_was_refused_leaves_the_others_as_they_were() -> None:
    policy = document(fixed("alpha", row(Count=3)), fixed("new", row(Count=2)))
    now = snapshot(policy, nodes(6), [quota("alpha", row(Count=5)), quota(POOL, row(Count=1))])
    after, _ = settled(now, {subject("new")})
    assert held(after) == {"alpha": 5, POOL: 1}
    assert "refused to create the quota new-quota" in finding_of(plan_of(after)).because


def test_the_shared_pool_holds_what_nobody_had() -> None:
    now = snapshot(document(fixed("alpha", row(Count=3)), fixed("new", row(Count=2))), nodes(6))
    after, _ = settled(now, {subject("new")})
    assert held(after) == {"alpha": 3, POOL: 3}


def test_what_is_left_of_a_creation_that_failed_is_deleted_and_not_made_again() -> None:
    policy = document(fixed("alpha", row(Count=3)), fixed("new", row(Count=2)))
    now = snapshot(policy, nodes(6), [quota("alpha", row(Count=5)), quota(POOL, row(Count=1))])
    plan = plan_of(now)
    now = played(now, plan, {subject("new")}, error=RefusalError.FAILED_TO_SETTLE)
    asked = next(change.after for change in plan.changes if change.team == "new")
    failed = quota("new", weight=None, status="CreateFailed").model_copy(update={"compute_quota_config": asked})
    now = replace(now, quotas=(*now.quotas, failed))
    after = all_written(now, plan_of(now))
    assert held(after) == {"alpha": 5, POOL: 1}
    assert plan_of(after).changes == ()
    stays, _ = settled(now, {subject("new")})  # nor is the deletion asked for again, once that is refused too
    assert held(stays) == {"alpha": 3, "new": 2, POOL: 1}


def test_a_failed_quota_whose_deletion_is_refused_stays_and_takes_its_room() -> None:
    policy = document(fixed("alpha", row(Count=3)), fixed("beta", row(Count=3)))
    stuck = quota("beta", row(Count=2), status="UpdateRollbackFailed")
    now = snapshot(policy, nodes(6), [quota("alpha", row(Count=2)), stuck, quota(POOL, row(Count=2))])
    after, _ = settled(now, {subject("beta")})
    assert held(after) == {"alpha": 3, "beta": 2, POOL: 1}
    assert "refused to delete the quota beta-quota" in finding_of(plan_of(after)).because
    (source,) = row_sources(after)["beta"][G5, ""].sources
    assert source.cause is Cause.REFUSED
    assert source.amounts == {"Count": 2}


def test_a_row_of_a_profile_that_is_not_written_has_a_line_of_its_own() -> None:
    partition = {"AcceleratorPartition": {"Type": "mig-1g.10gb", "Count": 7}}
    policy = document(fixed("alpha", row(P5, Count=1), row(P5, **partition)), pool=False)
    now = snapshot(policy, nodes(3, P5), [quota("alpha", row(P5, Count=1))])
    plan = plan_of(played(now, plan_of(now), {subject("alpha")}))
    lines = {(line.unit, line.before, line.after) for line in plan.allocations}
    assert lines == {("Count", 1, 1), ("mig-1g.10gb", 0, 0)}


def test_a_failed_update_is_not_tried_again_for_a_day() -> None:
    now = played(world(), plan_of(world()), {subject("gamma")}, error=RefusalError.FAILED_TO_SETTLE)
    failed = [
        each.model_copy(update={"status": "UpdateFailed", "compute_quota_version": 2}) if "gamma" in each.name else each
        for each in now.quotas
    ]
    again = plan_of(replace(now, quotas=tuple(failed)))
    assert {change.team for change in again.changes} == {"alpha", "beta"}


def test_the_first_of_two_writes_is_taken_back_when_the_second_is_refused() -> None:
    """Two quotas exchange GPUs for vCPUs on a full node: each is written twice."""
    gives, takes = {"VCpu": 48, "MemoryInGiB": 1024}, {"VCpu": 144, "MemoryInGiB": 1024}
    one, other = row(P5, Accelerators=4, **gives), row(P5, Accelerators=4, **takes)
    alpha, beta = row(P5, Accelerators=2, **takes), row(P5, Accelerators=6, **gives)
    policy = document(fixed("alpha", alpha), fixed("beta", beta), pool=False)
    before = snapshot(policy, nodes(1, P5), [quota("alpha", one), quota("beta", other)])
    plan = plan_of(before)
    assert {(change.team, change.is_low) for change in plan.changes} == {
        (team, is_low) for team in ("alpha", "beta") for is_low in (True, False)
    }
    low, second = (change for change in plan.changes if change.team == "alpha")
    refused = refused_write(plan, second, error=RefusalError.LIMIT_REACHED, because="no more", at=NOW)
    for sent in ([low], plan.changes[:2]):
        now = replace(written(before, plan, sent), refusals=(refused,))
        after, _ = settled(now, set())
        assert [each.compute_quota_config for each in after.quotas] == [
            each.compute_quota_config for each in before.quotas
        ]


def test_a_cluster_policy_that_was_refused_is_not_written_and_quotas_are() -> None:
    classes = {"PriorityClasses": [{"Name": "training", "Weight": 80}]}
    now = replace(
        world(), policy=document(*(fixed(team, row(Count=n)) for team, n in WANTED.items()), schedulerConfig=classes)
    )
    now = played(now, plan_of(now), {"cluster policy"})
    plan = plan_of(now)
    assert {change.subject for change in plan.changes} == {subject("alpha"), subject("beta"), subject("gamma")}
    assert finding_of(plan).subject == "cluster policy"
    assert "cluster policy" in {change.subject for change in plan_of(later(now, hours=24)).changes}


@pytest.mark.parametrize("on_limit", ["block", "partial"])
def test_limits_do_not_stand_in_the_way_back(on_limit: str) -> None:
    limits = {"maxDecreasePercent": 50, "maxIncreasePercent": 10, "onLimit": on_limit}
    now = played(world(), plan_of(world()), {subject("gamma")})
    policy = document(*(fixed(team, row(Count=n)) for team, n in WANTED.items()), guardrails=limits)
    plan = plan_of(replace(now, policy=policy))
    assert plan.outcome is Outcome.APPLY
    assert counts(plan) == STANDS


def test_in_parts_of_a_plan_the_whole_is_what_was_refused() -> None:
    limits = {"maxIncreasePercent": 50, "onLimit": "partial"}
    policy = document(*(fixed(team, row(Count=n)) for team, n in WANTED.items()), guardrails=limits)
    after, rounds = settled(replace(world(), policy=policy), {subject("gamma")})
    assert held(after) == STANDS
    assert len(rounds) <= 2


def test_a_lease_of_which_one_side_is_refused_moves_nothing() -> None:
    lease = {"from": "alpha", "to": "gamma", "instanceType": G5, "count": 2, "reason": "deadline"}
    lease |= {"start": NOW - minutes(5), "end": NOW + minutes(600)}
    policy = document(*(fixed(team, row(Count=STANDS[team])) for team in WANTED), leases=[lease])
    after, _ = settled(replace(world(), policy=policy), {subject("gamma")})
    assert held(after) == STANDS


def around(refused: list[Quota], *others: Quota, of: int, overcommit: bool = False) -> dict[str, int]:
    """Return what becomes of quotas of G5 instances, of which there are so many."""
    capacities = count_capacity(nodes(of), CapacityRules(), NOW, InstanceTypeTable(), instance_types=[G5])
    found = around_refusals(refused, others, (), capacities, overcommit=overcommit)
    return {team: sum(row.count or 0 for row in each.compute_quota_resources) for team, each in found.items()}


def of_counts(team: str, *, wanted: int, stands: int, earlier: int | None = None) -> Quota:
    wants, has, had = (
        None if count is None else ComputeQuotaConfig.model_validate(config(row(Count=count)))
        for count in (wanted, stands, earlier)
    )
    assert wants is not None
    assert has is not None
    return Quota(team, wants, has, had)


@pytest.mark.parametrize(("instances", "back"), [(12, {"alpha": 4}), (11, {})])
def test_what_a_low_write_took_of_a_refused_quota_comes_back_where_there_is_room(
    instances: int, back: dict[str, int]
) -> None:
    alpha, beta = of_counts("alpha", wanted=6, stands=2, earlier=4), of_counts("beta", wanted=8, stands=8)
    assert around([alpha], beta, of=instances) == back


def test_others_keep_what_a_refused_quota_lacks_of_what_was_given_back_to_it() -> None:
    """Alpha has 4 again and lacks 2 of 6. Beta and gamma, who were to give 2 each, keep one each."""
    alpha = of_counts("alpha", wanted=6, stands=2, earlier=4)
    others = [of_counts(team, wanted=2, stands=4) for team in ("beta", "gamma")]
    assert around([alpha], *others, of=12) == {"alpha": 4, "beta": 3, "gamma": 3}


@pytest.mark.parametrize(("overcommit", "changed"), [(False, {"beta": 0}), (True, {})])
def test_a_type_without_nodes_has_no_room_unless_quotas_may_exceed_the_capacity(
    overcommit: bool, changed: dict[str, int]
) -> None:
    alpha, beta = of_counts("alpha", wanted=6, stands=4), of_counts("beta", wanted=2, stands=0)
    assert around([alpha], beta, of=0, overcommit=overcommit) == changed


MIG = {"unit": "acceleratorPartition", "acceleratorPartitionType": "mig-1g.10gb", "count": 1}


@pytest.mark.parametrize(
    ("moved", "want"),
    [
        pytest.param({"unit": "vcpu", "count": 96}, ["promise", "lease"], id="all vCPUs of a row of accelerators"),
        pytest.param(MIG, ["lease", "refused-to-another"], id="a row that is not there"),
    ],
)
def test_a_lease_that_a_refusal_holds_up_is_among_the_sources(moved: dict[str, Any], want: list[str]) -> None:
    to, donor = ("ant", "bee") if moved is MIG else ("bee", "ant")
    lease = {"from": donor, "to": to, "instanceType": P5, "reason": "deadline", **moved}
    lease |= {"start": NOW - minutes(5), "end": NOW + minutes(600)}
    slices = [row(P5, AcceleratorPartition={"Type": "mig-1g.10gb", "Count": 7})] if moved is MIG else []
    rows = {"ant": [row(P5, Accelerators=4)], "bee": [row(P5, Accelerators=3), *slices]}
    policy = document(*(fixed(team, *mine) for team, mine in rows.items()), leases=[lease])
    now = snapshot(policy, nodes(1, P5), [*(quota(team, *mine) for team, mine in rows.items()), quota(POOL)])
    plan = plan_of(now)
    (change,) = [each for each in plan.changes if each.team == donor]
    refusal = refused_write(plan, change, error=RefusalError.ACCESS_DENIED, because="no", at=now.taken_at)
    trails = row_sources(replace(now, refusals=(refusal,)))["ant"]
    assert [source.cause.value for source in trails[P5, "mig-1g.10gb" if moved is MIG else ""].sources] == want


def test_what_rounding_frees_of_a_row_that_keeps_more_goes_to_who_lacks_it() -> None:
    """ant keeps 15 GPUs: its 276.468 vCPU are written out, as 276. What that frees lets dog have one more."""
    policy = document(
        fixed("ant", row(P5, Accelerators=3, MemoryInGiB=2949.0)),
        fixed("dog", row(P5, Accelerators=1, MemoryInGiB=3157.0)),
    )
    stands = [quota("ant", row(P5, Count=2)), quota("dog"), quota(POOL, row(P5, Count=1))]
    now = snapshot(policy, nodes(3, P5), stands)
    plan = plan_of(now)
    (pool,) = [each for each in plan.changes if each.team == POOL]
    refusal = refused_write(plan, pool, error=RefusalError.ACCESS_DENIED, because="no", at=now.taken_at)
    now = replace(now, refusals=(refusal,))
    after = all_written(now, plan_of(now))
    (row_of_dog,) = rows_of(after, "dog")
    (row_of_ant,) = rows_of(after, "ant")
    assert (row_of_ant.accelerators, row_of_ant.vcpu, row_of_dog.vcpu) == (15, 276, 108)
    assert plan_of(after).changes == ()


@pytest.mark.parametrize(("seed", "number"), [(25, 3893)])
def test_the_plan_after_it_is_empty_whatever_was_rounded(seed: int, number: int) -> None:
    """What is kept beside a refusal costs the next plan no more, although its rows were rounded meanwhile."""
    now = worlds.world("refused", seed, number)
    plan = plan_quotas(now, mode="apply")
    assert plan.changes != ()
    written = write_path(facts_of(now, plan), waves_of(plan))
    assert written.failures == []
    assert plan_quotas(snapshot_after(now, written, None), mode="apply").changes == ()


def rows_of(now: Snapshot, team: str) -> tuple[ComputeQuotaResource, ...]:
    (found,) = [each for each in now.quotas if each.compute_quota_target.team_name == team]
    return found.compute_quota_config.compute_quota_resources
