"""Which metric values does the end of a run have? `publish_usage` records them."""

from typing import Final

from taskgov.ports import Measurement
from taskgov.services import metric_catalogue as metric
from taskgov.services.end_of_run import EndOfRun

_NOT_LET_THROUGH: Final = frozenset({"blocked", "rejected", "expired"})


def measure_run(end: EndOfRun) -> list[Measurement]:
    """Return the metrics of a run that has ended; zeros are published, so that alarms see healthy runs too."""
    measured = [
        metric.PLANS_COMPUTED.of(end.plan is not None),
        metric.CHANGES_APPLIED.of(end.applied),
        metric.CHANGES_BLOCKED.of(_blocked(end)),
        metric.RUNS_UNFINISHED.of(end.outcome == "unfinished"),
        metric.RUNS_FAILED.of(end.outcome == "failed"),
    ]
    if end.plan:
        measured.append(metric.QUOTA_DRIFT.of(max(0, len(end.planned_changes) - end.applied)))
    if end.cause and end.outcome == "applied":
        # The clocks of two machines may differ by a little: a negative time would only confuse.
        waited = max(0.0, (end.ended_at - end.cause.at).total_seconds())
        measured.append(metric.EVENT_TO_APPLIED_SECONDS.of(waited))
    return measured


def _blocked(end: EndOfRun) -> int:
    """Count a plan that was blocked before it had any change as one."""
    return max(1, len(end.planned_changes)) if end.outcome in _NOT_LET_THROUGH else 0
