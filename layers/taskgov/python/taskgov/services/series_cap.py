"""Publish no more metric series of a cluster in an hour than the parameter `MaxSeries`, and report what is cut.

`publish_usage` calls this with the values of each measurement (`taskgov.services.series_rule` decides). A cluster whose
series fit in any case has no memory, and costs no request.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from taskgov.errors import GovernanceError
from taskgov.findings import Finding
from taskgov.findings.of_audit import SERIES_CUT
from taskgov.ports import DocumentStore, Measurement
from taskgov.services.failures import Failures
from taskgov.services.series_memory import SeriesMemory
from taskgov.services.series_rule import OTHER, bounded, fits_in_any_case, sorted_out

KEY: Final = "memory/{}/series.json.gz"
DEFAULT_LIMIT: Final = 5_000
"""What the parameter `MaxSeries` is by default."""


@dataclass(frozen=True, slots=True)
class SeriesCap:
    """Bounds the series of each cluster. Its fields are the ports it uses, and the limit."""

    documents: DocumentStore
    failures: Failures
    limit: int = DEFAULT_LIMIT

    def __call__(self, cluster_name: str, measured: Sequence[Measurement], now: datetime) -> list[Measurement]:
        """Return what to publish of the values of a measurement. A memory that fails is reported, and metrics continue.

        Without the memory teams are chosen as at the first measurement of an hour.
        """
        values = sorted_out(measured)
        if fits_in_any_case(values, self.limit):
            return list(measured)
        key, before = KEY.format(cluster_name), None
        try:
            before = memory_in(self.documents, cluster_name)
            published, after = bounded(values, before, self.limit, now)
            if after != before:
                self.documents.put(key, after.to_bytes(), "application/gzip")
        except GovernanceError as error:
            self.failures.report(cluster_name, "remember which metric series there are", error)
            published, _ = bounded(values, before, self.limit, now)
        return published


def memory_in(documents: DocumentStore, cluster_name: str) -> SeriesMemory | None:
    """Return what is kept of a cluster; None where nothing is, or it cannot be read: it is made again."""
    try:
        stored = documents.find(KEY.format(cluster_name))
        return None if stored is None else SeriesMemory.from_bytes(stored)
    except ValueError:
        return None


def series_findings(documents: DocumentStore, cluster_name: str, now: datetime) -> tuple[Finding, ...]:
    """Return the finding of the audit: that teams have no metrics of their own, and what to do."""
    memory = memory_in(documents, cluster_name)
    if memory is None or not memory.cut or not memory.is_of(now):
        return ()
    evidence = {"cut": memory.cut, "series": memory.wanted, "maxSeries": memory.limit}
    return (
        SERIES_CUT.about(
            "metrics",
            evidence,
            cut=memory.cut,
            teams=memory.teams,
            wanted=memory.wanted,
            limit=memory.limit,
            other=OTHER,
        ),
    )
