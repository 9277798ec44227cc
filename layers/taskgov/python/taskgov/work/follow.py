"""Update the record of work with one measurement: a pure function of the memory and the measurement."""

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
"""A measurement more than this many periods after the previous one leaves a gap in the measured time."""
ENDS_KEPT: Final = timedelta(days=35)
"""An attempt that ended longer ago when it is first seen is not recorded."""
CLOCK_WRONG: Final = timedelta(hours=1)
"""If a measurement is older than the last one by at least this, the clock was wrong at the last one."""


@dataclass(frozen=True, slots=True)
class Look:
    """What one read of the cluster found."""

    at: datetime
    period: timedelta
    """The scheduled time between measurements."""
    states: Collection[WorkloadFacts]
    """All readable Workloads, with their attempts."""
    standing: Standing
    told: Collection[Told] = ()
    """Reported changes of Workloads since the previous measurement, in order."""
    unreadable: frozenset[tuple[str, str]] = frozenset()
    """Namespace and name of Workloads that exist and cannot be read."""


def advance(memory: WorkMemory, look: Look) -> WorkMemory:
    """Return the memory after a measurement. One that is older than the last one changes nothing.

    If it is older by an hour or more (`CLOCK_WRONG`), the clock was wrong at the last measurement. Measured time after
    this one that is in no file yet is then dropped, and measuring begins again with this one.
    """
    at = whole_second(look.at)
    if memory.at is not None and at < memory.at:
        if memory.at - at < CLOCK_WRONG:
            return memory
        memory = replace(
            memory, at=None, standing=None, written_at=None, unwritten=_measured_until(memory.unwritten, at)
        )
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


def _measured_until(part: Day, at: datetime) -> Day:
    """Return a part of the record without the time and standings measured after a moment. All attempts stay."""
    measured = (span.within(span.start, at) for span in part.measured)
    standings = (standing for standing in part.standings if standing.at <= at)
    return Day(part.attempts, tuple(span for span in measured if span), tuple(standings))


def _is_late(memory: WorkMemory, at: datetime, period: timedelta) -> bool:
    return memory.at is None or at - memory.at > LATE * period


def _measured(memory: WorkMemory, at: datetime, period: timedelta) -> tuple[Span, ...]:
    """Return the time that the previous measurement counts for: until this one, or one period if this one is late."""
    if memory.at is None or memory.at == at:
        return ()
    return (Span(memory.at, memory.at + _whole_seconds(period) if _is_late(memory, at, period) else at),)


def _standings(memory: WorkMemory, now: Standing, period: timedelta) -> tuple[Standing, ...]:
    """Return the changes since the previous measurement. After a gap and at the start of a day, the whole standing."""
    before = memory.standing
    if before is None or memory.at is None or _is_late(memory, now.at, period):
        return (now,)
    if now.at == memory.at:
        return ()
    change, new_day = now.since(before), midnight(now.at.date())
    if memory.at < new_day:
        return (now,) if now.at == new_day else (replace(before, at=new_day), *([change] if change else []))
    return (change,) if change else ()


def _whole_seconds(period: timedelta) -> timedelta:
    return timedelta(seconds=int(period.total_seconds()))
