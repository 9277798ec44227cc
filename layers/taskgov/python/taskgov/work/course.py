"""How one look changes the attempts of Workloads.

| a Workload | its attempt |
| --- | --- |
| is evicted, or finished | ended at the moment that the condition has |
| is admitted at another moment than before, or Kueue counts more evictions | was evicted between two looks (below) |
| is not there any more | is gone, at the moment of the look |
| cannot be read | is as it was |

Of an eviction between two looks, how long the attempt ran is concluded from `accumulatedPastExecutionTimeSeconds`;
without that it ended when the next one was admitted, at the latest. A second or late look adds nothing: an
ended attempt is known by its Workload and the moment it ended, and a state whose conditions are older than those that
are known is passed over.
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
    """The course of attempts up to a look at `at`: those that go on, and those that ended."""

    at: datetime
    tracked: dict[str, Tracked]
    ended: list[Attempt] = field(default_factory=list)

    def take(self, facts: WorkloadFacts) -> None:
        """Take in a state of a Workload."""
        says, known = facts.attempt, self.tracked.get(facts.uid)
        if says is None or (known and (says.latest < known.latest or known.attempt.end == End.FINISHED)):
            return
        now = self._first(facts, says) if known is None else self._next(facts, says, known)
        if says.finished is not None:
            now = replace(now, ended=_at(says.finished), end=End.FINISHED, reason=says.finished_why)
            self.ended.append(now)
        self.tracked[facts.uid] = Tracked(
            facts.namespace, facts.name, now, says.latest, dict(says.evictions), says.past_seconds
        )

    def miss(self, uid: str) -> None:
        """Take in that a Workload is not there."""
        known = self.tracked.pop(uid, None)
        if known is not None and known.attempt.ended is None:
            gone = replace(known.attempt, ended=self.at, end=End.GONE)
            self.ended.append(_concluded(gone, "ended"))

    def _first(self, facts: WorkloadFacts, says: AttemptFacts) -> Attempt:
        """Return the present attempt of a Workload that nothing was known of; the one that was evicted is ended."""
        counted = _counted(says)
        if says.evicted is None:
            now = _attempt(facts, says, 1 + counted, _at(says.created))
            return _concluded(now, "queued") if counted else now
        before = _attempt(facts, says, max(1, counted), _at(says.created))
        ran = says.past_seconds if counted == 1 else None
        self._evict(_concluded(before, "queued") if counted > 1 else before, says, ran)
        return _attempt(facts, says, before.number + 1, _at(says.evicted))

    def _next(self, facts: WorkloadFacts, says: AttemptFacts, known: Tracked) -> Attempt:
        """Return the present attempt of a Workload that was known; those that ended meanwhile are ended."""
        before, evicted = known.attempt, says.evicted
        more = _evictions_since(says, before)
        if not more:
            now = _attempt(facts, says, before.number, before.queued)
            return replace(now, held=now.held or before.held, inferred=before.inferred)
        number = before.number + more
        ran = _ran_since(says, known) if more == 1 else None
        if more == 1 and evicted is not None:
            self._evict(before, says, ran)
            return _attempt(facts, says, number, _at(evicted))
        self._end_between(before, says, known, ran)
        last_told = number - 1 if evicted is not None else number
        for unseen in range(before.number + 1, last_told):
            self.ended.append(self._unseen(_attempt(facts, says, unseen, self.at)))
        if evicted is not None:
            self._evict(_concluded(_attempt(facts, says, last_told, _at(evicted)), "queued"), says, None)
            return _attempt(facts, says, number, _at(evicted))
        now = _attempt(facts, says, number, self.ended[-1].ended or self.at)
        return _concluded(replace(now, queued=min(now.queued, now.admitted or now.queued)), "queued")

    def _evict(self, attempt: Attempt, says: AttemptFacts, ran: int | None) -> None:
        """End an attempt at the moment that the condition has; `ran`: how many seconds it ran, where Kueue says it."""
        ended = _at(says.latest if says.evicted is None else says.evicted)
        admitted = attempt.admitted
        if admitted is None and says.admitted is not None:  # its pods are being stopped: it holds its quota still
            admitted = _at(says.admitted)
        if admitted is None and ran:
            admitted = ended - timedelta(seconds=ran)
            attempt = _concluded(attempt, "admitted")
        if admitted is not None and admitted > ended:
            admitted = None
        queued = min(attempt.queued, admitted or ended)
        attempt = replace(attempt, queued=queued, admitted=admitted, ended=ended)
        self.ended.append(replace(attempt, end=End.EVICTED, reason=says.evicted_why))

    def _end_between(self, before: Attempt, says: AttemptFacts, known: Tracked, ran: int | None) -> None:
        """End the attempt that was known, whose end no condition gives any more."""
        later = [_at(at) for at in (says.admitted, says.released, says.evicted) if at is not None]
        start = before.admitted or before.queued
        ended = min([self.at, *(at for at in later if at > start)])
        if ran and before.admitted:
            ended = min(ended, before.admitted + timedelta(seconds=ran))
        reasons = [reason for reason, times in says.evictions if times > known.evictions.get(reason, 0)]
        why = reasons[0] if len(reasons) == 1 else ""
        self.ended.append(_concluded(replace(before, ended=ended, end=End.EVICTED, reason=why), "ended"))

    def _unseen(self, attempt: Attempt) -> Attempt:
        """Return an attempt of which only is known that there was one."""
        unseen = replace(attempt, admitted=None, ended=self.at, end=End.UNSEEN)
        return _concluded(unseen, "queued", "admitted", "ended")


def whole_second(at: datetime) -> datetime:
    """Return a moment in UTC without what is below a second: so precise is Kubernetes."""
    return at.astimezone(UTC).replace(microsecond=0)


def _evictions_since(says: AttemptFacts, before: Attempt) -> int:
    """Return how often a Workload was evicted since an attempt of it: as Kueue counts, and as conditions show.

    Kueue may count later than it sets the condition: by its count the present attempt has a number, and that is
    compared.
    """
    by_count = 1 + _counted(says) - before.number
    admitted_again = says.admitted is not None and before.admitted not in (None, _at(says.admitted))
    if says.evicted is not None:
        shown = 0 if _at(says.evicted) == before.queued else 1 + admitted_again
    else:
        shown = int(admitted_again or (before.admitted is not None and says.admitted is None))
    return max(0, by_count, shown)


def _ran_since(says: AttemptFacts, known: Tracked) -> int | None:
    """Return how many seconds of execution Kueue added since a state that is known; None where it does not count."""
    if says.past_seconds is None:
        return None
    return says.past_seconds - (known.past_seconds or 0)


def _counted(says: AttemptFacts) -> int:
    return sum(times for _, times in says.evictions)


def _attempt(facts: WorkloadFacts, says: AttemptFacts, number: int, queued: datetime) -> Attempt:
    """Return the present attempt as the Workload says it. An evicted one is not admitted, though it holds quota."""
    admitted = None if says.admitted is None or says.evicted is not None else _at(says.admitted)
    return Attempt(
        uid=facts.uid,
        number=number,
        team=facts.team,
        owner=says.owner,
        stem=stem_of(facts.job),
        kind=facts.kind,
        priority_class=facts.priority_class,
        priority=facts.priority,
        held=tuple(Held(*row) for row in says.held),
        max_seconds=says.max_seconds,
        created=_at(says.created),
        queued=queued,
        admitted=admitted,
    )


def _concluded(attempt: Attempt, *fields: str) -> Attempt:
    return replace(attempt, inferred=tuple(dict.fromkeys((*attempt.inferred, *fields))))


def _at(when: Instant) -> datetime:
    return whole_second(moment(when))
