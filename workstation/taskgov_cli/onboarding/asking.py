"""With which teams does a cluster without quotas begin, and who keeps its quotas? Read from options, or asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from taskgov.policy.document import CoOwnedPolicy
from taskgov_cli.onboarding.first_teams import FirstTeams, Style, TeamWish, team_wish

if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskgov.snapshot.model import Snapshot


@dataclass(frozen=True, slots=True)
class Typed:
    """The options of `taskgov init` that say with which teams to begin, as they were typed."""

    teams: list[str]
    instance_types: list[str]
    style: Style | None


def first_teams(snapshot: Snapshot, typed: Typed, *, may_ask: bool) -> FirstTeams | None:
    """Return the teams to begin with; None where none are wanted. Raises `typer.BadParameter` that names all mistakes.

    It asks only where nothing was typed, the cluster has no quotas and nodes to divide.
    """
    if typed.teams:
        teams = _read(typed.teams)
        return FirstTeams(teams, tuple(typed.instance_types), typed.style or Style.FLEXIBLE)
    if typed.instance_types or typed.style:
        given = "--instance-type" if typed.instance_types else "--style"
        raise typer.BadParameter(f"{given} needs teams: name them with --team")
    types = sorted({node.instance_type for node in snapshot.nodes})
    return _asked(types) if may_ask and types and not snapshot.quotas else None


def co_owned_rule(owners: Mapping[str, str], typed: CoOwnedPolicy | None, *, may_ask: bool) -> CoOwnedPolicy | None:
    """Return how to treat quotas that a tool keeps too (`owners`: quota -> tool); None where there is none."""
    if typed is not None or not owners:
        return typed
    if not may_ask:
        return CoOwnedPolicy.KEEP
    for quota, tool in owners.items():
        typer.echo(f"{quota} was last changed by {tool}.")
    chosen: CoOwnedPolicy = typer.prompt(
        "Quotas that a tool manages too: keep (plans leave them to it) or govern (docs/terraform.md)",
        default=CoOwnedPolicy.KEEP.value,
        value_proc=_co_owned_in,
    )
    return chosen


def _co_owned_in(text: str) -> CoOwnedPolicy:
    try:
        return CoOwnedPolicy(text.strip())
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not one of {', '.join(CoOwnedPolicy)}") from error


def _asked(types: list[str]) -> FirstTeams | None:
    typer.echo("No team has a quota here. Name the first teams, or press Enter to write an empty document.")
    teams = typer.prompt(
        "Teams, separated by commas (research:2 for two parts)", default="", show_default=False, value_proc=_teams_in
    )
    if not teams:
        return None
    chosen = typer.prompt(
        f"Instance types, separated by commas, out of {', '.join(types)}",
        default="all",
        value_proc=lambda text: _types_in(text, types),
    )
    style = typer.prompt(
        f"Sharing: {', '.join(Style)} (docs/choosing.md)", default=Style.FLEXIBLE.value, value_proc=_style_in
    )
    return FirstTeams(teams, chosen, style)


def _teams_in(text: str) -> tuple[TeamWish, ...]:
    return _read([part for part in text.split(",") if part.strip()])


def _read(texts: list[str]) -> tuple[TeamWish, ...]:
    teams: list[TeamWish] = []
    problems: list[str] = []
    for text in texts:
        try:
            teams.append(team_wish(text))
        except ValueError as error:
            problems.append(str(error))
    if problems:
        raise typer.BadParameter("; ".join(problems))
    return tuple(teams)


def _types_in(text: str, known: list[str]) -> tuple[str, ...]:
    chosen = tuple(part.strip() for part in text.split(",") if part.strip())
    if text.strip() == "all":
        return ()
    if unknown := [name for name in chosen if name not in known] or (["nothing"] if not chosen else []):
        raise typer.BadParameter(f"{', '.join(unknown)}: must be one of {', '.join(known)}, or all")
    return chosen


def _style_in(text: str) -> Style:
    try:
        return Style(text.strip())
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not one of {', '.join(Style)}") from error
