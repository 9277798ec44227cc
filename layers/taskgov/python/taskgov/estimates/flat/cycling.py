"""One scheduling cycle, with one head of each queue (`taskgov.futures.cycling`), on lists of numbers."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappush
from typing import TYPE_CHECKING, Final

from taskgov.estimates.flat.luck import normal, seconds_of
from taskgov.estimates.flat.standing import (
    DUE,
    LAST,
    NEWS,
    NOBODY,
    NUMBER,
    SUSPICIOUS,
    TIMES,
    UNSEEN,
    available,
    give,
    head_of,
    hold,
    leave,
    mark,
    push,
    release,
    share_at,
    take_out,
)
from taskgov.estimates.flat.taking import finds_victims, give_back

if TYPE_CHECKING:
    from taskgov.estimates.flat.standing import State
    from taskgov.estimates.flat.tables import Here, Lasting, Terms

MICRO: Final = 1_000_000

Ends = list[tuple[int, int, int]]
Entry = tuple[int, int, int]
"""A job, and its victims in `taken`: from where, to where."""


def notice(t: Terms, s: State, look: int, now: int) -> int:
    """Reconsider the tree, since room was freed: at once, or when its batch is due. Return when that is."""
    if t.batch == 0:
        release(t, s)
    elif not s.counts[DUE]:
        s.counts[DUE] = 1
        return now + t.batch
    return look


@dataclass(frozen=True, slots=True)
class Lots:
    """The source of one future's run times."""

    lasting: Lasting
    shared: list[float]
    """The number that the run times of each group share."""
    batch: list[int]
    """The batch of each group that drew last."""
    luck: list[float]


def cycle(t: Terms, s: State, here: Here, lots: Lots, ends: Ends, now: int) -> None:
    """Process one head of each queue: admit, preempt, or mark as inadmissible."""
    entries = nominated(t, s)
    if len(entries) == 0:
        return
    if len(entries) > 1:
        entries = in_order(t, s, here, entries)
    held: list[int] = []
    gone: list[int] = []
    is_first = True
    for job, start, end in entries:
        kind = s.kind[job]
        queue, amount = t.kind_queue[kind], t.kind_amount[kind]
        if not (is_first or fits_after(t, s, job, gone, start, end)):
            push(t, s, job)
        elif start == end:
            admit(t, s, job, now)
            begin(s, ends, job, now, run_of(s, lots, job))
            if s.first[job] < 0:
                s.first[job], s.cause[job] = now, s.counts[LAST]
                s.counts[UNSEEN] -= here.watched[job] if job < len(here.kind) else 0
        else:
            gone += s.taken[start:end]
            give(s, queue, amount)
            held.append(job)
            s.sticky[queue] = job
            push(t, s, job)
        is_first = False
    for job in held:
        kind = s.kind[job]
        give(s, t.kind_queue[kind], -t.kind_amount[kind])
    for job in gone:
        preempt(t, s, job)


def nominated(t: Terms, s: State) -> list[Entry]:
    """Take the head of each queue that can be admitted, perhaps after preemption. The kinds of others are marked."""
    s.taken.clear()
    entries: list[Entry] = []
    for queue, active in enumerate(s.active):
        if active > 0:
            job = head_of(t, s, queue)
            kind = s.kind[job]
            amount, start = t.kind_amount[kind], len(s.taken)
            if t.kind_never[kind] or (amount > 0 and amount > available(t, s, queue) and not finds_victims(t, s, job)):
                mark(t, s, kind)
            else:
                take_out(t, s, job)
                entries.append((job, start, len(s.taken)))
    return entries


def in_order(t: Terms, s: State, here: Here, entries: list[Entry]) -> list[Entry]:
    """Return entries in the order of a cycle.

    First those whose queue would not borrow, then by the queue's share with them, priority, creation and door.
    """
    ranked = []
    for entry in entries:
        job, _, _ = entry
        kind = s.kind[job]
        queue, amount = t.kind_queue[kind], t.kind_amount[kind]
        used = s.used[queue] + amount
        borrows = amount > 0 and used > t.nominal[queue]
        created = here.created[job] if job < len(here.kind) else s.came[job]
        ranked.append((borrows, share_at(t, queue, used), -t.kind_priority[kind], created, t.door[queue], entry))
    return [entry for *_, entry in sorted(ranked)]


def fits_after(t: Terms, s: State, job: int, gone: list[int], start: int, end: int) -> bool:
    """Return whether a job fits without its victims and those of earlier entries. No victim may be in both."""
    if start == end and len(gone) == 0:
        kind = s.kind[job]
        amount = t.kind_amount[kind]
        return amount <= 0 or amount <= available(t, s, t.kind_queue[kind])
    for place in range(start, end):
        for other in gone:
            if other == s.taken[place]:
                return False
    kind = s.kind[job]
    queue, amount = t.kind_queue[kind], t.kind_amount[kind]
    for other in gone:
        give(s, t.kind_queue[s.kind[other]], -t.kind_amount[s.kind[other]])
    for place in range(start, end):
        victim = s.kind[s.taken[place]]
        give(s, t.kind_queue[victim], -t.kind_amount[victim])
    fits = amount <= 0 or amount <= available(t, s, queue)
    for other in gone:
        give_back(t, s, other)
    for place in range(start, end):
        give_back(t, s, s.taken[place])
    return fits


def preempt(t: Terms, s: State, job: int) -> None:
    """Preempt a job. It joins its queue again with its original age, and restarts."""
    leave(t, s, job)
    if s.blamed_at[job] != s.counts[NEWS]:
        s.blamed[job] = 0
        s.blamed_at[job] = s.counts[NEWS]
    s.blamed[job] += 1
    if s.blamed[job] >= TIMES:
        s.counts[SUSPICIOUS] = 1
    push(t, s, job)


def begin(s: State, ends: Ends, job: int, now: int, run_time: int) -> None:
    """Record when a job that starts now will end."""
    s.counts[NUMBER] += 1
    s.number[job] = s.counts[NUMBER]
    heappush(ends, (now + run_time, s.counts[NUMBER], job))


def admit(t: Terms, s: State, job: int, now: int) -> None:
    """Admit a job."""
    kind = s.kind[job]
    queue = t.kind_queue[kind]
    give(s, queue, t.kind_amount[kind])
    if s.sticky[queue] == job:
        s.sticky[queue] = NOBODY
    hold(t, s, job, now)


def run_of(s: State, lots: Lots, job: int) -> int:
    """Return the total run time of a job, in microseconds. It is drawn at the first start."""
    if s.run[job] < 0:
        lasting, prospect = lots.lasting, s.prospect[job]
        seconds = lasting.fixed[prospect]
        if seconds < 0:
            group = lasting.group[prospect]
            same = lots.batch[group] == s.batch[job]
            keeps, adds = (lasting.within, lasting.within_adds) if same else (lasting.between, lasting.between_adds)
            lots.shared[group] = keeps * lots.shared[group] + adds * normal(lots.luck)
            lots.batch[group] = s.batch[job]
            seconds = seconds_of(lasting, prospect, lots.shared[group], lots.luck)
        s.run[job] = max(round(seconds * MICRO), MICRO)
    return s.run[job]
