"""Update the attempts of Workloads after one measurement.

| the Workload | its attempt |
| --- | --- |
| is evicted or finished | ended at the time in the condition |
| was admitted at another time than before, or Kueue counts more evictions | was evicted between two measurements
(below) |
| no longer exists | is `gone`, at the time of the measurement |
| cannot be read | is unchanged |

For an eviction between two measurements, the run time is inferred from `accumulatedPastExecutionTimeSeconds`. Without
this field, the attempt ended when the next one was admitted, at the latest.

A repeated or late measurement changes nothing: an ended attempt is identified by its Workload and its end, and a state
whose conditions are older than the known ones is ignored.
"""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from taskgov.scheduling.instants import Instant, moment
from taskgov.usage.workload_facts import AttemptFacts, WorkloadFacts
from taskgov.work.attempt import Attempt, End, Held
from taskgov.work.memory import Tracked
from taskgov.work.stems import stem_of


@dataclass(slots=True)
class Course:
    """The attempts of all Workloads up to a measurement at `at`: those that continue, and those that ended."""

    at: datetime
    tracked: dict[str, Tracked]
    ended: list[Attempt] = field(default_factory=list)

    def take(self, facts: WorkloadFacts) -> None:
        """Apply a state of a Workload."""
        seen, known = facts.attempt, self.tracked.get(facts.uid)
        if known is not None and known.state is facts:
            return
        if seen is None or (known and (seen.latest < known.latest or known.attempt.end == End.FINISHED)):
            return
        now = self._first(facts, seen) if known is None else self._next(facts, seen, known)
        if seen.finished is not None:
            now = replace(now, ended=_at(seen.finished), end=End.FINISHED, reason=seen.finished_why)
            self.ended.append(now)
        self.tracked[facts.uid] = Tracked(
            facts.namespace, facts.name, now, seen.latest, dict(seen.evictions), seen.past_seconds, facts
        )

    def miss(self, uid: str) -> None:
        """Record that a Workload no longer exists."""
        known = self.tracked.pop(uid, None)
        if known is not None and known.attempt.ended is None:
            gone = replace(known.attempt, ended=self.at, end=End.GONE)
            self.ended.append(_with_inferred(gone, "ended"))

    def _first(self, facts: WorkloadFacts, seen: AttemptFacts) -> Attempt:
        """Return the present attempt of a new Workload. Also records the evicted attempt before it, if any."""
        counted = _counted(seen)
        if seen.evicted is None:
            now = _attempt(facts, seen, 1 + counted, _at(seen.created))
            return _with_inferred(now, "queued") if counted else now
        before = _attempt(facts, seen, max(1, counted), _at(seen.created))
        ran = seen.past_seconds if counted == 1 else None
        self._evict(_with_inferred(before, "queued") if counted > 1 else before, seen, ran)
        return _attempt(facts, seen, before.number + 1, _at(seen.evicted))

    def _next(self, facts: WorkloadFacts, seen: AttemptFacts, known: Tracked) -> Attempt:
        """Return the present attempt of a known Workload. Also records the attempts that ended meanwhile."""
        before, evicted = known.attempt, seen.evicted
        more = _evictions_since(seen, before)
        if not more:
            now = _attempt(facts, seen, before.number, before.queued)
            return replace(now, held=now.held or before.held, inferred=before.inferred)
        number = before.number + more
        ran = _ran_since(seen, known) if more == 1 else None
        if more == 1 and evicted is not None:
            self._evict(before, seen, ran)
            return _attempt(facts, seen, number, _at(evicted))
        self._end_between(before, seen, known, ran)
        last_reported = number - 1 if evicted is not None else number
        for unseen in range(before.number + 1, last_reported):
            self.ended.append(self._unseen(_attempt(facts, seen, unseen, self.at)))
        if evicted is not None:
            self._evict(_with_inferred(_attempt(facts, seen, last_reported, _at(evicted)), "queued"), seen, None)
            return _attempt(facts, seen, number, _at(evicted))
        now = _attempt(facts, seen, number, self.ended[-1].ended or self.at)
        return _with_inferred(replace(now, queued=min(now.queued, now.admitted or now.queued)), "queued")

    def _evict(self, attempt: Attempt, seen: AttemptFacts, ran: int | None) -> None:
        """End an attempt at the time in the condition. `ran` is the seconds that it ran, if Kueue reports them."""
        ended = _at(seen.latest if seen.evicted is None else seen.evicted)
        admitted = attempt.admitted
        if admitted is None and seen.admitted is not None:  # its pods are being stopped, and it still holds quota
            admitted = _at(seen.admitted)
        if admitted is None and ran:
            admitted = ended - timedelta(seconds=ran)
            attempt = _with_inferred(attempt, "admitted")
        if admitted is not None and admitted > ended:
            admitted = None
        queued = min(attempt.queued, admitted or ended)
        attempt = replace(attempt, queued=queued, admitted=admitted, ended=ended)
        self.ended.append(replace(attempt, end=End.EVICTED, reason=seen.evicted_why))

    def _end_between(self, before: Attempt, seen: AttemptFacts, known: Tracked, ran: int | None) -> None:
        """End a known attempt whose end no condition states any longer."""
        later = [_at(at) for at in (seen.admitted, seen.released, seen.evicted) if at is not None]
        start = before.admitted or before.queued
        ended = min([self.at, *(at for at in later if at > start)])
        if ran and before.admitted:
            ended = min(ended, before.admitted + timedelta(seconds=ran))
        reasons = [reason for reason, times in seen.evictions if times > known.evictions.get(reason, 0)]
        why = reasons[0] if len(reasons) == 1 else ""
        self.ended.append(_with_inferred(replace(before, ended=ended, end=End.EVICTED, reason=why), "ended"))

    def _unseen(self, attempt: Attempt) -> Attempt:
        """Return an attempt of which only the existence is known."""
        unseen = replace(attempt, admitted=None, ended=self.at, end=End.UNSEEN)
        return _with_inferred(unseen, "queued", "admitted", "ended")


def whole_second(at: datetime) -> datetime:
    """Return a time in UTC, cut to whole seconds as in Kubernetes."""
    return at.astimezone(UTC).replace(microsecond=0)


def _evictions_since(seen: AttemptFacts, before: Attempt) -> int:
    """Return how often a Workload was evicted since an attempt: the larger of Kueue's count and what conditions show.

    Kueue may update the count later than the condition. Therefore the count is compared as an attempt number, not as
    an increment.
    """
    by_count = 1 + _counted(seen) - before.number
    admitted_again = seen.admitted is not None and before.admitted not in (None, _at(seen.admitted))
    if seen.evicted is not None:
        shown = 0 if _at(seen.evicted) == before.queued else 1 + admitted_again
    else:
        shown = int(admitted_again or (before.admitted is not None and seen.admitted is None))
    return max(0, by_count, shown)


def _ran_since(seen: AttemptFacts, known: Tracked) -> int | None:
    """Return the seconds of execution that Kueue added since a known state; None if Kueue does not count them."""
    if seen.past_seconds is None:
        return None
    return seen.past_seconds - (known.past_seconds or 0)


def _counted(seen: AttemptFacts) -> int:
    return sum(times for _, times in seen.evictions)


def _attempt(facts: WorkloadFacts, seen: AttemptFacts, number: int, queued: datetime) -> Attempt:
    """Return the present attempt of a Workload. An evicted one is not admitted, although it may still hold quota."""
    admitted = None if seen.admitted is None or seen.evicted is not None else _at(seen.admitted)
    return Attempt(
        uid=facts.uid,
        number=number,
        team=facts.team,
        owner=seen.owner,
        stem=stem_of(facts.job),
        kind=facts.kind,
        priority_class=facts.priority_class,
        priority=facts.priority,
        held=tuple(Held(*row) for row in seen.held),
        max_seconds=seen.max_seconds,
        created=_at(seen.created),
        queued=queued,
        admitted=admitted,
    )


def _with_inferred(attempt: Attempt, *fields: str) -> Attempt:
    return replace(attempt, inferred=tuple(dict.fromkeys((*attempt.inferred, *fields))))


def _at(when: Instant) -> datetime:
    return whole_second(moment(when))
