"""How severe is each finding, and which are muted? The rules of the policy document and the time decide.

The audit calls it after all findings are made. A finding whose mute has ended is sent again, and the mute is a finding
too.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from taskgov.findings import Finding, Severity
from taskgov.findings.of_audit import MUTE_ENDED
from taskgov.policy.document import Mute, SeverityRule


def rated(finding: Finding, rules: Iterable[SeverityRule]) -> Finding:
    """Return the finding with the severity of the last rule that matches it."""
    fitting = [rule.severity for rule in rules if _fits(rule, finding)]
    return replace(finding, severity=fitting[-1]) if fitting else finding


def mute_of(finding: Finding, mutes: Iterable[Mute], now: datetime) -> Mute | None:
    """Return the first mute that holds for a finding, or None.

    An incident is muted only by a mute that spells its code out: no wildcard hides that guarantees cannot be kept.
    """
    return next((mute for mute in mutes if now < mute.until and _is_about(mute, finding)), None)


def ended_mutes(findings: Sequence[Finding], mutes: Iterable[Mute], now: datetime) -> Iterator[Finding]:
    """Return a finding for each mute that has ended: its findings are sent again, or it has no finding any more."""
    for mute in mutes:
        if now < mute.until:
            continue
        again = sum(_is_about(mute, finding) for finding in findings)
        ended = f"{mute.until.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
        what = f"{again} of its findings are sent again" if again else "none of its findings is found any more"
        yield MUTE_ENDED.about(
            f"{mute.finding} {mute.about}",
            {"until": ended, "reason": mute.reason, "toldAgain": again},
            finding=mute.finding,
            about=mute.about,
            reason=mute.reason,
            ended=ended,
            what=what,
        )


def matches(pattern: str, text: str) -> bool:
    """Return whether a text is the pattern's, where `*` stands for anything.

    Example:
        >>> [matches("idle-*", text) for text in ("idle-quota", "idle-", "an-idle-quota")]
        [True, True, False]
        >>> matches("teams[0].*", "teams[0].quota"), matches("teams[0]", "teams0")
        (True, False)

    """
    first, *others = pattern.split("*")
    if not others:
        return text == pattern
    *between, last = others
    at, end = len(first), len(text) - len(last)
    if not text.startswith(first) or not text.endswith(last):
        return False
    for piece in between:  # The leftmost place of each leaves the most to the next: no way back is needed.
        found = text.find(piece, at, max(end, at))
        if found < 0:
            return False
        at = found + len(piece)
    return at <= end


def _fits(rule: SeverityRule, finding: Finding) -> bool:
    if not _names(rule.finding, finding):
        return False
    if rule.evidence is None or rule.at_least is None:
        return True
    number = finding.evidence.get(rule.evidence)
    return isinstance(number, int | float) and number >= rule.at_least


def _is_about(mute: Mute, finding: Finding) -> bool:
    return _names(mute.finding, finding) and matches(mute.about, finding.subject)


def _names(pattern: str, finding: Finding) -> bool:
    if finding.severity is Severity.INCIDENT:
        return pattern == finding.code
    return matches(pattern, finding.code)
