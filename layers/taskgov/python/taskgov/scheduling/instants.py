"""When did something happen? Moments as whole microseconds since 1970, read from and written to Kubernetes timestamps.

Every module of this room compares moments as plain integers; `datetime` appears only where callers hand time in.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

Instant = int

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
ZERO: Final[Instant] = (datetime(1, 1, 1, tzinfo=UTC) - _EPOCH) // _MICROSECOND
"""Go's zero time: what a missing `creationTimestamp` means; earlier than every real moment."""
SECOND: Final = 1_000_000
NEVER_AGAIN: Final[Instant] = 2**63 - 1
"""Later than every real moment."""


def instant(moment: datetime | str | None) -> Instant:
    """Read a moment given as an aware `datetime` or as RFC 3339 text; `None` is `ZERO`.

    Raises `ValueError` for text that is not a timestamp and for a naive `datetime`.

    Example:
        >>> instant("1970-01-01T00:00:01Z"), instant(None) == ZERO
        (1000000, True)

    """
    if moment is None:
        return ZERO
    return _instant_of_text(moment) if isinstance(moment, str) else _instant_of(moment)


@lru_cache(maxsize=16_384)
def _instant_of_text(text: str) -> Instant:
    """Read a timestamp; conditions of one workload, and workloads of one second, have the same one."""
    return _instant_of(datetime.fromisoformat(text))


def _instant_of(when: datetime) -> Instant:
    if when.tzinfo is None:
        raise ValueError(f"{when.isoformat()} has no time zone")
    return (when - _EPOCH) // _MICROSECOND


def moment(when: Instant) -> datetime:
    """Give an `Instant` back as an aware `datetime` in UTC."""
    return _EPOCH + when * _MICROSECOND


def timestamp(when: Instant) -> str:
    """Write an `Instant` as the API server stores it: UTC, whole seconds.

    Example:
        >>> timestamp(1_500_000)
        '1970-01-01T00:00:01Z'

    """
    return moment(when).strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")


Now = datetime | str | Instant
"""What callers may hand in as a moment: an aware `datetime`, RFC 3339 text, or an `Instant`."""


def read_now(now: Now) -> Instant:
    """Read a moment in any of these forms."""
    return now if isinstance(now, int) else instant(now)
