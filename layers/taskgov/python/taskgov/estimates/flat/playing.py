"""One future: moment by moment, and in each moment cycle by cycle (`taskgov.futures.replaying` and `.cycling`)."""

from __future__ import annotations

from heapq import heappop
from math import exp
from typing import TYPE_CHECKING, Final

from taskgov.estimates.flat.cycling import MICRO, begin, cycle, notice, run_of
from taskgov.estimates.flat.luck import normal, not_below, uniform
from taskgov.estimates.flat.standing import (
    ACTIVE,
    COUNTS,
    DUE,
    LAST,
    NEWS,
    NOBODY,
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


def future(t: Terms, here: Here, lasting: Lasting, came: Came, play: Play, luck: list[int]) -> State:
    """Return how things stand once the watched jobs have started, or at the end of the future.

    `counts[SUSPICIOUS]` is 1 where jobs may preempt one another without end: then the rest is not played.
    """
    s = new_state(t, here, play.now)
    shared = [normal(luck) for _ in range(lasting.teams)]
    factor = exp(came.spread * normal(luck))
    ends = [(0, 0, 0)]
    ends.pop()
    block, edge = 0, play.now
    arrived, look, now = 0, NEVER, play.now
    while s.counts[SUSPICIOUS] == 0:
        while len(ends) > 0 and s.number[ends[0][2]] != ends[0][1]:
            heappop(ends)
        due = s.came[arrived] if arrived < len(s.came) else NEVER
        if len(ends) > 0 and ends[0][0] < due:
            due = ends[0][0]
        due = min(due, look)
        if due >= edge and edge < play.until and block + 1 < len(came.first):
            again(t, s, came, block, edge, factor, luck)
            block += 1
            edge += round(came.block) * MICRO
            continue
        if due > play.until or due == NEVER:
            break
        now = due
        while len(ends) > 0 and ends[0][0] == now:
            _, number, job = heappop(ends)
            if s.number[job] == number:
                s.counts[NEWS] += 1
                leave(t, s, job)
                if job < len(here.kind):
                    s.counts[LAST] = job
        while arrived < len(s.came) and s.came[arrived] == now:
            s.counts[NEWS] += 1
            if arrived < len(here.kind) and here.since[arrived] >= 0:
                whole = run_of(s, lasting, shared, luck, arrived)
                begin(s, ends, arrived, now, max(whole - (now - here.since[arrived]), MICRO))
            else:
                push(t, s, arrived)
            arrived += 1
        if look == now:
            look = NEVER
            s.counts[DUE] = 0
            release(t, s)
        look = notice(t, s, look, now)
        while s.counts[ACTIVE] > 0 and s.counts[SUSPICIOUS] == 0:
            cycle(t, s, here, lasting, shared, luck, ends, now)
            look = notice(t, s, look, now)
        if s.counts[UNSEEN] == 0:
            break
    return s


def again(t: Terms, s: State, came: Came, block: int, start: int, factor: float, luck: list[int]) -> None:
    """Add arrivals of the past as those of a block of the future, which starts at a moment."""
    first, last = came.first[block], came.first[block + 1]
    if first == last:
        return
    source = came.source[first + int(uniform(luck) * (last - first))]
    place = not_below(came.at, 0, len(came.at), source)
    while place < len(came.at) and came.at[place] < source + came.block:
        times, request = int(factor + uniform(luck)), came.request[place]
        if came.kind[request] != NOBODY:
            for _ in range(times):
                add(s, came.kind[request], came.prospect[request], start + int((came.at[place] - source) * MICRO))
        place += 1


def add(s: State, kind: int, prospect: int, at: int) -> None:
    """Add a job that comes at a moment."""
    s.kind.append(kind)
    s.prospect.append(prospect)
    s.came.append(at)
    s.place.append(len(s.place))
    s.number.append(0)
    s.blamed.append(0)
    s.blamed_at.append(0)
    s.run.append(-1)
    s.since.append(-1)
    s.first.append(-1)
    s.cause.append(NOBODY)
    s.behind.append(NOBODY)
    s.older.append(NOBODY)
    s.newer.append(NOBODY)


def new_state(t: Terms, here: Here, now: int) -> State:
    """Return the state at the beginning: those who run are counted, nobody has arrived."""
    s = lists(t, here, now)
    s.counts[LAST] = NOBODY
    for job in range(len(here.kind)):
        s.counts[UNSEEN] += here.watched[job]
        if here.since[job] >= 0:
            hold(t, s, job, here.since[job])
            give(s, t.kind_queue[s.kind[job]], t.kind_amount[s.kind[job]])
    return s


def lists(t: Terms, here: Here, now: int) -> State:
    """Return the state before anybody is counted."""
    jobs, kinds, queues = len(here.kind), len(t.kind_queue), len(t.nominal)
    return State(
        [here.kind[job] for job in range(jobs)],
        [here.prospect[job] for job in range(jobs)],
        [now for _ in range(jobs)],
        [here.place[job] for job in range(jobs)],
        [-1 for _ in range(jobs)],
        [-1 for _ in range(jobs)],
        [0 for _ in range(jobs)],
        [-1 for _ in range(jobs)],
        [-1 for _ in range(jobs)],
        [-1 for _ in range(jobs)],
        [-1 for _ in range(jobs)],
        [-1 for _ in range(jobs)],
        [0 for _ in range(jobs)],
        [0 for _ in range(jobs)],
        [-1 for _ in range(kinds)],
        [-1 for _ in range(kinds)],
        [0 for _ in range(kinds)],
        [0 for _ in range(kinds)],
        [0 for _ in range(queues)],
        [-1 for _ in range(queues)],
        [0 for _ in range(queues)],
        [-1 for _ in range(queues)],
        [-1 for _ in range(queues)],
        [-1 for _ in range(queues)],
        [0.0 for _ in range(queues)],
        [0 for _ in range(0)],
        [0 for _ in range(COUNTS)],
    )


def many(  # noqa: PLR0913, PLR0917 -- tables by place, for Numba
    t: Terms,
    here: Here,
    lasting: Lasting,
    came: Came,
    play: Play,
    seeds: Sequence[int],
    asked: Sequence[int],
    first: list[int],
    cause: list[int],
) -> None:
    """Play futures, two seeds each, and put when the asked jobs start, and after whom, into `first` and `cause`.

    -1 is for one that does not start, -2 where jobs may preempt one another without end.
    """
    for number in range(len(seeds) // 2):
        luck = [seeds[2 * number], seeds[2 * number + 1]]
        s = future(t, here, lasting, came, play, luck)
        for place in range(len(asked)):
            first[number * len(asked) + place] = -2 if s.counts[SUSPICIOUS] else s.first[asked[place]]
            cause[number * len(asked) + place] = s.cause[asked[place]]
