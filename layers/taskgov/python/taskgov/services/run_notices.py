"""Which runs are people notified of, and in which words? `publish_usage` sends what `notice_of` returns."""

import re
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from taskgov.allocation.codec import changes_sha256
from taskgov.contracts.cause_words import cause_words
from taskgov.findings import Finding, Severity
from taskgov.number_text import exact_moment
from taskgov.printable import printable
from taskgov.services.end_of_run import EndOfRun, RunOutcome
from taskgov.services.plan_quotas import summary
from taskgov.services.wording import MOST_OF_AN_ERROR, MOST_SENTENCES, shortened


@dataclass(frozen=True, slots=True)
class Notice:
    """A message to people. One `identity` is sent once, however often the same thing happens; most end with the day."""

    subject: str
    text: str
    identity: str


def notice_of(end: EndOfRun) -> Notice | None:
    """Return the notice of a run, or None for a run that needs no attention.

    A plan that needs approval has its own notice, which the state machine sends and reminds of.
    """
    incidents = [finding for finding in end.plan.findings if finding.severity is Severity.INCIDENT] if end.plan else []
    if end.outcome in _HEADLINES:
        headline = _HEADLINES[end.outcome]
        identity = _identity(end, end.outcome, _what_happened(end))
    elif incidents:
        headline = "incident"
        causes = [f"{incident.code} {incident.subject} {_when(incident)}".strip() for incident in incidents]
        identity = _identity(end, headline, *causes, daily=not all(map(_when, incidents)))
    else:
        return None
    return Notice(f"taskgov: {headline} on {end.cluster_name}", _text(end, incidents), identity)


_NUMBER: Final = re.compile(r"[0-9]+")
_HEADLINES: Final[dict[RunOutcome, str]] = {
    "blocked": "quota changes blocked",
    "expired": "quota changes not approved in time",
    "unfinished": "quota changes unfinished",
    "failed": "run failed",
}


def _what_happened(end: EndOfRun) -> str:
    """Return what makes two notices of one outcome the same: the same changes blocked, the same kind of error."""
    match end.outcome:
        case "blocked" if end.plan:
            findings = (f"{finding.code} {finding.subject}" for finding in end.plan.findings)
            return "\n".join((changes_sha256(end.plan), *findings))
        case "unfinished" if (end.error or "").startswith("refused: "):
            return _NUMBER.sub("#", end.error or "")  # versions and ids of requests differ from run to run
        case "failed" | "unfinished":
            return (end.error or "").partition(":")[0]
        case _:
            return end.run_id


def _when(incident: Finding) -> str:
    """Return from when to when something happened that an incident describes; empty for a state that lasts."""
    moments = [incident.evidence.get(name) for name in ("since", "until")]
    return " ".join(map(str, moments)) if all(moments) else ""


def _identity(end: EndOfRun, *parts: str, daily: bool = True) -> str:
    """Return what is sent once: a state that lasts once a day, as a reminder, and an event once (kept for 30 days)."""
    digest = sha256("\n".join(parts).encode()).hexdigest()
    day = f"{end.ended_at:%Y-%m-%d}-" if daily else ""
    return f"notice-{day}{digest[:32]}"


def _text(end: EndOfRun, incidents: list[Finding]) -> str:
    lines = [f"Cluster {end.cluster_name} ({end.cluster_arn})", f"Run {end.run_id}: {end.outcome}"]
    if end.cause:
        at = f" at {exact_moment(end.cause.at)}"
        lines.append(f"Cause: {cause_words(end.cause.what or end.cause.detail_type, end.cause.by, at)}")
    if end.error:
        lines.append(f"Error: {shortened(end.error, MOST_OF_AN_ERROR)}")
    for incident in incidents[:MOST_SENTENCES]:
        lines += ["", f"INCIDENT {incident.subject}: {shortened(incident.because)}", shortened(incident.remedy)]
    if len(incidents) > MOST_SENTENCES:
        lines += ["", f"and {len(incidents) - MOST_SENTENCES:,} more incidents"]
    told = [*map(printable, lines)]  # what others wrote begins no line of its own
    if end.plan:
        told += ["", summary(end.plan)]
    return "\n".join(told)
