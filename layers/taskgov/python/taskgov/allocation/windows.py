"""The change windows of the guardrails: when changes may be written.

A window opens at each minute at which the local time of its time zone matches its cron expression, and stays open for
its duration. When clocks are set back, a repeated time opens the window twice. A skipped time never opens it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from taskgov.policy.cron import parse_cron
from taskgov.policy.document import ChangeWindow


@dataclass(frozen=True, slots=True)
class Opening:
    """Whether any window is open now, and if none is, when the next one opens."""

    is_open: bool
    next_at: datetime | None = None


def opening(windows: Iterable[ChangeWindow], now: datetime) -> Opening:
    """Return whether changes may be written at `now`; without windows always.

    Raises `ValueError` when an expression or a time zone cannot be read: the caller takes that as closed.
    """
    openings = [_opening(window, now) for window in windows]
    if not openings or any(window.is_open for window in openings):
        return Opening(is_open=True)
    return Opening(is_open=False, next_at=min((at.next_at for at in openings if at.next_at), default=None))


def _opening(window: ChangeWindow, now: datetime) -> Opening:
    cron = parse_cron(window.cron)
    zone = _zone(window.time_zone)
    # The opening that may still last is the first one after the moment from which a window would just have closed.
    earliest = now - timedelta(minutes=window.minutes)
    opened = cron.next_match(earliest.astimezone(zone))
    if opened is None:
        return Opening(is_open=False)
    opened = opened.astimezone(UTC)
    return Opening(is_open=True) if opened <= now else Opening(is_open=False, next_at=opened)


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, OSError) as error:
        raise ValueError(f"{name!r} is not a time zone of the tz database") from error
