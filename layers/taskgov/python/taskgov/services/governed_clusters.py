"""Which clusters are governed: those with a policy document, and those that a parameter of the stack names.

The resync, the measurements and the audit go through these and no others, so that a cluster that nobody has taken in,
or that Slurm orchestrates, costs nothing and rings nothing. A person or an event that names a cluster means that one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from taskgov.ports import DocumentStore

EVERY: Final = "*"
"""In place of a name: every cluster."""


@dataclass(frozen=True, slots=True)
class GovernedClusters:
    """Lists the clusters to measure. Its fields are the ports it uses."""

    documents: DocumentStore
    named: str = ""
    """Names of clusters without a document, separated by commas: the parameter ClustersWithoutDocument."""

    def __call__(self) -> Callable[[str], bool]:
        """Return what says of a cluster's name whether it is governed now. Raises ThrottledError, UpstreamError."""
        named = {name.strip() for name in self.named.split(",")}
        if EVERY in named:
            return lambda _: True
        governed = frozenset((*named, *self.documents.policy_names()))
        return governed.__contains__
