"""What is known of a finding before anything is found: its code, severity, sentence and remedy.

Rooms that judge import the kinds that they raise; `docs/findings.md` is written from the same values.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from taskgov.findings import Evidence, Finding, Severity


@dataclass(frozen=True, slots=True)
class ByCase:
    """A severity that depends on the case: the rule in words, and the rule."""

    words: str
    rule: Callable[[Any], Severity]


@dataclass(frozen=True, slots=True)
class FindingKind:
    """One kind of finding. A code that is said in two ways has two kinds.

    `sentence` and `remedy` are templates as `str.format` has them. `found_in` names the modules that raise it, as paths
    below `taskgov`.
    """

    code: str
    severity: Severity | ByCase
    means: str
    sentence: str
    remedy: str
    found_in: tuple[str, ...]

    def about(self, subject: str, evidence: Evidence, /, *, case: object = None, **fields: object) -> Finding:
        """Return a finding about `subject`; `fields` are those of the sentence and of the remedy.

        `case` is what the severity depends on, where it does. Raises `KeyError` for a field that is missing.
        """
        return Finding(
            code=self.code,
            severity=self.severity_in(case),
            subject=subject,
            because=self.sentence.format(**fields),
            remedy=self.remedy.format(**fields),
            evidence=evidence,
        )

    def severity_in(self, case: object = None) -> Severity:
        """Return its severity in a case."""
        return self.severity if isinstance(self.severity, Severity) else self.severity.rule(case)

    def is_of(self, finding: Finding) -> bool:
        """Return whether a finding has this kind's code."""
        return finding.code == self.code
