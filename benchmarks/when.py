"""How good are estimates of starts? A trace is replayed, and estimates are made with what was known then.

`make bench-when TRACE=philly.csv` prints the table of docs/when.md. The truth is the replay of the trace. Estimates
are made at submission for jobs that do not start at once, at 60 s, and at each full hour at which they still wait; all
jobs of a moment share its futures. They are kept in a file for each size, and a run that was ended goes on from there.
`--every 4` takes each fourth submission, with all of its estimates; `--hours 6` each sixth full hour. The second half
of the trace is scored; a week before it gives outcomes to recalibrate with.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from bisect import bisect_left, bisect_right
from itertools import chain, zip_longest
from math import inf
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Final, NamedTuple

from benchmarks.plots import picture
from benchmarks.when_score import PARTS, Kept, table
from taskgov.advice.candidates import Candidate, terms_of
from taskgov.advice.past import uses
from taskgov.advice.playing import FLAVOR, setting_of
from taskgov.advice.rules import Rule
from taskgov.estimates.all_waiting import FUTURES
from taskgov.estimates.arrivals import Past as Arrivals
from taskgov.estimates.batches import batches, size_class
from taskgov.estimates.drawing import Drawing, waits_of_each
from taskgov.estimates.quantiles import quantile
from taskgov.estimates.queue_now import Present, Scene
from taskgov.estimates.requests import Arrival, Ran, Request, alike, of_another_batch
from taskgov.estimates.run_times import RunTimes
from taskgov.futures import Held, Job, Jobs, accepts, replay
from taskgov.hyperpod.names import cluster_queue_of, local_queue_of, namespace_of
from taskgov.quantities import GPU
from taskgov.scheduling.instants import SECOND
from taskgov.scheduling.objects import Admission, PodSet, PodSetAdmission, Workload
from taskgov.services.estimate_starts import READ_DAYS
from taskgov_cli.advise_reading import basis_of_use, past_of
from taskgov_cli.replay_traces import read_trace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from taskgov.advice.past import Past, Piece
    from taskgov.estimates.arrivals import Coming
    from taskgov.futures import Setting, Stay

HOUR: Final = 3600.0
DAY: Final = 86400.0
FRESH: Final = 600.0
"""Laws and arrivals are those of the last full ten minutes: what ended since is not used yet."""
KNOWN: Final = ("none", "near", "running", "waiting", "all")
"""Jobs whose true run times are given to the estimates: this shows what their errors come from. With `near` these are
the jobs that come after the moment: how long jobs run is then known from both sides of the queue."""
WAITING: Final = 250
"""The futures of a moment at which so many wait are timed."""


class Truth:
    """The replay of a trace: who ran from when to when, and what was known of it at a moment."""

    def __init__(self, past: Past, setting: Setting, known: str = "none") -> None:
        """Replay all of it. Raises ValueError for a trace that the fast replay does not follow.

        `known`: whose true run times the estimates use (`KNOWN`).
        """
        self.pieces, self.setting, self.known = past.pieces, setting, known
        self.works = [_workload(piece, f"j{place}", f"{place:08}") for place, piece in enumerate(past.pieces)]
        jobs = Jobs(
            Job(work, work.created, round(piece.run_time * SECOND))
            for work, piece in zip(self.works, past.pieces, strict=True)
        )
        if reasons := accepts(setting, jobs):
            raise ValueError(f"the fast replay does not follow this: {', '.join(reasons)}")
        found = replay(setting, jobs)
        if found.loop:
            raise ValueError("jobs of the trace preempt one another without end under these quotas")
        self.stays: list[Stay] = sorted(found.stays, key=lambda stay: (stay.start, stay.job))
        self._starts = [stay.start for stay in self.stays]
        self.first = {job: start / SECOND for job, start in found.first().items()}
        self.of_job: dict[int, list[Stay]] = {}
        for stay in self.stays:
            self.of_job.setdefault(stay.job, []).append(stay)
        self._arrivals = [piece.arrival for piece in self.pieces]
        self.requests = [Request(piece.team, piece.gpus) for piece in self.pieces]
        self._batch = batches([(alike(one), at) for one, at in zip(self.requests, self._arrivals, strict=True)])
        self._members: dict[int, list[float]] = {}
        """When the jobs of each batch came."""
        for batch, at in zip(self._batch, self._arrivals, strict=True):
            self._members.setdefault(batch, []).append(at)
        self._final = [self._request(job, inf) for job in range(len(self.pieces))]
        self._ran: dict[int, Ran] = {}
        self._over = [inf] * len(self.pieces)
        for job, stays in self.of_job.items():
            last = stays[-1]
            self._over[job] = inf if last.preempted or last.end is None else last.end
        self._next, self._there = 0, list[int]()
        self._at = -inf
        self.waits: dict[str, list[tuple[float, float]]] = {}
        for job, start in sorted(self.first.items(), key=lambda pair: pair[1]):
            piece = self.pieces[job]
            self.waits.setdefault(piece.team, []).append((start, start - piece.arrival))

    def request(self, job: int, at: float) -> Request:
        """Return the request of a job as it is known at a moment: with as many jobs of its batch as have come."""
        return self._final[job] if self._members[self._batch[job]][-1] <= at else self._request(job, at)

    def _request(self, job: int, at: float) -> Request:
        return self.requests[job]._replace(
            size=size_class(max(bisect_right(self._members[self._batch[job]], at), 1)), batch=self._batch[job] + 1
        )

    def waiting(self, first: float, last: float) -> list[int]:
        """Return the jobs that came between two moments and did not start at once."""
        places = range(bisect_left(self._arrivals, first), bisect_left(self._arrivals, last))
        return [job for job in places if self.first.get(job, inf) > self._arrivals[job] + 1e-3]

    def came_by(self, at: float) -> int:
        """Return how many jobs had come by a moment."""
        return bisect_right(self._arrivals, at)

    def scene(self, at: float) -> tuple[list[int], Scene]:
        """Return who is there at a moment, and the queue as it is."""
        now = round(at * SECOND)
        if at < self._at:
            self._next, self._there = 0, []
        self._at = at
        came = bisect_right(self._arrivals, at)
        self._there = [job for job in (*self._there, *range(self._next, came)) if self._over[job] > now]
        self._next = came
        present = [self._present(job, self.of_job.get(job, ()), now) for job in self._there]
        return list(self._there), Scene(now, self.setting, present, _newcomer)

    def _present(self, job: int, stays: Sequence[Stay], now: int) -> Present:
        piece, held, ran = self.pieces[job], None, 0.0
        for stay in stays:
            if stay.start > now:
                break
            end = now if stay.end is None else min(stay.end, now)
            ran = max(ran, (end - stay.start) / SECOND)
            if stay.end is None or stay.end > now:
                usage = PodSetAdmission("main", 1, {GPU: FLAVOR}, {GPU: piece.gpus})
                held = Held(Admission(cluster_queue_of(piece.team), (usage,)), stay.start)
        is_known = self.known in {"all", "waiting" if held is None else "running"}
        request = self.request(job, now / SECOND)
        return Present(self.works[job], request, held, ran, piece.run_time if is_known else None)

    def history(self, at: float) -> list[Ran]:
        """Return how long the jobs of the last 28 days ran, as in an account: each by its last stay."""
        now, found = round(at * SECOND), dict[int, Ran]()
        first = bisect_left(self._starts, now - round(READ_DAYS.total_seconds() * SECOND))
        for number in range(first, bisect_right(self._starts, now)):
            stay = self.stays[number]
            ended = stay.end is not None and stay.end <= now
            ran = self._ran.get(number) if ended else None
            if ran is None:
                end = stay.end if ended and stay.end is not None else now
                request, start = self.request(stay.job, at), stay.start / SECOND
                ran = Ran(request, start, end / SECOND - start, ended and not stay.preempted)
                if ended and request is self._final[stay.job]:
                    self._ran[number] = ran
            found[stay.job] = ran
        return self._with_next(found.values(), at) if self.known == "near" else list(found.values())

    def _with_next(self, past: Iterable[Ran], at: float) -> list[Ran]:
        """Return jobs that come next and those that ran last in turn, as if this was the order of their starts."""
        came, back = self.came_by(at), sorted(past, key=lambda ran: ran.started, reverse=True)
        coming = zip(self.requests[came : came + len(back)], self.pieces[came:], strict=False)
        ahead = [Ran(request, at, piece.run_time, ended=True) for request, piece in coming]
        mixed = chain.from_iterable(zip_longest(ahead, back))
        return [ran._replace(started=at - place) for place, ran in enumerate(ran for ran in mixed if ran is not None)]

    def arrivals(self, at: float) -> Arrivals:
        """Return who came in the 22 days before a moment: 14, and 7 for those of futures a week ahead."""
        places = range(bisect_left(self._arrivals, at - 22 * DAY), bisect_right(self._arrivals, at))
        return Arrivals(
            [Arrival(of_another_batch(self.request(job, at)), self._arrivals[job]) for job in places], at, ((0.0, at),)
        )

    def simple(self, job: int, at: float, ahead: int) -> tuple[float, float, float]:
        """Return three simple estimates of how long a job still waits: mean of 20, median of 100, position x rate.

        `ahead` is how many of its team wait up to it.
        """
        team, waited = self.pieces[job].team, at - self.pieces[job].arrival
        past = self.waits.get(team, [])
        place = bisect_right(past, (at, inf))
        known = past[max(0, place - 100) : place]
        recent = [wait for _, wait in known] or [0.0]
        rate = (at - known[0][0]) / len(known) if known else 0.0
        return max(0.0, fmean(recent[-20:]) - waited), max(0.0, median(recent) - waited), ahead * rate


def _workload(piece: Piece, name: str, uid: str) -> Workload:
    return _named(piece.team, piece.gpus, piece.priority, name, uid, round(piece.arrival * SECOND))


def _newcomer(coming: Coming, number: int, at: int) -> Workload:
    return _named(coming.request.team, coming.request.gpus, 0, f"n{number}", f"n{number:07}", at)


def _named(team: str, gpus: int, priority: int, name: str, uid: str, at: int) -> Workload:
    pods = PodSet("main", 1, ((GPU, gpus),))
    return Workload(namespace_of(team), name, local_queue_of(team), (pods,), priority=priority, created=at, uid=uid)


class Moment(NamedTuple):
    """When estimates are made, and of which jobs; `number` 0 is at submission, 1 after 60 s, 2 at a full hour."""

    at: float
    jobs: dict[int, int]
    """Job -> number."""


def moments(truth: Truth, jobs: Sequence[int]) -> list[Moment]:
    """Return when estimates of jobs are made: at submission, after 60 s, and at each full hour at which they wait."""
    found: dict[float, dict[int, int]] = {}
    end = truth.pieces[-1].arrival
    for job in jobs:
        came, start = truth.pieces[job].arrival, min(truth.first.get(job, inf), end + 1)
        hours = range(int((came + 60) // HOUR) + 1, int(-(-start // HOUR)))
        for number, at in ((0, came), (1, came + 60), *((2, hour * HOUR) for hour in hours)):
            if at < start:
                found.setdefault(at, {})[job] = number
    return [Moment(at, found[at]) for at in sorted(found)]


def estimates(
    truth: Truth, looks: Sequence[Moment], seed: int, drawing: Drawing, *, fresh: float = FRESH
) -> Iterator[list[Kept]]:
    """Give the estimates of each moment."""
    made, run_times, past = -inf, RunTimes(()), Arrivals((), 0.0)
    for look in looks:
        if look.at // fresh * fresh != made:
            made = look.at // fresh * fresh
            run_times, past = RunTimes(truth.history(made)), truth.arrivals(made)
        jobs, scene = truth.scene(look.at)
        place = {job: number for number, job in enumerate(jobs)}
        chance = random.Random(f"{seed} {look.at}")
        asked = sorted(look.jobs)
        begun = time.process_time()
        waits = waits_of_each(scene, [place[job] for job in asked], run_times, past.later(look.at), chance, drawing)
        took = time.process_time() - begun
        waiting: dict[str, list[int]] = {}
        for job, present in zip(jobs, scene.present, strict=True):
            if present.held is None:
                waiting.setdefault(present.request.team, []).append(job)
        yield [
            Kept(
                at=look.at,
                job=job,
                team=truth.pieces[job].team,
                number=look.jobs[job],
                came=truth.pieces[job].arrival,
                start=truth.first.get(job, inf),
                waits=tuple(round(quantile(own, part), 1) for part in PARTS),
                simple=truth.simple(job, look.at, bisect_right(waiting[truth.pieces[job].team], job)),
                futures=len(own),
                took=took / len(asked),
            )
            for job, own in zip(asked, waits, strict=True)
        ]


def measured(truth: Truth, first: float, last: float, given: argparse.Namespace, file: Path) -> list[Kept]:
    """Return the estimates of submissions between two moments, and of a week before; what is in the file is not redone.

    At the end of the file is the last moment that is complete.
    """
    jobs = truth.waiting(first - 7 * DAY, last)[:: given.every]
    looks = [look for look in moments(truth, jobs) if look.at % HOUR or look.at // HOUR % given.hours == 0]
    known = [Kept.read(line) for line in file.read_text().splitlines()] if file.exists() else []
    done = known[-1].at if known else -inf
    left = [look for look in looks if look.at > done]
    drawing = Drawing(given.futures, given.horizon * DAY)
    with file.open("a") as out:
        for number, kept in enumerate(estimates(truth, left, given.seed, drawing)):
            out.write("".join(f"{json.dumps(one)}\n" for one in kept))
            out.flush()
            known += kept
            if number % max(1, len(left) // 20) == 0:
                out.flush()
                print(f"{file.name}: {number} of {len(left)} moments, {time.process_time():.0f} s", file=sys.stderr)
    return known


def timed(truth: Truth, first: float, last: float, count: int) -> str:
    """Return the processor time of futures at the first full hour after which at least `WAITING` jobs wait."""
    starts = sorted(truth.first.values())
    hours = (hour * HOUR for hour in range(int(first // HOUR) + 1, int(last // HOUR)))
    at = next((at for at in hours if truth.came_by(at) - bisect_right(starts, at) >= WAITING), None)
    if at is None:
        return f"never {WAITING} jobs wait"
    _, scene = truth.scene(at)
    waiting = [place for place, present in enumerate(scene.present) if present.held is None]
    run_times, past = RunTimes(truth.history(at)), truth.arrivals(at)
    took = []
    for watched in (waiting[-1:], waiting):
        begun = time.process_time()
        waits_of_each(scene, watched, run_times, past, random.Random(1), Drawing(count))
        took.append(time.process_time() - begun)
    return f"{took[0]:.1f} s for the last of {len(waiting)}, {took[1]:.1f} s for all"


def main() -> None:
    """Print a table for each size."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("trace", type=Path)
    options.add_argument("--gpus", default="600,800")
    options.add_argument("--limit", type=int, default=100, help="borrow limit of everybody, in percent")
    options.add_argument(
        "--batch", type=int, default=60, help="seconds for which freed quota is gathered before jobs are reconsidered"
    )
    options.add_argument("--half", choices=("first", "second"), default="second")
    options.add_argument("--every", type=int, default=1, help="take one of so many submissions, with all its estimates")
    options.add_argument("--hours", type=int, default=1, help="estimate at one of so many full hours")
    options.add_argument("--futures", type=int, default=FUTURES)
    options.add_argument("--known", choices=KNOWN, default="none", help="jobs whose true run times are known")
    options.add_argument("--horizon", type=float, default=7.0, help="days")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--keep", type=Path, default=Path(".when"), help="folder of the estimates that are made")
    options.add_argument("--plot", type=picture, metavar="FILE", help="draw it (SVG, PNG or PDF; needs matplotlib)")
    given = options.parse_args()
    sizes: list[tuple[int, list[Kept], float]] = []
    given.keep.mkdir(parents=True, exist_ok=True)
    past = past_of(read_trace(given.trace))
    for gpus in map(int, given.gpus.split(",")):
        use = uses(past.pieces, 0.0, past.end)
        terms = terms_of(Candidate(Rule.TODAY, given.limit), use, basis_of_use(past.teams, gpus, use))
        truth, end = Truth(past, setting_of(terms, given.batch), given.known), past.pieces[-1].arrival
        first, last = (end / 2, end) if given.half == "second" else (end / 8, end / 2)
        name = f"{given.half}-{gpus}-{given.every}-{given.hours}-{given.futures}-{given.seed}"
        file = given.keep / (f"{name}.jsonl" if given.known == "none" else f"{name}-{given.known}.jsonl")
        begun = time.process_time()
        known = measured(truth, first, last, given, file)
        took = time.process_time() - begun
        for line in table(f"{gpus} GPUs", known, first, timed(truth, first, last, 100)):
            print(line, flush=True)
        print(f"{given.futures} futures for each moment; {took:.0f} s of CPU in this run\n", flush=True)
        sizes.append((gpus, known, first))
    if given.plot is not None:
        from benchmarks.when_plot import plot  # noqa: PLC0415 - matplotlib is there only where plots are drawn

        plot(f"Estimates of starts on {given.trace.stem}", sizes, given.plot)


if __name__ == "__main__":
    main()
