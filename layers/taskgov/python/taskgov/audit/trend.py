"""How does this audit compare with earlier ones? One small document for each cluster keeps what audits leave.

A finding is the same from audit to audit as long as its `identity` is: since when it is there, in how many audits in a
row, and which are gone, follows from what the audit before left. Key figures are kept for each audit, so that a report
can say what changed since the last one and since a week.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache, cached_property
from typing import Final

from taskgov.audit.totals import Totals
from taskgov.findings import Finding, Severity
from taskgov.json_form import KeptForm

KEPT: Final = 400
"""Audits that are kept: those whose reports are kept, when there is one a night."""
SHOWN: Final = 30
"""Earlier audits in a report."""
A_WEEK: Final = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class AuditPoint(Totals):
    """The key figures of one audit, as its report has them in `totals`; findings by severity, muted ones apart."""

    taken_at: datetime
    run_id: str
    """The audit that made it: a second try of the same audit does not compare itself with its first."""
    findings: dict[str, int]
    muted: int


@dataclass(frozen=True, slots=True)
class KnownFinding:
    """A finding as the last audit left it."""

    identity: str
    code: str
    severity: Severity
    subject: str
    because: str
    first_seen: datetime
    audits: int
    """In how many audits in a row."""


@dataclass(frozen=True, slots=True)
class AuditHistory:
    """What earlier audits of a cluster left, oldest first, and the findings of the last one (muted ones too)."""

    points: tuple[AuditPoint, ...] = ()
    known: tuple[KnownFinding, ...] = ()
    before: tuple[KnownFinding, ...] = ()
    """The findings of the audit before the last one: what a second try of the last one compares with."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Since when a finding is there."""

    first_seen: datetime
    audits: int
    is_new: bool
    """It was not found by the audit before; False when there was none."""


@dataclass(frozen=True, slots=True)
class Trend:
    """What a report says of earlier audits."""

    previous: AuditPoint | None = None
    """The audit before this one."""
    week_ago: AuditPoint | None = None
    """The newest of those that are a week old or older, where there is one."""
    points: tuple[AuditPoint, ...] = ()
    """Earlier audits, oldest first; the newest of them is `previous`."""
    new: int = 0
    """Findings (muted ones left out) that the audit before did not have."""
    resolved: tuple[KnownFinding, ...] = ()
    """Findings of the audit before that are gone."""


@dataclass(frozen=True)
class Earlier:
    """The history as one audit may use it: without what its own first try left."""

    history: AuditHistory = field(default_factory=AuditHistory)
    run_id: str = ""

    @cached_property
    def points(self) -> tuple[AuditPoint, ...]:
        """The audits before this one, oldest first."""
        return tuple(point for point in self.history.points if not self._is_own(point))

    @cached_property
    def known(self) -> tuple[KnownFinding, ...]:
        """What the audit before this one found."""
        last = self.history.points[-1:]
        return self.history.before if last and self._is_own(last[0]) else self.history.known

    def seen(self, finding: Finding, now: datetime) -> Seen:
        """Return since when a finding is there."""
        known = self._by_identity.get(finding.identity)
        if known is None:
            return Seen(now, 1, is_new=bool(self.points))
        return Seen(known.first_seen, known.audits + 1, is_new=False)

    def trend(self, found: Iterable[Finding], new: int, now: datetime) -> Trend:
        """Return what a report says of earlier audits; `found` are all its findings, muted ones too."""
        points, there = self.points, {finding.identity for finding in found}
        old = [point for point in points if now - point.taken_at >= A_WEEK]
        return Trend(
            previous=points[-1] if points else None,
            week_ago=old[-1] if old else None,
            points=points[-SHOWN:],
            new=new,
            resolved=tuple(finding for finding in self.known if finding.identity not in there),
        )

    def after(self, point: AuditPoint, found: Iterable[tuple[Finding, Seen]]) -> AuditHistory:
        """Return the history with this audit in it; a second try takes the place of the first."""
        known = (
            KnownFinding(
                identity=finding.identity,
                code=finding.code,
                severity=finding.severity,
                subject=finding.subject,
                because=finding.because,
                first_seen=seen.first_seen,
                audits=seen.audits,
            )
            for finding, seen in found
        )
        kept = (*self.points, replace(point, run_id=self.run_id))[-KEPT:]
        return AuditHistory(points=kept, known=tuple(sorted(known, key=_identity)), before=self.known)

    @cached_property
    def _by_identity(self) -> dict[str, KnownFinding]:
        return {finding.identity: finding for finding in self.known}

    def _is_own(self, point: AuditPoint) -> bool:
        return bool(self.run_id) and point.run_id == self.run_id


def history_to_json(history: AuditHistory) -> bytes:
    """Return the bytes of a history."""
    return _form().kept(history)


def history_from_json(text: bytes | None) -> AuditHistory:
    """Return the history that was kept; an empty one when nothing was. Raises `ValueError` for anything else."""
    return AuditHistory() if text is None else _form().read(text)


def _identity(known: KnownFinding) -> str:
    return known.identity


@cache
def _form() -> KeptForm[AuditHistory]:
    return KeptForm(AuditHistory)
