"""Simulate one future: time by time, and cycle by cycle (`taskgov.futures.replaying` and `.cycling`)."""

from __future__ import annotations

from heapq import heappop
from math import exp
from typing import TYPE_CHECKING, Final

from taskgov.estimates.batches import NO_BATCH, new_batch
from taskgov.estimates.flat.cycling import MICRO, Ends, Lots, begin, cycle, notice, run_of
from taskgov.estimates.flat.luck import normal, not_below, uniform
from taskgov.estimates.flat.standing import (
    ACTIVE,
    COUNTS,
    DUE,
    LAST,
    NEWS,
    NOBODY,
    NOTIFIED,
    SUSPICIOUS,
    UNSEEN,
    State,
    give,
    hold,
    leave,
    push,
    release,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskgov.estimates.flat.tables import Came, Here, Lasting, Play, Terms

NEVER: Final = 2**62
ENDLESS: Final = -2


def future(t: Terms, here: Here, lasting: Lasting, came: Came, play: Play, luck: list[float]) -> State:
    """Return the state when the watched jobs have started, or at the end of the future.

    `counts[SUSPICIOUS]` is 1 if jobs may preempt one another without end. The rest is then not simulated.
    """
    s = new_state(t, here, play.now)
    shared = [normal(luck) for _ in range(lasting.groups)]
    lots = Lots(lasting, shared, [NO_BATCH] * lasting.groups, luck)
    factor = exp(came.spread * normal(luck))
    ends: Ends = []
    block, edge = 0, play.now
    arrived, look = 0, NEVER
    counts, comes = s.counts, s.came
    while not counts[SUSPICIOUS] and counts[UNSEEN]:
        now = due(s, ends, arrived, look)
        if now >= edge and edge < play.until and block + 1 < len(came.first):
            again(s, came, block, edge, factor, luck)
            block += 1
            edge += round(came.block) * MICRO
            continue
        if now > play.until:
            break
        if ends and ends[0][0] == now:
            leave_all(t, s, ends, now, len(here.kind))
        while arrived < len(comes) and comes[arrived] == now:
            arrive(t, s, here, lots, ends, arrived)
            arrived += 1
        if look == now:
            look = NEVER
            counts[DUE] = 0
            release(t, s)
        if counts[NOTIFIED]:
            look = notice(t, s, look, now)
        while counts[ACTIVE] and not counts[SUSPICIOUS]:
            cycle(t, s, here, lots, ends, now)
            if counts[NOTIFIED]:
                look = notice(t, s, look, now)
    return s


def due(s: State, ends: Ends, arrived: int, look: int) -> int:
    """Return the time of the next end, arrival or look, without ends of jobs that were preempted meanwhile."""
    while ends and s.number[ends[0][2]] != ends[0][1]:
        heappop(ends)
    now = look
    if ends and ends[0][0] < now:
        now = ends[0][0]
    if arrived < len(s.came) and s.came[arrived] < now:
        now = s.came[arrived]
    return now


def leave_all(t: Terms, s: State, ends: Ends, now: int, there: int) -> None:
    """End the jobs that are due. Record which of the first `there` jobs ended last."""
    while ends and ends[0][0] == now:
        _, number, job = heappop(ends)
        if s.number[job] == number:
            s.counts[NEWS] += 1
            leave(t, s, job)
            if job < there:
                s.counts[LAST] = job


def arrive(t: Terms, s: State, here: Here, lots: Lots, ends: Ends, job: int) -> None:
    """Add an arriving job. A job that ran at the beginning continues."""
    s.counts[NEWS] += 1
    if job < len(here.kind) and here.since[job] >= 0:
        now = s.came[job]
        begin(s, ends, job, now, max(run_of(s, lots, job) - (now - here.since[job]), MICRO))
    else:
        push(t, s, job)


def again(s: State, came: Came, block: int, start: int, factor: float, luck: list[float]) -> None:
    """Copy past arrivals into a block of the future that begins at a given time."""
    first, last = came.first[block], came.first[block + 1]
    if first == last:
        return
    source = came.source[first + int(uniform(luck) * (last - first))]
    place = not_below(came.at, 0, len(came.at), source)
    while place < len(came.at) and came.at[place] < source + came.block:
        times, request = int(factor + uniform(luck)), came.request[place]
        if came.kind[request] != NOBODY:
            at = start + int((came.at[place] - source) * MICRO)
            batch = new_batch(block, came.batch[place], len(came.at))
            for _ in range(times):
                s.kind.append(came.kind[request])
                s.prospect.append(came.prospect[request])
                s.batch.append(batch)
                s.came.append(at)
        place += 1
    fill_up(s)


def fill_up(s: State) -> None:
    """Add the rest of what is kept of each job that has been copied."""
    count = len(s.kind) - len(s.place)
    s.place.extend(range(len(s.place), len(s.kind)))
    s.number.extend([0] * count)
    s.blamed.extend([0] * count)
    s.blamed_at.extend([0] * count)
    s.run.extend([-1] * count)
    s.since.extend([-1] * count)
    s.first.extend([-1] * count)
    s.cause.extend([NOBODY] * count)
    s.behind.extend([NOBODY] * count)
    s.older.extend([NOBODY] * count)
    s.newer.extend([NOBODY] * count)


def new_state(t: Terms, here: Here, now: int) -> State:
    """Return the initial state: running jobs are counted, and no job has arrived."""
    s = lists(t, here, now)
    s.counts[LAST] = NOBODY
    for job in range(len(here.kind)):
        s.counts[UNSEEN] += here.watched[job]
        if here.since[job] >= 0:
            hold(t, s, job, here.since[job])
            give(s, t.kind_queue[s.kind[job]], t.kind_amount[s.kind[job]])
    return s


def lists(t: Terms, here: Here, now: int) -> State:
    """Return the empty state."""
    jobs, kinds, queues = len(here.kind), len(t.kind_queue), len(t.nominal)
    return State(
        kind=list(here.kind),
        prospect=list(here.prospect),
        batch=list(here.batch),
        came=[now] * jobs,
        place=list(here.place),
        run=[-1] * jobs,
        since=[-1] * jobs,
        number=[0] * jobs,
        first=[-1] * jobs,
        cause=[NOBODY] * jobs,
        behind=[NOBODY] * jobs,
        older=[NOBODY] * jobs,
        newer=[NOBODY] * jobs,
        blamed=[0] * jobs,
        blamed_at=[0] * jobs,
        head=[NOBODY] * kinds,
        tail=[NOBODY] * kinds,
        size=[0] * kinds,
        marked=[0] * kinds,
        out=[],
        used=[0] * queues,
        newest=[NOBODY] * queues,
        active=[0] * queues,
        sticky=[NOBODY] * queues,
        at=[NOBODY] * queues,
        refused=[NOBODY] * queues,
        share=[0.0] * queues,
        taken=[],
        counts=[0] * COUNTS,
    )


def many(  # noqa: PLR0913, PLR0917 -- tables by place: there are as many
    t: Terms,
    here: Here,
    lasting: Lasting,
    came: Came,
    play: Play,
    seeds: Sequence[float],
    asked: Sequence[int],
    first: list[int],
    cause: list[int],
) -> None:
    """Simulate futures, with two seeds each. Write starts of the watched jobs and their causes to `first` and `cause`.

    -1: the job does not start; `ENDLESS`: jobs may preempt one another without end.
    """
    for number in range(len(seeds) // 2):
        s = future(t, here, lasting, came, play, list(seeds[2 * number : 2 * number + 2]))
        for place in range(len(asked)):
            first[number * len(asked) + place] = ENDLESS if s.counts[SUSPICIOUS] else s.first[asked[place]]
            cause[number * len(asked) + place] = s.cause[asked[place]]
