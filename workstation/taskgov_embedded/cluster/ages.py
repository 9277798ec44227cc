"""How old is something? Written as kubectl writes it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86_400, 365 * 86_400
_AGE_STEPS: Final = (
    (2 * _MINUTE, "s", 1, "", 1),
    (10 * _MINUTE, "m", _MINUTE, "s", 1),
    (3 * _HOUR, "m", _MINUTE, "", 1),
    (8 * _HOUR, "h", _HOUR, "m", _MINUTE),
    (2 * _DAY, "h", _HOUR, "", 1),
    (8 * _DAY, "d", _DAY, "h", _HOUR),
    (2 * _YEAR, "d", _DAY, "", 1),
)
"""Up to which age (seconds) which units are shown: unit and its seconds, then the smaller one, if any."""


def age(item: Mapping[str, Any], now: datetime) -> str:
    """Return how old an object is; an object without a moment of creation has no age."""
    return age_of(item["metadata"].get("creationTimestamp"), now)


def age_of(written: str | None, now: datetime) -> str:
    """Return how long ago a moment of the API was, at `now`; nothing written is an unknown age."""
    return "<unknown>" if written is None else human_duration(int((now - moment_of(written)).total_seconds()))


def moment_of(written: str) -> datetime:
    """Read a moment as the API server writes it.

    Raises ValueError for another form.
    """
    return datetime.strptime(written, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)


def human_duration(seconds: int) -> str:
    """Write an age as kubectl does (apimachinery `duration.HumanDuration`).

    Example:
        >>> [human_duration(n) for n in (11, 119, 120, 227, 599, 600, 10800, 30000, 90000, 200000)]
        ['11s', '119s', '2m', '3m47s', '9m59s', '10m', '3h', '8h', '25h', '2d7h']

    """
    for limit, unit, size, small_unit, small_size in _AGE_STEPS:
        if seconds < limit:
            return _two_parts(
                max(0, seconds) // size, unit, seconds % size // small_size if small_unit else 0, small_unit
            )
    return _two_parts(seconds // _YEAR, "y", seconds % _YEAR // _DAY, "d")


def _two_parts(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"
