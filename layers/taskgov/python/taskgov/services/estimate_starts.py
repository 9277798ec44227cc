"""Estimate when the waiting jobs of a cluster start, and keep the outcomes of earlier estimates.

`fan_out` calls it for each governed cluster by the schedule `EstimateSchedule`. Futures are played if the queue has
changed since the last estimates, or an hour after them (`taskgov.estimates.looks.is_due`). Any other run only settles.
One document of the cluster is written on condition that nobody wrote it meanwhile; of two runs at once the later one
counts. The documents of teams are parts of it and are written after it. If a run ends between the two, the next one
writes them.
"""

import random
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from taskgov.contracts.steps import EstimateStartsRequest, EstimateStartsResult
from taskgov.errors import ConflictError, InvalidRequestError, NothingToReadError
from taskgov.estimates.all_waiting import digest_of, draw_all, waiting_of
from taskgov.estimates.history import basis_of, of_record
from taskgov.estimates.kept import KEY, NO_ESTIMATES, TEAM_KEY, KeptEstimates
from taskgov.estimates.looks import Drawing, Seen, advance, is_due, is_later
from taskgov.estimates.scenes import Queue, queue_of
from taskgov.ports import VersionedDocuments
from taskgov.ports.work import WorkDone, WorkRecord
from taskgov.scheduling.instants import SECOND
from taskgov.services.failures import Failures
from taskgov.services.read_queue import ReadQueue
from taskgov.snapshot.model import Snapshot

READ_DAYS: Final = timedelta(days=28)
"""So much of the record of work the futures are drawn from."""
SETTLED_WITHIN: Final = timedelta(days=2)
"""So much of it settles open estimates: each run reads it, and one is lost after a day."""
SECONDS: Final = 20.0
"""CPU seconds that the futures of a cluster may take: 200 busy clusters, 20 at a time, are done in five minutes."""
TRIES: Final = 3
DECIDING: Final = frozenset({"Workload", "ClusterQueue", "LocalQueue", "Cohort", "ResourceFlavor"})
"""Kinds of objects without which it is unknown who starts next."""


@dataclass(frozen=True, slots=True)
class EstimateStarts:
    """Estimates of one cluster. Its fields are the ports it uses, and its settings."""

    read_queue: ReadQueue
    documents: VersionedDocuments
    work: WorkRecord
    failures: Failures
    processor_seconds: Callable[[], float]
    """How long this process has used a processor."""
    keep_days: int
    """Outcomes are kept for so many days (`HistoryDays`)."""

    def __call__(self, request: EstimateStartsRequest) -> EstimateStartsResult:
        """Return how many wait and have an estimate; one that is gone, or without Kueue and document, has none.

        What fails is reported, and does not make the function fail: the next run tries again.
        """
        name = request.cluster_arn.rpartition("/")[2]
        try:
            facts = self.read_queue.describe(request.cluster_arn)
            name = facts.name
            return self._look(self.read_queue(facts))
        except (NothingToReadError, ConflictError):  # it is gone; or another run at the same time was faster
            return EstimateStartsResult()
        except Exception as error:  # noqa: BLE001 - whatever a cluster does is its own; it is reported
            self.failures.report(name, "estimate when jobs start", error)
            return EstimateStartsResult(unreadable=1)

    def _look(self, snapshot: Snapshot) -> EstimateStartsResult:
        name, key = snapshot.cluster.name, KEY.format(snapshot.cluster.name)
        queue = queue_of(snapshot, {})
        drawing: Drawing | None = None
        turn = 0
        while True:
            turn += 1
            found = self.documents.find_version(key)
            before = self._kept(name, found.body if found else None)
            seen = _seen(snapshot, queue, None)
            if not is_later(before, seen):
                return EstimateStartsResult()
            due = is_due(before, seen)
            done = self._done(snapshot, before, due=due)
            if due and drawing is None:
                drawing = self._drawn(snapshot, done)
            seen = _seen(snapshot, queue, done if isinstance(done, WorkDone) else None)
            after = advance(before, seen, drawing if due else None, self.keep_days)
            try:
                self.documents.put_version(key, after.to_bytes(), "application/gzip", found)
            except ConflictError:
                if turn == TRIES:
                    raise
                continue
            waiting_teams = {job.request.team for job in queue.scene.present if job.held is None}
            self._write_teams(name, after, waiting_teams)
            played = drawing.futures if due and drawing else 0
            return EstimateStartsResult(
                waiting=len(seen.waiting), estimated=len(after.waiting), futures=played, notes=after.notes
            )

    def _kept(self, cluster_name: str, stored: bytes | None) -> KeptEstimates | None:
        """Return what is kept; a damaged document is reported and begun again: nothing is calibrated by it then."""
        if stored is None:
            return None
        try:
            return KeptEstimates.from_bytes(stored)
        except ValueError as error:
            self.failures.report(cluster_name, "read the kept estimates", error)
            return None

    def _done(
        self, snapshot: Snapshot, before: KeptEstimates | None, *, due: bool
    ) -> WorkDone | InvalidRequestError | None:
        """Return what is needed of the record of work, why it cannot be read, or None where nothing is needed."""
        is_open = before is not None and any(kept.is_open for kept in before.outcomes)
        if not due and not is_open:
            return None
        now = snapshot.taken_at
        try:
            return self.work.between(
                snapshot.cluster.name, now - (READ_DAYS if due else SETTLED_WITHIN), now + timedelta(days=1)
            )
        except InvalidRequestError as error:  # a damaged day: publish_usage reports it
            return error

    def _drawn(self, snapshot: Snapshot, done: WorkDone | InvalidRequestError | None) -> Drawing:
        """Play the futures, where queue and record can be read."""
        now = snapshot.taken_at.timestamp()
        odd = [item for item in snapshot.unreadable_objects if item.kind in DECIDING and not item.is_finished]
        if odd or not isinstance(done, WorkDone):
            lacks = f"{len(odd)} objects of Kueue cannot be read" if odd else f"{done}"
            waits = len(waiting_of(queue_of(snapshot, {}).scene))
            return Drawing(waits=waits, notes=(f"{NO_ESTIMATES}{lacks}",))
        history = of_record(done.ended, done.measured, now, done.still)
        queue = queue_of(snapshot, {}, history.backgrounds)
        # The same read gives the same estimates; it is not a secret.
        chance = random.Random(f"{snapshot.cluster.arn} {now}")  # noqa: S311  # nosec B311
        until = self.processor_seconds() + SECONDS
        return draw_all(queue, basis_of(history, queue, now), chance, lambda: self.processor_seconds() < until)

    def _write_teams(self, cluster_name: str, after: KeptEstimates, waiting: Collection[str]) -> None:
        """Write what members of the teams may read, where it is not there yet, or older.

        Teams that wait and have no estimate get a document if the cluster has none, which is written once.
        """
        estimated = {*(given.team for given in after.waiting), *(kept.team for kept in after.outcomes)}
        for team in sorted(estimated.union(waiting) if after.has_none else estimated):
            key, part = TEAM_KEY.format(cluster_name, team), after.of_team(team)
            found = self.documents.find_version(key)
            stored = self._kept(cluster_name, found.body if found else None)
            if stored is not None and part.at < stored.at < part.at + timedelta(hours=1):
                continue
            if stored is not None and team not in estimated and stored.notes == part.notes:
                continue
            try:
                self.documents.put_version(key, part.to_bytes(), "application/gzip", found)
            except ConflictError:
                continue  # a run at the same time wrote it; the next run writes it again


def _seen(snapshot: Snapshot, queue: Queue, done: WorkDone | None) -> Seen:
    """Return what is known of the workloads: from their objects, and from the record of work."""
    present = list(zip(queue.uids, queue.scene.present, strict=True))
    admitted: dict[str, list[int]] = {}
    ended: dict[str, int] = {}
    for attempt in (*done.ended, *done.still) if done else ():
        if attempt.admitted is not None:
            admitted.setdefault(attempt.uid, []).append(int(attempt.admitted.timestamp()))
        if attempt.ended is not None:
            ended[attempt.uid] = max(ended.get(attempt.uid, 0), int(attempt.ended.timestamp()))
    return Seen(
        at=snapshot.taken_at,
        digest=digest_of(queue),
        waiting=frozenset(queue.uids[place] for place in waiting_of(queue.scene)),
        present=frozenset(queue.uids),
        held={uid: job.held.since // SECOND for uid, job in present if job.held is not None},
        admitted=admitted,
        ended=ended,
    )
