"""The history that estimates are drawn from: runs, arrivals and measured time; and whether it is enough.

Times are seconds since 1970, durations are seconds.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

from taskgov.estimates.arrivals import Coming, Past
from taskgov.estimates.batches import sized
from taskgov.estimates.quantiles import LEAST_HISTORY
from taskgov.estimates.requests import Arrival, Ran, Request, of_another_batch, sound
from taskgov.estimates.run_times import RunTimes
from taskgov.estimates.scenes import Background
from taskgov.work.attempt import End
from taskgov.work.measured import union

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from taskgov.estimates.queue_now import Scene
    from taskgov.estimates.scenes import Queue
    from taskgov.work.attempt import Attempt
    from taskgov.work.measured import Span

MINUTE: Final = 60.0
STALE: Final = 86400.0
"""A history that ends more than this many seconds before the snapshot is not used."""


@dataclass(frozen=True, slots=True)
class History:
    """The runs and arrivals before a moment, and the spans that were measured."""

    runs: tuple[Ran, ...]
    arrivals: tuple[Arrival, ...]
    measured: tuple[tuple[float, float], ...]
    source: str
    """Its name for people: `record of 61 runs`."""
    backgrounds: Mapping[str, Background] = field(default_factory=dict)
    """What is known of present Workloads, by UID."""

    @property
    def until(self) -> float:
        """The end of the last measured span; minus infinity if nothing was measured."""
        return max((end for _, end in self.measured), default=float("-inf"))


def of_record(ended: Iterable[Attempt], measured: Iterable[Span], now: float, still: Iterable[Attempt] = ()) -> History:
    """Return the history in a record of work. `still` are the attempts that wait or run."""
    seen = [attempt for attempt in ended if attempt.end != End.UNSEEN]
    present = tuple(still)
    first = {attempt.uid: attempt for attempt in (*present, *reversed(seen))}
    came = [(_request(attempt), attempt.created.timestamp()) for attempt in first.values()]
    requests = dict(zip(first, sized(came), strict=True))
    arrivals = tuple(
        Arrival(of_another_batch(request), at) for request, (_, at) in zip(requests.values(), came, strict=True)
    )
    spans = tuple((span.start.timestamp(), min(span.end.timestamp(), now)) for span in union(measured))
    runs = tuple(
        _ran(requests[attempt.uid], attempt.admitted.timestamp(), float(seconds), attempt.end, spans)
        for attempt in seen
        if attempt.admitted is not None and (seconds := attempt.run_seconds) is not None
    )
    longest: dict[str, float] = {}
    for attempt in seen:
        longest[attempt.uid] = max(longest.get(attempt.uid, 0.0), float(attempt.run_seconds or 0))
    backgrounds = {
        attempt.uid: Background(
            attempt.owner or "",
            longest.get(attempt.uid, 0.0),
            requests[attempt.uid].size,
            requests[attempt.uid].batch,
        )
        for attempt in present
        if attempt.uid
    }
    return History(runs, arrivals, spans, f"record of {len(runs)} runs", backgrounds)


def _ran(
    request: Request, admitted: float, seconds: float, end: End | None, spans: Sequence[tuple[float, float]]
) -> Ran:
    """Return how long a job ran. One that was deleted has ended, as far as its quota is concerned.

    If that was seen by the first measurement after a gap, it has run at least until the last one before the gap.
    """
    if end == End.GONE:
        ended = admitted + seconds
        place = bisect_right(spans, (ended, inf)) - 1
        if place > 0 and ended - spans[place][0] < MINUTE:
            place -= 1
        if place >= 0 and ended - spans[place][1] >= MINUTE:
            return Ran(request, admitted, max(spans[place][1] - admitted, 0.0), ended=False)
    return Ran(request, admitted, seconds, ended=end in {End.FINISHED, End.GONE})


def _request(attempt: Attempt) -> Request:
    limit = None if attempt.max_seconds is None else float(attempt.max_seconds)
    return Request(attempt.team, attempt.accelerators, attempt.owner or "", limit)


class Basis(NamedTuple):
    """What the estimates of a queue are drawn from, or why there are none."""

    history: History
    run_times: RunTimes
    past: Past
    comes: int
    """The number of arrivals of the history whose team has a queue here."""
    lacks: str
    """Why nothing can be estimated, for people; empty if it can."""

    def notes(self, team: str) -> Sequence[str]:
        """Return what a team's estimates are based on, and what makes them weak."""
        if self.lacks:
            return (f"no estimate: {self.lacks}",)
        known, everybody = self.run_times.known(team), len(self.history.arrivals)
        own = f"by a {self.history.source}, and what runs: {known} of {team} counted"
        by = own if known else f"{team} has no history: other teams' run times are used"
        left = everybody - self.comes
        why = "they request no accelerators, or their team has no queue for them"
        return (by, f"{left} of {everybody} arrivals are left out: {why}") if left else (by,)


def basis_of(history: History, queue: Queue, now: float) -> Basis:
    """Return what estimates are drawn from. A history that is too short, stale or of other queues gives none."""
    first = min((start for start, _ in history.measured), default=now)
    # Of the jobs that started before the history, only the long ones are in it.
    run_times = RunTimes((ran for ran in (*history.runs, *queue.runs) if ran.started >= first), now)
    comes = _come(history, queue.scene)
    past = Past(history.arrivals, now, history.measured)
    recorded = sum(ran.started >= first and sound(ran, now) for ran in history.runs)
    return Basis(history, run_times, past, comes, _lacks(history, recorded, comes, now))


def _lacks(history: History, recorded: int, comes: int, now: float) -> str:
    if not history.measured:
        return f"the {history.source} has no measured time"
    if history.until < now - STALE:
        return f"the history ends {(now - history.until) / 86400:.1f} days before the snapshot; at most 1 is allowed"
    if recorded < LEAST_HISTORY:
        return f"{recorded} runs are recorded, and it takes {LEAST_HISTORY}"
    if not comes:
        return "no team of the history has a queue with accelerators here"
    return ""


def _come(history: History, scene: Scene) -> int:
    """Return the number of arrivals whose team has a queue with accelerators here."""
    requests = Counter(arrival.request for arrival in history.arrivals)
    return sum(
        times for request, times in requests.items() if scene.newcomer(Coming(request, 0.0), 0, scene.now) is not None
    )
