"""Why does this workload wait, why was it preempted, why does it run here? The answer of `taskgov explain WORKLOAD`."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType

from taskgov.allocation.lease_book import LeaseEntry, lease_book
from taskgov.allocation.loaded import loaded_from
from taskgov.allocation.uncertain import waiting_in
from taskgov.estimates.given import GivenStart
from taskgov.number_text import duration
from taskgov.quantities import is_accelerator
from taskgov.scheduling import instant, moment
from taskgov.scheduling.objects import FlavorResource, flavor_resource
from taskgov.scheduling.reasons import (
    IN_CLUSTER_QUEUE,
    IN_COHORT_FAIR_SHARING,
    IN_COHORT_RECLAIM_WHILE_BORROWING,
    IN_COHORT_RECLAMATION,
)
from taskgov.snapshot.model import Snapshot
from taskgov.usage.amounts import words
from taskgov.usage.workload_facts import facts_of
from taskgov.usage.workloads import Preemption, preemptions_of
from taskgov_explain.case import Case
from taskgov_explain.find import find_workload
from taskgov_explain.holders import Holder, holders_of
from taskgov_explain.pending import judge
from taskgov_explain.reasons import Reason
from taskgov_explain.remedies import Remedy, remedies_of
from taskgov_explain.risk import Risk, risks_of
from taskgov_explain.run_times import RunTimes, run_times_of, simulation_of, until

NOTHING_KNOWN: RunTimes = MappingProxyType({})

MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        IN_CLUSTER_QUEUE: "work of its own team with a higher priority needed the quota",
        IN_COHORT_RECLAMATION: "another team reclaimed its quota, which was borrowed",
        IN_COHORT_FAIR_SHARING: "another team borrowed less than its fair share, this one more",
        IN_COHORT_RECLAIM_WHILE_BORROWING: "another team that borrows needed the quota for work of a higher priority",
    }
)
"""What Kueue's reasons of a preemption mean, in words."""

NEXT_STEPS: Mapping[Reason, str] = MappingProxyType(
    {
        Reason.NOT_GOVERNED: "label the job with kueue.x-k8s.io/queue-name: <the team's local queue>",
        Reason.DEACTIVATED: "set spec.active of the Workload to true once the cause is fixed",
        Reason.ON_HOLD: "ask the administrator who stopped the queue; a disabled quota stops it too",
        Reason.MISCONFIGURED: "check that the team has a compute quota, and that the job names its local queue",
        Reason.NO_MATCHING_FLAVOR: "change the pods' node selector, affinity or tolerations, or ask for quota there",
        Reason.REQUEST_NEVER_FITS: "request at most what one node offers (its allocatable), with more pods instead",
        Reason.EXCEEDS_MAX_QUOTA: "request less, or ask for one of the changes below",
        Reason.WAITING_FOR_QUOTA: "wait, or ask for one of the changes below",
        Reason.WAITING_FOR_PREEMPTED_WORKLOADS: "wait until their pods are gone",
        Reason.PENDING_EVALUATION: "wait: the scheduler considers it in one of its next cycles",
        Reason.ADMITTED_WAITING_FOR_NODES: "find out why nodes are missing (taskgov status); the quota is reserved",
    }
)


@dataclass(frozen=True, slots=True)
class WorkloadExplanation:
    """The answer: one dominant reason with its sentence, the numbers behind it, and what would change it."""

    workload: str
    key: str
    team: str
    queue: str | None
    reason: Reason
    because: str
    next_step: str
    since: datetime
    """Since when it stands so: its admission, its eviction, or its creation."""
    asks: Mapping[str, int]
    kueue_says: str
    """The scheduler's own words of its last attempt, if it gave any."""
    history: tuple[str, ...]
    """Preemptions, oldest first, as sentences."""
    borrowing: tuple[str, ...]
    holders: tuple[Holder, ...]
    leases: tuple[LeaseEntry, ...]
    """Leases of the instance types that it requests: part of the holders' quotas, for a time."""
    remedies: tuple[Remedy, ...]
    risks: tuple[Risk, ...]
    earliest: datetime | None
    earliest_because: str
    not_modelled: tuple[str, ...] = ()
    uncertain: tuple[str, ...] = ()
    """The features that the scheduling model does not follow and that may make another answer true."""
    may_be_preempted: bool = False
    """Whether it runs, and work that waits may take its quota, without that being certain."""
    not_visible: tuple[str, ...] = ()
    """What the caller's rights do not show (`taskgov_explain.own_workload`)."""
    start: GivenStart | None = None
    """When it starts, by the stack's last estimates; None if no estimate of it is kept."""


def explain_workload(snapshot: Snapshot, name: str, run_times: RunTimes = NOTHING_KNOWN) -> WorkloadExplanation:
    """Explain one workload, given by the job's name, the workload's, or either with its team.

    `run_times` (by Kueue's key) make the earliest time known. Raises `UnknownNameError` for a name that nobody has or
    several have, `ValueError` for scheduler objects that cannot be read.
    """
    world = loaded_from(snapshot, snapshot.instance_types).model
    case = Case(snapshot, world, find_workload(snapshot.kueue.workloads, name))
    reason, because = judge(case)
    waits = case.is_pending and reason in {Reason.WAITING_FOR_QUOTA, Reason.EXCEEDS_MAX_QUOTA}
    earliest, told = _earliest(case, reason, run_times)
    holders = holders_of(snapshot, _keys(case))
    doubts = world.doubts
    threats = world.threats(waiting_in(world), doubts) if doubts else ()
    return WorkloadExplanation(
        workload=case.named.shown,
        key=case.named.key,
        team=case.named.team,
        queue=case.queue_name,
        reason=reason,
        because=because,
        next_step=NEXT_STEPS.get(reason, ""),
        since=asks_since(case),
        asks=case.asks,
        kueue_says=_kueue_says(case),
        history=preemptions_in_words(case),
        borrowing=tuple(_borrowing(case, holders)),
        holders=holders,
        leases=_leases_among(snapshot, holders),
        remedies=remedies_of(case) if waits else (),
        risks=risks_of(snapshot, world, case.named.key),
        earliest=earliest,
        earliest_because=told,
        not_modelled=tuple(f"{gap.feature} ({gap.kind} {gap.name})" for gap in world.not_modelled),
        uncertain=doubts.get(case.named.key, ()),
        may_be_preempted=case.named.key in world.threatened(threats),
    )


def _leases_among(snapshot: Snapshot, holders: tuple[Holder, ...]) -> tuple[LeaseEntry, ...]:
    types = {holder.instance_type for holder in holders}
    return tuple(lease for lease in lease_book(snapshot) if lease.instance_type in types)


def asks_since(case: Case) -> datetime:
    """Return since when it stands as it does."""
    if not case.is_pending:
        return case.since("Finished") or case.since("Admitted") or case.snapshot.taken_at
    return case.since("Evicted") or moment(case.workload.created)


def _kueue_says(case: Case) -> str:
    condition = case.conditions.get("QuotaReserved")
    return str(condition.message) if condition is not None and not condition.status else ""


def _keys(case: Case) -> list[FlavorResource]:
    """Return the flavors and resources that the answer is about: accelerators that it lacks, holds or requests."""
    if case.queue is None:
        return []
    if case.admission is not None:
        held = [flavor_resource(flavor, r) for pods in case.admission.pod_sets for r, flavor in pods.flavors.items()]
        return _leading(held)
    lacking = list(case.lacking) or [key for key in case.queue.quotas if key.partition("/")[2] in case.asks]
    return _leading(lacking)


def _leading(keys: list[FlavorResource]) -> list[FlavorResource]:
    return [key for key in keys if is_accelerator(key.partition("/")[2])] or keys


def preemptions_in_words(case: Case) -> tuple[str, ...]:
    """Return the preemptions of the workload, oldest first, as sentences."""
    return tuple(map(_preemption_words, preemptions_of([facts_of(case.named.item)])))


def _preemption_words(preemption: Preemption) -> str:
    by = f" by {preemption.preempting_team}" if preemption.preempting_team else ""
    return (
        f"preempted at {preemption.at:%Y-%m-%d %H:%M}{by}: "
        f"{MEANINGS.get(preemption.reason, preemption.reason)} ({preemption.reason})"
    )


def _borrowing(case: Case, holders: tuple[Holder, ...]) -> Iterator[str]:
    """Say of an admitted workload what its team has beyond its quota, and whose that is."""
    if case.admission is None:
        return
    for holder in (holder for holder in holders if holder.team == case.named.team):
        beyond = []
        if holder.borrowed:
            beyond.append(f"{words(holder.resource, holder.borrowed)} borrowed, from {_lenders(holders, holder)}")
        if holder.over_quota:
            over = words(holder.resource, holder.over_quota)
            beyond.append(f"{over} over quota, since the quota was lowered under running work")
        if beyond:
            yield (
                f"{holder.team} uses {words(holder.resource, holder.used)} of {holder.instance_type} with a quota of "
                f"{holder.guaranteed}: {'; '.join(beyond)}"
            )


def _lenders(holders: Iterable[Holder], borrower: Holder) -> str:
    place = (borrower.instance_type, borrower.resource)
    lenders = [
        f"{lender.team} ({lender.lent} lent)"
        for lender in holders
        if lender.lent and lender.team != borrower.team and (lender.instance_type, lender.resource) == place
    ]
    return ", ".join(lenders) or "the cohort"


def _earliest(case: Case, reason: Reason, told: RunTimes) -> tuple[datetime | None, str]:
    """Return when a waiting workload is admitted at the earliest, as far as run times are known."""
    if not case.is_pending:
        return None, ""
    if reason is Reason.EXCEEDS_MAX_QUOTA:
        return None, "never, with today's quotas and borrow limits"
    known = run_times_of(case.snapshot, told)
    simulation = simulation_of(case.world.copy(), case.snapshot, known)
    timeline = simulation.run(instant(until(case.snapshot)))
    admitted = (
        happening.at
        for happening in timeline.happenings
        if happening.kind == "admitted" and happening.workload == case.named.key
    )
    first = next(admitted, None)
    if first is not None:
        when = moment(first)
        wait = when - case.snapshot.taken_at
        if wait < timedelta(seconds=1):
            return when, "in the next cycles"
        return when, f"in {duration(wait.total_seconds())}, with the known run times"
    if not known:
        return None, "unknown; give --runs NAME=2h, or set maximumExecutionTimeSeconds in the job"
    return None, "not with the known run times"
