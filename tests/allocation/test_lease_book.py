"""How each lease stands, for everybody who shows quota."""

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from taskgov.allocation.lease_book import LeaseEntry, lease_book, leased
from taskgov.allocation.leases import LeaseState
from taskgov.allocation.planner import plan_quotas
from taskgov.snapshot.model import Snapshot
from tests.allocation.world import G5, NOW, applied, document, fixed, minutes, nodes, row, snapshot


def lease(start: datetime, end: datetime, *, count: int = 2, donor: str = "shared-pool") -> dict[str, Any]:
    named = {"to": "team-a", "from": donor, "instanceType": G5, "reason": "deadline"}
    return named | {"count": count, "start": start, "end": end}


def world(*leases: dict[str, Any]) -> Snapshot:
    """A cluster of 6 whose quotas are as planned."""
    policy = document(fixed("team-a", row(Count=2)), fixed("team-b", row(Count=1)), leases=list(leases))
    unwritten = snapshot(policy, nodes(6))
    return applied(unwritten, plan_quotas(unwritten, mode="apply"))


DUE = lease(NOW + minutes(1), NOW + minutes(9))
HOLDS = lease(NOW, NOW + minutes(9))
ENDED = lease(NOW - minutes(9), NOW)
TOO_MUCH = lease(NOW, NOW + minutes(9), count=3, donor="team-b")


def states(book: tuple[LeaseEntry, ...]) -> list[LeaseState]:
    return [each.state for each in book]


def test_a_lease_is_due_before_its_start_and_gone_from_its_end() -> None:
    assert states(lease_book(world(DUE))) == [LeaseState.DUE]
    assert lease_book(world(ENDED)) == ()


def test_a_lease_that_is_in_the_quotas_is_active_and_counts_for_both_teams() -> None:
    book = lease_book(world(HOLDS))
    assert states(book) == [LeaseState.ACTIVE]
    assert [leased(book, team, G5) for team in ("team-a", "shared-pool", "team-b")] == [
        {"instances": 2},
        {"instances": -2},
        {},
    ]
    assert leased(book, "team-a", "ml.p5.48xlarge") == {}


def test_a_lease_that_nobody_has_written_yet_is_planned_and_in_no_quota() -> None:
    before = world(DUE)
    book = lease_book(replace(before, taken_at=NOW + minutes(1)))
    assert states(book) == [LeaseState.PLANNED]
    assert leased(book, "team-a", G5) == {}


@pytest.mark.parametrize("other", ["ml.c5.2xlarge", "ml.p5.48xlarge"])
def test_a_lease_holds_while_other_types_of_its_teams_are_still_to_be_written(other: str) -> None:
    wrote = world(HOLDS)
    assert wrote.policy is not None
    teams = fixed("team-a", row(Count=2), row(other, Count=1)), fixed("team-b", row(Count=1))
    policy = document(*teams, leases=[HOLDS])
    more = replace(wrote, policy=policy, nodes=(*wrote.nodes, *nodes(2, other)))
    assert {
        line.instance_type for line in plan_quotas(more, mode="apply").allocations if line.after != line.before
    } == {other}
    assert states(lease_book(more)) == [LeaseState.ACTIVE]


def test_of_two_leases_of_the_same_teams_the_refused_one_is_reported_with_its_reason() -> None:
    book = lease_book(world(TOO_MUCH, TOO_MUCH | {"count": 1}))
    assert {each.count: each.state for each in book} == {3: LeaseState.REFUSED, 1: LeaseState.ACTIVE}
    [refused] = [each for each in book if each.state is LeaseState.REFUSED]
    assert "the donor team-b has 1 ml.g5.8xlarge, and cannot give 3" in refused.because


def test_without_a_document_there_are_no_leases() -> None:
    assert lease_book(snapshot(None, nodes(2))) == ()


def test_a_plan_that_was_made_anyhow_gives_the_same_book() -> None:
    held = world(HOLDS, DUE)
    assert lease_book(held, plan_quotas(held, mode="plan")) == lease_book(held)


@pytest.mark.parametrize("hours", [0, 2, -9])
def test_moments_are_reported_in_utc(hours: int) -> None:
    zone = timezone(timedelta(hours=hours))
    [entry] = lease_book(world(lease(NOW.astimezone(zone), (NOW + minutes(9)).astimezone(zone))))
    assert entry.said_to("team-a") == "2 leased from shared-pool until 2026-11-20 12:09"
    assert entry.said_to("shared-pool") == "2 leased to team-a until 2026-11-20 12:09"
    planned = plan_quotas(world(HOLDS | {"end": (NOW + minutes(9)).astimezone(zone)}), mode="plan")
    assert any("until 2026-11-20 12:09 UTC" in line.because for line in planned.allocations)


def test_a_lease_in_parts_that_is_given_in_part_says_how_much() -> None:
    wide = HOLDS | {"unit": "accelerators", "count": 9, "partial": True}
    [planned] = lease_book(replace(world(), policy=world(wide).policy))
    assert (planned.state, planned.given, planned.count_words) == (LeaseState.PLANNED, 3, "3 of 9 accelerators")
    [active] = lease_book(world(wide))
    assert active.said_to("team-a").startswith("3 of 9 accelerators leased from shared-pool until")
    assert leased([active], "team-a", G5) == {"accelerators": 3}


@pytest.mark.parametrize("other", [{"unit": "accelerators"}, {"reason": "another"}])
def test_a_refused_lease_is_distinguished_from_one_that_holds_between_the_same_teams(other: dict[str, Any]) -> None:
    """As many of the same type, at the same time: only the unit or the reason is another."""
    first = lease(NOW - minutes(2), NOW + minutes(9), donor="team-b", count=1)
    policy = document(fixed("team-a"), fixed("team-b", row(Count=1)), leases=[first, first | other])
    unwritten = snapshot(policy, nodes(6))
    book = lease_book(applied(unwritten, plan_quotas(unwritten, mode="apply")))
    assert states(book) == [LeaseState.ACTIVE, LeaseState.REFUSED]
    assert leased(book, "team-a", G5) == {"instances": 1}
