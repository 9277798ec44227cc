"""Mark a cluster as this stack's before the first write, and write nothing to one that another stack governs.

Each stack has a tag of its own on the cluster, so that two that mark it at the same time overwrite nothing: the older
governs, ties by lineage. The tags are read again after marking, and with every call of `apply_change`; a stack that
finds itself the younger stops there.
"""

from dataclasses import dataclass

from taskgov.errors import ConflictError
from taskgov.ports import Clock, ClusterTags, StateStore
from taskgov.snapshot.identity import CLAIM, claims_of, said_claim


@dataclass(frozen=True, slots=True)
class ClaimCluster:
    """Marks a cluster as governed by this stack. Its fields are the ports it uses."""

    clusters: ClusterTags
    state: StateStore
    clock: Clock

    def __call__(self, cluster_arn: str) -> None:
        """Return when this stack governs the cluster. Raises ConflictError if another does: read it again."""
        stamp = self.state.stamp(cluster_arn)
        if stamp is None:
            raise ConflictError(f"the table has no lineage for {cluster_arn}: a run has to read the cluster first")
        claims = claims_of(self.clusters.tags(cluster_arn))
        if not claims:
            self.clusters.put_tag(cluster_arn, CLAIM + stamp.lineage, self.clock.now().isoformat(timespec="seconds"))
            claims = claims_of(self.clusters.tags(cluster_arn))
        if not claims or claims[0].lineage != stamp.lineage:
            other = said_claim(claims[0]) if claims else "nobody: the mark that was made is not seen yet"
            raise ConflictError(f"{cluster_arn} is governed by {other}, not by stack {stamp.lineage}")
