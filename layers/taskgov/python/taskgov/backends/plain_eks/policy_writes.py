"""Write the cluster policy of a cluster whose Kueue no add-on governs: priority classes, and the record on the cohort.

Classes first and the record last: a policy that was cut off is written again. The record is written only on the cohort
as it was read (`resourceVersion`), so that a late write changes no newer policy.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from taskgov.backends.plain_eks.objects import TRIES, applied
from taskgov.errors import ConflictError, UpstreamError
from taskgov.hyperpod.model import ClusterSchedulerConfig, SchedulerConfig
from taskgov.kueue.foundation import cohort
from taskgov.kueue.ownership import Ownership, marked, ownership_of
from taskgov.kueue.policy_record import POLICY, PolicyRecord, classes_of
from taskgov.kueue.record import Reading
from taskgov.kueue.render import Manifest, render

if TYPE_CHECKING:
    from taskgov.adapters.kubernetes.objects import ObjectApi


@dataclass(frozen=True, slots=True)
class PolicyWrites:
    """Writes over one open connection."""

    api: "ObjectApi"
    reading: Reading

    def write(self, record: PolicyRecord | None, before: ClusterSchedulerConfig | None, version: int) -> None:
        """Replace the policy `before` (None: there is none) by that of the record (None: it is deleted).

        Raises ConflictError where the policy has another version than `version` (0: none), now or when the record is
        written; UpstreamError when the cohort changes faster than it can be written.
        """
        self._cohort_at(version)
        config = record.config if record else SchedulerConfig()
        wanted = render((), config, self.reading.table, self.reading.version).priority_classes
        kept = {priority_class["metadata"]["name"] for priority_class in wanted}
        for priority_class in wanted:
            applied(self.api, priority_class, force=True)
        for before_class in classes_of(before.scheduler_config if before else None, self.reading.version):
            gone = before_class["metadata"]["name"] not in kept and self.api.find(before_class)
            if gone and ownership_of(gone) is Ownership.MADE:
                self.api.delete(gone)
        self._keep({POLICY: record.to_json()} if record else {}, version)

    def _keep(self, annotations: dict[str, str], version: int) -> None:
        """Write the record. Kueue may write the cohort's status meanwhile: then it is read again."""
        for _ in range(TRIES):
            found = self._cohort_at(version)
            read = {} if found is None else {"resourceVersion": found["metadata"]["resourceVersion"]}
            wanted = cohort(self.reading.version)
            wanted = {**wanted, "metadata": {**wanted["metadata"], **read}}
            try:
                self.api.patch(marked(wanted, ownership_of(found), **annotations), force="true")
            except ConflictError:  # forced: only the resourceVersion can have been another
                continue
            return
        raise UpstreamError("the cohort changes faster than it can be written")

    def _cohort_at(self, version: int) -> Manifest | None:
        """Return the cohort as stored, whose policy has this version (0: none). Raises ConflictError for another."""
        found = self.api.find(cohort(self.reading.version))
        if ownership_of(found) is Ownership.FOREIGN:
            raise ConflictError("the cohort exists, and taskgov wrote nothing of it: adopt it")
        kept = PolicyRecord.of(found)
        if kept is None and version:
            raise ConflictError("the cluster policy is gone")
        if kept is not None and not version:
            raise ConflictError(f"the cluster has a policy, {kept.name}")
        if kept is not None and kept.version != version:
            raise ConflictError(f"the cluster policy is at version {kept.version}, not {version}")
        return found
