"""`taskgov when`: when a waiting job will start, from many futures of its queue."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from math import isfinite
from pathlib import Path  # noqa: TC003 -- typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.text import Text

from taskgov.estimates.arrivals import Coming, Past
from taskgov.estimates.drawing import HORIZON, Drawing, fast, waits_of
from taskgov.estimates.quantiles import LEAST_HISTORY, estimate_of, quantile
from taskgov.estimates.run_times import RunTimes
from taskgov.futures import Job, Jobs, accepts
from taskgov.scheduling.instants import SECOND
from taskgov_cli import durations, snapshots
from taskgov_cli.form import Form
from taskgov_cli.formats import Format, answer
from taskgov_cli.output import AsJson  # noqa: TC001 -- typer reads the annotations
from taskgov_cli.when_history import read_history
from taskgov_explain.find import UnknownNameError
from taskgov_explain.own_view import EXPLAINING_NEEDS, sees_all
from taskgov_explain.reasons import Reason
from taskgov.estimates.scenes import queue_of
from taskgov_explain.workload import explain_workload

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from taskgov.estimates.drawing import Scene
    from taskgov.futures import Setting, Starts
    from taskgov.scheduling.instants import Instant
    from taskgov.snapshot.model import Snapshot
    from taskgov_cli.when_history import History
    from taskgov_explain.workload import WorkloadExplanation

EXACT_FUTURES: Final = 20
"""Fewer futures where the exact model has to play them: each takes as long as many fast ones."""
ESTIMATED: Final = frozenset(
    {Reason.WAITING_FOR_QUOTA, Reason.WAITING_FOR_PREEMPTED_WORKLOADS, Reason.PENDING_EVALUATION}
)
"""Those who wait for nothing but their turn. The others start once somebody changes something, or run."""
EARLY: Final = 0.1
STALE: Final = 86400.0
"""A history that ends longer before the snapshot is not a history of this queue."""


@dataclass(frozen=True, slots=True)
class StartEstimate:
    """When a job starts. Moments are None where they are not known, or more than 7 days away."""

    workload: str
    asked_at: datetime
    reason: Reason
    because: str
    """What it waits for."""
    half_by: datetime | None = None
    nine_of_ten_by: datetime | None = None
    no_earlier_than: datetime | None = None
    """One future in ten is earlier."""
    calibrated: bool = False
    """Whether outcomes of earlier estimates are known, by which this one was corrected."""
    futures: int = 0
    notes: tuple[str, ...] = ()


def when(  # noqa: PLR0913, PLR0917 -- options are named by whoever types them
    workload: Annotated[str, typer.Argument(metavar="JOB", help="Job: NAME, TEAM/NAME or NAMESPACE/NAME.")],
    history: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            help="What ran before: a record of work (a folder of days, *.jsonl.gz), or a trace as `replay` reads it.",
        ),
    ] = None,
    snapshot: snapshots.SnapshotFile = None,
    cluster: snapshots.LiveCluster = None,
    stack: snapshots.Stack = None,
    context: snapshots.Context = None,
    runs: durations.Runs = None,
    futures: Annotated[int, typer.Option(min=20, max=1000, help="How many futures of the queue are played.")] = 100,
    seed: Annotated[int, typer.Option(help="The same seed gives the same futures.")] = 1,
    *,
    form: Format = Form.TABLE,
    as_json: AsJson = False,
) -> None:
    """Estimate when a waiting job starts, and say what it waits for.

    Many futures of the queue are played, with run times and arrivals from --history. --runs says how long a workload
    runs in all, and wins over history. Without history only --runs and declared time limits count, as in `explain`.

    Example: taskgov when team-b/training --snapshot ml-cluster.json --history work/ml-cluster
    """
    known = snapshots.known(snapshot, cluster, None, stack, context)
    if not sees_all(known, EXPLAINING_NEEDS):
        raise typer.BadParameter("an estimate needs all queues and workloads; your rights show only a part of them")
    try:
        explained = explain_workload(known, workload, durations.run_times(known, runs))
    except UnknownNameError as error:
        raise typer.BadParameter(str(error)) from error
    try:
        found = _estimate(known, explained, history, runs, futures, seed)
    except (KeyError, ValueError) as error:
        raise typer.BadParameter(str(error)) from error
    answer(lambda: found, _shown(found), form, as_json=as_json)


def _estimate(
    known: Snapshot, explained: WorkloadExplanation, history: Path | None, runs: list[str] | None, count: int, seed: int
) -> StartEstimate:
    """Return the estimate. Raises `ValueError` for a history that cannot be read, `KeyError` for odd objects."""
    plain = StartEstimate(explained.workload, known.taken_at, explained.reason, explained.because)
    if explained.reason not in ESTIMATED:
        return plain
    if history is None:
        note = f"no history is given (--history), so run times count that are known: {explained.earliest_because}"
        return replace(plain, no_earlier_than=explained.earliest, notes=(note,))
    now = known.taken_at.timestamp()
    past, queue = read_history(history, now), queue_of(known, durations.run_times(known, runs))
    run_times = RunTimes([*past.runs, *queue.runs], now)
    comes = _come(past, queue.scene)
    notes = tuple(_notes(past, now, run_times, explained.team, comes))
    if past.until < now - STALE or run_times.law(()).count < LEAST_HISTORY or not comes:
        return replace(plain, notes=notes)
    arrivals = Past(past.arrivals, now, past.measured)
    reasons = _reasons(queue.scene)
    drawing = Drawing(min(count, EXACT_FUTURES), player=_exactly) if reasons else Drawing(count, player=fast)
    chance = random.Random(seed)  # noqa: S311 -- the same each time, no secret
    waits = waits_of(queue.scene, queue.keys.index(explained.key), run_times, arrivals, chance, drawing)
    said = estimate_of(waits)
    if reasons:
        notes = (*notes, f"{drawing.count} futures by the exact model: {', '.join(reasons[:3])}")
    return replace(
        plain,
        half_by=_moment(known.taken_at, said.half),
        nine_of_ten_by=_moment(known.taken_at, said.nine),
        no_earlier_than=_moment(known.taken_at, quantile(waits, EARLY)) or known.taken_at + timedelta(seconds=HORIZON),
        futures=len(waits),
        notes=notes,
    )


def _come(past: History, scene: Scene) -> int:
    """Return how many arrivals of a history could come to this queue: their team has one, with accelerators."""
    requests = Counter(arrival.request for arrival in past.arrivals)
    return sum(
        times for request, times in requests.items() if scene.newcomer(Coming(request, 0.0), 0, scene.now) is not None
    )


def _notes(past: History, now: float, run_times: RunTimes, team: str, comes: int) -> Iterator[str]:
    """Say what of the history makes the estimate weak."""
    known = run_times.law(()).count
    if not past.measured:
        yield f"no estimate: {past.source} holds nothing that was measured"
    elif past.until < now - STALE:
        yield f"no estimate: the history ends {(now - past.until) / 86400:.1f} days before the snapshot; 1 is the most"
    elif known < LEAST_HISTORY:
        yield f"no estimate: {known} runs are known, and it takes {LEAST_HISTORY}"
    elif not comes:
        yield "no estimate: no team of the history has a queue with accelerators here"
    elif not run_times.known(team):
        yield f"{team} has no history: other teams' run times are used"
    else:
        yield f"by a {past.source}, {run_times.known(team)} of {team} counted"
    if 0 < comes < len(past.arrivals):
        strangers = len(past.arrivals) - comes
        yield f"{strangers} of {len(past.arrivals)} arrivals are left out: their team has no queue here"


def _reasons(scene: Scene) -> tuple[str, ...]:
    """Return why futures of a scene need the exact model; arrivals are plain jobs, which need it nowhere."""
    return accepts(scene.setting, Jobs(Job(job.workload, scene.now, SECOND, job.held) for job in scene.present))


def _exactly(setting: Setting, jobs: Jobs, until: Instant, watched: tuple[int, ...]) -> Starts:  # noqa: ARG001
    from taskgov_explain.exact_starts import exact_starts  # noqa: PLC0415 - for the few queues that need it

    return exact_starts(setting, jobs, until)


def _moment(asked_at: datetime, seconds: float) -> datetime | None:
    """Return a moment after another, to the second; None beyond the horizon."""
    return (asked_at + timedelta(seconds=round(seconds))) if isfinite(seconds) else None


def _shown(found: StartEstimate) -> Iterator[RenderableType]:
    yield Text.assemble((found.workload, "bold"), ": ", (_sentence(found), "yellow"))
    yield Text(f"  {found.because}")
    if found.futures:
        half, nine = (_at(found, moment) for moment in (found.half_by, found.nine_of_ten_by))
        yield Text(f"  Of {found.futures} futures of the queue, half start it by {half}, nine of ten by {nine}.")
        yield Text("  Not calibrated: no outcomes of earlier estimates are known.", style="dim")
    yield from (Text(f"  {note}", style="dim") for note in found.notes)


def _sentence(found: StartEstimate) -> str:
    if found.reason not in ESTIMATED:
        return found.reason.value
    return "no estimate" if found.no_earlier_than is None else f"no earlier than {_at(found, found.no_earlier_than)}"


def _at(found: StartEstimate, moment: datetime | None) -> str:
    """Return a moment as people read it: the time alone on the day of the question."""
    if moment is None:
        return "more than 7 days from now"
    return f"{moment:%H:%M}" if moment.date() == found.asked_at.date() else f"{moment:%Y-%m-%d %H:%M}"
