"""The stored estimates and the outcomes of earlier ones: one document for each cluster, and an extract for each team.

`starts/<cluster>/estimates.json.gz` has everything. `starts/<cluster>/teams/<team>.json.gz` has what members of the
team may read: their own estimates, and how accurate those were. Workloads appear only as UIDs.
"""

from __future__ import annotations

import gzip
import json
import zlib
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from math import inf, isfinite
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from taskgov.estimates.quantiles import Estimate
from taskgov.estimates.recalibration import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

FORM: Final = 1
KEY: Final = "starts/{}/estimates.json.gz"
TEAM_KEY: Final = "starts/{}/teams/{}.json.gz"
NO_ESTIMATES: Final = "no estimates: "
"""Begins the note that says why a cluster has none."""
NONE_FOR_ANYBODY: Final = "the cluster has no estimates at present; its administrators can read why"
ALL_TEAMS: Final = "all teams"
"""Key of the scores of all teams together. No team name contains a space."""


class Before(NamedTuple):
    """A running workload, and in how many futures its end is the last before the estimated start."""

    uid: str
    team: str
    """In a team's extract, uid and team are empty for the workloads of all other teams together."""
    futures: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """The estimate of a waiting workload. Durations are seconds from `made`, None beyond the horizon."""

    uid: str
    team: str
    made: datetime
    early: float | None
    """The 10th percentile: in one future of ten it starts earlier."""
    half: float | None
    nine: float | None
    calibrated: bool
    """Whether it was corrected by the outcomes of earlier estimates, if enough were known."""
    after: tuple[Before, ...] = ()
    futures: int = 0
    """How many futures simulated it; 0 in older documents."""

    def is_over(self, now: datetime) -> bool:
        """Return whether the 90th percentile has passed."""
        return self.nine is not None and self.made + timedelta(seconds=self.nine) < now


@dataclass(frozen=True, slots=True)
class Kept:
    """An earlier estimate: as simulated (`raw`), as published (`given`), and its outcome. Times: seconds since 1970."""

    uid: str
    team: str
    made: int
    raw: Estimate
    given: Estimate
    start: int | None = None
    """When the workload started; None if no start is known."""
    cancelled: bool = False
    """The workload left without a start, or its start is unknown. Such an estimate is not scored."""

    @property
    def is_open(self) -> bool:
        """Whether the outcome is still unknown."""
        return self.start is None and not self.cancelled

    @property
    def outcome(self) -> Outcome:
        """The outcome as recalibration and scores use it."""
        start = inf if self.start is None else float(self.start)
        return Outcome(self.team, float(self.made), self.raw, self.given, start, self.cancelled)


class TeamScore(NamedTuple):
    """How accurate the last settled estimates were: their number, and the fractions that started in time."""

    number: int
    half: float
    nine: float
    """NaN if none of these times is over."""


@dataclass(frozen=True, slots=True)
class KeptEstimates:
    """All that is stored for a cluster, or the extract for one team."""

    at: datetime
    """When the cluster was last read."""
    estimated_at: datetime | None = None
    """When futures were last simulated."""
    digest: str = ""
    """Digest of the queue at that moment. While it is the same, the estimates are reused."""
    futures: int = 0
    waiting: tuple[Waiting, ...] = ()
    waits: int = 0
    """Number of workloads that waited for quota. `notes` explains why some or all have no estimate."""
    notes: tuple[str, ...] = ()
    """Why there are no estimates, or not for all workloads."""
    scores: Mapping[str, TeamScore] = field(default_factory=dict)
    """By team, and for `ALL_TEAMS`."""
    outcomes: tuple[Kept, ...] = ()
    """Oldest first."""

    @property
    def has_none(self) -> bool:
        """Whether there are no estimates for anybody."""
        return any(note.startswith(NO_ESTIMATES) for note in self.notes)

    def of_team(self, team: str) -> KeptEstimates:
        """Return the extract that members of a team may read."""
        own = tuple(_for_its_team(waiting) for waiting in self.waiting if waiting.team == team)
        scores = {name: score for name, score in self.scores.items() if name == team}
        outcomes = tuple(kept for kept in self.outcomes if kept.team == team)
        # The notes may name queues of other teams.
        notes = (NONE_FOR_ANYBODY,) if self.has_none else ()
        return replace(self, digest="", waiting=own, waits=len(own), notes=notes, scores=scores, outcomes=outcomes)

    def to_bytes(self) -> bytes:
        """Return the document. Equal estimates give equal bytes."""
        document = {
            "form": FORM,
            "at": _seconds(self.at),
            "estimatedAt": None if self.estimated_at is None else _seconds(self.estimated_at),
            "digest": self.digest,
            "futures": self.futures,
            "waits": self.waits,
            "notes": list(self.notes),
            "scores": {team: [score.number, *map(_finite, score[1:])] for team, score in sorted(self.scores.items())},
            "waiting": [_waiting_row(waiting) for waiting in self.waiting],
            "outcomes": [_kept_row(kept) for kept in self.outcomes],
        }
        return gzip.compress(json.dumps(document, separators=(",", ":")).encode(), mtime=0)

    @classmethod
    def from_bytes(cls, stored: bytes) -> KeptEstimates:
        """Read what `to_bytes` wrote. Raises `ValueError` for anything else, including another `form`."""
        try:
            document = json.loads(gzip.decompress(stored))
            if document["form"] != FORM:
                raise ValueError(f"it is of form {document['form']!r} and not {FORM}")
            return cls(
                at=_moment(document["at"]),
                estimated_at=None if document["estimatedAt"] is None else _moment(document["estimatedAt"]),
                digest=str(document["digest"]),
                futures=int(document["futures"]),
                waiting=tuple(map(_waiting_of, document["waiting"])),
                waits=int(document["waits"]),
                notes=tuple(map(str, document["notes"])),
                scores={
                    str(team): TeamScore(int(row[0]), _number(row[1]), _number(row[2]))
                    for team, row in document["scores"].items()
                },
                outcomes=tuple(map(_kept_of, document["outcomes"])),
            )
        except (OSError, EOFError, zlib.error, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"it holds no estimates ({type(error).__name__})") from error
        except OverflowError as error:
            raise ValueError("it has a moment that no clock shows") from error


def _for_its_team(waiting: Waiting) -> Waiting:
    """Return the estimate with the workloads of other teams merged into one anonymous entry."""
    own = tuple(before for before in waiting.after if before.team == waiting.team)
    others = sum(before.futures for before in waiting.after) - sum(before.futures for before in own)
    return replace(waiting, after=(*own, Before("", "", others)) if others else own)


def _seconds(at: datetime) -> int:
    return int(at.timestamp())


def _moment(seconds: Any) -> datetime:
    return datetime.fromtimestamp(int(seconds), UTC)


def _finite(value: float) -> float | None:
    return round(value, 4) if isfinite(value) else None


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)


def _length(value: Any) -> float | None:
    return None if value is None else float(value)


def _estimate(half: Any, nine: Any) -> Estimate:
    return Estimate(*(inf if value is None else float(value) for value in (half, nine)))


def _waiting_row(waiting: Waiting) -> list[Any]:
    lengths = (None if value is None else round(value) for value in (waiting.early, waiting.half, waiting.nine))
    before = [list(before) for before in waiting.after]
    return [waiting.uid, waiting.team, _seconds(waiting.made), *lengths, waiting.calibrated, before, waiting.futures]


def _waiting_of(row: list[Any]) -> Waiting:
    uid, team, made, early, half, nine, calibrated, before, *futures = row
    after = tuple(Before(str(other), str(its), int(futures)) for other, its, futures in before)
    lengths = (_length(early), _length(half), _length(nine))
    return Waiting(str(uid), str(team), _moment(made), *lengths, bool(calibrated), after, *map(int, futures))


def _kept_row(kept: Kept) -> list[Any]:
    lengths = (round(value) if isfinite(value) else None for value in (*kept.raw, *kept.given))
    return [kept.uid, kept.team, kept.made, *lengths, kept.start, int(kept.cancelled)]


def _kept_of(row: list[Any]) -> Kept:
    uid, team, made, raw_half, raw_nine, half, nine, start, cancelled = row
    raw, given = _estimate(raw_half, raw_nine), _estimate(half, nine)
    return Kept(str(uid), str(team), int(made), raw, given, None if start is None else int(start), bool(cancelled))
