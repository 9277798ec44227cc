"""`taskgov advise`: which quotas and limits would have served past work better, with the proof on later weeks."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path  # noqa: TC003 -- typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from taskgov.advice.advising import Adviser
from taskgov.advice.playing import Player
from taskgov.policy.parse import parse_policy
from taskgov_cli import advise_policy, advise_shown, snapshots
from taskgov_cli.advise_reading import basis_of_use, past_of
from taskgov_cli.advise_report import Report
from taskgov_cli.form import Form
from taskgov_cli.formats import Format, answer
from taskgov_cli.output import AsJson, console
from taskgov_cli.replay_traces import read_trace

if TYPE_CHECKING:
    from taskgov.advice.advising import Advice
    from taskgov.advice.judging import Result
    from taskgov.advice.past import Past
    from taskgov_cli.advise_policy import Ground
    from taskgov_cli.replay_traces import Trace

BATCH = 300
"""For how many seconds freed quota is gathered before waiting jobs are reconsidered: Kueue's one, longer for speed."""
GPUS = 1000


def advise(  # noqa: PLR0913 - the options of a command
    trace: Annotated[
        Path,
        typer.Argument(
            exists=True,
            metavar="TRACE",
            help="Philly or openb CSV, a folder of snapshots, or of days of the record of work.",
        ),
    ],
    policy: snapshots.PolicyFile = None,
    gpus: Annotated[
        int | None,
        typer.Option(min=1, help="GPUs of the cluster; default: what the document's fixed quotas need, or 1000."),
    ] = None,
    instance_type: Annotated[
        str | None,
        typer.Option(metavar="TYPE", help="The type to advise on, if the document or the record has several."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", dir_okay=False, help="Write the changed document to this file.")
    ] = None,
    weeks: Annotated[
        int, typer.Option(min=1, max=8, help="Weeks of use to choose quotas from, and to test them on.")
    ] = 2,
    *,
    exact: Annotated[bool, typer.Option(help="Check the advice with the exact model too, on the last weeks.")] = True,
    form: Format = Form.TABLE,
    as_json: AsJson = False,
) -> None:
    """Recommend quotas, borrow limits and preemption rules from past work, with proof. Nothing is applied.

    Rules of quotas and limits are chosen on past weeks and tested on later ones. With --policy, the answer is a diff of
    that document, within its floors, strategies and frozen teams; -o writes the changed document, which `taskgov apply
    --policy` puts into force like any other. Without --policy, the advice is compared with quotas in proportion to past
    use with a limit of 100 %.

    Example: taskgov advise philly.csv --policy ml-cluster.yaml --gpus 600 -o advised.yaml
    """
    if output is not None and policy is None:
        raise typer.BadParameter(f"--output {output}: there is no document to change; give it with --policy")
    try:
        ground = None if policy is None else _ground(policy, instance_type, gpus)
        work = _work(trace, instance_type if ground is None else ground.instance_type)
        work, left_out = _of_teams(work, ground)
        report = _report(past_of(work), ground, gpus or GPUS, weeks, exact=exact, quiet=as_json)
        report = replace(report, unmeasured=work.unmeasured, left_out=left_out)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    if output is not None and report.changed is not None:
        output.write_text(report.changed)
    answer(lambda: advise_shown.as_data(report), advise_shown.shown(report, output), form, as_json=as_json)


def _work(trace: Path, instance_type: str | None) -> Trace:
    work = read_trace(trace, instance_type)
    if instance_type is None and len(work.instance_types) > 1:
        types = ", ".join(work.instance_types)
        raise ValueError(f"--instance-type is missing: the record has jobs on several types: {types}")
    return work


def _of_teams(work: Trace, ground: Ground | None) -> tuple[Trace, tuple[str, ...]]:
    """Return a record of work without the teams that left since, and these teams; of a trace all teams stay."""
    if ground is None or not work.instance_types:
        return work, ()
    teams = {team.name for team in ground.document.teams}
    kept = tuple(job for job in work.jobs if job.team in teams)
    return replace(work, jobs=kept), tuple(sorted({job.team for job in work.jobs} - teams))


def _ground(file: Path, instance_type: str | None, gpus: int | None) -> Ground:
    try:
        return advise_policy.ground_of(file.read_bytes(), instance_type, gpus)
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from error


def _report(past: Past, ground: Ground | None, gpus: int, weeks: int, *, exact: bool, quiet: bool) -> Report:
    if not past.pieces:
        raise ValueError("the trace has no GPU jobs with a run time")
    today = None if ground is None else ground.today
    if today is not None and ground is not None:
        if not today.total:
            raise ValueError(
                f"the document gives no team GPUs of {ground.instance_type} on {ground.instances} instances"
            )
        missing = sorted(set(past.teams) - {team.team for team in today.teams})
        if missing:
            raise ValueError(f"the document has no team {', '.join(missing[:5])}; its teams must be the trace's")
    basis = partial(basis_of_use, past.teams, gpus) if today is None else lambda _: today
    shown_on = console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=shown_on, disable=quiet or not shown_on.is_terminal, transient=True) as progress:
        task = progress.add_task("reading", total=None)
        adviser = Adviser(past, basis, Player(BATCH), tell=lambda what: progress.update(task, description=what))
        advice = adviser.advise(weeks)
        progress.update(task, description="proving with the exact model")
        proved = _exactly(adviser, advice) if exact and advice.candidate is not None else None
    fair = adviser.as_it_is().fair
    held = () if today is None else tuple(f"{team.team}: {team.why_held}" for team in today.teams if team.why_held)
    if ground is None or advice.candidate is None:
        return Report(advice, fair, None if ground is None else ground.text, None, (), proved, held)
    text = advise_policy.changed(ground, advice.candidate, advice.terms)
    return Report(advice, fair, ground.text, text, _unlike(ground, text, advice), proved, held)


def _exactly(adviser: Adviser, advice: Advice) -> tuple[Result, Result]:
    from taskgov_cli.advise_exact import replay_exactly  # noqa: PLC0415 - a second of imports, for who is advised

    winner = adviser.as_it_is() if advice.candidate is None else advice.candidate
    before, after, work = adviser.inputs_of(replace(advice.proofs[-1], candidate=winner))
    return replay_exactly(before, work, BATCH), replay_exactly(after, work, BATCH)


def _unlike(ground: Ground, text: str, advice: Advice) -> tuple[str, ...]:
    document = parse_policy(text).document
    if document is None:
        raise ValueError("the changed document breaks a rule; nothing is written. Change its numbers by hand")
    given = advise_policy.planned(ground, document)
    return tuple(
        f"{team}: {given.get(team, 0)} GPUs instead of {own.quota}"
        for team, own in advice.terms.teams
        if given.get(team, 0) != own.quota
    )
