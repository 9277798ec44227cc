"""What could not be done for one cluster, as an error in the log and as that cluster's metric."""

import traceback
from collections.abc import Sequence
from typing import Protocol

from taskgov.errors import GovernanceError
from taskgov.ports import Meter
from taskgov.printable import printable
from taskgov.services.metric_catalogue import ALL_CLUSTERS, CLUSTER_UNREADABLE

REASON_LIMIT = 500


class StructuredLogger(Protocol):
    """The part of Powertools' logger that is used."""

    def error(self, msg: object, *, extra: dict[str, str]) -> None:
        """Log an error with fields."""
        ...


class ReportedFailures:
    """The `Failures` port over the function's log and metrics."""

    def __init__(self, logger: StructuredLogger, meter: Meter) -> None:
        self._logger = logger
        self._meter = meter

    def report(self, cluster_name: str, doing: str, error: Exception) -> None:
        """Log the error's class and where it was raised; its text only if it is a `GovernanceError`."""
        self._logger.error("cluster unreadable", extra={"cluster": cluster_name, "doing": doing, **fields_of(error)})
        for cluster in dict.fromkeys((cluster_name, ALL_CLUSTERS)):
            self._meter.record(cluster, [CLUSTER_UNREADABLE.of(1)])

    def untold(self, cluster_name: str, topics: Sequence[str]) -> None:
        """Log each topic; the sender counts them in a metric of their own, because the cluster itself was read."""
        for topic in topics:
            told = printable(topic, limit=REASON_LIMIT)
            self._logger.error("team not notified", extra={"cluster": cluster_name, "topic": told})


def fields_of(error: Exception) -> dict[str, str]:
    """Return what the log says of an error: its class and the lines that it passed through, innermost last.

    The message is logged for the domain's errors only: others may quote what was being read.
    """
    frames = traceback.extract_tb(error.__traceback__)[-5:]
    where = " > ".join(f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}" for frame in frames)
    said = {"reason": printable(str(error), limit=REASON_LIMIT)} if isinstance(error, GovernanceError) else {}
    return {"error": type(error).__name__, "where": where, **said}
