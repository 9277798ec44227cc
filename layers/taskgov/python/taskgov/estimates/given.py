"""Find the kept estimate that is valid for a workload of a snapshot, and format it for people.

An estimate is valid while its workload has waited without a break since it was made. A workload that was admitted or
evicted since has none until the next estimates, and neither has one that still waits after the time of its 90th
percentile. If the last estimates are an hour old or older, none is shown: the schedule that makes them has stopped.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from taskgov.estimates.held_back import held_back
from taskgov.estimates.kept import KeptEstimates, Waiting
from taskgov.kueue.named import named
from taskgov.scheduling.instants import moment
from taskgov.scheduling.status_reading import read_conditions, true_conditions
from taskgov.snapshot.model import KubernetesObject, Snapshot

OLD: Final = timedelta(hours=1)
BEYOND: Final = timedelta(days=7)
"""Length of a future (`taskgov.estimates.drawing.HORIZON`)."""


@dataclass(frozen=True, slots=True)
class GivenStart:
    """The estimated start of a workload. Times are None beyond the horizon of 7 days."""

    made: datetime
    no_earlier_than: datetime
    """One future in ten starts earlier. The end of the horizon if that quantile is beyond it."""
    half_by: datetime | None
    nine_of_ten_by: datetime | None
    calibrated: bool
    """Whether it was corrected by the outcomes of earlier estimates."""

    @property
    def is_sharp(self) -> bool:
        """Whether it is shown as two times. Otherwise only the earliest time is shown."""
        return self.calibrated and self.half_by is not None

    def cell(self, now: datetime) -> str:
        """Return it as a table cell: `14:20 / 17:05`, or `after 13:05`."""
        if not self.is_sharp:
            return f"after {clock_time(self.no_earlier_than, now)}"
        late = "7 days" if self.nine_of_ten_by is None else clock_time(self.nine_of_ten_by, now)
        return f"{clock_time(self.half_by or self.made, now)} / {late}"

    def sentence(self, now: datetime) -> str:
        """Return it as a phrase."""
        if not self.is_sharp:
            return f"no earlier than {clock_time(self.no_earlier_than, now)}"
        late = "not within 7 days" if self.nine_of_ten_by is None else f"by {clock_time(self.nine_of_ten_by, now)}"
        return f"half of the time by {clock_time(self.half_by or self.made, now)}, nine times of ten {late}"


def given_starts(kept: KeptEstimates | None, snapshot: Snapshot) -> dict[str, GivenStart]:
    """Return the estimates that are valid at a snapshot, by Kueue's key of the workload; none if they are too old."""
    if kept is None or snapshot.taken_at - kept.at >= OLD:
        return {}
    by_uid = {waiting.uid: waiting for waiting in kept.waiting}
    found, no_quota_starts = {}, held_back(snapshot) if by_uid else frozenset()
    for item in snapshot.kueue.workloads:
        waiting = by_uid.get(str(item["metadata"].get("uid") or ""))
        if waiting is not None and not waiting.is_over(snapshot.taken_at) and _waits_since(item, waiting.made):
            key = f"{item['metadata'].get('namespace') or ''}/{item['metadata']['name']}"
            if key not in no_quota_starts:
                found[key] = given_start(waiting)
    return found


def by_task(given: Mapping[str, GivenStart], snapshot: Snapshot) -> dict[tuple[str, str], GivenStart]:
    """Return estimates by team and job. Where several unfinished workloads have one name, it has none."""
    unfinished = [
        item for item in snapshot.kueue.workloads if "Finished" not in true_conditions(item.get("status") or {})
    ]
    names = {its.key: (its.team, its.job) for its in map(named, unfinished)}
    of_name = Counter(names.values())
    return {names[key]: start for key, start in given.items() if key in names and of_name[names[key]] == 1}


def given_start(waiting: Waiting) -> GivenStart:
    """Return a kept estimate with times instead of seconds."""
    early, half, nine = (_after(waiting.made, seconds) for seconds in (waiting.early, waiting.half, waiting.nine))
    beyond = waiting.made + BEYOND
    return GivenStart(waiting.made, early or beyond, half, nine, waiting.calibrated)


def clock_time(at: datetime, now: datetime) -> str:
    """Return a time for people: without the date if it is on the day of `now`."""
    return f"{at:%H:%M}" if at.date() == now.date() else f"{at:%Y-%m-%d %H:%M}"


def _after(made: datetime, seconds: float | None) -> datetime | None:
    return None if seconds is None else made + timedelta(seconds=seconds)


def _waits_since(item: KubernetesObject, made: datetime) -> bool:
    """Return whether a workload waits, and was not evicted since `made`."""
    true = {
        kind: condition for kind, condition in read_conditions(item.get("status") or {}).items() if condition.status
    }
    if "QuotaReserved" in true or "Finished" in true or (item.get("spec") or {}).get("active") is False:
        return False
    return "Evicted" not in true or moment(true["Evicted"].since) <= made
