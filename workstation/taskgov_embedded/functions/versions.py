"""Return which code a call to a function reaches: the newest, a published version, or what an alias points to.

`runtime` calls it for each invocation; `invocations` publishes and `deployments` moves aliases.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from taskgov_embedded.functions.warm import LATEST

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType

    from taskgov_embedded.functions.warm import FunctionSpec, Warm


@dataclass(slots=True)
class Alias:
    """A name for a version, and during a deployment for a second one that gets a part of the calls."""

    version: str
    weights: Mapping[str, float] = field(default_factory=dict)
    calls: int = 0

    def next_version(self) -> str:
        """Return the version that takes the next call: parts are kept exactly, so that a run can be repeated.

        >>> alias = Alias("1", {"2": 0.25})
        >>> [alias.next_version() for _ in range(8)]
        ['1', '1', '1', '2', '1', '1', '1', '2']
        """
        self.calls += 1
        for version, weight in self.weights.items():
            part = Fraction(str(weight))
            if (self.calls * part) // 1 > ((self.calls - 1) * part) // 1:
                return version
        return self.version


class Versions:
    """Every function of a stack, with its versions and aliases."""

    def __init__(self, start: Callable[[FunctionSpec, str], Warm]) -> None:
        """Take what starts a version of a function."""
        self._start = start
        self._functions: dict[str, Warm] = {}
        self._published: dict[tuple[str, str], Warm] = {}
        self._aliases: dict[tuple[str, str], Alias] = {}

    def add(self, spec: FunctionSpec) -> None:
        """Take a function in, or its new code and settings; published versions stay what they are."""
        self._functions[spec.name] = self._start(spec, LATEST)

    def publish(self, name: str, version: str) -> None:
        """Keep a function as it is now, under a number."""
        if (name, version) not in self._published:
            self._published[name, version] = self._start(self._functions[name].spec, version)

    def alias(self, name: str, alias: str) -> Alias | None:
        """Return where an alias points."""
        return self._aliases.get((name, alias))

    def point(self, name: str, alias: str, version: str, weights: Mapping[str, float] | None = None) -> None:
        """Let an alias point to a version, and a part of its calls to others."""
        for known_version in (version, *(weights or {})):
            assert (name, known_version) in self._published, f"{name} has no version {known_version}"
        self._aliases[name, alias] = Alias(version, dict(weights or {}))

    def remove_all(self) -> None:
        """Forget every function."""
        for known in (self._functions, self._published, self._aliases):
            known.clear()

    def spec(self, name_or_arn: str) -> FunctionSpec | None:
        """Return the function of a name, an ARN, or either with a qualifier that it has."""
        warm = self._functions.get(name_of(name_or_arn))
        return warm.spec if warm and self._has(name_or_arn) else None

    def _has(self, name_or_arn: str) -> bool:
        key = (name_of(name_or_arn), qualifier_of(name_or_arn))
        return key[1] == LATEST or key in self._published or key in self._aliases

    def reached(self, name_or_arn: str) -> Warm:
        """Return the code that a call reaches; an alias that is being moved gives its calls to two versions."""
        name, qualifier = name_of(name_or_arn), qualifier_of(name_or_arn)
        alias = self._aliases.get((name, qualifier))
        version = alias.next_version() if alias else qualifier
        return self._functions[name] if version == LATEST else self._published[name, version]

    def modules(self, logical_id: str, name: str) -> list[ModuleType]:
        """Return a module as each warm version of a function has imported it."""
        every = (*self._functions.values(), *self._published.values())
        mine = [warm.sandbox.modules for warm in every if warm.spec.logical_id == logical_id]
        return [modules[name] for modules in mine if name in modules]


def name_of(name_or_arn: str) -> str:
    """Return the name in an ARN, without a version or alias.

    >>> name_of("arn:aws:lambda:us-east-1:111122223333:function:plan:live")
    'plan'
    """
    return name_or_arn.rpartition("function:")[2].split(":")[0]


def qualifier_of(name_or_arn: str) -> str:
    """Return the version or alias at the end of a name or ARN; `$LATEST` when there is none.

    >>> qualifier_of("plan:live"), qualifier_of("arn:aws:lambda:us-east-1:111122223333:function:plan")
    ('live', '$LATEST')
    """
    return name_or_arn.rpartition("function:")[2].partition(":")[2] or LATEST
