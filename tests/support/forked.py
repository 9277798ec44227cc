"""Let each test have a world for itself that was prepared once: in a process forked from the one that prepared it.

Only for worlds in which nothing waits, such as a run for its approval: threads do not come along.
"""

from __future__ import annotations

from functools import partial, wraps
from typing import TYPE_CHECKING, cast

from taskgov_embedded.matrix import forks, scenario

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskgov_embedded.walkthrough.world import World


def in_a_fork(test: Callable[[World], None]) -> Callable[[World], None]:
    """Run a test of a world, its only fixture, in a process of its own; its failure is this one's."""

    @wraps(test)
    def run(**fixture: World) -> None:
        (world,) = fixture.values()
        forks.in_child(partial(_alone, test, world))

    return cast("Callable[[World], None]", run)


def _alone(test: Callable[[World], None], world: World) -> None:
    scenario.after_fork(world)
    test(world)
