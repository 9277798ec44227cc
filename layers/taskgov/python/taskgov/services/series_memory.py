"""Which metric series a cluster had in this hour, and whose they were: one document for each cluster with many.

The measurement of each minute and the end of a run write it. If two of them overlap, the later write counts: the next
measurement then has fewer series than there were in the hour, and publishes the same teams.
"""

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Self

from taskgov.json_form import DAMAGED

FORM: Final = 1
LATELY: Final = timedelta(hours=2)
"""An older memory says nothing of now: the cluster has few series again, or is not read any more."""


@dataclass(frozen=True, slots=True)
class SeriesMemory:
    """What `taskgov.services.series_rule` keeps of one hour."""

    hour: datetime
    """When it began, in UTC."""
    limit: int
    wanted: int
    """The limit that would have been enough at the last measurement: every team with series of its own."""
    teams: int
    own: tuple[str, ...]
    """Teams with series of their own, by name."""
    busy: Mapping[str, datetime]
    """Team -> the last hour in which it used something, waited or was preempted."""
    series: frozenset[str]
    """The series of this hour, with those that are kept free."""

    @property
    def cut(self) -> int:
        """How many teams have no series of their own."""
        return self.teams - len(self.own)

    def is_of(self, now: datetime) -> bool:
        """Return whether it is about now."""
        return self.hour <= now < self.hour + LATELY

    def to_bytes(self) -> bytes:
        """Return the document: the same memory gives the same bytes."""
        document = {
            "form": FORM,
            "hour": self.hour.isoformat(),
            "limit": self.limit,
            "wanted": self.wanted,
            "teams": self.teams,
            "own": self.own,
            "busy": {team: at.isoformat() for team, at in self.busy.items()},
            "series": sorted(self.series),
        }
        return gzip.compress(json.dumps(document, separators=(",", ":")).encode(), compresslevel=1, mtime=0)

    @classmethod
    def from_bytes(cls, stored: bytes) -> Self:
        """Read what `to_bytes` wrote. Raises `ValueError` for anything else, also for another form."""
        try:
            document = json.loads(gzip.decompress(stored))
            if document["form"] != FORM:
                raise ValueError(f"it is of form {document['form']!r} and not {FORM}")
            return cls(
                hour=_moment(document["hour"]),
                limit=int(document["limit"]),
                wanted=int(document["wanted"]),
                teams=int(document["teams"]),
                own=tuple(map(str, document["own"])),
                busy={str(team): _moment(at) for team, at in document["busy"].items()},
                series=frozenset(map(str, document["series"])),
            )
        except DAMAGED as error:
            raise ValueError(f"it is not a memory of metric series ({type(error).__name__})") from error


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    return moment.astimezone(UTC)
