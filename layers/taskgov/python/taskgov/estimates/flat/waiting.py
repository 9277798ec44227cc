"""How long do jobs wait in many futures of a flat queue?"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, NamedTuple

from taskgov.estimates.flat import playing
from taskgov.estimates.flat.luck import FIRST, SECOND
from taskgov.estimates.flat.tables import Play
from taskgov.estimates.flat.tabling import came_of, flat, lasting_of
from taskgov.scheduling import instants

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskgov.estimates.arrivals import Past
    from taskgov.estimates.drawing import Scene
    from taskgov.estimates.flat.tabling import Flat
    from taskgov.estimates.requests import Chance
    from taskgov.estimates.run_times import RunTimes


class Futures(NamedTuple):
    """How futures are drawn: how many, for how long (seconds), and how alike run times of a team are."""

    count: int
    horizon: float
    together: float
    give_up: int
    """After so many, jobs are not watched any longer that started in none."""


def flat_waits(
    scene: Scene, watched: Sequence[int], run_times: RunTimes, past: Past, chance: Chance, futures: Futures
) -> list[list[float]] | None:
    """Return how long each watched job of the scene (its index) waits in each future, in seconds, in order.

    Infinite where it does not start within the horizon. None where `taskgov.futures` has to play the scene.
    """
    trees = flat(scene, watched, past.requests)
    if trees is None:
        return None
    waits: dict[int, list[float]] = {}
    for tree in trees:
        found = _of_tree(tree, scene, run_times, past, chance, futures)
        if found is None:
            return None
        waits.update(found)
    return [waits[job] for job in watched]


def _of_tree(
    tree: Flat, scene: Scene, run_times: RunTimes, past: Past, chance: Chance, futures: Futures
) -> dict[int, list[float]] | None:
    lasting, prospect, of_request = lasting_of(tree, scene, run_times, past.requests, futures.together)
    came = came_of(tree, past, futures.horizon, of_request)
    play = Play(scene.now, scene.now + round(futures.horizon * instants.SECOND))
    here = tree.here._replace(prospect=prospect)
    asked = [place for place, watched in enumerate(here.watched) if watched]
    waits: dict[int, list[float]] = {place: [] for place in asked}
    done = 0
    while done < futures.count and asked:
        count = min(futures.count, futures.give_up) if not done else futures.count - done
        seeds = [1 + int(chance.random() * (most - 1)) for _ in range(count) for most in (FIRST, SECOND)]
        first, cause = [0] * (count * len(asked)), [0] * (count * len(asked))
        playing.many(tree.terms, here, lasting, came, play, seeds, asked, first, cause)
        if -2 in first:
            return None
        for number, start in enumerate(first):
            waits[asked[number % len(asked)]].append(inf if start < 0 else (start - scene.now) / instants.SECOND)
        done += count
        asked = [place for place in asked if min(waits[place]) < inf]
        watched = [0] * len(here.kind)
        for place in asked:
            watched[place] = 1
        here = here._replace(watched=watched)
    return {tree.index[place]: sorted(own) for place, own in waits.items()}
