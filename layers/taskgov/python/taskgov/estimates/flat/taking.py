"""The search for victims under fair sharing (`taskgov.futures.fair_taking`), on lists of numbers.

A search leaves all usage unchanged. Victims are appended to `State.taken`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskgov.estimates.flat.standing import NOBODY, available, give, share_at, share_of

if TYPE_CHECKING:
    from taskgov.estimates.flat.standing import State
    from taskgov.estimates.flat.tables import Terms


def finds_victims(t: Terms, s: State, job: int) -> bool:
    """Return whether preemption makes room for a job, and append the victims to `taken`."""
    kind = s.kind[job]
    queue, amount, priority = t.kind_queue[kind], t.kind_amount[kind], t.kind_priority[kind]
    own, used = own_candidate(t, s, s.newest[queue], queue, priority), s.used[queue] + amount
    if own == NOBODY and (t.alone or used > t.most[queue]):
        return False
    within = used <= t.nominal[queue]
    if own == NOBODY and not some_queue_gives(t, s, queue, 0.0 if within else share_at(t, queue, used)):
        return False
    give(s, queue, amount)
    open_line(t, s, queue, own)
    start = len(s.taken)
    done = first_pass(t, s, job, within) or (t.second and second_pass(t, s, job))
    give(s, queue, -amount)
    if done:
        fill_back(t, s, job, start)
        return True
    for place in range(start, len(s.taken)):
        give_back(t, s, s.taken[place])
    del s.taken[start:]
    return False


def own_candidate(t: Terms, s: State, other: int, queue: int, priority: int) -> int:
    """Return a job of the preemptor's own queue if it may be preempted, otherwise none."""
    if other == NOBODY or not t.within[queue] or t.kind_priority[s.kind[other]] >= priority:
        return NOBODY
    return other


def some_queue_gives(t: Terms, s: State, queue: int, least: float) -> bool:
    """Return whether another queue that borrows has at least this share: otherwise, nobody can be preempted."""
    nominal, newest = t.nominal, s.newest
    for other, used in enumerate(s.used):
        if used > nominal[other] and other != queue and newest[other] != NOBODY:  # noqa: SIM102 -- rarely so far
            if share_at(t, other, used) >= least:
                return True
    return False


def open_line(t: Terms, s: State, queue: int, own: int) -> None:
    """Record the first candidate of each queue that may lose jobs."""
    for other, used in enumerate(s.used):
        s.at[other] = s.refused[other] = NOBODY
        if other == queue:
            s.at[other] = own
        elif used > t.nominal[other] and not t.alone and s.newest[other] != NOBODY:
            s.at[other] = s.newest[other]
            s.share[other] = share_at(t, other, used)


def next_queue(t: Terms, s: State, queue: int) -> int:
    """Return the queue of the next candidate: the one with the greatest share, the preemptor's own last."""
    best = NOBODY
    for other, candidate in enumerate(s.at):
        if candidate != NOBODY and (best == NOBODY or is_before(t, s, other, best, queue, s.at)):
            best = other
    return best


def is_before(t: Terms, s: State, first_queue: int, other: int, queue: int, at: list[int]) -> bool:
    """Return whether a queue loses jobs before another: by share, then by their candidates."""
    if s.share[first_queue] != s.share[other]:
        return s.share[first_queue] > s.share[other]
    if (first_queue == queue) != (other == queue):
        return other == queue
    mine, theirs = at[first_queue], at[other]
    first, second = t.kind_priority[s.kind[mine]], t.kind_priority[s.kind[theirs]]
    if first != second:
        return first < second
    if s.since[mine] != s.since[theirs]:
        return s.since[mine] > s.since[theirs]
    return s.place[mine] < s.place[theirs]


def first_pass(t: Terms, s: State, job: int, within: bool) -> bool:  # noqa: FBT001 -- asked most of all: a keyword costs as much again
    """Apply the first strategy until the job fits."""
    kind = s.kind[job]
    queue, amount, priority = t.kind_queue[kind], t.kind_amount[kind], t.kind_priority[kind]
    mine = s.share[queue] = share_of(t, s, queue)
    target = next_queue(t, s, queue)
    while target != NOBODY:
        taken = True
        if target == queue or within:
            take(t, s, target)
            mine = share_of(t, s, queue)
        elif s.share[target] < mine:
            return False
        else:
            taken = take_first_allowed(t, s, target, mine)
        if target == queue:
            s.at[target] = own_candidate(t, s, s.at[target], queue, priority)
        elif s.used[target] <= t.nominal[target]:
            s.at[target] = NOBODY
        s.share[target] = share_of(t, s, target)
        if taken and fits_beside(t, s, queue, amount):
            return True
        target = next_queue(t, s, queue)
    return False


def take(t: Terms, s: State, target: int) -> None:
    """Preempt the next candidate of a queue."""
    victim = s.at[target]
    s.at[target] = s.older[victim]
    give(s, target, -t.kind_amount[s.kind[victim]])
    s.taken.append(victim)


def take_first_allowed(t: Terms, s: State, target: int, mine: float) -> bool:
    """Preempt the first candidate of a queue that the first strategy allows."""
    job, too_much = s.at[target], 0
    """If a candidate is refused, so are those that hold as much or more: the share after them is not greater."""
    while job != NOBODY:
        held = t.kind_amount[s.kind[job]]
        if held < too_much or not too_much:
            if mine <= share_at(t, target, s.used[target] - held) if t.final else mine < s.share[target]:
                s.at[target] = job
                take(t, s, target)
                return True
            too_much = held
        if s.refused[target] == NOBODY:
            s.refused[target] = job
        job = s.older[job]
    s.at[target] = NOBODY
    return False


def second_pass(t: Terms, s: State, job: int) -> bool:
    """Try the first refused candidate of each queue again, with its queue's present share."""
    queue, amount = t.kind_queue[s.kind[job]], t.kind_amount[s.kind[job]]
    mine = share_of(t, s, queue)
    for other in range(len(t.nominal)):
        if s.used[other] <= t.nominal[other]:
            s.refused[other] = NOBODY
        s.share[other] = share_of(t, s, other)
    while True:
        best = NOBODY
        for other in range(len(t.nominal)):
            waits = s.refused[other] != NOBODY
            if waits and (best == NOBODY or is_before(t, s, other, best, NOBODY, s.refused)):
                best = other
        if best == NOBODY or mine >= s.share[best]:
            return False
        s.at[best] = s.refused[best]
        s.refused[best] = NOBODY
        take(t, s, best)
        if fits_beside(t, s, queue, amount):
            return True


def fits_beside(t: Terms, s: State, queue: int, amount: int) -> bool:
    """Return whether an amount fits that is already counted."""
    give(s, queue, -amount)
    fits = amount <= 0 or amount <= available(t, s, queue)
    give(s, queue, amount)
    return fits


def give_back(t: Terms, s: State, victim: int) -> None:
    """Count a victim again."""
    kind = s.kind[victim]
    give(s, t.kind_queue[kind], t.kind_amount[kind])


def fill_back(t: Terms, s: State, job: int, start: int) -> None:
    """Restore victims, from the last but one to the first, if the job still fits. Count all of them again."""
    kind = s.kind[job]
    queue, amount = t.kind_queue[kind], t.kind_amount[kind]
    for place in range(len(s.taken) - 2, start - 1, -1):
        victim = s.taken[place]
        give_back(t, s, victim)
        if amount <= available(t, s, queue):
            s.taken[place] = s.taken[len(s.taken) - 1]
            s.taken.pop()
        else:
            give(s, t.kind_queue[s.kind[victim]], -t.kind_amount[s.kind[victim]])
    for place in range(start, len(s.taken)):
        give_back(t, s, s.taken[place])
