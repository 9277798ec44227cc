"""From where advice has its history: a trace, or the record of work; and how teams stand in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskgov.advice.candidates import quotas_of
from taskgov.advice.past import Past, Piece
from taskgov.advice.rules import Rule
from taskgov.advice.today import TeamToday, Today

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from taskgov.advice.past import Use
    from taskgov_cli.replay_traces import Trace


def past_of(trace: Trace) -> Past:
    """Return the history of a trace."""
    return Past.of(Piece(job.team, job.arrival, job.run_time, job.gpus, job.priority) for job in trace.jobs)


def basis_of_use(teams: Sequence[str], gpus: int, use: Mapping[str, Use]) -> Today:
    """Return today without a document: quotas in proportion to what was used before, and a limit of 100 %."""
    even = [
        TeamToday(team, gpus // len(teams) + (place < gpus % len(teams)), weight=10) for place, team in enumerate(teams)
    ]
    quotas = quotas_of(Rule.USE, use, Today(tuple(even)))
    return Today(tuple(TeamToday(team, quotas[team], weight=10) for team in teams), rule=Rule.USE)
