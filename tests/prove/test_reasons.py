"""The prover sees reasons that do not add up, causes that cannot be, and lines that the writes do not say."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import pytest

from taskgov.allocation.plan import Plan, TeamAllocation
from taskgov.allocation.planner import row_sources
from taskgov.allocation.sources import Cause, Source, Trail
from taskgov.snapshot.model import Snapshot
from tests.allocation.test_lease_parts import lease
from tests.allocation.world import G5, P5, document, fixed, nodes, quota, row, share, snapshot
from tests.prove.causes import Sources
from tests.prove.proof import plan_to_apply, prove

Breaking = Callable[[Source], Source | None]


def world() -> Snapshot:
    """A shortage, a share and a lease in parts, and a quota that is left alone."""
    teams = fixed("ant", row(P5, Count=3)), fixed("bee", row(P5, Accelerators=16)), share("cat", 50, G5)
    leases = [lease("ant", "bee", 2, unit="accelerators")]
    return snapshot(
        document(*teams, leases=leases),
        nodes(4, P5) + nodes(5),
        [quota("ant", row(P5, Count=1)), quota("bee", row(P5, Accelerators=4)), quota("yak", row(Count=1))],
    )


def told_by(breaking: Breaking, team: str, asked: Snapshot) -> Sources:
    """Return the sources with those of one team broken."""
    told = row_sources(asked)
    told[team] = {
        key: Trail(tuple(broken for source in trail.sources if (broken := breaking(source)) is not None))
        for key, trail in told[team].items()
    }
    return told


def failures_of(breaking: Breaking, team: str) -> tuple[str, ...]:
    return prove(world(), explaining=lambda asked: told_by(breaking, team, asked))


def test_sound_reasons_are_proven() -> None:
    assert prove(world()) == ()
    causes = {
        source.cause for rows in row_sources(world()).values() for trail in rows.values() for source in trail.sources
    }
    assert {Cause.PROMISE, Cause.SHARE, Cause.SHORTAGE, Cause.LEASE, Cause.POOL, Cause.LEFT_ALONE} <= causes


def test_sources_that_do_not_add_up_are_seen() -> None:
    def breaking(source: Source) -> Source:
        return replace(source, amounts={unit: amount + Fraction(1, 1000) for unit, amount in source.amounts.items()})

    assert any("the sources come to" in failure for failure in failures_of(breaking, "cat"))


def test_a_lease_of_another_amount_is_seen() -> None:
    """The sources add up: what the lease moves too much is taken off elsewhere."""

    def breaking(source: Source) -> Source:
        more = {Cause.LEASE: 1, Cause.PROMISE: -1}.get(source.cause, 0)
        amounts = {unit: amount + more * (unit == "Accelerators") for unit, amount in source.amounts.items()}
        return replace(source, amounts=amounts)

    assert any("which no lease does" in failure for failure in failures_of(breaking, "bee"))


def test_a_lease_that_is_kept_quiet_is_seen() -> None:
    def breaking(source: Source) -> Source:
        return replace(source, cause=Cause.ROUNDING) if source.cause is Cause.LEASE else source

    assert any("is not among its sources" in failure for failure in failures_of(breaking, "bee"))


CANNOT_BE = [cause for cause in Cause if cause not in {Cause.PROMISE, Cause.SHORTAGE, Cause.LEASE, Cause.ROUNDING}]


@pytest.mark.parametrize("cause", CANNOT_BE)
def test_a_cause_that_cannot_be_is_seen(cause: Cause) -> None:
    def breaking(source: Source) -> Source:
        return replace(source, cause=cause) if source.cause is Cause.PROMISE else source

    named = [failure for failure in failures_of(breaking, "ant") if f": {cause.value} is named" in failure]
    assert bool(named) == (cause is not Cause.BOUNDS_OF_OTHERS)  # a shortage: promises bound one another


@pytest.mark.parametrize("cause", [Cause.PROMISE, Cause.SHORTAGE, Cause.LEASE])
def test_a_cause_of_others_is_seen(cause: Cause) -> None:
    def breaking(source: Source) -> Source:
        return replace(source, cause=cause) if source.cause is Cause.SHARE else source

    assert any(f": {cause.value} is named" in failure for failure in failures_of(breaking, "cat"))


def test_a_shortage_that_gives_is_seen() -> None:
    def breaking(source: Source) -> Source:
        if source.cause is not Cause.SHORTAGE:
            return source
        return replace(source, amounts={unit: -amount for unit, amount in source.amounts.items()})

    assert any("shortage gives" in failure for failure in failures_of(breaking, "ant"))


def with_lines(lines: Callable[[TeamAllocation], TeamAllocation | None]) -> tuple[str, ...]:
    """Return what the prover says of the first plan with other lines in its table."""
    asked = world()

    def planner(each: Snapshot) -> Plan:
        plan = plan_to_apply(each)
        if each is not asked:
            return plan
        told = tuple(line for given in plan.allocations if (line := lines(given)) is not None)
        return replace(plan, allocations=told)

    return prove(asked, planner)


def test_a_line_that_the_writes_do_not_say_is_seen() -> None:
    failures = with_lines(lambda line: replace(line, after=line.after + 1) if line.team == "bee" else line)
    assert any("the table says" in failure for failure in failures)


def test_a_row_without_a_line_is_seen() -> None:
    failures = with_lines(lambda line: None if line.team == "bee" else line)
    assert any("no line of the table is about" in failure for failure in failures)


def test_a_line_of_nothing_for_a_row_that_stays_is_seen() -> None:
    failures = with_lines(lambda line: replace(line, after=0) if line.team == "bee" else line)
    assert any("is left" in failure for failure in failures)
