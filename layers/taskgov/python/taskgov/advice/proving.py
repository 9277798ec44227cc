"""Prove a choice: repeat it at earlier moments, and evaluate it on the weeks that followed."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskgov.advice.candidates import Candidate
    from taskgov.advice.judging import Result
    from taskgov.advice.splits import Split

BLUR: Final = 60.0
"""Seconds added to waits before they are compared, so that waits of a few seconds count as none."""
LEAST_WINS: Final = 2 / 3
"""The part of the splits in which advice must beat today's rules."""
LEAST_SECONDS: Final = 60.0
"""A smaller gain of the mean wait, in seconds, counts as none."""


@dataclass(frozen=True, slots=True)
class Proof:
    """The choice at a moment, and its results in the weeks that followed, compared with today's rules."""

    split: Split
    candidate: Candidate
    today: Result
    advised: Result
    alone: Result
    """The result with today's quotas, without lending or borrowing."""

    @property
    def gain(self) -> float:
        """The fraction by which the mean wait is shorter: 1 for no wait, negative for a longer wait."""
        return 1 - (self.advised.mean_wait + BLUR) / (self.today.mean_wait + BLUR)

    @property
    def won(self) -> bool:
        """Whether the mean wait is shorter than under today's rules."""
        return self.advised.mean_wait < self.today.mean_wait


def gain_of(proofs: Sequence[Proof]) -> float:
    """Return the fraction by which the sum of the splits' mean waits is shorter."""
    today = sum(proof.today.mean_wait for proof in proofs)
    return 1 - sum(proof.advised.mean_wait for proof in proofs) / today if today else 0.0


def why_leave(best: Candidate, as_it_is: Candidate, proofs: Sequence[Proof], noise: float, weeks: int = 2) -> str:
    """Return why nothing should change; empty if the change is proved. Each part of a split has so many `weeks`."""
    if not proofs:
        return f"the history is too short for a proof: it needs {2 * weeks} weeks of work"
    if best == as_it_is:
        return "none of the candidates that keep the limits did better in past weeks"
    gain, wins = gain_of(proofs), sum(proof.won for proof in proofs)
    seconds = fmean(proof.today.mean_wait - proof.advised.mean_wait for proof in proofs)
    if wins < LEAST_WINS * len(proofs):
        return f"the choice would have won in {wins} of {len(proofs)} splits only"
    if seconds < LEAST_SECONDS or gain <= noise:
        return f"a mean wait that is {100 * gain:.0f} % shorter is within the noise of {100 * noise:.0f} %"
    return ""


def because(proofs: Sequence[Proof], noise: float) -> str:
    """Return a sentence on why a change is advised."""
    wins = sum(proof.won for proof in proofs)
    gained = f"the mean wait is {100 * gain_of(proofs):.0f} % shorter on weeks that the choice had not seen"
    return f"{gained}, in {wins} of {len(proofs)} splits; the noise is {100 * noise:.0f} %"
