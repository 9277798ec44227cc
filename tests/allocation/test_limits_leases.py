"""What a lease moves is set aside where limits judge, and nothing else."""

from collections.abc import Mapping
from typing import Any

from taskgov.allocation.leases import Given
from taskgov.allocation.plan import GuardrailVerdict
from taskgov.allocation.planner import plan_quotas
from taskgov.allocation.set_aside import leased_net
from taskgov.snapshot.model import Snapshot
from taskgov.snapshot.records import PastQuota
from tests.allocation.limits_world import HOUR, failed, record, stopped_by
from tests.allocation.world import G5, NOW, document, fixed, nodes, quota, row, snapshot


def lease(start: float, end: float, count: int = 2, **fields: Any) -> dict[str, Any]:
    when = {"start": NOW + start * HOUR, "end": NOW + end * HOUR}
    return {
        "to": "team-a",
        "from": "team-b",
        "instanceType": G5,
        "count": count,
        "reason": "deadline",
        **when,
        **fields,
    }


STRICT = {
    "maxDecreasePercent": 0,
    "maxDecreasePerPeriod": {"percent": 0, "hours": 48},
    "maxIncreasePercent": 0,
    "maxIncreasePerPeriod": {"percent": 0, "hours": 48},
}


def lending(
    now: tuple[int, int], promised: tuple[int, int], *leases: Mapping[str, Any], **recorded: Mapping[str, int]
) -> Snapshot:
    """team-a and team-b; `a` and `b` are what was recorded as leased with the quotas that stand."""
    policy = document(
        fixed("team-a", row(Count=promised[0])),
        fixed("team-b", row(Count=promised[1])),
        leases=leases,
        guardrails=STRICT,
        pool=False,
    )
    quotas = [quota("team-a", row(Count=now[0])), quota("team-b", row(Count=now[1]))]
    written = tuple(record(each, leased=recorded.get(name)) for name, each in zip(("a", "b"), quotas, strict=True))
    return snapshot(policy, nodes(20), quotas, applied=written)


def test_a_lease_that_began_before_the_last_write_and_was_not_in_it_is_set_aside() -> None:
    assert stopped_by(lending((4, 4), (4, 4), lease(-5, 24))) == []
    assert stopped_by(lending((4, 4), (4, 4), lease(-5, 24), a={}, b={})) == []


def test_a_lease_that_is_taken_out_early_is_set_aside() -> None:
    assert stopped_by(lending((6, 2), (4, 4), a={G5: 2}, b={G5: -2})) == []


def test_without_a_record_a_lease_that_was_taken_out_is_a_decrease() -> None:
    assert "max-decrease" in stopped_by(lending((6, 2), (4, 4)))


def test_a_lease_that_was_in_the_last_write_excuses_nothing() -> None:
    assert "max-decrease" in stopped_by(lending((6, 2), (3, 4), lease(-5, 24), a={G5: 2}, b={G5: -2}))


def test_a_lease_hides_no_decrease_beside_it() -> None:
    plan = plan_quotas(lending((4, 4), (4, 3), lease(-1, 24), a={}, b={}), mode="apply")
    assert failed(plan)[0].because == (
        "team-b ml.g5.8xlarge 4 -> 1 (2 leased to team-a set aside) falls by 25 % in one step; the most allowed is 0 %."
    )


def test_the_verdict_names_the_lease_that_moves_a_number() -> None:
    plan = plan_quotas(lending((4, 4), (4, 4), lease(-1, 24), a={}, b={}), mode="apply")
    told = {change.team: change.guardrails[0] for change in plan.changes}
    assert told["team-b"] == GuardrailVerdict(
        "max-decrease", True, "team-b ml.g5.8xlarge 4 -> 2: 2 leased to team-a set aside, nothing else falls."
    )
    assert told["team-a"].because == (
        "team-a ml.g5.8xlarge 4 -> 6: 2 leased from team-b set aside, nothing else rises."
    )


def test_a_refused_lease_sets_nothing_aside() -> None:
    """10 -> 6 beside a lease of 4 that team-b is refused, because it would have to go below its floor."""
    policy = document(
        fixed("team-a", row(Count=1)),
        fixed("team-b", row(Count=6)),
        leases=[lease(-1, 24, 4)],
        guardrails={"maxDecreasePercent": 25, "minimumQuota": {"team-b": 6}},
        pool=False,
    )
    quotas = [quota("team-a", row(Count=1)), quota("team-b", row(Count=10))]
    world = snapshot(policy, nodes(20), quotas, applied=tuple(map(record, quotas)))
    assert stopped_by(world) == ["max-decrease"]


def test_a_period_sets_the_leases_of_its_past_aside() -> None:
    """team-a has 5 and is to have 4; an hour ago it had 7."""
    policy = document(
        fixed("team-a", row(Count=4)), guardrails={"maxDecreasePerPeriod": {"percent": 20, "hours": 48}}, pool=False
    )
    was, stands = (quota("team-a", row(Count=count)) for count in (7, 5))

    def with_past(leased: Mapping[str, int] | None) -> Snapshot:
        past = PastQuota(NOW - HOUR, was.compute_quota_config, leased)
        applied = record(stands, hours=1, leased={}, history=(past,))
        return snapshot(policy, nodes(9), [stands], applied=(applied,))

    assert stopped_by(with_past({G5: 2})) == []
    assert stopped_by(with_past({G5: 1})) == ["max-decrease-per-period"]
    assert stopped_by(with_past(None)) == ["max-decrease-per-period"]


def test_what_leases_bring_is_counted_by_type() -> None:
    policy = document(leases=[lease(-1, 2), lease(-1, 2, 1), lease(-1, 2, 5, to="team-c")])
    given = [Given(each, each.count) for each in policy.leases]
    assert leased_net("team-a", given) == {G5: 3}
    assert leased_net("team-b", given) == {G5: -8}
    assert leased_net("team-d", given) == {}
