"""Score estimates of starts that were kept, by the rules of `taskgov.estimates.scoring`, beside the aims."""

from __future__ import annotations

import json
from collections import deque
from math import inf, isfinite
from statistics import median
from typing import TYPE_CHECKING, NamedTuple, Self

from taskgov.estimates.quantiles import Estimate
from taskgov.estimates.recalibration import Outcome, recalibrated
from taskgov.estimates.scoring import Scored, by_team, score

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Kept(NamedTuple):
    """An estimate with everything that its score needs; moments and lengths in seconds."""

    at: float
    job: int
    team: str
    number: int
    came: float
    start: float
    waits: tuple[float, ...]
    simple: tuple[float, float, float]
    futures: int
    took: float

    @classmethod
    def read(cls, line: str) -> Self:
        """Return what a line of a file says."""
        return cls(*json.loads(line))


def recalibrated_all(kept: Sequence[Kept]) -> Iterator[tuple[Kept, Estimate, Estimate]]:
    """Give each estimate as it was drawn and as it is given, with the outcomes known at its moment."""
    raise NotImplementedError


def table(title: str, kept: Sequence[Kept], first: float, last: float) -> Iterator[str]:
    yield title
