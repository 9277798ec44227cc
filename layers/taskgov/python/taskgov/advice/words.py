"""Names of candidates for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from taskgov.advice.candidates import NO_LIMIT, Candidate
from taskgov.advice.rules import Rule

if TYPE_CHECKING:
    from collections.abc import Mapping

RULE_WORDS: Final[Mapping[Rule, str]] = {
    Rule.TODAY: "today's quotas",
    Rule.USE: "proportional to use",
    Rule.PEAK: "proportional to the 95 % peak",
    Rule.ROOT: "square root of the use",
    Rule.WATER: "water-filling",
    Rule.EQUAL: "equal quotas",
}


def limit_words(limit: int | None) -> str:
    """Return a borrow limit in words."""
    return "today's limits" if limit is None else "no limit" if limit >= NO_LIMIT else f"limit {limit} %"


def candidate_words(candidate: Candidate, *, fair: bool) -> str:
    """Return a description of a candidate. Preemption appears only if it differs from today's."""
    words = [RULE_WORDS[candidate.rule], limit_words(candidate.limit)]
    if candidate.fair != fair:
        words.append(f"FairShare {'Enabled' if candidate.fair else 'Disabled'}")
    if candidate.never is not None:
        words.append(f"PreemptTeamTasks {'Never' if candidate.never else 'LowerPriority'}")
    return ", ".join(words)
