"""A policy document as far as it could be read, for the rules and warnings about all of its parts together."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from taskgov.hyperpod.instance_types import KNOWN_TYPES
from taskgov.hyperpod.model import ComputeQuotaResource
from taskgov.policy.document import PolicyDocument, TeamPolicy
from taskgov.policy.measured import Measured
from taskgov.violations import Location


@dataclass(frozen=True, slots=True)
class Broken:
    """A rule that is broken: where in the document, what stands there, the rule; `first` is where it stood before.

    `missing` marks what is not there: it is not a separate mistake where something in it was refused.
    """

    location: Location
    value: object
    rule: str
    first: Location | None = None
    missing: bool = False


@dataclass(frozen=True, slots=True)
class Draft:
    """A document as far as it could be read, and the names of all teams, also of those that could not."""

    document: PolicyDocument
    team_names: frozenset[str] = field(default_factory=frozenset)

    def receivers(self) -> frozenset[str]:
        """Return who may give or take a lease: the teams, and the shared pool where taskgov keeps it."""
        pool = self.document.shared_pool
        return self.team_names | ({pool.team} if pool and not pool.native else set())

    def measured(self) -> Iterator[tuple[Location, Measured]]:
        """Yield each share and each lease with its place."""
        for index, team in enumerate(self.document.teams):
            for entry, share in enumerate(team.share):
                yield ("teams", index, "share", entry), share
        for index, lease in enumerate(self.document.leases):
            yield ("leases", index), lease

    def instance_types(self) -> list[str]:
        """Return every type that is known or named, for which a family may stand."""
        exact = (promised.instance_type for _, _, promised in self.promises())
        measured = (measure.instance_type for _, measure in self.measured())
        return sorted({*KNOWN_TYPES, *self.document.instance_types, *exact, *measured})

    def promises(self) -> Iterator[tuple[Location, TeamPolicy, ComputeQuotaResource]]:
        """Yield each entry of each fixed quota with its place."""
        for index, team in enumerate(self.document.teams):
            resources = team.quota.compute_quota_resources if team.quota else ()
            for entry, resource in enumerate(resources):
                yield ("teams", index, "quota", "ComputeQuotaResources", entry), team, resource
