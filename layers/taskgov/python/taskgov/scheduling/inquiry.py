"""What would happen to one workload? Questions about a `KueueModel` that change nothing: flavors, victims, candidates.

Called through `KueueModel.assign`, `KueueModel.victims` and `KueueModel.candidates`; explanations and plans ask them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from taskgov.scheduling.assignment import FIT, PREEMPT, Assignment, Choice, PodSetAssignment, append
from taskgov.scheduling.nomination import Head, Nominator
from taskgov.scheduling.reasons import preempted_message
from taskgov.scheduling.results import Preempted
from taskgov.scheduling.state import QueueState, Record

if TYPE_CHECKING:
    from taskgov.scheduling.candidates import Candidates
    from taskgov.scheduling.flavor_search import Oracle
    from taskgov.scheduling.objects import Workload

FixedFlavors = Mapping[str, Mapping[str, tuple[str, bool]]]
"""For each pod set, for each resource: the flavor, and whether it needs preemption."""


def assign(nominator: Nominator, workload: Workload, queue: QueueState, oracle: Oracle | None) -> Assignment:
    """Return the flavors the workload could get in `queue` now; `oracle` answers instead of a real victim search."""
    record = Record(workload, nominator.config)
    return Head(nominator, queue, record, nominator.candidates, scan=None, oracle=oracle).assignment()


def victims(
    nominator: Nominator,
    workload: Workload,
    queue: QueueState,
    flavors: FixedFlavors | None,
) -> list[Preempted]:
    """Return whom the workload would preempt in `queue` now, with the flavors it would get or with given ones."""
    record = Record(workload, nominator.config)
    head = Head(nominator, queue, record, nominator.candidates, scan=None)
    assignment = head.assignment() if flavors is None else _given(record, flavors)
    return [
        preemption(record, queue, victim.record, victim.record.queue, victim.reason)
        for victim in head.victims(assignment)
        if victim.record.queue is not None
    ]


def preemption(
    preemptor: Record, queue: QueueState, victim: Record, victim_queue: QueueState, reason: str
) -> Preempted:
    """Say who preempts whom, why, and in which words."""
    workload = preemptor.workload
    return Preempted(
        workload=victim.key,
        uid=victim.workload.uid,
        cluster_queue=victim_queue.spec.name,
        preemptor=preemptor.key,
        preemptor_queue=queue.spec.name,
        reason=reason,
        message=preempted_message(reason, workload.uid, workload.job_uid, queue.node.path, victim_queue.node.path),
    )


def candidates(order: Candidates, queues: Sequence[QueueState], preemptor_queue: str) -> list[str]:
    """Return everyone who holds quota, in the order in which a workload of `preemptor_queue` would consider them."""
    everybody = sorted(entry for queue in queues for entry in queue.running)
    if order.usage_of is not None:
        everybody = order.in_turn(everybody)
    own = {id(entry[-1]) for queue in queues if queue.spec.name == preemptor_queue for entry in queue.running}
    return [entry[-1].key for entry in sorted(everybody, key=lambda entry: (entry[0], id(entry[-1]) in own))]


def _given(record: Record, flavors: FixedFlavors) -> Assignment:
    """Build the assignment of fixed flavors."""
    assignment = Assignment()
    for pod_set in record.demand.pod_sets:
        choices = {
            resource: Choice(flavor, PREEMPT if preempts else FIT, 0, -1)
            for resource, (flavor, preempts) in flavors.get(pod_set.pod_set.name, {}).items()
        }
        requests = {r: pod_set.requests.get(r, 0) for r in choices} | dict(pod_set.requests)
        append(assignment, PodSetAssignment(pod_set.pod_set.name, pod_set.count, requests, choices, (), ()))
    assignment.mode = PREEMPT if assignment.needs_preemption else FIT
    return assignment
