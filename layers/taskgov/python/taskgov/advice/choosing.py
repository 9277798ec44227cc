"""Which of the candidates that were tried on past weeks is the best? Within limits of what others pay for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from taskgov.advice.rules import Rule

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from taskgov.advice.candidates import Candidate

MOST_LOST: Final = 0.05
"""A candidate that loses more of the work of all past weeks together is left out."""
MOST_WORSE: Final = 1 / 12
"""So many teams may be worse off than on their own quota alone, of the teams of all past weeks together."""
ALIKE: Final = 1.02
"""Of candidates of one rule whose waits differ by less than 2 %, the one that changes less is chosen."""
ALIKE_RULES: Final = 1.1
"""Of rules whose waits differ by less than 10 %, the one that follows the past weeks least is chosen."""
_FOLLOWS: Final = (Rule.TODAY, Rule.EQUAL, Rule.ROOT, Rule.WATER, Rule.PEAK, Rule.USE)
"""Rules, by how closely their quotas follow what the last weeks used: the closer, the less they fit other weeks."""


@dataclass(frozen=True, slots=True)
class Tried:
    """A candidate on past weeks: waits relative to today's, the part of the work lost, teams worse than alone."""

    candidate: Candidate
    relative_wait: float
    lost: float
    worse: int
    of: int
    loops: bool = False
    """In one of the weeks work preempted itself without end."""
    is_whole: bool = True
    """Without it, the numbers are those of some of the weeks, and the least that they can be: they were bad enough."""

    @property
    def is_allowed(self) -> bool:
        """Whether it loses little work, hardly anybody is worse off than alone, and no work preempts itself forever."""
        return self.lost <= MOST_LOST and self.worse <= MOST_WORSE * self.of and not self.loops


def best_of(tried: Iterable[Tried], as_it_is: Candidate) -> Candidate:
    """Return the best candidate of those that keep the limits.

    First its rule: of those that come within 10 % of the least wait, the one that follows the past least. Then its
    limit and preemption: of those that come within 2 % of the least wait with that rule, what changes less. What waits
    longer than today is no choice.
    """
    allowed = [
        known
        for known in tried
        if (known.is_allowed and known.is_whole and known.relative_wait < 1.0) or known.candidate == as_it_is
    ]
    near = _near(allowed, ALIKE_RULES)
    rule = min((known.candidate.rule for known in near), key=_FOLLOWS.index)
    same = [known for known in allowed if known.candidate.rule is rule]
    return min(
        _near(same, ALIKE), key=lambda known: (*_distance(known.candidate, as_it_is), known.relative_wait)
    ).candidate


def _near(some: Sequence[Tried], factor: float) -> list[Tried]:
    """Return those that come near to the least wait."""
    least = min(known.relative_wait for known in some)
    return [known for known in some if known.relative_wait <= factor * least]


def _distance(candidate: Candidate, as_it_is: Candidate) -> tuple[int, int]:
    """Return how many things a candidate changes, and how far it raises limits: less is better where all is alike."""
    changes = sum(getattr(candidate, name) != getattr(as_it_is, name) for name in ("rule", "limit", "fair", "never"))
    return changes, candidate.limit or 0
