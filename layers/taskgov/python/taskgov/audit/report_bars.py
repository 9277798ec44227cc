"""How long is each part of a team's bar? Geometry of the quota bars, as fractions of the widest one of a group.

`report_html` draws them. One bar stands for one team on one instance type; bars of a type share one scale, so that
lengths can be compared by eye.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from taskgov.audit.report import UsageLine


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a bar: what it shows, how much that is, and which fraction of the scale it fills."""

    kind: str
    """`own`, `lent`, `idle`, `borrowed` or `over-quota`."""
    amount: float
    size: float


@dataclass(frozen=True, slots=True)
class Bar:
    """One team's bar: its parts from left to right, and the marks of its quota and of what it may hold at most."""

    line: UsageLine
    segments: tuple[Segment, ...]
    quota_mark: float
    limit_mark: float | None
    """Quota + borrow limit; None when there is no limit, or when it is off the scale."""


MOST_BARS: Final = 30
"""More bars than fit a screen are not compared by eye; the teams that use most are drawn."""


@dataclass(frozen=True, slots=True)
class Rest:
    """The teams of a group that are not drawn, together."""

    teams: int
    used: float
    guaranteed: float


@dataclass(frozen=True, slots=True)
class BarGroup:
    """The bars of one resource of one instance type."""

    instance_type: str
    resource: str
    unit: str
    guaranteed: float
    used: float
    bars: tuple[Bar, ...]
    rest: Rest | None = None


def bar_groups(lines: Iterable[UsageLine]) -> tuple[BarGroup, ...]:
    """Return a group for each instance type and leading resource, by name."""
    leading = sorted((line for line in lines if line.leading), key=_by_type)
    return tuple(_group(list(group)) for _, group in groupby(leading, key=_by_type))


def bar(line: UsageLine, scale: float) -> Bar:
    """Return the bar of one line; `scale` is the amount that fills the whole width.

    Parts that are nothing are left out, and the parts' sizes add up to the greater of quota and use.
    """
    own = line.used - line.borrowed - line.over_quota
    parts = (
        ("own", own),
        ("lent", line.lent),
        ("idle", max(0.0, line.guaranteed - own - line.lent)),
        ("over-quota", line.over_quota),
        ("borrowed", line.borrowed),
    )
    limit = None if line.borrow_limit is None else line.guaranteed + line.borrow_limit
    return Bar(
        line=line,
        segments=tuple(Segment(kind, amount, _part(amount, scale)) for kind, amount in parts if amount > 0),
        quota_mark=_part(line.guaranteed, scale),
        limit_mark=_part(limit, scale) if limit is not None and line.guaranteed < limit <= scale else None,
    )


def _group(lines: list[UsageLine]) -> BarGroup:
    first = lines[0]
    drawn, rest = lines, None
    if len(lines) > MOST_BARS:
        by_use = sorted(lines, key=lambda line: (-line.used, -line.guaranteed, line.team))
        drawn, left = by_use[:MOST_BARS], by_use[MOST_BARS:]
        rest = Rest(len(left), sum(line.used for line in left), sum(line.guaranteed for line in left))
    scale = max(max(line.guaranteed, line.used) for line in drawn) or 1.0
    return BarGroup(
        instance_type=first.instance_type,
        resource=first.resource,
        unit=first.unit,
        guaranteed=sum(line.guaranteed for line in lines),
        used=sum(line.used for line in lines),
        bars=tuple(bar(line, scale) for line in drawn),
        rest=rest,
    )


def _by_type(line: UsageLine) -> tuple[str, str]:
    return line.instance_type, line.resource


def _part(amount: float, scale: float) -> float:
    return round(amount / scale, 5)
