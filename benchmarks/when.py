"""How good are estimates of starts? A trace is replayed, and estimates are made with what was known then.

`make bench-when TRACE=philly.csv` prints the table of docs/when.md. The truth is the replay of the trace. Estimates
are made at submission for jobs that do not start at once, at 60 s, and at each hour for which they still wait. The
second half of the trace is scored; some earlier submissions go before it, so that outcomes are there to recalibrate
with. `--sample` takes submissions evenly, and `--looks` as many estimates of each job, where all of them take too long.
"""

from __future__ import annotations

import argparse
import random
import time
from bisect import bisect_left, bisect_right
from math import inf, isfinite
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Final, NamedTuple

from taskgov.advice.candidates import Candidate, terms_of
from taskgov.advice.past import uses
from taskgov.advice.playing import FLAVOR, setting_of
from taskgov.advice.rules import Rule
from taskgov.estimates.arrivals import Past as Arrivals
from taskgov.estimates.drawing import Drawing, Present, Scene, waits_of
from taskgov.estimates.quantiles import estimate_of
from taskgov.estimates.recalibration import Outcome, known, recalibrated
from taskgov.estimates.requests import Arrival, Ran, Request
from taskgov.estimates.run_times import RunTimes
from taskgov.estimates.scoring import Scored, by_team, score
from taskgov.futures import Held, Job, Jobs, accepts, replay
from taskgov.hyperpod.names import cluster_queue_of, local_queue_of, namespace_of
from taskgov.quantities import GPU
from taskgov.scheduling.instants import SECOND
from taskgov.scheduling.objects import Admission, PodSet, PodSetAdmission, Workload
from taskgov_cli.advise_reading import basis_of_use, past_of
from taskgov_cli.replay_traces import read_trace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from taskgov.advice.past import Past, Piece
    from taskgov.estimates.arrivals import Coming
    from taskgov.futures import Setting, Stay

HOUR: Final = 3600.0
COLUMNS: Final = (
    "GPUs",
    "estimates",
    "P50 covers",
    "P90 covers",
    "worst team",
    "within 2x",
    "error",
    "best baseline",
    "ratio",
    "P90/P50",
    "beyond",
    "open",
    "CPU per 100 futures",
    "CPU",
)


class Truth:
    """The replay of a trace: who ran from when to when, and what was known of it at a moment."""

    def __init__(self, past: Past, setting: Setting) -> None:
        """Replay all of it. Raises ValueError for a trace that the fast replay does not follow."""
        self.pieces, self.setting = past.pieces, setting
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
        self.waits: dict[str, list[tuple[float, float]]] = {}
        for job, start in sorted(self.first.items(), key=lambda pair: pair[1]):
            piece = self.pieces[job]
            self.waits.setdefault(piece.team, []).append((start, start - piece.arrival))

    def waiting(self, first: float, last: float) -> list[int]:
        """Return the jobs that came between two moments and did not start at once."""
        places = range(bisect_left(self._arrivals, first), bisect_left(self._arrivals, last))
        return [job for job in places if self.first.get(job, inf) > self._arrivals[job] + 1e-3]

    def scene(self, at: float) -> tuple[list[int], Scene]:
        """Return who is there at a moment, and the queue as it is."""
        now = round(at * SECOND)
        jobs, present = [], []
        for job in range(bisect_right(self._arrivals, at)):
            stays = self.of_job.get(job, ())
            if stays and not stays[-1].preempted and stays[-1].end is not None and stays[-1].end <= now:
                continue
            jobs.append(job)
            present.append(self._present(job, stays, now))
        return jobs, Scene(now, self.setting, present, _newcomer)

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
        return Present(self.works[job], Request(piece.team, piece.gpus), held, ran)

    def history(self, at: float, last: int = 4000) -> list[Ran]:
        """Return how long the last jobs ran, as it is known at a moment: each job by its last stay."""
        now, found = round(at * SECOND), dict[int, Ran]()
        place = bisect_right(self._starts, now)
        for stay in self.stays[max(0, place - last) : place]:
            piece, over = self.pieces[stay.job], stay.end is not None and stay.end <= now
            end = stay.end if over and stay.end is not None else now
            found[stay.job] = Ran(
                Request(piece.team, piece.gpus),
                stay.start / SECOND,
                (end - stay.start) / SECOND,
                ended=over and not stay.preempted,
            )
        return list(found.values())

    def arrivals(self, at: float) -> Arrivals:
        """Return who came in the 22 days before a moment: 14, and 7 for those of futures a week ahead."""
        span = range(bisect_left(self._arrivals, at - 22 * 86400), bisect_right(self._arrivals, at))
        came = [Arrival(Request(self.pieces[job].team, self.pieces[job].gpus), self._arrivals[job]) for job in span]
        return Arrivals(came, at, ((0.0, at),))

    def baselines(self, job: int, at: float, jobs: Sequence[int], scene: Scene) -> tuple[float, float, float]:
        """Return three simple estimates of how long a job still waits: mean of 20, median of 100, position x rate."""
        team, waited = self.pieces[job].team, at - self.pieces[job].arrival
        past = self.waits.get(team, [])
        place = bisect_right(past, (at, inf))
        recent = [wait for _, wait in past[max(0, place - 100) : place]] or [0.0]
        ahead = sum(
            other <= job and present.held is None
            for other, present in zip(jobs, scene.present, strict=True)
            if present.request.team == team
        )
        started = [start for start, _ in past[max(0, place - 100) : place]]
        rate = (at - started[0]) / len(started) if started else 0.0
        return max(0.0, fmean(recent[-20:]) - waited), max(0.0, median(recent) - waited), ahead * rate


def _workload(piece: Piece, name: str, uid: str) -> Workload:
    return _named(piece.team, piece.gpus, piece.priority, name, uid, round(piece.arrival * SECOND))


def _newcomer(coming: Coming, number: int, at: int) -> Workload:
    return _named(coming.request.team, coming.request.gpus, 0, f"n{number}", f"n{number:07}", at)


def _named(team: str, gpus: int, priority: int, name: str, uid: str, at: int) -> Workload:
    pods = PodSet("main", 1, ((GPU, gpus),))
    return Workload(namespace_of(team), name, local_queue_of(team), (pods,), priority=priority, created=at, uid=uid)


class Look(NamedTuple):
    """When an estimate of which job is made; 0 is at submission."""

    at: float
    job: int
    number: int


def looks_at(truth: Truth, jobs: Sequence[int], most: int) -> Iterator[Look]:
    """Give the looks at jobs: at submission, at 60 s, and at each hour for which they wait, up to `most` each."""
    for job in jobs:
        came, start = truth.pieces[job].arrival, truth.first.get(job, inf)
        for number, after in enumerate((0.0, 60.0, *(hour * HOUR for hour in range(1, most)))[:most]):
            if came + after < start and came + after <= truth.pieces[-1].arrival:
                yield Look(came + after, job, number)


def evenly(jobs: Sequence[int], count: int) -> list[int]:
    """Return so many of the jobs, evenly."""
    if count >= len(jobs):
        return list(jobs)
    return [jobs[(2 * place + 1) * len(jobs) // (2 * count)] for place in range(count)]


def measured(truth: Truth, gpus: int, given: argparse.Namespace) -> Iterator[str]:
    """Give the row of a size, then a line for each team with 100 or more estimates."""
    begun = time.process_time()
    end = truth.pieces[-1].arrival
    first, last = (end / 2, end) if given.half == "second" else (end / 8, end / 2)
    warm = evenly(truth.waiting(first - 7 * 86400, first), given.warm)
    chosen = evenly(truth.waiting(first, last), given.sample)
    looks = sorted([*looks_at(truth, warm, 1), *looks_at(truth, chosen, given.looks)])
    drawing = Drawing(given.futures, given.horizon * 86400)
    outcomes: list[Outcome] = []
    scored, raw_scored, errors, drawn = list[Scored](), list[Scored](), list[tuple[float, ...]](), [0, 0.0]
    for look in looks:
        jobs, scene = truth.scene(look.at)
        chance = random.Random(f"{given.seed} {look.job} {look.number}")
        run_times, past = RunTimes(truth.history(look.at)), truth.arrivals(look.at)
        clock = time.process_time()
        waits = waits_of(scene, jobs.index(look.job), run_times, past, chance, drawing)
        drawn[0] += len(waits)
        drawn[1] += time.process_time() - clock
        raw, team, start = estimate_of(waits), truth.pieces[look.job].team, truth.first.get(look.job, inf)
        estimate, _ = recalibrated(raw, team, known(outcomes, look.at), look.at)
        outcomes.append(Outcome(team, look.at, raw, estimate, start))
        if given.trail:
            print(look, team, round(start - look.at) if start < inf else start, raw, estimate, flush=True)
        if truth.pieces[look.job].arrival < first:
            continue
        waited, started = (start if start < inf else end) - look.at, start < inf
        scored.append(Scored(team, estimate, waited, started, at_submission=look.number == 0))
        raw_scored.append(scored[-1]._replace(estimate=raw))
        if started and isfinite(estimate.half):
            simple = truth.baselines(look.job, look.at, jobs, scene)
            errors.append((abs(estimate.half - waited), *(abs(seconds - waited) for seconds in simple)))
    yield _row(f"{gpus}", scored, errors, drawn[1] / max(drawn[0], 1) * 100, time.process_time() - begun)
    yield _row(f"{gpus}, not recalibrated", raw_scored, [], 0.0, 0.0)
    for team, own in by_team(scored).items():
        yield f"  {team}: {own.number} estimates, P50 covers {own.half:.0%}, P90 covers {own.nine:.0%}"


def _row(
    name: str, scored: Sequence[Scored], errors: Sequence[tuple[float, ...]], per_hundred: float, took: float
) -> str:
    total, teams = score(scored), by_team(scored).values()
    own, *simple = [median(column) for column in zip(*errors, strict=True)] or [total.error, float("nan")]
    best = min(simple)
    cells = (
        name,
        f"{total.number}",
        f"{100 * total.half:.0f} %",
        f"{100 * total.nine:.0f} %",
        f"{100 * min(team.nine for team in teams):.0f} %" if teams else "none with 100",
        f"{100 * total.within:.0f} %",
        f"{own / 60:.0f} min",
        f"{best / 60:.0f} min",
        f"{own / best:.2f}" if best else "n/a",
        f"{total.spread:.1f}",
        f"{total.beyond}",
        f"{total.open}",
        f"{per_hundred:.1f} s",
        f"{took:.0f} s",
    )
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print a row for each size."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("trace", type=Path)
    options.add_argument("--gpus", default="600,800")
    options.add_argument("--limit", type=int, default=100, help="borrow limit of everybody, in percent")
    options.add_argument("--batch", type=int, default=60, help="seconds of freed quota that are gathered for a look")
    options.add_argument("--half", choices=("first", "second"), default="second")
    options.add_argument("--sample", type=int, default=10**9, help="submissions that are scored, evenly")
    options.add_argument("--warm", type=int, default=100, help="submissions of the week before, for recalibration")
    options.add_argument("--looks", type=int, default=10**4, help="estimates of each job: 1 is at submission only")
    options.add_argument("--futures", type=int, default=100)
    options.add_argument("--horizon", type=float, default=7.0, help="days")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--trail", action="store_true", help="print each estimate")
    given = options.parse_args()
    past = past_of(read_trace(given.trace))
    print(f"| {' | '.join(COLUMNS)} |\n| {' | '.join('---' for _ in COLUMNS)} |")
    for gpus in map(int, given.gpus.split(",")):
        use = uses(past.pieces, 0.0, past.end)
        terms = terms_of(Candidate(Rule.TODAY, given.limit), use, basis_of_use(past.teams, gpus, use))
        for line in measured(Truth(past, setting_of(terms, given.batch)), gpus, given):
            print(line, flush=True)


if __name__ == "__main__":
    main()
