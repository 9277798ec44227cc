"""What the automation found that a person should know, and which kinds of findings there are.

Every room that judges (policy, allocation, audit) returns findings; services publish them, reports show them. A finding
is made from its kind. `of_document`, `of_plan`, `of_state` and `of_audit` have them all, and `docs/findings.md` is
written from them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

Evidence = Mapping[str, str | int | float | bool]
"""What a finding was found by, as data: `audit.severities` of a policy document may ask for its numbers."""

_APART: Final = ("instanceType", "workload", "quota", "period", "start")
"""Evidence that distinguishes findings of one code and subject: a team may hoard on two instance types."""


class Severity(StrEnum):
    """How soon a person should look, mildest first."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    INCIDENT = "incident"

    @property
    def gravity(self) -> int:
        """0 for the mildest; a severity is compared by it."""
        return list(Severity).index(self)


@dataclass(frozen=True, slots=True)
class Finding:
    """One observation with its evidence and, where one exists, its remedy. `FindingKind.about` makes it.

    `code` is a stable kebab-case token that programs may match on; `subject` names what it is about (a team, an
    instance type, a quota id, a path in the policy document); `because` is one sentence with the numbers in it.
    """

    code: str
    severity: Severity
    subject: str
    because: str
    remedy: str = ""
    evidence: Evidence = field(default_factory=dict)

    @property
    def identity(self) -> str:
        """What distinguishes a finding from others, and is the same while the problem lasts: no number that changes.

        Example:
            >>> Finding("hoarding", Severity.WARNING, "team-a", "", "", {"instanceType": "ml.g5.8xlarge"}).identity
            'hoarding team-a ml.g5.8xlarge'

        """
        apart = (str(self.evidence[name]) for name in _APART if self.evidence.get(name))
        return " ".join(dict.fromkeys((self.code, self.subject, *apart)))
