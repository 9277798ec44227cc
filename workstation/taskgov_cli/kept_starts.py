"""The estimates that a deployed stack keeps, as far as the caller may read them.

A caller who may see all workloads reads the document of the cluster; a member reads the part of each team that the
snapshot was read for. What may not be read, or is not there, is none: the commands say so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from taskgov.errors import GovernanceError
from taskgov.estimates.given import BEYOND, OLD, GivenStart, by_task, given_starts
from taskgov.estimates.kept import KEY, TEAM_KEY, KeptEstimates
from taskgov.hyperpod.names import team_of_namespace
from taskgov.kueue.named import named
from taskgov.snapshot.unseen import Part
from taskgov_cli.output import console
from taskgov_cli.own_rights import is_denied
from taskgov_cli.snapshots import reported

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from taskgov.ports import DocumentStore
    from taskgov.snapshot.model import Snapshot


STARTS: Final = "starts by, half / 9 of 10 (UTC)"
"""The column of a table: two moments, or `after` one before which the job hardly starts."""


@dataclass(frozen=True, slots=True)
class ReadableDocuments:
    """Documents of which those that the caller may not read are as if they were not there: S3 refuses both alike."""

    documents: DocumentStore

    def find(self, key: str) -> bytes | None:
        """Return what is stored at a key; None where it is not there, or may not be read."""
        try:
            return self.documents.find(key)
        except GovernanceError as error:
            if not is_denied(error):
                raise
            return None


def kept_by(stack: str | None, known: Snapshot) -> KeptEstimates | None:
    """Return what a stack keeps of a live cluster; None without a stack, and where nothing may be read of it.

    Ends the command with a sentence where AWS cannot be reached.
    """
    if stack is None:
        return None
    from taskgov_cli.live_reading import documents_of  # noqa: PLC0415 - the AWS SDK, for a stack only

    with reported():
        return kept_in(documents_of(stack), known)


def kept_in(documents: DocumentStore, known: Snapshot) -> KeptEstimates | None:
    """Return what is kept in a bucket of a cluster, as far as it may be read. Raises GovernanceError."""
    readable, name = ReadableDocuments(documents), known.cluster.name
    if not any(gap.part is Part.WORKLOADS for gap in known.unseen):
        return _read(readable, KEY.format(name))
    namespaces = next(gap.seen for gap in known.unseen if gap.part is Part.WORKLOADS)
    parts = [_read(readable, TEAM_KEY.format(name, team_of_namespace(space) or space)) for space in namespaces]
    some = [part for part in parts if part is not None]
    if not some:
        return None
    # That of a team with no open estimate is not written again, and says nothing of the others.
    latest = max(part.at for part in some)
    some = [part for part in some if latest - part.at < OLD]
    return replace(
        min(some, key=lambda part: part.at),
        waiting=tuple(waiting for part in some for waiting in part.waiting),
        waits=sum(part.waits for part in some),
        scores={team: score for part in some for team, score in part.scores.items()},
        outcomes=tuple(outcome for part in some for outcome in part.outcomes),
    )


def starts_of(stack: str | None, known: Snapshot) -> dict[str, GivenStart] | None:
    """Return the kept estimates that hold, by Kueue's key of the workload; None where nothing is kept."""
    kept = kept_by(stack, known)
    return None if kept is None else given_starts(kept, known)


def next_of_teams(given: dict[str, GivenStart] | None, known: Snapshot) -> dict[str, GivenStart] | None:
    """Return of each team the estimate of the workload that starts first."""
    teams = {its.key: its.team for its in map(named, known.kueue.workloads)}
    return None if given is None else next_starts(given, teams)


def starts_by_task(given: dict[str, GivenStart] | None, known: Snapshot) -> dict[tuple[str, str], GivenStart] | None:
    """Return estimates by team and job."""
    return None if given is None else by_task(given, known)


def next_starts(given: Mapping[str, GivenStart], teams: Mapping[str, str]) -> dict[str, GivenStart]:
    """Return of each team the estimate of the workload that starts first; `teams` by key of the workload."""
    found: dict[str, GivenStart] = {}
    for key, start in sorted(given.items()):
        team = teams.get(key)
        if team is not None and (team not in found or _order(start) < _order(found[team])):
            found[team] = start
    return found


def _order(start: GivenStart) -> tuple[datetime, datetime]:
    return start.half_by or start.made + BEYOND, start.no_earlier_than


def _read(documents: ReadableDocuments, key: str) -> KeptEstimates | None:
    stored = documents.find(key)
    try:
        return None if stored is None else KeptEstimates.from_bytes(stored)
    except ValueError as error:
        console(stderr=True).print(f"{key} cannot be read ({error}); the next estimates replace it", markup=False)
        return None
