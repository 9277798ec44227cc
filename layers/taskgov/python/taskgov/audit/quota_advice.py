"""What does the report say of the quotas themselves? Whether others would have served past work better.

`services/advise_quotas` computes it once a week from the record of work; every audit of the week shows it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from taskgov.findings import Finding
from taskgov.findings.of_audit import QUOTAS_ADVISED


@dataclass(frozen=True, slots=True)
class TeamAdvice:
    """What a team has on the instance type, and what is advised, in accelerators. A limit of None: it stands alone."""

    team: str
    quota: int
    advised_quota: int
    may_borrow: int | None
    advised_may_borrow: int | None


@dataclass(frozen=True, slots=True)
class AdviceProof:
    """What the same choice came to at earlier moments, on weeks that it had not seen. Waits are in seconds."""

    splits: int
    won: int
    gain_percent: float
    """By how much the mean wait is shorter."""
    noise_percent: float
    mean_wait: float
    advised_mean_wait: float
    p95_wait: float
    advised_p95_wait: float
    """Means of the splits."""
    lost_percent: float
    advised_lost_percent: float
    """Part of the work that preemption threw away."""
    worse_than_today: tuple[str, ...]
    """Teams that would have waited longer in at least one split."""
    worse_than_alone: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QuotaAdvice:
    """Advice on the quotas of one instance type."""

    instance_type: str
    made_at: datetime
    advised: str
    """What to change, in words; empty: no change, or there is no advice."""
    because: str
    jobs: int
    """On record, in the weeks that were examined."""
    unmeasured_hours: float
    """Hours of these weeks that the record does not cover."""
    proof: AdviceProof | None = None
    """None where the record is too short for one, or the audit had no time for it."""
    teams: tuple[TeamAdvice, ...] = ()
    """Those whose terms would change."""


def advice_findings(advice: Iterable[QuotaAdvice]) -> tuple[Finding, ...]:
    """Return a finding for each instance type whose quotas could serve the work better."""
    return tuple(
        QUOTAS_ADVISED.about(
            known.instance_type,
            {
                "meanWaitSeconds": round(known.proof.mean_wait),
                "advisedMeanWaitSeconds": round(known.proof.advised_mean_wait),
                "splitsWon": known.proof.won,
                "splits": known.proof.splits,
            },
            instance_type=known.instance_type,
            advised=known.advised,
            because=known.because,
        )
        for known in advice
        if known.advised and known.proof is not None
    )
