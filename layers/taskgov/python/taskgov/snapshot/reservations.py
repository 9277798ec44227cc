"""Machines that were bought for a time, by SageMaker training plans and EC2 Capacity Blocks, and when they leave.

AWS begins to terminate the instances of a Capacity Block 30 minutes before its end (EC2 User Guide, "Monitor Capacity
Blocks using EventBridge"), those of UltraServers 60 minutes before ("Capacity Blocks for ML"), and those of a training
plan's reserved capacity 30 minutes before, too (SageMaker developer guide, "Training plans utilization for SageMaker
training jobs"; for HyperPod clusters it is inferred, and so are the 60 minutes). From then on they do not count.

Backends give reservations, `taskgov.snapshot.leaving` marks the nodes, `taskgov.allocation` decides.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Final, Self

from pydantic import AwareDatetime

_INSTANCES_BEFORE: Final = timedelta(minutes=30)
_ULTRASERVERS_BEFORE: Final = timedelta(minutes=60)
_OF_ULTRASERVERS: Final = frozenset({"p6e-gb200", "p6e-gb300", "trn2u"})
"""Families whose instances are in UltraServers only."""
SAID_AT_MOST: Final = 300
"""Characters of an error that a finding quotes."""
TRAINING_PLAN: Final = "training plan"
CAPACITY_BLOCK: Final = "Capacity Block"
NEVER_DELIVERED: Final = frozenset({"Failed", "failed", "cancelled", "payment-failed", "unsupported"})
"""Statuses of a reservation that gives no machines, so that its end ends nothing."""


@dataclass(frozen=True, slots=True)
class Period:
    """One time for which machines were bought, from start to end; of all instance types without one.

    Raises `ValueError` for moments without a time zone: they cannot be compared with the clock.
    """

    starts_at: AwareDatetime
    ends_at: AwareDatetime
    instance_type: str | None = None

    def __post_init__(self) -> None:
        if self.starts_at.tzinfo is None or self.ends_at.tzinfo is None:
            raise ValueError("a period needs moments with their time zone")


@dataclass(frozen=True, slots=True)
class Reservation:
    """A training plan (by its ARN) or a Capacity Block (by the id of its Capacity Reservation)."""

    id: str
    """Empty for Capacity Blocks of which it is not known whether there are any (`silence` says why)."""
    kind: str
    """`training plan` or `Capacity Block`."""
    status: str = ""
    """As AWS says it: `Active`, `Scheduled`, `Expired`, ...; empty where it could not be read."""
    periods: tuple[Period, ...] = ()
    """A training plan may have several, with gaps between them; an extension adds to the last one or follows it."""
    silence: str = ""
    """Why its end could not be read; empty where it was."""

    @classmethod
    def silent(cls, its_id: str, kind: str, why: str) -> Self:
        """Return one of which nothing is known but why: the first words of an error, which may carry kilobytes."""
        return cls(its_id, kind, silence=why[:SAID_AT_MOST])

    @property
    def name(self) -> str:
        """What people call it: the last part of an ARN, or the id.

        Example:
            >>> Reservation("arn:aws:sagemaker:us-east-1:111122223333:training-plan/spring", TRAINING_PLAN).name
            'spring'

        """
        return name_of(self.id)

    def leaves_at(self, instance_type: str, now: datetime) -> datetime | None:
        """Return when AWS takes the current machines of a type back; None if no end is known.

        Periods that touch or overlap are one. A machine is of the last period that has begun: one that is still listed
        in a gap has left. Before the first period it is of that.
        """
        if self.status in NEVER_DELIVERED:
            return None
        of_type = [period for period in self.periods if period.instance_type in {None, instance_type}]
        joined = _joined(of_type)
        ends = [end for start, end in joined if start <= now] or [end for _, end in joined[:1]]
        return ends[-1] - taken_back_before(instance_type) if ends else None


def taken_back_before(instance_type: str) -> timedelta:
    """Return how long before the end of a reservation AWS begins to terminate instances of a type.

    Example:
        >>> [str(taken_back_before(name)) for name in ("ml.p5.48xlarge", "ml.p6e-gb200.36xlarge", "trn2u.48xlarge")]
        ['0:30:00', '1:00:00', '1:00:00']

    """
    family = instance_type.removeprefix("ml.").partition(".")[0]
    return _ULTRASERVERS_BEFORE if family in _OF_ULTRASERVERS else _INSTANCES_BEFORE


def name_of(reservation_id: str) -> str:
    """Return what people call a reservation, by its id."""
    return reservation_id.rpartition("/")[2]


def _joined(periods: Iterable[Period]) -> list[tuple[datetime, datetime]]:
    """Return periods without those that touch: one after the other, with gaps."""
    joined: list[tuple[datetime, datetime]] = []
    for period in sorted(periods, key=attrgetter("starts_at", "ends_at")):
        if joined and period.starts_at <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], period.ends_at))
        else:
            joined.append((period.starts_at, period.ends_at))
    return joined
