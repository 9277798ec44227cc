"""What `taskgov when` answers: an estimate that is kept, or one that is computed now from a history."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from math import isfinite, isnan
from typing import TYPE_CHECKING, Final

from taskgov.estimates.all_waiting import EARLY, FUTURES, MOST_BEFORE, needs_exact_model
from taskgov.estimates.drawing import HORIZON, Drawing, fast, waits_together
from taskgov.estimates.given import BEYOND, GivenStart, clock_time
from taskgov.estimates.history import basis_of
from taskgov.estimates.kept import Before
from taskgov.estimates.quantiles import Estimate, estimate_of, quantile
from taskgov.estimates.recalibration import corrections
from taskgov.estimates.scenes import queue_of
from taskgov.kueue.named import named
from taskgov.quantities import format_quantity, is_accelerator
from taskgov.scheduling.status_reading import true_conditions
from taskgov.usage.amounts import words
from taskgov_explain.reasons import ESTIMATED, Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from taskgov.estimates.history import History
    from taskgov.estimates.kept import KeptEstimates, TeamScore
    from taskgov.futures import Jobs, Setting, Starts
    from taskgov.scheduling.instants import Instant
    from taskgov.snapshot.model import Snapshot
    from taskgov_explain.holders import Holder
    from taskgov_explain.workload import WorkloadExplanation

EXACT_FUTURES: Final = 20
"""Fewer futures where the exact model has to play them: each takes as long as many fast ones."""


@dataclass(frozen=True, slots=True)
class WaitsFor:
    """A workload that runs: in so many futures its end is the last before the start."""

    workload: str
    """Empty for those of other teams, which a member does not see, and for those that have ended since the estimate."""
    futures: int
    ended: bool = False
    """Whether it has ended since the estimate."""

    @property
    def words(self) -> str:
        """For example: `in 31 when team-a/others-6 ends`."""
        if self.ended:
            return f"in {self.futures} after jobs that have ended since"
        return f"in {self.futures} when {f'{self.workload} ends' if self.workload else 'jobs of other teams end'}"


@dataclass(frozen=True, slots=True)
class Earlier:
    """An earlier estimate of the job, and its outcome. Moments are None beyond 7 days."""

    made_at: datetime
    half_by: datetime | None
    nine_of_ten_by: datetime | None
    started_at: datetime | None
    """None where it has not started."""

    def words(self, now: datetime) -> str:
        """Say what was estimated, and how it came."""
        half, nine = (
            "not within 7 days" if at is None else f"by {clock_time(at, now)}"
            for at in (self.half_by, self.nine_of_ten_by)
        )
        said = f"estimated at {clock_time(self.made_at, now)}: half of the time {half}, nine times of ten {nine}"
        if self.started_at is None:
            return said
        return f"{said}; it started at {clock_time(self.started_at, now)}, {self._hit(self.started_at)}"

    def _hit(self, started: datetime) -> str:
        horizon = self.made_at + BEYOND
        if started <= (self.half_by or horizon):
            return "by the median estimate"
        if started <= (self.nine_of_ten_by or horizon):
            return "by the 90 % estimate"
        return "later than both" if self.nine_of_ten_by else "later than 7 days after it"


@dataclass(frozen=True, slots=True)
class StartEstimate:
    """When a job starts. Moments are None where they are not known, or more than 7 days away."""

    workload: str
    asked_at: datetime
    reason: Reason
    because: str
    """What it waits for."""
    made_at: datetime | None = None
    """When the estimate was made."""
    kept: bool = False
    """Whether it is one that the stack keeps, and not computed by this command."""
    half_by: datetime | None = None
    nine_of_ten_by: datetime | None = None
    no_earlier_than: datetime | None = None
    """One future in ten is earlier."""
    calibrated: bool = False
    """Whether outcomes of earlier estimates are known, by which this one was corrected."""
    futures: int = 0
    waits_for: tuple[WaitsFor, ...] = ()
    holders: tuple[str, ...] = ()
    """What each team holds of the quota that it waits for, in words."""
    earlier: tuple[Earlier, ...] = ()
    """Earlier estimates of this job that are kept, oldest first."""
    record: str = ""
    """How good earlier estimates for the team were."""
    notes: tuple[str, ...] = ()

    @property
    def given(self) -> GivenStart | None:
        """The estimate with its words; None where there is none."""
        if self.no_earlier_than is None:
            return None
        made = self.made_at or self.asked_at
        return GivenStart(made, self.no_earlier_than, self.half_by, self.nine_of_ten_by, self.calibrated)


def plain(known: Snapshot, explained: WorkloadExplanation) -> StartEstimate:
    """Return what is known without an estimate: why the job waits, or that it runs."""
    waits = explained.reason in ESTIMATED
    holders = tuple(_holding(explained.holders)) if waits else ()
    return StartEstimate(explained.workload, known.taken_at, explained.reason, explained.because, holders=holders)


def _holding(holders: Sequence[Holder]) -> Iterator[str]:
    """Say what each team holds of the quota that a job waits for: accelerators, or all where it requests none."""
    leading = [holder for holder in holders if is_accelerator(holder.resource)] or holders
    for holder in leading:
        if holder.used:
            used, guaranteed = words(holder.resource, holder.used), format_quantity(holder.resource, holder.guaranteed)
            yield f"{holder.team} uses {used} of {holder.instance_type} (quota {guaranteed})"


def of_kept(
    found: StartEstimate, explained: WorkloadExplanation, start: GivenStart, kept: KeptEstimates, known: Snapshot
) -> StartEstimate:
    """Return the answer with an estimate that is kept."""
    uid, team = _uid(explained.key, known), explained.team
    waiting = next((waiting for waiting in kept.waiting if waiting.uid == uid), None)
    return replace(
        found,
        made_at=start.made,
        kept=True,
        half_by=start.half_by,
        nine_of_ten_by=start.nine_of_ten_by,
        no_earlier_than=start.no_earlier_than,
        calibrated=start.calibrated,
        futures=(waiting.futures if waiting else 0) or kept.futures,
        waits_for=_named(waiting.after if waiting else (), known),
        record=score_words(kept.scores.get(team), team),
        notes=kept.notes,
    )


def with_earlier(
    found: StartEstimate, explained: WorkloadExplanation, kept: KeptEstimates, known: Snapshot
) -> StartEstimate:
    """Return the answer with what earlier estimates of the job said, and how good those for its team were."""
    uid, team = _uid(explained.key, known), explained.team
    earlier = tuple(
        Earlier(
            datetime.fromtimestamp(outcome.made, UTC),
            _at(outcome.made + outcome.given.half),
            _at(outcome.made + outcome.given.nine),
            None if outcome.start is None else _at(outcome.start),
        )
        for outcome in kept.outcomes
        if outcome.uid == uid and not outcome.cancelled
    )
    return replace(found, earlier=earlier, record=score_words(kept.scores.get(team), team))


def score_words(score: TeamScore | None, team: str) -> str:
    """Say how good the last estimates were.

    For example: `last 100 estimates for team-a: 52 % had started by the median estimate, 91 % by the 90 % estimate`.
    """
    if score is None or isnan(score.half):
        return f"no estimate for {team} can be checked yet"
    nine = "" if isnan(score.nine) else f", {100 * score.nine:.0f} % by the 90 % estimate"
    half = f"{100 * score.half:.0f} % had started by the median estimate"
    return f"last {score.number} estimates for {team}: {half}{nine}"


def _at(seconds: float) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if isfinite(seconds) else None


def _uid(key: str, known: Snapshot) -> str | None:
    """Return the UID of a workload; None for one that is not submitted yet."""
    return next((item["metadata"].get("uid") for item in known.kueue.workloads if named(item).key == key), None)


@dataclass(frozen=True, slots=True)
class Asked:
    """How an estimate is computed: run times that somebody gave (by Kueue's key), how many futures, which seed."""

    said: Mapping[str, timedelta]
    futures: int | None = None
    seed: int | None = None

    @property
    def is_special(self) -> bool:
        """Whether a stored estimate does not answer this."""
        return bool(self.said) or self.futures is not None or self.seed is not None


def computed(
    found: StartEstimate,
    known: Snapshot,
    explained: WorkloadExplanation,
    history: History,
    asked: Asked,
    kept: KeptEstimates | None = None,
) -> StartEstimate:
    """Return the answer with an estimate that is computed now; corrected by outcomes where they are kept.

    Raises `KeyError` or `ValueError` for odd objects.
    """
    now = known.taken_at.timestamp()
    queue = queue_of(known, asked.said, history.backgrounds)
    basis = basis_of(history, queue, now)
    found = replace(found, notes=(*basis.notes(explained.team), *queue.notes))
    if basis.lacks:
        return found
    reasons = needs_exact_model(queue.scene)
    count = asked.futures or FUTURES
    if reasons:
        count = min(count, EXACT_FUTURES)
    place = queue.keys.index(explained.key)
    chance = random.Random(1 if asked.seed is None else asked.seed)  # noqa: S311 -- the same each time, no secret
    drawing = Drawing(count, player=_exactly if reasons else fast)
    drawn = waits_together(queue.scene, [place], basis.run_times, basis.past, chance, drawing)
    waits = drawn.waits[place]
    raw = estimate_of(waits)
    said, calibrated = _corrected(raw, explained.team, kept, now) if basis.past.is_representative else (raw, False)
    if reasons:
        note = f"{count} futures by the exact model: {', '.join(reasons[:3])}"
        found = replace(found, notes=(*found.notes, note))
    teams = [job.request.team for job in queue.scene.present]
    ends = drawn.after[place].most_common(MOST_BEFORE)
    early = min(quantile(waits, EARLY), said.half)
    score = kept.scores.get(explained.team) if kept else None
    return replace(
        found,
        made_at=known.taken_at,
        half_by=_moment(known.taken_at, said.half),
        nine_of_ten_by=_moment(known.taken_at, said.nine),
        no_earlier_than=_moment(known.taken_at, early) or known.taken_at + timedelta(seconds=HORIZON),
        calibrated=calibrated,
        futures=len(waits),
        waits_for=_named(tuple(Before(queue.uids[job], teams[job], number) for job, number in ends), known),
        record=score_words(score, explained.team) if kept else "",
    )


def _corrected(raw: Estimate, team: str, kept: KeptEstimates | None, now: float) -> tuple[Estimate, bool]:
    outcomes = [outcome.outcome for outcome in kept.outcomes] if kept else []
    moved = corrections([team], outcomes, now)[team]
    return moved.of(raw), moved.calibrated


def _named(ends: tuple[Before, ...], known: Snapshot) -> tuple[WaitsFor, ...]:
    """Return workloads by their names. Those that are not visible, and those that have ended, have none."""
    unfinished = [item for item in known.kueue.workloads if "Finished" not in true_conditions(item.get("status") or {})]
    names = {str(item["metadata"].get("uid") or ""): named(item).shown for item in unfinished}
    found: dict[tuple[str, bool], int] = {}
    for before in ends:
        who = names.get(before.uid, "") if before.uid else "", bool(before.uid) and before.uid not in names
        found[who] = found.get(who, 0) + before.futures
    return tuple(WaitsFor(name, futures, ended) for (name, ended), futures in found.items())


def _exactly(
    setting: Setting,
    jobs: Jobs,
    until: Instant,
    watched: tuple[int, ...],  # noqa: ARG001
    goes_on: Callable[[], bool],  # noqa: ARG001
) -> Starts:
    from taskgov_explain.exact_starts import exact_starts  # noqa: PLC0415 - for the few queues that need it

    return exact_starts(setting, jobs, until)


def _moment(asked_at: datetime, seconds: float) -> datetime | None:
    """Return a moment after another, to the second; None beyond the horizon."""
    return (asked_at + timedelta(seconds=round(seconds))) if isfinite(seconds) else None
