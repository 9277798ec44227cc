"""In which order heads are processed."""

from __future__ import annotations

import pytest

from tests.scheduling.builders import NOW, a_cohort, a_job, a_queue, a_running_job, a_world, names


def test_who_does_not_borrow_comes_before_higher_priorities() -> None:
    world = a_world(
        a_queue("a", cohort="pool", cpu="4"),
        a_queue("b", cohort="pool", cpu="4"),
        a_job("borrower", "a", cpu="6", priority=100),
        a_job("modest", "b", cpu="4"),
    )
    admitted, _, waiting = names(world.cycle(NOW))
    assert (admitted, waiting) == (["modest"], ["borrower"])


def test_priority_comes_before_age_among_those_who_borrow_alike() -> None:
    world = a_world(
        a_queue("a", cohort="pool", cpu="2"),
        a_queue("b", cohort="pool", cpu="2"),
        a_queue("c", cohort="pool", cpu="2"),
        a_job("old", "a", cpu="4", second=0),
        a_job("urgent", "b", cpu="4", second=9, priority=1),
    )
    assert names(world.cycle(NOW))[0] == ["urgent"]


def test_without_priority_sorting_the_older_one_is_first() -> None:
    objects = [
        a_queue("a", cohort="pool", cpu="2"),
        a_queue("b", cohort="pool", cpu="2"),
        a_job("old", "a", cpu="4", second=0),
        a_job("urgent", "b", cpu="4", second=9, priority=1),
    ]
    world = a_world(*objects, gates={"PrioritySortingWithinCohort": False})
    assert names(world.cycle(NOW))[0] == ["old"]


def test_under_fair_sharing_the_smaller_share_wins_whatever_the_priority() -> None:
    world = a_world(
        a_queue("a", cohort="pool", cpu="0"),
        a_queue("b", cohort="pool", cpu="0"),
        a_queue("lender", cohort="pool", cpu="6"),
        a_running_job("one", "a", cpu="4"),
        a_job("rich", "a", cpu="2", priority=100),
        a_job("poor", "b", cpu="2"),
        fair_sharing=True,
    )
    assert names(world.cycle(NOW))[0] == ["poor"]


@pytest.mark.parametrize("fair_sharing", [True, False], ids=["fair", "classical"])
@pytest.mark.parametrize(
    ("turn", "first"), [((), "one"), (("b",), "two"), (("c", "a"), "one")], ids=["by name", "in turn", "named first"]
)
def test_equals_come_by_name_or_in_the_turn_that_is_asked_for(
    fair_sharing: bool, turn: tuple[str, ...], first: str
) -> None:
    world = a_world(
        a_queue("a", cohort="pool", cpu="0"),
        a_queue("b", cohort="pool", cpu="0"),
        a_queue("c", cohort="pool", cpu="2"),
        a_job("one", "a", cpu="2"),
        a_job("two", "b", cpu="2"),
        fair_sharing=fair_sharing,
    )
    assert names(world.cycle(NOW, turn))[0] == [first]


def test_a_turn_is_for_equals_only() -> None:
    world = a_world(
        a_queue("a", cohort="pool", cpu="1"),
        a_queue("b", cohort="pool", cpu="1"),
        a_job("older", "a", cpu="2", second=0),
        a_job("younger", "b", cpu="2", second=1),
    )
    assert names(world.cycle(NOW, ("b", "a")))[0] == ["older"]


def test_each_winner_counts_before_the_next_is_chosen() -> None:
    world = a_world(
        a_cohort("left", "root"),
        a_cohort("right", "root"),
        a_queue("a", cohort="left", cpu="0"),
        a_queue("b", cohort="left", cpu="0"),
        a_queue("c", cohort="right", cpu="0"),
        a_queue("lender", cohort="root", cpu="4"),
        a_job("a1", "a", cpu="2", second=0),
        a_job("b1", "b", cpu="2", second=1),
        a_job("c1", "c", cpu="2", second=2),
        fair_sharing=True,
    )
    admitted, _, waiting = names(world.cycle(NOW))
    assert (admitted, waiting) == (["a1", "c1"], ["b1"])


def test_who_stays_within_its_quota_comes_first_in_a_tournament() -> None:
    world = a_world(
        a_queue("a", cohort="pool", cpu="2", fairSharing={"weight": "1000"}),
        a_queue("b", cohort="pool", cpu="4"),
        a_job("borrower", "a", cpu="4", priority=9),
        a_job("modest", "b", cpu="4"),
        fair_sharing=True,
    )
    assert names(world.cycle(NOW))[0] == ["modest"]


def test_trees_do_not_stand_in_one_anothers_way() -> None:
    world = a_world(
        a_queue("a", cpu="1"),
        a_queue("b", cohort="pool", cpu="1"),
        a_job("one", "a"),
        a_job("two", "b"),
        fair_sharing=True,
    )
    assert sorted(names(world.cycle(NOW))[0]) == ["one", "two"]
