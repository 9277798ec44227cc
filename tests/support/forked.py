"""Let each test have a world for itself that was prepared once: in a process forked from the one that prepared it.

Only for worlds in which nothing waits, such as a run for its approval: threads do not come along.
"""

from __future__ import annotations

from functools import partial, wraps
from typing import TYPE_CHECKING

from taskgov_embedded.walkthrough.world import World
from tests.faults import forks, scenario

if TYPE_CHECKING:
    from collections.abc import Callable


def in_a_fork(test: Callable[..., None]) -> Callable[..., None]:
    """Run a test of a world, or of something with a `world`, in a process of its own; its failure is this one's."""

    @wraps(test)
    def run(**given: object) -> None:
        (world,) = (found for each in given.values() if isinstance(found := getattr(each, "world", each), World))
        forks.in_child(partial(_alone, partial(test, **given), world))

    return run


def _alone(test: Callable[[], None], world: World) -> None:
    scenario.after_fork(world)
    test()
