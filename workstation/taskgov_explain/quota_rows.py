"""What does a plan make of each quota, from its first write to its last? One row each, for people."""

from collections.abc import Iterable
from dataclasses import dataclass

from taskgov.allocation.plan import DELETIONS, Change


@dataclass(frozen=True, slots=True)
class QuotaRow:
    """One quota (or the cluster policy, whose `team` is empty): as it stands, and as the plan leaves it."""

    team: str
    name: str
    gpus_before: float
    gpus_after: float
    waves: tuple[int, ...]
    """The waves in which it is written, in order."""
    because: str


def quota_rows(changes: Iterable[Change]) -> tuple[QuotaRow, ...]:
    """Return a row for each quota that a plan writes, in the order of their first writes."""
    written: dict[str, list[Change]] = {}
    for change in changes:
        written.setdefault(change.team, []).append(change)
    return tuple(_row(writes) for writes in written.values())


def _row(writes: list[Change]) -> QuotaRow:
    first, last = writes[0], writes[-1]
    return QuotaRow(
        team=last.team,
        name=last.name,
        gpus_before=first.gpus_before,
        gpus_after=last.gpus_after,
        waves=tuple(change.wave for change in writes),
        because=last.because + _on_the_way(writes),
    )


def _on_the_way(writes: list[Change]) -> str:
    """Say what happens to it before the last write.

    Example:
        >>> _on_the_way([])
        ''

    """
    said = []
    for change in writes[:-1]:
        if change.is_low:
            said.append(f"wave {change.wave} only lowers it, wave {writes[-1].wave} gives it the rest")
        elif change.kind in DELETIONS:
            said.append(f"wave {change.wave} deletes it, wave {writes[-1].wave} creates it again")
    return "".join(f"; {clause}" for clause in said)
