"""The state of a future: running jobs, waiting jobs and usage. Jobs, kinds and queues are list indexes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from taskgov.estimates.flat.tables import Terms

NOBODY: Final = -1
USED: Final = 0
NUMBER: Final = 1
ACTIVE: Final = 2
NOTIFIED: Final = 3
DUE: Final = 4
NEWS: Final = 5
UNSEEN: Final = 6
SUSPICIOUS: Final = 7
LAST: Final = 8
COUNTS: Final = 9
TIMES: Final = 8
"""If one job is preempted this often without anything new between, it may be a loop, and the future is abandoned."""
INFINITE: Final = 2.0**600


@dataclass(frozen=True, slots=True)
class State:
    """All mutable state."""

    kind: list[int]
    prospect: list[int]
    batch: list[int]
    came: list[int]
    place: list[int]
    """Rank by UID."""
    run: list[int]
    """Total run time, in microseconds; -1 before the first start."""
    since: list[int]
    """When it was admitted; -1 if it does not run."""
    number: list[int]
    """Its number among all starts; 0 if it does not run."""
    first: list[int]
    """When it first started; -1 if it has not."""
    cause: list[int]
    """The initial job that had ended last before its first start."""
    behind: list[int]
    """The next job of its kind in the queue."""
    older: list[int]
    """The next job in its queue's order of candidates for preemption."""
    newer: list[int]
    blamed: list[int]
    """How often it was preempted since the last new event, and when that was."""
    blamed_at: list[int]
    head: list[int]
    tail: list[int]
    size: list[int]
    marked: list[int]
    """1 if the jobs of a kind are inadmissible. These kinds are in `out`."""
    out: list[int]
    used: list[int]
    newest: list[int]
    """The first candidate for preemption of each queue."""
    active: list[int]
    sticky: list[int]
    at: list[int]
    """The next candidate of each queue in the search for victims."""
    refused: list[int]
    share: list[float]
    taken: list[int]
    """Victims of all entries of a cycle, one after the other."""
    counts: list[int]


def available(t: Terms, s: State, queue: int) -> int:
    """Return what a queue can still use; negative where it uses too much."""
    own, room = t.most[queue] - s.used[queue], t.capacity - s.counts[USED]
    return own if own < room else room  # noqa: FURB136 -- asked most of all


def share_of(t: Terms, s: State, queue: int) -> float:
    """Return the share of a queue as a comparable number."""
    return share_at(t, queue, s.used[queue])


def share_at(t: Terms, queue: int, used: int) -> float:
    """Return the share of a queue that would use so much."""
    over = used - t.nominal[queue]
    if over <= 0 or t.lendable <= 0:
        return 0.0
    weight = t.weight[queue]
    return 1000.0 * over / t.lendable * INFINITE if weight == 0 else 1000.0 * over / t.lendable / weight


def give(s: State, queue: int, amount: int) -> None:
    """Count usage."""
    s.used[queue] += amount
    s.counts[USED] += amount


def hold(t: Terms, s: State, job: int, now: int) -> None:
    """Add a job to the running jobs of its queue. The caller counts its usage."""
    kind = s.kind[job]
    queue, priority, place = t.kind_queue[kind], t.kind_priority[kind], s.place[job]
    before, after = NOBODY, s.newest[queue]
    while after != NOBODY:
        other = t.kind_priority[s.kind[after]]
        if other > priority:
            break
        if other == priority and (s.since[after] < now or (s.since[after] == now and s.place[after] > place)):
            break
        before, after = after, s.older[after]
    s.newer[job], s.older[job] = before, after
    if before == NOBODY:
        s.newest[queue] = job
    else:
        s.older[before] = job
    if after != NOBODY:
        s.newer[after] = job
    s.since[job] = now


def leave(t: Terms, s: State, job: int) -> None:
    """Free the quota of a job, and mark the tree for another attempt."""
    queue = t.kind_queue[s.kind[job]]
    before, after = s.newer[job], s.older[job]
    if before == NOBODY:
        s.newest[queue] = after
    else:
        s.older[before] = after
    if after != NOBODY:
        s.newer[after] = before
    s.since[job], s.number[job] = -1, 0
    give(s, queue, -t.kind_amount[s.kind[job]])
    s.counts[NOTIFIED] = 1


def push(t: Terms, s: State, job: int) -> None:
    """Add a job to the queue, or to the inadmissible jobs if its kind is marked."""
    kind = s.kind[job]
    if s.head[kind] == NOBODY:
        s.head[kind] = s.tail[kind] = job
        s.behind[job] = NOBODY
    elif job > s.tail[kind]:
        s.behind[s.tail[kind]] = job
        s.behind[job] = NOBODY
        s.tail[kind] = job
    elif job < s.head[kind]:
        s.behind[job] = s.head[kind]
        s.head[kind] = job
    else:
        other = s.head[kind]
        while s.behind[other] < job:
            other = s.behind[other]
        s.behind[job] = s.behind[other]
        s.behind[other] = job
    s.size[kind] += 1
    if not s.marked[kind]:
        s.active[t.kind_queue[kind]] += 1
        s.counts[ACTIVE] += 1


def head_of(t: Terms, s: State, queue: int) -> int:
    """Return the next job of a queue, the sticky one first. At least one job must be active."""
    job = s.sticky[queue]
    if job != NOBODY and s.since[job] < 0 and not s.marked[s.kind[job]]:
        return job
    heads, marked, priorities = s.head, s.marked, t.kind_priority
    job, best = NOBODY, 0
    for kind in range(t.first_kind[queue], t.first_kind[queue + 1]):
        other = heads[kind]
        if other != NOBODY and not marked[kind]:
            priority = priorities[kind]
            if job == NOBODY or priority > best or (priority == best and other < job):
                job, best = other, priority
    return job


def take_out(t: Terms, s: State, job: int) -> None:
    """Take an active job out of the queue."""
    kind = s.kind[job]
    if s.head[kind] == job:
        s.head[kind] = s.behind[job]
    else:
        other = s.head[kind]
        while s.behind[other] != job:
            other = s.behind[other]
        s.behind[other] = s.behind[job]
        if s.tail[kind] == job:
            s.tail[kind] = other
    s.size[kind] -= 1
    s.active[t.kind_queue[kind]] -= 1
    s.counts[ACTIVE] -= 1


def mark(t: Terms, s: State, kind: int) -> None:
    """Make all jobs of an active kind inadmissible until the next attempt, since its first one cannot be admitted."""
    s.marked[kind] = 1
    s.out.append(kind)
    s.active[t.kind_queue[kind]] -= s.size[kind]
    s.counts[ACTIVE] -= s.size[kind]


def release(t: Terms, s: State) -> None:
    """Return inadmissible jobs to the queue."""
    for kind in s.out:
        s.marked[kind] = 0
        s.active[t.kind_queue[kind]] += s.size[kind]
        s.counts[ACTIVE] += s.size[kind]
    s.out.clear()
    s.counts[NOTIFIED] = 0
