"""What could a head get, and at whose cost? The flavor search joined with the search for victims.

One `Nominator` serves one cycle: all heads share its list of candidates. Rules: `pkg/scheduler/scheduler.go`
(getAssignments) and `pkg/scheduler/preemption/preemption_oracle.go` of Kueue.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from taskgov.quantities import PODS
from taskgov.scheduling.assignment import (
    FIT,
    NO_CANDIDATES,
    NO_FIT,
    PREEMPT,
    RECLAIM,
    Assignment,
    Mode,
)
from taskgov.scheduling.candidates import Candidates, Preemptor, QueueOf, Victim, put_back, take_out
from taskgov.scheduling.demand import Demand, resized
from taskgov.scheduling.fair_preemption import fair_victims
from taskgov.scheduling.flavor_search import Assigner, Oracle
from taskgov.scheduling.matching import selects
from taskgov.scheduling.objects import flavor_resource
from taskgov.scheduling.preemption import classical_victims
from taskgov.scheduling.quota import lowest_subtree_that_fits
from taskgov.scheduling.reasons import SLICE_REPLACED
from taskgov.scheduling.results import Requeue, Verdict
from taskgov.scheduling.scan import Scan

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from taskgov.scheduling.config import ManagerConfig
    from taskgov.scheduling.eligibility import FlavorBook
    from taskgov.scheduling.fair_admission import QueueKey
    from taskgov.scheduling.objects import FlavorResource, PodSetAdmission, Usage
    from taskgov.scheduling.state import QueueState, Record

_PODS: Final = f"/{PODS}"
"""How the flavor and resource of a covered `pods` ends."""


@dataclass(slots=True, eq=False)
class Entry:
    """One head on its way through a cycle."""

    record: Record
    queue: QueueState
    assignment: Assignment
    victims: list[Victim]
    deferred: bool = False
    admitted: bool = False
    remark: str = ""
    waits_for: int = 0
    requeue: Requeue = Requeue.FAILED_AFTER_NOMINATION

    @property
    def verdict(self) -> Verdict:
        """Why it does not get quota now: by its assignment, by what happened to it, or by whom it waits for."""
        return Verdict(self.assignment, self.remark, self.waits_for)

    @property
    def told(self) -> list[Victim]:
        """The victims that are evicted."""
        replaces = self.record.workload.replaces and self.replaced is not None
        return self.victims[1:] if replaces else self.victims

    @property
    def replaced(self) -> Record | None:
        """The slice that it takes the place of; counted among the victims, but not evicted."""
        return self.victims[0].record if self.victims and self.victims[0].reason == SLICE_REPLACED else None


class Nominator:
    """Judges heads against the state as it stands."""

    def __init__(  # noqa: PLR0913, PLR0917 - what a nomination considers, each from another part of the store
        self,
        config: ManagerConfig,
        queue_of: QueueOf,
        flavors: FlavorBook,
        namespaces: Mapping[str, Mapping[str, str]],
        is_active: Callable[[QueueState], bool],
        somebody_starts: Callable[[], bool],
        records: Mapping[str, Record],
        usage_of: Callable[[QueueKey], float] | None = None,
    ) -> None:
        self.config = config
        self.records = records
        self.queue_of = queue_of
        self.flavors = flavors
        self.namespaces = namespaces
        self.is_active = is_active
        self.somebody_starts = somebody_starts
        self.usage_of = None if usage_of is None else cache(usage_of)
        self.candidates = Candidates(queue_of, is_active, usage_of=self.usage_of)

    def selects_namespace(self, queue: QueueState, record: Record) -> bool:
        """Return whether the queue admits workloads of this namespace."""
        selector = queue.spec.namespace_selector
        if selector is not None and not selector.requirements:
            return True
        return selects(selector, namespace_labels(self.namespaces, record.workload.namespace))

    def nominate(self, queue: QueueState, record: Record, cycle: int) -> tuple[Assignment, list[Victim]]:
        """Return what the head could get and whom it would preempt; keeps how far its flavor search came."""
        scan = record.scan
        if scan is not None and self._outdated(scan, queue, record, cycle):
            scan = None
        assignment, victims = Head(self, queue, record, self.candidates, scan=scan).best()
        record.scan = Scan(assignment.scan, record.demand, cycle, queue.generation)
        return assignment, victims

    def renominate(
        self,
        queue: QueueState,
        record: Record,
        cycle: int,
        *,
        gone: Collection[Record],
        nominated: tuple[dict[str, str], ...],
    ) -> tuple[Assignment, list[Victim]]:
        """Judge again within a cycle, without those already `gone` and only with the flavors `nominated` before."""
        candidates = Candidates(self.queue_of, self.is_active, gone, self.usage_of)
        head = Head(self, queue, record, candidates, scan=None, nominated=nominated)
        assignment, victims = head.best()
        record.scan = Scan(assignment.scan, record.demand, cycle, queue.generation)
        return assignment, victims

    def replaced_by(self, record: Record, queue: QueueState, gone: Collection[Record]) -> Record | None:
        """Return the slice of the same job that a workload takes the place of, where it still holds quota in the queue.

        Kueue: `ReplacedWorkloadSlice` in `pkg/workloadslicing/workloadslicing.go`.
        """
        workload = record.workload
        if not workload.replaces or not self.config.gate("ElasticJobsViaWorkloadSlices"):
            return None
        before = self.records.get(workload.replaces)
        if before is None or before.queue is not queue or before.admission is None or before in gone:
            return None
        return before if before.workload.namespace == workload.namespace else None

    def _outdated(self, scan: Scan, queue: QueueState, record: Record, cycle: int) -> bool:
        """Return whether the shape changed, or quota was freed since (a scan survives the very next cycle)."""
        if scan.demand is not record.demand:
            return True
        if self.config.gate("FlavorFungibilityPreserveScanProgress") and cycle - scan.cycle <= 1:
            return False
        return queue.generation > scan.generation


class Head(Assigner):
    """One head's question, with the victim searches already made for it."""

    __slots__ = ("_asks", "candidates", "found", "nominator", "record", "slice")

    def __init__(
        self,
        nominator: Nominator,
        queue: QueueState,
        record: Record,
        candidates: Candidates,
        *,
        scan: Scan | None,
        nominated: tuple[dict[str, str], ...] | None = None,
        oracle: Oracle | None = None,
    ) -> None:
        self.nominator = nominator
        self.record = record
        self.candidates = candidates
        self.found: dict[tuple[tuple[FlavorResource, int], ...], list[Victim]] = {}
        self.slice: list[Victim] = []
        self._asks = oracle
        replaced: tuple[PodSetAdmission, ...] | None = None
        if record.workload.replaces and (before := nominator.replaced_by(record, queue, candidates.gone)) is not None:
            self.slice, replaced = [Victim(before, SLICE_REPLACED)], before.held
        super().__init__(
            queue,
            nominator.flavors,
            fair_sharing=nominator.config.fair_sharing,
            scan=() if scan is None else scan.tried,
            nominated=nominated,
            replaced=replaced,
        )

    def assignment(self) -> Assignment:
        """Return the assignment at full size."""
        return self.assign(self.record.demand)

    def best(self) -> tuple[Assignment, list[Victim]]:
        """Return the assignment at full size, or a smaller one where pod sets allow it and only that fits.

        A slice that is replaced is the first of the victims: it holds its quota until the new one is admitted.
        """
        assignment = self.assignment()
        victims = self.victims(assignment)
        if assignment.mode == FIT or victims:
            return assignment, self.slice + victims if self.slice else victims
        if self.record.demand.can_shrink and self.nominator.config.gate("PartialAdmission"):
            found = self._largest_that_fits()
            if found is not None:
                return found[0], self.slice + found[1]
        return assignment, []

    def victims(self, assignment: Assignment) -> list[Victim]:
        """Return whom the assignment would preempt.

        `pods` is missing from the request for which victims are searched, as in Kueue 0.19 (`TotalRequestsFor` in
        `flavorassigner.go`; 0.20 counts it).
        """
        if assignment.mode in {FIT, NO_FIT}:
            return []
        usage = assignment.usage if self.replaced is None else self._more_than(self.replaced, assignment)
        usage = {fr: amount for fr, amount in usage.items() if not fr.endswith(_PODS)}
        return self._search(usage, assignment.needs_preemption)

    def _more_than(self, replaced: tuple[PodSetAdmission, ...], assignment: Assignment) -> Usage:
        """Return what the pods of a slice ask for that its predecessor does not have (Kueue: `TotalRequestsFor`)."""
        usage: Usage = {}
        for pod_set, got, before in zip(self.record.demand.pod_sets, assignment.pod_sets, replaced, strict=False):
            more = pod_set.count - before.count
            for resource, amount in pod_set.requests.items():
                beyond = amount // pod_set.count * more if pod_set.count else amount
                if beyond:
                    fr = flavor_resource(got.choices[resource].flavor, resource)
                    usage[fr] = usage.get(fr, 0) + beyond
        return usage

    def oracle(self, fr: FlavorResource, amount: int) -> tuple[Mode, int]:
        """Return whether preemption could free `amount` of `fr` alone, from whom, and how high it would borrow."""
        if self._asks is not None:
            return self._asks(fr, amount)
        victims = self._search({fr: amount}, frozenset((fr,)))
        if not victims:
            return NO_CANDIDATES, 0
        for victim in victims:
            take_out(victim.record)
        borrow, _ = lowest_subtree_that_fits(self.queue.node, fr, amount)
        put_back(victims)
        own = any(victim.record.queue is self.queue for victim in victims)
        return PREEMPT if own else RECLAIM, borrow

    def _search(self, usage: Mapping[FlavorResource, int], frs: frozenset[FlavorResource]) -> list[Victim]:
        """Search victims once for each question; an assignment of one resource repeats the oracle's question."""
        question = tuple(usage.items()) if len(frs) == len(usage) else (*usage.items(), *((fr, -1) for fr in frs))
        if question not in self.found:
            preemptor = Preemptor(self.record, self.queue, usage, frs)
            config = self.nominator.config
            self.found[question] = (
                fair_victims(preemptor, self.candidates, config)
                if config.fair_sharing
                else classical_victims(preemptor, self.candidates)
            )
        return self.found[question]

    def _largest_that_fits(self) -> tuple[Assignment, list[Victim]] | None:
        """Search, by halves, the smallest reduction that fits or has victims (Kueue: PodSetReducer).

        As in Kueue, the search begins at the counts of the spec, also where some pods are reclaimable.
        """
        pod_sets = self.record.workload.pod_sets
        counts = [p.count for p in pod_sets]
        spare = [0 if p.min_count is None else p.count - p.min_count for p in pod_sets]
        total = sum(spare)
        if total == 0:
            return None
        low, high, best = 0, total + 1, None
        while low < high:
            step = (low + high) // 2
            reduced = self._reduced([c - s * step // total for c, s in zip(counts, spare, strict=True)])
            assignment = self.search(reduced)
            victims = self.victims(assignment)
            if assignment.mode == FIT or victims:
                best, high = (assignment, victims), step
            else:
                low = step + 1
        return best

    def _reduced(self, counts: Sequence[int]) -> Demand:
        """Return the demand at `counts`; a pod set of which no pod is left stays empty (Kueue: ScaledTo)."""
        now = self.record.demand.pod_sets
        kept = [count if pod_set.count else 0 for pod_set, count in zip(now, counts, strict=True)]
        return resized(self.record.workload.pod_sets, kept)


def namespace_labels(namespaces: Mapping[str, Mapping[str, str]], name: str) -> Mapping[str, str]:
    """Return a namespace's labels; the API server adds its name to every one."""
    return {"kubernetes.io/metadata.name": name, **namespaces.get(name, {})}
