"""What the automation found that a person should know.

Every room that judges (policy, allocation, audit) returns findings; services publish them, reports show them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Severity(StrEnum):
    """How soon a person should look, mildest first."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    INCIDENT = "incident"


@dataclass(frozen=True, slots=True)
class Finding:
    """One observation with its evidence and, where one exists, its remedy.

    `code` is a stable kebab-case token that programs may match on; `subject` names what it is about (a team, an
    instance type, a quota id, a path in the policy document); `because` is one sentence with the numbers in it.
    """

    code: str
    severity: Severity
    subject: str
    because: str
    remedy: str = ""
    evidence: Mapping[str, str | int | float | bool] = field(default_factory=dict)
