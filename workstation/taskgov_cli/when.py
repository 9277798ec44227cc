"""`taskgov when`: when a waiting job will start, from many futures of its queue."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path  # noqa: TC003 -- typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Final, cast

import typer
from rich.text import Text

from taskgov.estimates.given import clock_time, given_starts
from taskgov.estimates.recalibration import ENOUGH
from taskgov_cli import durations, snapshots, supposing
from taskgov_cli.form import Form
from taskgov_cli.formats import Format, answer
from taskgov_cli.kept_starts import ReadableDocuments, kept_in
from taskgov_cli.output import AsJson  # noqa: TC001 -- typer reads the annotations
from taskgov_cli.own_rights import OwnRights, namespaces_of
from taskgov_cli.when_estimate import Asked, StartEstimate, computed, of_kept, plain, with_earlier
from taskgov_cli.when_history import kept_history, read_history
from taskgov_explain.find import UnknownNameError
from taskgov_explain.own_view import EXPLAINING_NEEDS, sees_all
from taskgov_explain.own_workload import explain_own_workload
from taskgov_explain.reasons import ESTIMATED
from taskgov_explain.suppose import Hypothesis, suppose
from taskgov_explain.workload import explain_workload

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from rich.console import RenderableType

    from taskgov.estimates.kept import KeptEstimates
    from taskgov.ports import DocumentStore
    from taskgov.snapshot.model import Snapshot
    from taskgov_cli.when_estimate import Earlier

_MEMBERS: Final = (
    "an estimate needs all queues and workloads, and you may read only some of them; "
    "a member of a team reads the estimates that a stack keeps: "
    "--stack NAME, without --runs, --history, --submit, --futures and --seed"
)
_NO_HISTORY: Final = "no history: give --history, or --stack with --cluster. Earliest start"
_NOT_CALIBRATED: Final = (
    f"Not calibrated: this takes {ENOUGH} outcomes of earlier estimates (--history has none), "
    "and at least one measured day of the last 14."
)
_HIDDEN: Final = (
    "no estimate: the stack has none for your team, or you may not read them (tag `team` of the role or session)"
)


def when(  # noqa: PLR0913, PLR0917 - the options of a command
    workload: Annotated[
        str | None,
        typer.Argument(metavar="JOB", help="Job: NAME, TEAM/NAME or NAMESPACE/NAME.", show_default=False),
    ] = None,
    submit: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="Manifest of a job (YAML): when would it start, submitted now?"),
    ] = None,
    as_team: Annotated[str | None, typer.Option("--as", metavar="TEAM", help="The team that submits.")] = None,
    history: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            help="Past work: a record of work (a folder of days, *.jsonl.gz), or a trace as `replay` reads it.",
        ),
    ] = None,
    snapshot: snapshots.SnapshotFile = None,
    cluster: snapshots.LiveCluster = None,
    stack: snapshots.Stack = None,
    context: snapshots.Context = None,
    runs: durations.Runs = None,
    futures: Annotated[
        int | None, typer.Option(min=20, max=1000, help="How many futures of the queue are simulated (100).")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="The same seed gives the same futures (1).")] = None,
    *,
    form: Format = Form.TABLE,
    as_json: AsJson = False,
) -> None:
    """Estimate when a waiting job starts, and show what it waits for.

    It also says how good earlier estimates for the team were. With --cluster and --stack it is the estimate that the
    stack keeps; where there is none, or with --runs, --submit, --futures or --seed, it is computed from the stack's
    record of work. --history gives another one. --runs says how long a workload runs in total; it overrides the
    history. Without history only --runs and declared time limits count, as in `explain`.

    Example: taskgov when team-b/training --cluster ml-cluster --stack taskgov
    """
    if (workload is None) == (submit is None):
        raise typer.BadParameter("give either JOB, or --submit FILE for a job that is not submitted yet")
    if submit is None and as_team is not None:
        raise typer.BadParameter(f"--as {as_team}: nothing is submitted; --submit FILE names the job")
    whose = [str(workload).partition("/")[0]] if "/" in str(workload) else []
    rights = OwnRights(namespaces_of(whose))
    known = snapshots.known(snapshot, cluster, None, None, context, rights)
    documents = _documents(snapshots.stack_of(stack, cluster, snapshot, needs_records=False))
    try:
        if submit is not None:
            known, workload = _submitted(known, submit, as_team)
        asked = Asked(durations.run_times(known, runs), futures, seed)
        with snapshots.reported():
            found = _estimate(known, str(workload), history, documents, asked, is_new=submit is not None)
    except UnknownNameError as error:
        raise typer.BadParameter(str(error)) from error
    except (KeyError, ValueError) as error:
        raise typer.BadParameter(str(error)) from error
    answer(lambda: found, _shown(found), form, as_json=as_json)


def _documents(stack: str | None) -> DocumentStore | None:
    if stack is None:
        return None
    from taskgov_cli.live_reading import documents_of  # noqa: PLC0415 - the AWS SDK, for a stack only

    with snapshots.reported():
        return documents_of(stack)


def _submitted(known: Snapshot, file: Path, team: str | None) -> tuple[Snapshot, str]:
    """Return the snapshot with a job that is submitted now, and its key. Raises `ValueError`."""
    _check_all_is_seen(known)
    work = supposing.submitted([file], known, team)
    if len(work) != 1:
        raise ValueError(f"{file} holds {len(work)} workloads; an estimate needs exactly one")
    metadata = work[0]["metadata"]
    return suppose(known, Hypothesis(submitted=work)), f"{metadata['namespace']}/{metadata['name']}"


def _check_all_is_seen(known: Snapshot) -> None:
    if not sees_all(known, EXPLAINING_NEEDS):
        raise ValueError(_MEMBERS)


def _estimate(
    known: Snapshot,
    workload: str,
    history: Path | None,
    documents: DocumentStore | None,
    asked: Asked,
    *,
    is_new: bool,
) -> StartEstimate:
    """Return the estimate. Raises `ValueError` for what cannot be read, `KeyError` for odd objects, GovernanceError."""
    is_whole = sees_all(known, EXPLAINING_NEEDS)
    if not is_whole and (documents is None or history is not None or asked.is_special):
        raise ValueError(_MEMBERS)
    explained = explain_workload(known, workload, asked.said) if is_whole else explain_own_workload(known, workload)
    found = plain(known, explained)
    kept = kept_in(documents, known) if documents is not None else None
    if kept is not None:
        found = with_earlier(found, explained, kept, known)
    if explained.reason not in ESTIMATED:
        return found
    if history is not None:
        past = read_history(history, known.taken_at.timestamp())
        return computed(found, known, explained, past, asked)
    start = given_starts(kept, known).get(explained.key)
    if kept is not None and start is not None and not asked.is_special and not is_new:
        return of_kept(found, explained, start, kept, known)
    if documents is None:
        note = f"{_NO_HISTORY}: {explained.earliest_because}"
        return replace(found, no_earlier_than=explained.earliest, notes=(note,))
    if not is_whole:
        return replace(found, notes=(_none_kept(kept, known), *(kept.notes if kept else ())))
    readable = cast("DocumentStore", ReadableDocuments(documents))  # it reads by `find` alone
    return computed(found, known, explained, kept_history(readable, known), asked, kept)


def _none_kept(kept: KeptEstimates | None, known: Snapshot) -> str:
    """Say why a member has no estimate."""
    if kept is None:
        return _HIDDEN
    made = clock_time(kept.at, known.taken_at)
    return f"no estimate: the last estimates, of {made}, have none of this job, or one whose time is over"


def _shown(found: StartEstimate) -> Iterator[RenderableType]:
    yield Text.assemble((found.workload, "bold"), ": ", (_sentence(found), "yellow"))
    yield Text(f"  {found.because}")
    if found.holders:
        yield Text(f"  quota: {'; '.join(found.holders)}")
    if found.waits_for:
        ends = ", ".join(end.words for end in found.waits_for)
        yield Text(f"  of {found.futures} futures, it starts {ends}")
    if found.futures and found.calibrated:
        yield Text(f"  from {found.futures} futures of the queue, corrected by the outcomes of earlier estimates")
    elif found.futures:
        half, nine = (_at(found, moment) for moment in (found.half_by, found.nine_of_ten_by))
        yield Text(f"  Of {found.futures} futures of the queue, half start it by {half}, nine of ten by {nine}.")
        yield Text(f"  {_NOT_CALIBRATED}", style="dim")
    yield from (Text(f"  {earlier.words(found.asked_at)}") for earlier in _told(found))
    if found.record:
        yield Text(f"  {found.record}")
    if found.kept and found.made_at is not None:
        yield Text(f"  estimated at {clock_time(found.made_at, found.asked_at)} UTC", style="dim")
    yield from (Text(f"  {note}", style="dim") for note in found.notes)


def _told(found: StartEstimate) -> tuple[Earlier, ...]:
    """Return the estimates that people are shown: of a job that started the first and the last one."""
    started = tuple(earlier for earlier in found.earlier if earlier.started_at is not None)
    return started if len(started) < 3 else (started[0], started[-1])


def _sentence(found: StartEstimate) -> str:
    if found.reason not in ESTIMATED and found.given is None:
        return found.reason.value
    return "no estimate" if found.given is None else f"{found.given.sentence(found.asked_at)} (UTC)"


def _at(found: StartEstimate, moment: datetime | None) -> str:
    return "more than 7 days from now" if moment is None else clock_time(moment, found.asked_at)
