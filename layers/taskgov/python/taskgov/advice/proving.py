"""Has a choice proved itself? The results of the same choice at earlier moments, on weeks that it had not seen."""

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
"""Seconds that are added to waits before they are compared: a wait of seconds is as good as none."""
LEAST_WINS: Final = 2 / 3
"""In so many of the splits advice has to win over today."""
LEAST_SECONDS: Final = 60.0
"""A gain of less is none."""


@dataclass(frozen=True, slots=True)
class Proof:
    """The choice at a moment, and its results in the weeks that followed, beside those of today's rules."""

    split: Split
    candidate: Candidate
    today: Result
    advised: Result
    alone: Result
    """On today's quotas, of which nobody lends or borrows anything."""

    @property
    def gain(self) -> float:
        """By how much the mean wait is shorter: 1 is all of it, below 0 it is longer."""
        return 1 - (self.advised.mean_wait + BLUR) / (self.today.mean_wait + BLUR)

    @property
    def won(self) -> bool:
        """Whether jobs wait less than under today's rules."""
        return self.advised.mean_wait < self.today.mean_wait


def gain_of(proofs: Sequence[Proof]) -> float:
    """Return by how much the mean of the splits' mean waits is shorter."""
    today = sum(proof.today.mean_wait for proof in proofs)
    return 1 - sum(proof.advised.mean_wait for proof in proofs) / today if today else 0.0


def why_leave(best: Candidate, as_it_is: Candidate, proofs: Sequence[Proof], noise: float) -> str:
    """Return why everything should stay as it is; empty where the change has proved itself."""
    if not proofs:
        return "the history is too short for a proof: it needs four weeks of work"
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
    """Return in one sentence why a change is advised."""
    wins = sum(proof.won for proof in proofs)
    gained = f"the mean wait is {100 * gain_of(proofs):.0f} % shorter on weeks that the choice had not seen"
    return f"{gained}, in {wins} of {len(proofs)} splits; the noise is {100 * noise:.0f} %"
