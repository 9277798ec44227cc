"""What became of attempts, and of quotas, between the last look and this one? Memory and look in, memory out."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from taskgov.usage.workload_facts import Told, WorkloadFacts
from taskgov.work.course import Course, whole_second
from taskgov.work.day import Day, joined, midnight
from taskgov.work.measured import Span
from taskgov.work.memory import WorkMemory
from taskgov.work.standing import Standing

LATE: Final = 1.5
"""A look that comes later than this many periods after the one before leaves a gap: more than a jitter."""
ENDS_KEPT: Final = timedelta(days=35)
"""Attempts that ended longer ago than this are not written down when they are seen first."""
CLOCK_WRONG: Final = timedelta(hours=1)
"""A look that is this much older than the last one shows that the clock was wrong then."""


@dataclass(frozen=True, slots=True)
class Look:
    """What one look saw."""

    at: datetime
    period: timedelta
    """How often looks come."""
    states: Collection[WorkloadFacts]
    """All Workloads that can be read, with their attempts."""
    standing: Standing
    told: Collection[Told] = ()
    """What became of them since the look before, in order, as far as it was reported."""
    unreadable: frozenset[tuple[str, str]] = frozenset()
    """Namespace and name of Workloads that are there and cannot be read."""


def advance(memory: WorkMemory, look: Look) -> WorkMemory:
    """Return the memory after a look. One that is older than the last adds nothing: the last saw all that it saw.

    Where it is older by an hour and more, the clock was wrong at the last one: what was measured then and is in no
    file yet is left out, and time begins with this look.
    """
    at = whole_second(look.at)
    if memory.at is not None and at < memory.at:
        if memory.at - at < CLOCK_WRONG:
            return memory
        memory = replace(memory, at=None, standing=None, written_at=None, unwritten=_until(memory.unwritten, at))
    course = Course(at, dict(memory.tracked))
    for told in look.told:
        course.take(told.facts)
        if told.is_last:
            course.miss(told.facts.uid)
    for facts in look.states:
        course.take(facts)
    there = {facts.uid for facts in look.states}
    for uid, tracked in [*course.tracked.items()]:
        if uid not in there and (tracked.namespace, tracked.name) not in look.unreadable:
            course.miss(uid)
    standing = replace(look.standing, at=at, whole=True)
    new = Day(
        attempts=tuple(attempt for attempt in course.ended if attempt.ended and at - attempt.ended <= ENDS_KEPT),
        measured=_measured(memory, at, look.period),
        standings=_standings(memory, standing, look.period),
    )
    return replace(memory, at=at, standing=standing, tracked=course.tracked, unwritten=joined((memory.unwritten, new)))


def _until(part: Day, at: datetime) -> Day:
    """Return what of a part of the record was measured up to a moment, with all attempts."""
    measured = (span.within(span.start, at) for span in part.measured)
    standings = (standing for standing in part.standings if standing.at <= at)
    return Day(part.attempts, tuple(span for span in measured if span), tuple(standings))


def _is_late(memory: WorkMemory, at: datetime, period: timedelta) -> bool:
    return memory.at is None or at - memory.at > LATE * period


def _measured(memory: WorkMemory, at: datetime, period: timedelta) -> tuple[Span, ...]:
    """Return the time that the look before stands for: until this one, or a period where this one is late."""
    if memory.at is None or memory.at == at:
        return ()
    return (Span(memory.at, memory.at + _second_part(period) if _is_late(memory, at, period) else at),)


def _standings(memory: WorkMemory, now: Standing, period: timedelta) -> tuple[Standing, ...]:
    """Return what is another than at the look before. After a gap, and at the beginning of a day, it is given whole."""
    before = memory.standing
    if before is None or memory.at is None or _is_late(memory, now.at, period):
        return (now,)
    if now.at == memory.at:
        return ()
    change, new_day = now.since(before), midnight(now.at.date())
    if memory.at < new_day:
        return (now,) if now.at == new_day else (replace(before, at=new_day), *([change] if change else []))
    return (change,) if change else ()


def _second_part(period: timedelta) -> timedelta:
    return timedelta(seconds=int(period.total_seconds()))
