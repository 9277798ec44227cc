"""What the fast replay of jobs accepts, and whether it gives there what the exact model gives.

`make bench-futures` plays the walkthroughs of the demo and reads the cluster after each step. `SNAPSHOTS=FOLDER`
adds a folder of snapshots. Both models go on from each world, with run times that are drawn for the jobs in it.
`TRACE=philly.csv` replays 21 days of a trace on 300 GPUs with both. The exit code is 1 where they differ.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING

from taskgov.advice.candidates import Candidate, terms_of
from taskgov.advice.past import DAY, uses
from taskgov.advice.playing import prepared
from taskgov.advice.playing import setting_of as queues_of
from taskgov.advice.rules import Rule
from taskgov.allocation.projection import model_of
from taskgov.futures import accepts, jobs_of, obstacles, replay, setting_of
from taskgov.hyperpod.names import KUEUE_NAMESPACE, MANAGER_CONFIG_MAP
from taskgov.scheduling import KueueModel
from taskgov.scheduling.instants import SECOND
from taskgov.snapshot.codec import snapshot_from_json
from taskgov.snapshot.manager import config_of, settings_in
from taskgov.snapshot.model import ManagerSettings
from taskgov_cli.advise_reading import basis_of_use, past_of
from taskgov_cli.replay_traces import read_trace
from taskgov_embedded.cluster.manager import SCHEDULED
from taskgov_embedded.walkthrough.model import STORY, all_files, load
from taskgov_embedded.walkthrough.runner import Runner
from taskgov_embedded.walkthrough.world import World
from taskgov_explain.exact_starts import exact_starts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from taskgov.futures import Jobs, Starts
    from taskgov.scheduling import Workload
    from taskgov.scheduling.instants import Instant
    from taskgov.scheduling.view import KueueModelView
    from taskgov_cli.replay_traces import Trace

_NAMED = re.compile(r"(queue|LocalQueue|cohort|namespace) \S+")


@dataclass
class Tally:
    """What was found of some worlds."""

    of: str
    worlds: int = 0
    accepted: int = 0
    with_jobs: int = 0
    accepted_with_jobs: int = 0
    loops: int = 0
    differences: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, model: KueueModel) -> None:
        """Look at one world."""
        reasons = refusals(model)
        jobs = any(True for _ in model.standings())
        self.worlds += 1
        self.with_jobs += jobs
        self.reasons.update({_NAMED.sub(r"\1 ...", reason) for reason in reasons})
        if reasons:
            return
        self.accepted += 1
        self.accepted_with_jobs += jobs
        looped, differs = compared(model)
        self.loops += looped
        self.differences += differs

    def row(self) -> str:
        """Return the row of the table."""
        cells = (
            self.of,
            f"{self.accepted} of {self.worlds} ({_percent(self.accepted, self.worlds)})",
            f"{self.accepted_with_jobs} of {self.with_jobs} ({_percent(self.accepted_with_jobs, self.with_jobs)})",
            self.loops,
            self.differences,
        )
        return f"| {' | '.join(map(str, cells))} |"


def refusals(model: KueueModelView) -> tuple[str, ...]:
    """Return why the fast replay does not go on from a model; none where it does."""
    return (*obstacles(model), *accepts(setting_of(model), _jobs(model)))


def compared(model: KueueModel) -> tuple[bool, bool]:
    """Return whether jobs preempt one another again and again from there on, and whether the two models differ.

    Loops are left to the exact model (`taskgov_explain.exact_starts.starts`).
    """
    setting, jobs = setting_of(model), _jobs(model)
    fast = replay(setting, jobs)
    if fast.loop:
        return True, False
    return False, courses(fast) != courses(exact_starts(setting, jobs, world=model.copy()))


def _jobs(model: KueueModelView) -> Jobs:
    """Return the jobs of a model, a second after the last of them came or was admitted."""
    moments = (max(standing.queued_since, standing.since or 0) for standing in model.standings())
    return jobs_of(model, max(moments, default=0) + SECOND, _lasting)


def courses(starts: Starts) -> list[tuple[int, Instant, Instant, bool]]:
    """Return who ran from when to when, in one order; -1 for what has no end."""
    return sorted((job, start, -1 if end is None else end, preempted) for job, start, end, preempted in starts.stays)


def _lasting(workload: Workload, since: Instant | None) -> tuple[int, int | None]:
    """Draw how long a workload runs, by its name: up to an hour, and what is left of it where it runs."""
    chance = random.Random(workload.key)
    run_time = chance.randint(1, 3600)
    return run_time * SECOND, None if since is None else chance.randint(1, run_time) * SECOND


def stored(folder: Path) -> Iterator[KueueModel]:
    """Give the schedulers of a folder of snapshots."""
    for file in sorted(folder.glob("*.json")):
        yield model_of(snapshot_from_json(file.read_bytes()))


def played(files: Iterable[Path]) -> Iterator[KueueModel]:
    """Give the scheduler of each walkthrough after each of its steps."""
    for file in files:
        walkthrough = load(file)
        with World(walkthrough) as world:
            for _ in Runner(walkthrough, world).run():
                store = world.cluster.store
                found = store.find("configmaps", MANAGER_CONFIG_MAP, KUEUE_NAMESPACE)
                model = KueueModel(config_of(ManagerSettings() if found is None else settings_in(found), None))
                model.load(item for plural in SCHEDULED for item in store.list(plural))
                yield model


def _percent(part: int, whole: int) -> str:
    return f"{100 * part // whole} %" if whole else "none"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table and the reasons; return 1 where the models differ."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("snapshots", type=Path, nargs="*", help="folders of snapshots")
    options.add_argument("--no-demo", action="store_true", help="leave the walkthroughs out")
    options.add_argument("--trace", type=Path, help="a trace that both models replay")
    options.add_argument("--days", type=float, default=21, help="of the trace")
    options.add_argument("--after", type=float, default=0, help="how many days of the trace to leave out before them")
    options.add_argument("--gpus", type=int, default=300)
    given = options.parse_args(arguments)
    differences = 0
    sources = [(folder.name, stored(folder)) for folder in given.snapshots]
    if not given.no_demo:
        sources.append(("the demo, after each step", played((STORY, *all_files()))))
    if sources:
        differences += _tabled(sources)
    if given.trace is not None:
        first, last = given.after * DAY, (given.after + given.days) * DAY
        replayed = both(read_trace(given.trace).between(first, last), given.gpus)
        after = f" after day {given.after:g}" if given.after else ""
        print(f"{given.trace.name}, {given.days:g} days{after} on {given.gpus} GPUs: {replayed.sentence()}")
        differences += replayed.differences
    return 1 if differences else 0


def _tabled(sources: Iterable[tuple[str, Iterable[KueueModel]]]) -> int:
    """Print the table of worlds and the reasons of refusals; return how many differ."""
    tallies = []
    print("| worlds | accepted | of those with jobs | loops, left to the exact model | differences |")
    print("| --- | --- | --- | --- | --- |")
    for name, models in sources:
        tally = Tally(name)
        for model in models:
            tally.add(model)
        tallies.append(tally)
        print(tally.row(), flush=True)
    for tally in tallies:
        for reason, count in tally.reasons.most_common():
            print(f"{tally.of}: {count} refused: {reason}")
    return sum(tally.differences for tally in tallies)


@dataclass(frozen=True)
class Both:
    """A trace, replayed by both models: stays, how many of them ended by preemption, and processor time in seconds."""

    jobs: int
    stays: int
    preempted: int
    differences: int
    """Stays that only one of them has."""
    fast: float
    exact: float

    def sentence(self) -> str:
        """Return it in one line."""
        return (
            f"{self.jobs} jobs, {self.stays} stays, {self.preempted} of them preempted; "
            f"{self.fast:.1f} s fast, {self.exact:.1f} s exact; {self.differences} differences"
        )


def both(trace: Trace, gpus: int, batch: int = 60) -> Both:
    """Replay a trace with both models, with quotas in proportion to use and a limit of 100 %, until all is done.

    Raises ValueError where the fast replay does not accept it.
    """
    past = past_of(trace)
    use = uses(past.pieces, 0, past.end)
    terms = terms_of(Candidate(Rule.TODAY), use, basis_of_use(past.teams, gpus, use))
    setting, jobs = queues_of(terms, batch), prepared(past.pieces)
    if reasons := accepts(setting, jobs):
        raise ValueError(f"the fast replay does not accept this: {', '.join(reasons)}")
    begun = process_time()
    fast = replay(setting, jobs)
    between = process_time()
    exact = exact_starts(setting, jobs)
    over = process_time()
    differences = Counter(courses(fast))
    differences.subtract(courses(exact))
    preempted = sum(stay.preempted for stay in exact.stays)
    apart = sum(map(abs, differences.values()))
    return Both(len(jobs), len(exact.stays), preempted, apart, between - begun, over - between)


if __name__ == "__main__":
    sys.exit(main())
