"""What `estimate_starts` keeps, for what shows or measures it: metrics of how good estimates were, reports."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from math import isnan

from taskgov.errors import InvalidRequestError
from taskgov.estimates.given import OLD, GivenStart, by_task, given_starts
from taskgov.estimates.kept import KEY, KeptEstimates
from taskgov.estimates.recalibration import ENOUGH
from taskgov.ports import DocumentStore, Measurement
from taskgov.services import metric_catalogue as metric
from taskgov.services.failures import Failures
from taskgov.snapshot.model import Snapshot


def kept_estimates(documents: DocumentStore, cluster_name: str) -> KeptEstimates | None:
    """Return what is kept of a cluster; None where nothing is. Raises InvalidRequestError for a damaged document."""
    key = KEY.format(cluster_name)
    stored = documents.find(key)
    try:
        return None if stored is None else KeptEstimates.from_bytes(stored)
    except ValueError as error:
        raise InvalidRequestError(f"{key} cannot be read ({error}); the next estimates replace it") from error


def task_starts(documents: DocumentStore, snapshot: Snapshot) -> dict[tuple[str, str], GivenStart]:
    """Return the estimates that hold, by team and job; none of a damaged document, which the next run reports."""
    try:
        given = given_starts(kept_estimates(documents, snapshot.cluster.name), snapshot)
    except InvalidRequestError:
        return {}
    return by_task(given, snapshot)


@dataclass(frozen=True, slots=True)
class MeasureStarts:
    """Measures how good estimates were. Its fields are the ports it uses."""

    documents: DocumentStore
    failures: Failures

    def __call__(self, snapshot: Snapshot) -> list[Measurement]:
        """Return the values to publish; a failure is reported, and usage is published in any case."""
        name = snapshot.cluster.name
        try:
            return [*measure_starts(kept_estimates(self.documents, name), snapshot.taken_at)]
        except Exception as error:  # noqa: BLE001 - as above
            self.failures.report(name, "measure the estimates of starts", error)
            return []


def measure_starts(kept: KeptEstimates | None, now: datetime) -> Iterator[Measurement]:
    """Give the coverage of each team with enough outcomes, and of all; nothing of what is kept too long."""
    if kept is None or now - kept.at >= OLD:
        return
    for team, score in sorted(kept.scores.items()):
        if score.number >= ENOUGH:
            for quantile, part in (("P50", score.half), ("P90", score.nine)):
                if not isnan(part):
                    yield metric.START_ESTIMATE_COVERAGE.of(100 * part, team, quantile, outcomes=score.number)
