"""A rule that a document breaks: where, what was given, and what the rule is."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule. `path` is the place in the document (`teams[0].share[1].percent`), `value` what stands there."""

    path: str
    value: str
    rule: str

    def __str__(self) -> str:
        return f"{self.path}: {self.value} - {self.rule}"
