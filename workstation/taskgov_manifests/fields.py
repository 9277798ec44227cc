"""Fields of a manifest that a person wrote: each has its path, and every violation is kept.

`taskgov_manifests.pod_sets` reads jobs with it, so that all mistakes of a manifest are named at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from taskgov.quantities import parse
from taskgov.violations import MISSING, Location, Violation, path_of, value_of

MOST: Final = 100_000
"""More pods than a Kubernetes cluster can hold of one pod set, and few enough to count."""
NO_TEMPLATE: Final[Mapping[str, Any]] = {"spec": {"containers": []}}


@dataclass(frozen=True, slots=True)
class Field:
    """One value of a manifest. What is refused goes into `problems`, which all fields of the manifest share."""

    value: Any
    location: Location = ()
    problems: list[Violation] = field(default_factory=list)

    def at(self, *path: str) -> Field:
        """Return the field at this path; its value is None where it is missing."""
        found = self
        for name in path:
            found = Field(found.mapping().get(name), (*found.location, name), self.problems)
        return found

    def mapping(self) -> Mapping[str, Any]:
        """Return a mapping; nothing is an empty one."""
        if isinstance(self.value, Mapping):
            return self.value
        if self.value is not None:
            self.refuse("must be a mapping")
        return {}

    def refuse(self, rule: str) -> None:
        """Keep that this value breaks a rule, once; parts of a refused value are not reported as well."""
        path = path_of(self.location)
        if not any(
            path == problem.path or path.startswith((f"{problem.path}.", f"{problem.path}["))
            for problem in self.problems
        ):
            self.problems.append(Violation(path, MISSING if self.value is None else value_of(self.value), rule))

    def entries(self, *, required: bool = True) -> list[Field]:
        """Return the entries of a list; a list that is required has one at least."""
        if isinstance(self.value, list) and (self.value or not required):
            return [Field(entry, (*self.location, index), self.problems) for index, entry in enumerate(self.value)]
        if self.value is not None or required:
            self.refuse("must be a list with an entry or more" if required else "must be a list")
        return []

    def count(self, default: int | None = 1, least: int = 0) -> int:
        """Return a whole number; missing it is the default, and None as the default requests it."""
        if self.value is None and default is not None:
            return default
        if isinstance(self.value, int) and not isinstance(self.value, bool) and least <= self.value <= MOST:
            return self.value
        self.refuse(f"must be a whole number from {least} to {MOST:,}")
        return default or 0

    def text(self) -> str:
        """Return a name that has to be there."""
        if isinstance(self.value, str) and self.value:
            return self.value
        self.refuse("must be a name")
        return ""

    def template(self) -> Mapping[str, Any]:
        """Return a pod template whose requests can be counted."""
        pod = self.at("spec")
        return self.value if not pod.unsound() else NO_TEMPLATE

    def unsound(self) -> bool:
        """Refuse what is wrong with a pod's spec, and say whether anything is."""
        before = len(self.problems)
        containers = self.at("containers").entries()
        for container in (*containers, *self.at("initContainers").entries(required=False)):
            container.at("name").text()
            container.amounts("resources")
        self.amounts("resources")
        for amount in self.at("overhead").each():
            amount.quantity()
        return len(self.problems) > before

    def amounts(self, name: str) -> None:
        """Refuse what is not an amount in the requests and limits of these resources."""
        for side in ("requests", "limits"):
            for amount in self.at(name, side).each():
                amount.quantity()

    def each(self) -> list[Field]:
        """Return the values of a mapping."""
        return [self.at(str(key)) for key in self.mapping()]

    def quantity(self) -> None:
        """Refuse what is not a quantity of a resource that a pod can ask for."""
        try:
            if isinstance(self.value, bool) or not isinstance(self.value, str | int | float):
                raise ValueError("must be a Kubernetes quantity such as 8 or 16Gi")  # noqa: TRY301, TRY004
            if parse(str(self.location[-1]), self.value) < 0:
                raise ValueError("must not be negative")  # noqa: TRY301
        except ValueError as error:
            self.refuse(str(error))
