"""Which of the candidates that were tried on past weeks is the best? Within limits of what others pay for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from taskgov.advice.candidates import Candidate

MOST_LOST: Final = 0.04
"""A candidate that loses more of the work in past weeks is left out. The aim is 5 %: later weeks may be worse."""
MOST_WORSE: Final = 1 / 15
"""As many teams may be worse off than on their own quota alone, over all weeks. The aim is one in twelve."""
ALIKE: Final = 1.02
"""Of candidates whose waits differ by less than 2 %, the one that changes less is chosen."""


@dataclass(frozen=True, slots=True)
class Tried:
    """A candidate on past weeks: waits relative to today's, the part of the work lost, teams worse than alone."""

    candidate: Candidate
    relative_wait: float
    lost: float
    worse: int
    of: int
    is_whole: bool = True
    """Without it, the last weeks alone were looked at: they were bad enough."""

    @property
    def is_allowed(self) -> bool:
        """Whether it loses little work, and hardly anybody is worse off than alone."""
        return self.lost <= MOST_LOST and self.worse <= MOST_WORSE * self.of


def best_of(tried: Iterable[Tried], as_it_is: Candidate) -> Candidate:
    """Return the candidate with the least wait of those that keep the limits; of those alike, which loses less work."""
    allowed = [known for known in tried if (known.is_allowed and known.is_whole) or known.candidate == as_it_is]
    least = min(known.relative_wait for known in allowed)
    return min(
        (known for known in allowed if known.relative_wait <= ALIKE * least),
        key=lambda known: (*_distance(known.candidate, as_it_is), known.relative_wait),
    ).candidate


def _distance(candidate: Candidate, as_it_is: Candidate) -> tuple[int, int]:
    """Return how many things a candidate changes, and how far it raises limits: less is better where all is alike."""
    changes = sum(getattr(candidate, name) != getattr(as_it_is, name) for name in ("rule", "limit", "fair", "never"))
    return changes, candidate.limit or 0
