"""Read a cluster with the rights of a member of a team: what may not be listed is left out, and named.

A caller who may list everything gets the whole snapshot. Where a list of all namespaces is refused, Workloads and
LocalQueues are read in the namespaces of the teams that were named, and of the ClusterQueues those that these
LocalQueues lead to. `Snapshot.unseen` says what is missing; nothing else is taken for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from taskgov.errors import GovernanceError
from taskgov.hyperpod.names import namespace_of, team_of_namespace
from taskgov.snapshot.unseen import Part, Unseen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from taskgov.snapshot.model import Snapshot


def namespaces_of(teams: Iterable[str]) -> tuple[str, ...]:
    """Return the namespaces of teams; a namespace that HyperPod did not make stands for itself.

    Example:
        >>> namespaces_of(["team-a", "hyperpod-ns-team-b"])
        ('hyperpod-ns-team-a', 'hyperpod-ns-team-b')

    """
    return tuple(dict.fromkeys(team if team_of_namespace(team) else namespace_of(team) for team in teams))


def is_denied(error: GovernanceError) -> bool:
    """Return whether a service answered that the caller may not do this."""
    return error.refusal == "access-denied"


@dataclass(slots=True)
class OwnRights:
    """What one person may see of one cluster: filled while a snapshot is taken."""

    namespaces: tuple[str, ...] = ()
    """Where to look when not everywhere."""
    unseen: dict[Part, Unseen] = field(default_factory=dict)

    def try_(self, part: Part, read: Callable[[], Any], instead: Any) -> Any:
        """Return what was read, or `instead` where that is refused; other errors are raised."""
        try:
            return read()
        except GovernanceError as error:
            if not is_denied(error):
                raise
            self.miss(part, error)
            return instead

    def miss(self, part: Part, error: GovernanceError, seen: Iterable[str] = ()) -> None:
        """Keep that a part was not seen, or only so much of it."""
        self.unseen[part] = Unseen(part, str(error), tuple(seen))

    def marked(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot with what is missing in it; without Kubernetes' nodes nothing is said of any node."""
        if Part.NODES in self.unseen:
            snapshot = replace(snapshot, nodes=(), gone=())
        return replace(snapshot, unseen=tuple(self.unseen[part] for part in sorted(self.unseen)))
