"""What does one scheduling cycle decide? Heads, nomination, order, processing, requeue.

`run_cycle` works on the live state. What is only supposed during a cycle (quota held for preemptors, victims counted
as gone) is undone before it returns. Rules: `pkg/scheduler/scheduler.go` of Kueue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskgov.scheduling.assignment import FIT, NO_FIT, Assignment
from taskgov.scheduling.blocking import HeldCycle
from taskgov.scheduling.candidates import Victim, put_back, take_out
from taskgov.scheduling.nomination import Entry
from taskgov.scheduling.objects import ANY, FlavorResource, Usage
from taskgov.scheduling.ordering import in_order
from taskgov.scheduling.quota import QuotaNode, add_usage, has_room, remove_usage, shift_usage
from taskgov.scheduling.reasons import (
    DEFERRED,
    FAILED_CHECKS,
    NAMESPACE_MISMATCH,
    NO_LONGER_FITS,
    OVERLAPPING,
    PODS_NOT_READY,
)
from taskgov.scheduling.results import Requeue

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from taskgov.scheduling.instants import Instant
    from taskgov.scheduling.nomination import Nominator
    from taskgov.scheduling.state import QueueState, Record


class Supposed:
    """What is only supposed while a cycle runs: who is counted as gone, and quota held for those who wait for them.

    Victims of a tree are taken out when a question needs them gone and put back when one needs them there, so that a
    row of questions of one kind costs nothing more.
    """

    def __init__(self) -> None:
        self.preempted: dict[Record, Victim] = {}
        self._of_root: dict[QuotaNode, list[Victim]] = {}
        self._out: set[QuotaNode] = set()
        self._held: list[tuple[QuotaNode, Usage]] = []
        self.holds: list[tuple[str, Mapping[FlavorResource, int]]] = []

    def preempt(self, victims: Sequence[Victim]) -> None:
        """Count `victims` among the preempted of this cycle."""
        for victim in victims:
            queue = victim.record.queue
            if queue is None or victim.record in self.preempted:
                continue
            self.preempted[victim.record] = victim
            root = queue.node.root
            self._of_root.setdefault(root, []).append(victim)
            if root in self._out:
                take_out(victim.record)

    def without_victims(self, root: QuotaNode) -> None:
        """See the tree of `root` without those preempted so far."""
        if root not in self._out and root in self._of_root:
            self._out.add(root)
            for victim in self._of_root[root]:
                take_out(victim.record)

    def with_victims(self, root: QuotaNode) -> None:
        """See the tree of `root` as it is: its victims still hold their quota."""
        if root in self._out:
            self._out.discard(root)
            put_back(self._of_root[root])

    def hold(self, node: QuotaNode, usage: Mapping[FlavorResource, int]) -> None:
        """Keep `usage` for somebody until the cycle ends; a negative amount touches the node alone, as in Kueue."""
        self.holds.append((node.name, usage))
        held = {fr: amount for fr, amount in usage.items() if amount > 0}
        add_usage(node, held)
        self._held.append((node, held))
        for fr, amount in usage.items():
            if amount < 0:
                shift_usage(node, fr, amount)
                self._held.append((node, {fr: amount}))

    def undo(self) -> None:
        """End of the cycle: everything is again as it really is."""
        for root in list(self._out):
            self.with_victims(root)
        for node, usage in reversed(self._held):
            for fr, amount in usage.items():
                if amount < 0:
                    shift_usage(node, fr, -amount)
                else:
                    remove_usage(node, {fr: amount})


class Cycle:
    """One cycle over the heads of all queues."""

    def __init__(self, nominator: Nominator, number: int, now: Instant, turn: Sequence[str] = ()) -> None:
        self.nominator = nominator
        self.turn = turn
        self.config = nominator.config
        self.number = number
        self.now = now
        self.supposed = Supposed()
        self.skipped_preemptions: dict[str, int] = {}
        self.processed: list[Entry] = []
        self.left: HeldCycle | None = None
        self.had_slices = False

    def run(self, heads: Sequence[tuple[QueueState, Record]]) -> None:
        """Nominate all heads against the same state, then process them in order."""
        entries = [entry for queue, record in heads if (entry := self._nominate(queue, record)) is not None]
        self._work_off(entries)
        self.supposed.undo()

    def go_on(self, held: HeldCycle, queues: Mapping[str, QueueState]) -> None:
        """Continue with a cycle that was held up: the first is admitted as it was decided, the others are processed."""
        self.supposed.preempt([victim for victim in held.victims if victim.record.queue is not None])
        for name, usage in held.holds:
            if name in queues:
                self.supposed.hold(queues[name].node, usage)
        entries = held.still_there()
        for entry in entries:
            del entry.queue.pending.kept[entry.record.key]
        if entries and entries[0] is held.entries[0]:
            self._admit(entries[0])
            self.processed.append(entries.pop(0))
        self._work_off(entries)
        self.supposed.undo()

    def _work_off(self, entries: Sequence[Entry]) -> None:
        for entry in in_order(entries, self.config, self.turn):
            if not self._process(entry):
                done = set(map(id, self.processed))
                rest = [other for other in entries if other is not entry and id(other) not in done]
                victims, holds = tuple(self.supposed.preempted.values()), tuple(self.supposed.holds)
                self.left = HeldCycle(self.number, (entry, *rest), victims, holds)
                return
            self.processed.append(entry)
            node = entry.queue.node
            if self.config.fair_sharing and node.parent is not node.root:  # else nobody's place depends on its victims
                self.supposed.with_victims(node.root)

    def _blocks(self) -> bool:
        """Return whether nobody may be admitted now: pods of somebody who is admitted are not ready."""
        if not self.config.wait_for_pods_ready_block_admission:
            return False
        return any(entry.admitted for entry in self.processed) or self.nominator.somebody_starts()

    def _nominate(self, queue: QueueState, record: Record) -> Entry | None:
        """Find flavors and victims for one head; one that is refused goes straight back.

        Refused is who has a failed check, is of a namespace that is not selected, or requests what may not be requested
        (Kueue: `ValidateAdmissibility` in `pkg/workload/resources.go`).
        """
        remark, requeue = record.workload.refusal, Requeue.GENERIC
        if record.checks and record.has_failed_check:
            remark = FAILED_CHECKS
        elif not self.nominator.selects_namespace(queue, record):
            remark, requeue = NAMESPACE_MISMATCH, Requeue.NAMESPACE_MISMATCH
        if remark:
            self.processed.append(Entry(record, queue, Assignment(mode=NO_FIT), [], remark=remark, requeue=requeue))
            return None
        assignment, victims = self.nominator.nominate(queue, record, self.number)
        return Entry(record, queue, assignment, victims)

    def _process(self, entry: Entry) -> bool:
        """Decide on one entry, seeing what the earlier ones changed (S: processEntry, steps 0 to 6).

        False when it would be admitted and has to wait for the pods of others.
        """
        if self._overlaps(entry) and self.config.gate("RecomputeAssignmentUponPreemptionTargetsOverlap"):
            self._recompute(entry)
        if entry.assignment.mode == NO_FIT:
            entry.requeue = Requeue.NO_FIT
        elif entry.assignment.mode != FIT and not entry.victims:
            entry.requeue = Requeue.NO_CANDIDATES
            self._reserve(entry)
        elif entry.deferred:
            self._defer(entry)
        elif self._overlaps(entry):
            self._skip(entry, OVERLAPPING, counts=True)
        elif not self._fits(entry):
            self._skip(entry, NO_LONGER_FITS, counts=entry.assignment.mode != FIT)
        elif entry.assignment.mode == FIT and self._blocks():
            entry.remark, entry.requeue = PODS_NOT_READY, Requeue.KEPT
            return False
        else:
            self._accept(entry)
        return True

    def _overlaps(self, entry: Entry) -> bool:
        preempted = self.supposed.preempted
        return bool(preempted) and any(victim.record in preempted for victim in entry.victims)

    def _recompute(self, entry: Entry) -> None:
        """Nominate again, with this cycle's victims gone and the flavors of the first nomination."""
        root = entry.queue.node.root
        self.supposed.without_victims(root)
        entry.record.scan = None
        entry.assignment, entry.victims = self.nominator.renominate(
            entry.queue,
            entry.record,
            self.number,
            gone=self.supposed.preempted,
            nominated=entry.assignment.nomination,
        )
        entry.deferred = entry.assignment.mode == FIT

    def _reserve(self, entry: Entry) -> None:
        """Keep room for a workload that may preempt nobody, unless its queue can reclaim whatever it needs anyway."""
        if entry.queue.spec.preemption.reclaim_within_cohort == ANY:
            return
        node = entry.queue.node
        self.supposed.with_victims(node.root)
        reserved = {
            fr: _reservable(node, fr, amount, borrows=entry.assignment.borrowing > 0)
            for fr, amount in entry.assignment.usage.items()
        }
        self.supposed.hold(node, reserved)

    def _defer(self, entry: Entry) -> None:
        self.supposed.hold(entry.queue.node, entry.assignment.usage)
        entry.remark = DEFERRED
        entry.requeue = Requeue.PENDING_PREEMPTION
        entry.record.scan = None

    def _skip(self, entry: Entry, remark: str, *, counts: bool) -> None:
        entry.remark = remark
        entry.requeue = Requeue.FAILED_AFTER_NOMINATION
        if not self.config.gate("FlavorFungibilityPreserveScanProgress"):
            entry.record.scan = None
        if counts:
            name = entry.queue.spec.name
            self.skipped_preemptions[name] = self.skipped_preemptions.get(name, 0) + 1

    def _fits(self, entry: Entry) -> bool:
        """Whether the entry fits once all victims so far and its own have left."""
        node = entry.queue.node
        self.supposed.without_victims(node.root)
        if not entry.victims:
            return has_room(node, entry.assignment.usage)
        own = [v for v in entry.victims if v.record not in self.supposed.preempted]
        if entry.replaced is not None:  # the slice may be a candidate for preemption besides
            own = list({victim.record: victim for victim in own}.values())
        for victim in own:
            take_out(victim.record)
        answer = has_room(node, entry.assignment.usage)
        put_back(own)
        return answer

    def _accept(self, entry: Entry) -> None:
        """Admit, or preempt and keep the room until the victims are gone."""
        self.supposed.preempt(entry.victims)
        entry.admitted = entry.assignment.mode == FIT
        if entry.admitted and not entry.victims:
            self._admit(entry)
            return
        if entry.victims and entry.replaced is not None:  # it may take less than nothing, where all others hold theirs
            self.supposed.with_victims(entry.queue.node.root)
            self.had_slices = True
        self.supposed.hold(entry.queue.node, entry.assignment.usage)
        if entry.admitted:  # a slice: its predecessor keeps what it has until the cycle is over
            return
        entry.waits_for = len(entry.told)
        entry.requeue = Requeue.PENDING_PREEMPTION
        entry.record.scan = None

    def _admit(self, entry: Entry) -> None:
        add_usage(entry.queue.node, entry.assignment.usage)
        entry.admitted = True


def _reservable(node: QuotaNode, fr: FlavorResource, amount: int, *, borrows: bool) -> int:
    """Return how much to keep: up to the borrowing limit for one that borrows, else up to nominal quota."""
    quota = node.quotas.get(fr)
    nominal = 0 if quota is None else quota.nominal
    used = node.usage.get(fr, 0)
    if not borrows:
        return max(0, min(amount, nominal - used))
    if quota is None or quota.borrowing_limit is None:
        return amount
    return min(amount, nominal + quota.borrowing_limit - used)
