"""`taskgov replay`: what a policy would have made of a trace, beside static partitions."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 -- typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from taskgov.hyperpod.borrowing import borrow_percent, sharing_of
from taskgov.hyperpod.model import ComputeQuotaConfig, SharingStrategy
from taskgov.policy.parse import parse_policy
from taskgov_cli import replay_counts, replay_run, snapshots
from taskgov_cli.durations import duration
from taskgov_cli.form import Form
from taskgov_cli.formats import Format, answer
from taskgov_cli.grid import table
from taskgov_cli.output import AsJson, console
from taskgov_cli.replay_traces import read_trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import ModuleType

    from rich.console import RenderableType

    from taskgov.policy.document import PolicyDocument
    from taskgov_cli.replay_counts import CountsOutcome
    from taskgov_cli.replay_outcome import Outcome
    from taskgov_cli.replay_stays import Capacity
    from taskgov_cli.replay_traces import Trace

DAY = 86400


def replay(  # noqa: PLR0913 - the options of a command
    trace: Annotated[
        Path,
        typer.Argument(
            exists=True,
            metavar="TRACE",
            help="Philly or openb CSV, a folder of snapshots, of days of work, or of Helios counts.",
        ),
    ],
    policy: snapshots.PolicyFile = None,
    gpus: Annotated[int, typer.Option(min=1, help="GPUs of the cluster.")] = 1000,
    borrow_limit: Annotated[
        int, typer.Option(min=0, max=replay_counts.NO_LIMIT, help="Percent of a team's quota, without --policy.")
    ] = 100,
    days: Annotated[float | None, typer.Option(min=0, help="Only the first days of the trace.")] = None,
    failures: Annotated[
        str | None,
        typer.Option(
            metavar="MTBF,REPAIR",
            help="Simulate node failures, e.g. 30d,12h: mean time between failures, repair time.",
        ),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", dir_okay=False, help="Write a plot to this file: .svg, .png or .pdf.")
    ] = None,
    *,
    form: Format = Form.TABLE,
    as_json: AsJson = False,
) -> None:
    """Replay a trace of GPU jobs under a policy and under static partitions: use, waiting, loans, preemptions.

    Without --policy, each team's share is its part of the trace's GPU-hours, and all teams lend.
    Counts by minute (Helios) contain no jobs: only lending and borrow limits of a policy are used.

    Example: taskgov replay philly.csv --gpus 1000 --borrow-limit 100
    """
    draw = None if plot is None else _plotter(plot)
    try:
        if replay_counts.is_counts(trace):
            given = [name for name, value in (("--days", days), ("--failures", failures)) if value is not None]
            counts = _counts(trace, policy, given, quiet=as_json)
            answer(lambda: [counts], counts_shown(counts), form, as_json=as_json)
            if draw is not None and plot is not None:
                draw.plot_counts(f"{counts.name}: what lending could have served", counts, plot)
            return
        outcomes, jobs = _outcomes(_window(trace, days), policy, gpus, borrow_limit, failures, quiet=as_json)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    answer(lambda: outcomes, shown(jobs, outcomes), form, as_json=as_json)
    if draw is not None and plot is not None:
        title = f"{jobs.name} on {gpus:,} GPUs: {outcomes[0].name}, and {outcomes[1].name}"
        draw.plot_jobs(title, outcomes, plot)


def _plotter(file: Path) -> ModuleType:
    """Return what draws, before the long part begins. Raises `typer.BadParameter` for another ending."""
    # The drawing library is a second of imports that nobody else needs, and an extra of the package.
    from taskgov_cli import replay_plot  # noqa: PLC0415

    if file.suffix.removeprefix(".").lower() not in replay_plot.FORMS:
        raise typer.BadParameter(f"--plot {file}: the file must end in .{', .'.join(replay_plot.FORMS)}")
    return replay_plot


def _window(file: Path, days: float | None) -> Trace:
    trace = read_trace(file)
    window = trace if days is None else trace.between(0, days * DAY)
    if not window.jobs:
        raise ValueError(f"{file} has no GPU jobs with a run time, {trace.skipped} were left out")
    return window


def _outcomes(
    trace: Trace, policy: Path | None, gpus: int, borrow_limit: int, failures: str | None, *, quiet: bool
) -> tuple[list[Outcome], Trace]:
    document = (
        replay_run.default_policy(trace, borrow_limit) if policy is None else _document(policy, trace.gpu_hours())
    )
    capacity: Capacity = [(0.0, gpus)]
    variants = [("static partitions", replay_run.partitioned(document), True), ("lend and borrow", document, True)]
    if failures is not None:
        capacity = replay_run.failing(gpus, trace.span, *_failure_rates(failures))
        variants = [("quotas fixed", document, False), ("quotas follow the machines", document, True)]
    outcomes = []
    with _progress(quiet=quiet) as progress:
        for name, wanted, follow in variants:
            task = progress.add_task(name, total=1.0)
            tell = _teller(progress, task)
            outcomes.append(replay_run.play(name, trace, wanted, capacity, follow=follow, tell=tell))
            progress.update(task, completed=1.0)
    return outcomes, trace


def _document(file: Path, teams: Iterable[str]) -> PolicyDocument:
    parsed = parse_policy(file.read_bytes())
    if parsed.document is None:
        raise ValueError(f"{file} is not a valid policy document; see: taskgov validate {file}")
    missing = sorted(set(teams) - {team.name for team in parsed.document.teams})
    if missing:
        raise ValueError(f"{file} has no team {', '.join(missing[:5])} of the trace; its teams must be the trace's")
    return parsed.document


def _failure_rates(text: str) -> tuple[float, float]:
    between, _, repair = text.partition(",")
    return duration(between).total_seconds() / DAY, duration(repair).total_seconds() / 3600


def _counts(folder: Path, policy: Path | None, unusable: Sequence[str], *, quiet: bool) -> CountsOutcome:
    if unusable:
        raise ValueError(f"{folder} has counts and no jobs: {' and '.join(unusable)} mean nothing there")
    with _progress(quiet=quiet) as progress:
        teams = replay_counts.read_counts(folder, _teller(progress, progress.add_task("reading counts", total=1.0)))
    rules = None if policy is None else _sharing(_document(policy, teams))
    return replay_counts.judge_counts(folder.name, teams, (25, 50, 100, 200, replay_counts.NO_LIMIT), rules)


def _sharing(document: PolicyDocument) -> dict[str, replay_counts.Sharing]:
    """Return who lends and who may borrow how much; what the document does not say is HyperPod's default."""
    rules = {}
    for team in document.teams:
        sharing = sharing_of(team.quota or ComputeQuotaConfig())
        lends = sharing.strategy is not SharingStrategy.DONT_LEND
        rules[team.name] = replay_counts.Sharing(borrow_percent(sharing), lends)
    return rules


def _progress(*, quiet: bool) -> Progress:
    """Return a progress bar on standard error, which `--json` and pipes leave out."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    shown_on = console(stderr=True)
    return Progress(*columns, console=shown_on, disable=quiet or not shown_on.is_terminal)


def _teller(progress: Progress, task: Any) -> Callable[[float], None]:
    return lambda done: progress.update(task, completed=done)


# For people


def shown(trace: Trace, outcomes: Sequence[Outcome]) -> Iterator[RenderableType]:
    """Return the outcomes side by side, the whole first and then each team."""
    needed = sum(trace.gpu_hours().values())
    jobs = f"{len(trace.jobs):,} jobs of {len(trace.gpu_hours())} teams in {trace.span / DAY:.1f} days"
    head = f": {jobs}, {needed:,.0f} GPU-hours ({trace.skipped:,} jobs left out)"
    yield Text.assemble((trace.name, "bold"), head)
    rows = [(name, *(value(outcome) for outcome in outcomes)) for name, value in _TOTALS]
    yield table("", ("", *(f"{outcome.name} #" for outcome in outcomes)), rows)
    teams = [
        (first.team, first.quota, first.jobs, *(f"{_hours(team.mean_wait)}" for team in same), *(_moved(same)))
        for same in zip(*(outcome.teams for outcome in outcomes), strict=True)
        for first in same[:1]
    ]
    waits = tuple(f"mean wait, {outcome.name} (h) #" for outcome in outcomes)
    columns = ("team", "quota #", "jobs #", *waits, "borrowed GPU-h #", "preempted #", "lost GPU-h #")
    yield table("Teams", columns, teams, main=True)


def _moved(same: Sequence[Any]) -> tuple[str, str, str]:
    last = same[-1]
    return f"{last.borrowed_gpu_hours:,.0f}", f"{last.preemptions}", f"{last.lost_gpu_hours:,.0f}"


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:.2f}"


def _mean_wait(outcome: Outcome) -> str:
    started = sum(team.jobs - team.never_started for team in outcome.teams)
    waited = sum(team.mean_wait * (team.jobs - team.never_started) for team in outcome.teams)
    return f"{waited / started / 3600:.2f}" if started else "-"


_TOTALS: tuple[tuple[str, Callable[[Outcome], str]], ...] = (
    ("utilisation, %", lambda outcome: f"{100 * outcome.utilisation:.1f}"),
    ("mean wait, h", _mean_wait),
    ("waiting, GPU-h", lambda outcome: f"{sum(team.waiting_gpu_hours for team in outcome.teams):,.0f}"),
    ("borrowed, GPU-h", lambda outcome: f"{sum(team.borrowed_gpu_hours for team in outcome.teams):,.0f}"),
    ("preemptions", lambda outcome: f"{sum(team.preemptions for team in outcome.teams):,}"),
    ("lost by preemption, GPU-h", lambda outcome: f"{sum(team.lost_gpu_hours for team in outcome.teams):,.0f}"),
    (
        "never started (larger than quota and limit)",
        lambda outcome: f"{sum(team.never_started for team in outcome.teams)}",
    ),
    ("held beyond the machines, GPU-h", lambda outcome: f"{outcome.beyond_gpu_hours:,.0f}"),
    ("plans", lambda outcome: f"{outcome.plans:,}"),
)


def counts_shown(counts: CountsOutcome) -> Iterator[RenderableType]:
    """Return what counts by minute say."""
    share = counts.minutes_waiting_beside_idle / counts.minutes
    head = f": {counts.teams} teams, {counts.gpus} GPUs, {counts.minutes:,} minutes"
    yield Text.assemble((counts.name, "bold"), head)
    yield Text(f"GPU-hours: {counts.running:,.0f} running, {counts.idle:,.0f} idle, {counts.waiting:,.0f} waiting.")
    yield Text(f"In {100 * share:.1f} % of the minutes, a job waited while a team without a queue had idle GPUs.")
    total = counts.waiting or 1.0
    rows = [
        (
            _LIMIT_WORDS.get(limit.borrow_limit, f"{limit.borrow_limit} %"),
            f"{limit.served_whole_jobs_gpu_hours:,.0f}",
            f"{100 * limit.served_whole_jobs_gpu_hours / total:.1f}",
            f"{limit.served_gpu_hours:,.0f}",
            f"{100 * limit.served_gpu_hours / total:.1f}",
        )
        for limit in (*counts.limits, *([counts.by_policy] if counts.by_policy else []))
    ]
    columns = ("borrow limit", "whole jobs, GPU-h #", "% of waiting #", "GPU by GPU, GPU-h #", "% of waiting #")
    yield table("Waiting that idle quota could have served", columns, rows)
    teams = [
        (team.team, team.quota, f"{team.running:,.0f}", f"{team.idle:,.0f}", f"{team.waiting:,.0f}")
        for team in counts.by_team
    ]
    yield table("Teams", ("team", "quota #", "running, GPU-h #", "idle, GPU-h #", "waiting, GPU-h #"), teams, main=True)


_LIMIT_WORDS: dict[int | None, str] = {replay_counts.NO_LIMIT: "none", None: "as the policy says"}
