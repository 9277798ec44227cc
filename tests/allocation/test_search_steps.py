"""What the search for a path may spend, and in which order it looks at writes."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from taskgov.allocation import path, predict
from taskgov.allocation.path_ranks import Ranks
from taskgov.allocation.waves import Room, Wave
from tests.allocation.test_waves import change, write


@pytest.mark.parametrize(("writes", "plays"), [(2, 4), (3, 12), (6, 192)])
def test_every_order_of_a_wave_is_played_where_a_part_of_the_budget_suffices(writes: int, plays: int) -> None:
    """Each write may come last after each set of the others: n times 2 to the power of n-1."""

    def can(left: int) -> bool:
        player: Any = SimpleNamespace(budget=SimpleNamespace(left=left), _most_steps=5)
        return predict.Player._can_play_every_order(player, writes)

    assert can(5 * plays * predict.EXACT_PART)
    assert not can(5 * plays * predict.EXACT_PART - 1)


def test_no_more_writes_are_played_in_every_order_than_are_counted_on() -> None:
    player: Any = SimpleNamespace(budget=SimpleNamespace(left=10**9), _most_steps=1)
    assert not predict.Player._can_play_every_order(player, predict.MOST_EXACT + 1)


def test_the_search_ends_when_what_is_kept_for_the_rest_is_left() -> None:
    def is_tired(left: int) -> bool:
        choice: Any = SimpleNamespace(_player=SimpleNamespace(budget=SimpleNamespace(left=left)), _stop_at=10)
        return path._Choice._is_tired(choice)

    assert [is_tired(left) for left in (9, 10, 11)] == [True, True, False]


def test_what_gives_comes_before_what_takes_then_by_rank() -> None:
    low = replace(write("z", g5=-1), change=change("z", is_low=True))
    player: Any = SimpleNamespace(calm=SimpleNamespace(model=SimpleNamespace(cluster_queues=tuple)))
    found = Ranks(player).in_order([write("c", g5=1), low, write("a", g5=1), write("m", g5=-1)])
    assert [each.name for each in found] == ["m", "z", "a", "c"]


@pytest.mark.parametrize("found", [None, ((write("b", g5=1),), (write("c", g5=1),))])
def test_the_best_order_of_what_takes_follows_what_was_given(found: tuple[Wave, ...] | None) -> None:
    given = ((write("a", g5=-1),),)
    choice: Any = SimpleNamespace(
        _writes=SimpleNamespace(room=Room({}, {}), takes=()),
        _played=lambda waves: SimpleNamespace(end=waves),
        _best_order=lambda stage, takes, _: found if (stage, takes) == (given, ()) else None,
    )
    assert list(path._Choice._ordered_takes(choice, given)) == ([(*given, *found)] if found else [])
