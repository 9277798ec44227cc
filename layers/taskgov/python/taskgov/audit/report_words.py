"""How are the tokens of the data said on the page? `capacity-shrank`, `MemoryInGiB` and `overQuota` in plain words."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from taskgov.allocation.plan import Reason
from taskgov.findings import Finding
from taskgov.number_text import moment, number, percent
from taskgov.usage.workloads import PREEMPTION_REASONS

UNITS: Final = {"Count": "instances", "Accelerators": "accelerators", "VCpu": "vCPUs", "MemoryInGiB": "GiB"}
"""What a quota is counted in; a MIG profile is its own name."""
_ACRONYMS: Final = {
    name.lower(): name for name in ("GPU", "GPUs", "CPU", "vCPU", "EC2", "ID", "MIG", "EFA", "EKS", "ARN", "GiB")
}
_SAID: Final = _ACRONYMS | {"promise": "guarantee", "promised": "guaranteed"}
"""How parts of a token are said, where they are not said as they are."""
MOVED: Final = ("gpusNow", "gpusPlanned")
REASONS: Final = frozenset(map(str, Reason))
"""Tokens of a change; other evidence may have a reason in somebody's words."""
_PARTS: Final = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")


def words(token: str) -> str:
    """Return a token as words.

    >>> words("max-preempted-gpus"), words("instanceType"), words("IdleResourceSharing"), words("ec2Says")
    ('max preempted GPUs', 'instance type', 'idle resource sharing', 'EC2 says')
    """
    parts = [part.lower() for part in _PARTS.findall(token)]
    return " ".join(_SAID.get(part, part) for part in parts) or token


def sentence(text: str, *names: str) -> str:
    """Return a text with a capital at the beginning, unless it begins with one of these names.

    >>> sentence("raise the limit"), sentence(""), sentence("team-a 2 -> 1: a share", "team-a")
    ('Raise the limit', '', 'team-a 2 -> 1: a share')
    """
    if any(name and text.startswith(name) for name in names):
        return text
    return text[:1].upper() + text[1:]


def preemption(because: str) -> str:
    """Return why the plan preempts a workload, with Kueue's reason in words.

    >>> preemption("InClusterQueue, by ns/job"), preemption("there is quota for it in queue-a")
    ('a task of higher priority in the same queue (InClusterQueue), by ns/job', 'there is quota for it in queue-a')
    """
    reason, comma, rest = because.partition(",")
    meaning = PREEMPTION_REASONS.get(reason)
    return because if meaning is None else f"{meaning} ({reason}){comma}{rest}"


def full_sentence(text: str) -> str:
    """Return a text with a capital and an end.

    >>> full_sentence("raise the limit"), full_sentence("Wait.")
    ('Raise the limit.', 'Wait.')
    """
    return sentence(text) if text.endswith((".", "!", "?", ":")) or not text else f"{sentence(text)}."


def further(finding: Finding) -> Mapping[str, str]:
    """Return what the evidence says and the finding's sentence does not, by its name in words."""
    said = f"{finding.subject} {finding.because} {finding.remedy}"
    moved = any(value for name, value in finding.evidence.items() if name in MOVED)
    shown = {
        sentence(words(name)): _value(name, value)
        for name, value in sorted(finding.evidence.items())
        if moved or name not in MOVED  # a change of the cluster policy moves none
    }
    return {name: value for name, value in shown.items() if value and not _is_said(value, said)}


def _value(name: str, value: str | float) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case str() if value in REASONS:
            return words(value)
        case str():
            try:
                return f"{moment(datetime.fromisoformat(value))} UTC" if "T" in value else value
            except (ValueError, OverflowError):  # text, or a moment that no clock shows
                return value
        case _:
            return percent(value) if name == "percent" else number(value)


def _is_said(value: str, said: str) -> bool:
    """Return whether a value stands in a text by itself: 8 does not stand in 18."""
    return re.search(rf"(?<![\w.,]){re.escape(value)}(?![\w]|[.,]\d)", said) is not None
