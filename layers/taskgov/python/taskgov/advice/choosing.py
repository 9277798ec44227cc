"""Choose the best candidate that was tried on past weeks, within limits on what it may cost teams."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from taskgov.advice.rules import Rule

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from taskgov.advice.candidates import Candidate

MOST_LOST: Final = 0.05
"""A candidate is excluded if preemption loses a larger part of the work of all past weeks."""
MOST_WORSE: Final = 1 / 13
"""The part of teams, over all past weeks, that may be worse off than with their own quota alone.

The aim is one in twelve in weeks that the choice has not seen. A choice takes the best of many candidates, and some of
its success is luck, so it keeps a margin.
"""
ALIKE: Final = 1.02
"""Among candidates of one rule within 2 % of the lowest wait, the one that changes least is chosen."""
ALIKE_RULES: Final = 1.05
"""Among rules within 5 % of the lowest wait, the one that follows the past weeks least is chosen."""
_FOLLOWS: Final = (Rule.TODAY, Rule.EQUAL, Rule.ROOT, Rule.WATER, Rule.PEAK, Rule.USE)
"""Rules by how closely their quotas follow past use, least first: a close fit suits other weeks less."""


@dataclass(frozen=True, slots=True)
class Tried:
    """A candidate on past weeks: wait relative to today's, part of the work lost, and teams worse off than alone."""

    candidate: Candidate
    relative_wait: float
    lost: float
    worse: int
    of: int
    loops: bool = False
    """In one of the weeks, jobs preempted each other without end."""
    is_whole: bool = True
    """False if the replay stopped early: the numbers cover some of the weeks, and are lower bounds."""

    @property
    def is_allowed(self) -> bool:
        """Whether it keeps `MOST_LOST` and `MOST_WORSE`, and no preemption loop was found."""
        return self.lost <= MOST_LOST and self.worse <= MOST_WORSE * self.of and not self.loops


def best_of(tried: Iterable[Tried], as_it_is: Candidate) -> Candidate:
    """Return the best allowed candidate. Candidates that wait longer than today are excluded.

    The rule is chosen first: among those within 5 % of the lowest wait, the one that follows the past least. Limit and
    preemption come second: among candidates of that rule within 2 % of its lowest wait, the one that changes least.
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
    """Return the candidates whose wait is at most `factor` times the lowest."""
    least = min(known.relative_wait for known in some)
    return [known for known in some if known.relative_wait <= factor * least]


def _distance(candidate: Candidate, as_it_is: Candidate) -> tuple[int, int]:
    """Return how many settings a candidate changes, and its limit. Lower is preferred."""
    changes = sum(getattr(candidate, name) != getattr(as_it_is, name) for name in ("rule", "limit", "fair", "never"))
    return changes, candidate.limit or 0
