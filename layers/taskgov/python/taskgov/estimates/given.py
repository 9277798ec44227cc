"""Which kept estimate holds for a workload of a snapshot? And its words for people.

An estimate holds while its workload waits as it did then: what was admitted since, or evicted and waits again, has
none until the next look. Estimates of an hour ago and more are not shown: nobody looks any longer.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from taskgov.estimates.kept import KeptEstimates, Waiting
from taskgov.scheduling.instants import moment
from taskgov.scheduling.status_reading import read_conditions
from taskgov.snapshot.model import KubernetesObject, Snapshot

OLD: Final = timedelta(hours=1)
BEYOND: Final = timedelta(days=7)
"""How far a future goes (`taskgov.estimates.drawing.HORIZON`)."""


@dataclass(frozen=True, slots=True)
class GivenStart:
    """When a workload starts. Moments are None beyond the horizon of 7 days."""

    made: datetime
    no_earlier_than: datetime
    """One future in ten is earlier; the horizon where none of that is within it."""
    half_by: datetime | None
    nine_of_ten_by: datetime | None
    calibrated: bool
    """Whether it was corrected by what earlier estimates came to."""

    @property
    def is_sharp(self) -> bool:
        """Whether two moments are said; else only before when it does not start."""
        return self.calibrated and self.half_by is not None

    def cell(self, now: datetime) -> str:
        """Return it as a cell of a table has it: `14:20 / 17:05`, or `after 13:05`."""
        if not self.is_sharp:
            return f"after {clock_time(self.no_earlier_than, now)}"
        late = "7 days" if self.nine_of_ten_by is None else clock_time(self.nine_of_ten_by, now)
        return f"{clock_time(self.half_by or self.made, now)} / {late}"

    def sentence(self, now: datetime) -> str:
        """Return it as people say it."""
        if not self.is_sharp:
            return f"no earlier than {clock_time(self.no_earlier_than, now)}"
        late = "not within 7 days" if self.nine_of_ten_by is None else f"by {clock_time(self.nine_of_ten_by, now)}"
        return f"half of the time by {clock_time(self.half_by or self.made, now)}, nine times of ten {late}"


def given_starts(kept: KeptEstimates | None, snapshot: Snapshot) -> dict[str, GivenStart]:
    """Return the estimates that hold at a snapshot, by Kueue's key of the workload; none of what is kept too long."""
    if kept is None or snapshot.taken_at - kept.at >= OLD:
        return {}
    by_uid = {waiting.uid: waiting for waiting in kept.waiting}
    found = {}
    for item in snapshot.kueue.workloads:
        waiting = by_uid.get(str(item["metadata"].get("uid") or ""))
        if waiting is not None and _waits_since(item, waiting.made):
            found[f"{item['metadata'].get('namespace') or ''}/{item['metadata']['name']}"] = given_start(waiting)
    return found


def given_start(waiting: Waiting) -> GivenStart:
    """Return a kept estimate with moments."""
    early, half, nine = (_after(waiting.made, seconds) for seconds in (waiting.early, waiting.half, waiting.nine))
    beyond = waiting.made + BEYOND
    return GivenStart(waiting.made, early or beyond, half, nine, waiting.calibrated)


def clock_time(at: datetime, now: datetime) -> str:
    """Return a moment as people read it: the time alone on the day of the question."""
    return f"{at:%H:%M}" if at.date() == now.date() else f"{at:%Y-%m-%d %H:%M}"


def _after(made: datetime, seconds: float | None) -> datetime | None:
    return None if seconds is None else made + timedelta(seconds=seconds)


def _waits_since(item: KubernetesObject, made: datetime) -> bool:
    """Say whether a workload waits, and was not evicted since."""
    true = {
        kind: condition for kind, condition in read_conditions(item.get("status") or {}).items() if condition.status
    }
    if "QuotaReserved" in true or "Finished" in true or (item.get("spec") or {}).get("active") is False:
        return False
    return "Evicted" not in true or moment(true["Evicted"].since) <= made
