"""`taskgov status`: capacity, quotas, use, loans and what waits, at a glance."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.text import Text

from taskgov.allocation.lease_book import lease_book, leased, leased_words
from taskgov.number_text import counted
from taskgov.quantities import format_quantity
from taskgov.scheduling.kueue_version import FOLLOWED
from taskgov.snapshot.health import node_fault
from taskgov.snapshot.kueue_manager import kueue_release, unknown_because
from taskgov.usage.cluster_usage import cluster_usage, leading_usage
from taskgov.usage.workloads import pending_by_team
from taskgov_cli import snapshots
from taskgov_cli.form import Form
from taskgov_cli.formats import Format, View, answer
from taskgov_cli.grid import table
from taskgov_cli.lease_table import leases_table
from taskgov_cli.output import AsJson, jsonable
from taskgov_cli.own_rights import OwnRights, namespaces_of
from taskgov_explain.find import UnknownNameError, nearest
from taskgov_explain.own_view import EXPLAINING_NEEDS, STANDING_NEEDS, not_visible, own_lines, sees_all, visible_teams

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from rich.console import RenderableType

    from taskgov.allocation.lease_book import LeaseEntry
    from taskgov.estimates.given import GivenStart
    from taskgov.snapshot.model import KueueObjects, Snapshot
    from taskgov.snapshot.unseen import Part
    from taskgov.usage.cluster_usage import ClusterUsage, TeamUsage
    from taskgov.usage.workloads import TeamPending
    from taskgov_explain.own_view import OwnLine

    Starts = Mapping[str, GivenStart] | None
    """By team: the estimate of the workload that starts first; None where nothing is kept."""

NEXT_START: Final = "next starts by, half / 9 of 10 (UTC)"
"""The column with the estimate of the team's workload that starts first, where a stack keeps estimates."""


def status(  # noqa: PLR0913 - the options of a command
    snapshot: snapshots.SnapshotFile = None,
    cluster: snapshots.LiveCluster = None,
    stack: snapshots.Stack = None,
    context: snapshots.Context = None,
    team: snapshots.Teams = None,
    every: Annotated[float, typer.Option("--every", min=1, help="With --watch: seconds between two reads.")] = 10,
    *,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Refresh until Ctrl-C.")] = False,
    form: Format = Form.TABLE,
    as_json: AsJson = False,
) -> None:
    """Show capacity, quota, use, loans and waiting work by team and instance type.

    A member of a team without wider rights sees that team, and what is not visible. With --watch, a terminal
    shows the newest answer in place of the last one; a pipe gets one after the other.

    Example: taskgov status --cluster ml-cluster --watch
    """

    def look() -> View:
        of_stack = snapshots.stack_of(stack, cluster, snapshot, needs_records=False)
        rights = OwnRights(namespaces_of(team or ()))
        known = snapshots.known(snapshot, cluster, None, of_stack, context, rights)
        for name in team or ():
            if name not in (teams := visible_teams(known)):
                raise typer.BadParameter(f"there is no team named {name}; {nearest(name, teams)}", param_hint="--team")
        starts = None if of_stack is None else _starts(of_stack, known)
        return _view(known, set(team or ()), starts, whole=as_json or form in {Form.JSON, Form.YAML})

    if watch:
        from taskgov_cli import watching  # noqa: PLC0415 - only who watches waits for it

        watching.watch(look, every, form, as_json=as_json)
    data, parts = look()
    answer(data, parts, form, as_json=as_json)


def _starts(stack: str, known: Snapshot) -> Starts:
    from taskgov_cli.kept_starts import next_of_teams, starts_of  # noqa: PLC0415 - for a stack only

    return next_of_teams(starts_of(stack, known), known)


def _view(known: Snapshot, teams: set[str], starts: Starts, *, whole: bool) -> View:
    """Return the answer; with what only programs get of it if it is `whole`."""
    if not sees_all(known, STANDING_NEEDS):
        return _own(known, teams, STANDING_NEEDS, starts)
    standing = _of_teams(cluster_usage(known) if whole else leading_usage(known), teams)
    leases = lease_book(known)
    return lambda: as_data(known, standing, leases, starts), shown(known, standing, leases, starts)


def _of_teams(standing: ClusterUsage, teams: set[str]) -> ClusterUsage:
    """Return the standing of these teams, of all of them where none is named; the capacity is everybody's."""
    if not teams:
        return standing
    return replace(
        standing,
        teams=tuple(team for team in standing.teams if team.usage.team in teams),
        loans=tuple(loan for loan in standing.loans if teams & {loan.borrower, loan.lender}),
        pending=tuple(team for team in standing.pending if team.team in teams),
        preemptions=tuple(preemption for preemption in standing.preemptions if preemption.team in teams),
    )


def print_own_team(known: Snapshot, team: str, form: Form, *, as_json: bool) -> None:
    """Print one team as a person sees it who does not see all. Raises `UnknownNameError` for one that is not seen."""
    if team not in (teams := visible_teams(known)):
        raise UnknownNameError(f"there is no team named {team}; {nearest(team, teams)}")
    data, parts = _own(known, {team}, EXPLAINING_NEEDS)
    answer(data, parts, form, as_json=as_json)


def _own(known: Snapshot, teams: set[str], needs: frozenset[Part], starts: Starts = None) -> View:
    """Return what a person sees who does not see all teams."""
    lines = [line for line in own_lines(known) if not teams or line.team in teams]
    waiting = {team.team: team for team in pending_by_team(known.kueue) if not teams or team.team in teams}
    data = {
        "cluster": known.cluster.name,
        "takenAt": known.taken_at,
        "teams": lines,
        "pending": list(waiting.values()),
        "notVisible": not_visible(known, needs),
    }
    if starts is not None:
        data["nextStarts"] = {team: starts.get(team) for team in waiting}
    return lambda: data, _own_shown(known, lines, list(waiting.values()), needs, starts)


def _own_shown(
    known: Snapshot, lines: list[OwnLine], waiting: list[TeamPending], needs: frozenset[Part], starts: Starts
) -> Iterator[RenderableType]:
    yield Text.assemble((known.cluster.name, "bold"), f", {known.taken_at:%Y-%m-%d %H:%M:%S} UTC")
    rows = []
    for line in lines:
        amounts = (line.quota, line.used, line.unused, line.beyond_quota)
        shown_amounts = ("?" if amount is None else format_quantity(line.resource, amount) for amount in amounts)
        rows.append((line.team, line.instance_type, *shown_amounts))
    columns = ("team", "instance type", "quota #", "used #", "unused #", "beyond quota #")
    yield table("Teams", columns, rows)
    if not rows:
        yield Text("No quota is visible, and no task holds any.")
    for team in waiting:
        words = (
            f"{team.team}: {counted(team.workloads, 'task waits', 'tasks wait')}, for {team.accelerators} accelerators"
        )
        start = (starts or {}).get(team.team)
        then = f"; the next one starts {start.sentence(known.taken_at)} UTC (estimated)" if start else ""
        yield Text(words + then, style="yellow")
    yield from snapshots.hidden_words(not_visible(known, needs))


def as_data(
    snapshot: Snapshot, standing: ClusterUsage, leases: tuple[LeaseEntry, ...], starts: Starts = None
) -> dict[str, Any]:
    """Return the standing for programs; amounts in base units, leases in whole instances."""
    faults = {node.name: fault for node in snapshot.nodes if (fault := node_fault(node)) is not None}
    head = {"cluster": snapshot.cluster.name, "takenAt": snapshot.taken_at, "unhealthyNodes": faults, "leases": leases}
    release = kueue_release(snapshot.kueue)
    head["kueue"] = {"version": None if release is None else str(release), "followed": str(FOLLOWED)}
    head.update(jsonable(standing))
    if starts is not None:
        head["nextStarts"] = {team.team: starts.get(team.team) for team in standing.pending}
    return head


def shown(
    snapshot: Snapshot, standing: ClusterUsage, leases: tuple[LeaseEntry, ...], starts: Starts = None
) -> Iterator[RenderableType]:
    """Return the standing for people: leading resources only."""
    policy = "no policy document read" if snapshot.policy is None else f"policy {snapshot.policy_version}"
    kueue = f"Kueue {said_release(snapshot.kueue)}"
    head = f" ({snapshot.cluster.status}), {snapshot.taken_at:%Y-%m-%d %H:%M:%S} UTC, {policy}, {kueue}"
    yield Text.assemble((snapshot.cluster.name, "bold"), head)
    if snapshot.stopped is not False:
        yield Text("The stop switch is on: runs change nothing.", style="bold red")
    yield _capacity(standing)
    yield _teams(standing, leases, starts, snapshot.taken_at)
    yield leases_table(leases)
    faults = [(node.name, node.instance_type, fault) for node in snapshot.nodes if (fault := node_fault(node))]
    yield table("Nodes that accept no work", ("node", "instance type", "because"), faults)


def _capacity(standing: ClusterUsage) -> RenderableType:
    rows = [
        (
            capacity.instance_type,
            capacity.resource,
            f"{capacity.healthy_nodes} of {capacity.healthy_nodes + capacity.unhealthy_nodes}",
            *(
                format_quantity(capacity.resource, n)
                for n in (capacity.healthy, capacity.guaranteed, capacity.overcommit)
            ),
        )
        for capacity in standing.capacities
    ]
    columns = ("instance type", "resource", "nodes healthy #", "capacity #", "guaranteed #", "overcommit #")
    return table("Capacity", columns, rows)


def _teams(standing: ClusterUsage, leases: tuple[LeaseEntry, ...], starts: Starts, now: datetime) -> RenderableType:
    waiting = {team.team: team for team in standing.pending}
    rows, over_quota = [], any(team.usage.over_quota for team in standing.teams if team.leading)
    for team in standing.teams:
        if team.leading:
            backlog = waiting.get(team.usage.team)
            pending = f"{backlog.workloads} ({backlog.accelerators})" if backlog else "0"
            quota, *others = _amounts(team, over_quota=over_quota)
            next_start = (starts or {}).get(team.usage.team)
            start = () if starts is None else (next_start.cell(now) if next_start else "",)
            rows.append(
                (team.usage.team, team.usage.instance_type, quota, _leased(team, leases), *others, pending, *start)
            )
    beyond = ("borrowed #", "over quota #") if over_quota else ("borrowed #",)
    numbers = ("quota #", "leased #", "used #", *beyond, "lent #", "idle #", "fair #", "waiting (GPUs) #")
    last = () if starts is None else (NEXT_START,)
    return table("Teams", ("team", "instance type", *numbers, *last), rows, main=True)


def _leased(team: TeamUsage, leases: tuple[LeaseEntry, ...]) -> str:
    """Return what of the quota is leased: `+2` from others, `-2 accelerators` to others."""
    return leased_words(leased(leases, team.usage.team, team.usage.instance_type))


def _amounts(team: TeamUsage, *, over_quota: bool) -> Iterator[str]:
    """Yield the amounts of a row; what is over quota only where a team of the table is: it is rare."""
    usage = team.usage
    beyond = (usage.borrowed, usage.over_quota) if over_quota else (usage.borrowed,)
    for amount in (usage.guaranteed, usage.used, *beyond, usage.lent, usage.idle, team.entitlement):
        yield "" if amount is None else format_quantity(usage.resource, amount)


def said_release(kueue: KueueObjects) -> str:
    """Return the release in words: `0.19.2`, or why it is not known."""
    release = kueue_release(kueue)
    return f"unknown ({unknown_because(kueue) or 'not read'})" if release is None else str(release)
