"""Which steps does a difference need? Drop them, in ever smaller pieces, while the difference stays."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cluster.differential.sequence import Sequence, Step


def shrink(found: Sequence, last: int, differs: Callable[[list[Sequence]], list[bool]]) -> Sequence:
    """Return the sequence with as few steps as still differ; `last` is the place of the step that showed it.

    `differs` plays several sequences, at once if it likes, and says of each whether it differs. Delta debugging
    without its second half: a piece is dropped for good when the rest differs without it.
    """
    steps = found.steps[: last + 1]
    size = max(1, len(steps) // 2)
    while True:
        pieces = [range(start, min(start + size, len(steps))) for start in range(0, len(steps), size)]
        trials = [_without(steps, piece) for piece in pieces]
        answers = differs([found.with_steps(trial) for trial in trials])
        if True in answers and len(steps) > 1:
            steps = trials[answers.index(True)]
            size = min(size, max(1, len(steps) // 2))
        elif size > 1:
            size //= 2
        else:
            return found.with_steps(steps)


def _without(steps: tuple[Step, ...], piece: range) -> tuple[Step, ...]:
    return tuple(step for place, step in enumerate(steps) if place not in piece)
