"""Measure what the services of the account do, as AWS publishes it: calls of functions, executions, deliveries, queues.

Names and dimensions are those of each service's own page on its metrics. Counts of what went wrong are published when
there is something to count, as EventBridge documents for its own; Lambda publishes `Errors` with each invocation.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from moto.sqs.models import sqs_backends

from taskgov_embedded.cloudwatch import emf

if TYPE_CHECKING:
    from datetime import datetime
    from typing import Any

    from taskgov_embedded.place import Place
    from taskgov_embedded.virtual_time.clock import VirtualClock

QUEUE_IS_ACTIVE: Final = timedelta(hours=6)
"""For so long a queue has metrics after it last had a message (SQS developer guide)."""


class ServiceMetrics:
    """Metrics in the namespaces of AWS."""

    def __init__(self, place: Place, clock: VirtualClock) -> None:
        self._place = place
        self._clock = clock
        self._had_messages: dict[str, datetime] = {}

    def count(self, namespace: str, name: str, **dimensions: str) -> None:
        """Count one of something that happens now."""
        self._put(namespace, name, 1, self._clock.now, tuple(dimensions.items()), "Count")

    def invoked(self, name: str, qualifier: str | None, version: str, at: datetime, *, failed: bool) -> None:
        """Count an invocation, and its error if it had one, at the moment at which it began.

        `qualifier` is the alias or version that was called; `version` is what answered.
        """
        for dimensions in _of_function(name, qualifier, version):
            self._put("AWS/Lambda", "Invocations", 1, at, dimensions, "Count")
            self._put("AWS/Lambda", "Errors", int(failed), at, dimensions, "Count")

    def throttled(self, name: str, qualifier: str | None) -> None:
        """Count a call that a function did not take."""
        for dimensions in _of_function(name, qualifier, None):
            self._put("AWS/Lambda", "Throttles", 1, self._clock.now, dimensions, "Count")

    def measure_queues(self) -> None:
        """Measure each queue that is active, for the minute that ends now."""
        now, minute = self._clock.now, self._clock.now - timedelta(minutes=1)
        for name, queue in sqs_backends[self._place.account][self._place.region].queues.items():
            kept = queue._messages  # noqa: SLF001 without what waits and what is in flight, moto shows them in no other way
            if kept:
                self._had_messages[name] = now
            if name not in self._had_messages or now - self._had_messages[name] > QUEUE_IS_ACTIVE:
                continue
            named = (("QueueName", name),)
            visible = queue.approximate_number_of_messages
            self._put("AWS/SQS", "ApproximateNumberOfMessagesVisible", visible, minute, named, "Count")
            if kept:
                self._put("AWS/SQS", "ApproximateAgeOfOldestMessage", self._age(kept), minute, named, "Seconds")

    def _age(self, messages: list[Any]) -> float:
        oldest: float = min(message.sent_timestamp for message in messages)
        return max(0.0, (self._clock.millis - oldest) / 1000)

    def _put(
        self, namespace: str, name: str, value: float, at: datetime, dimensions: tuple[tuple[str, str], ...], unit: str
    ) -> None:
        emf.put([emf.Datum(namespace, name, dimensions, (float(value),), unit, at)], self._place)


def _of_function(name: str, qualifier: str | None, version: str | None) -> list[tuple[tuple[str, str], ...]]:
    """Return the sets of dimensions under which Lambda publishes what concerns a call of a function."""
    function = ("FunctionName", name)
    resource = ("Resource", name if qualifier is None else f"{name}:{qualifier}")
    found = [(function,), (function, resource)]
    if qualifier is not None and version is not None and version != qualifier:
        found.append((function, resource, ("ExecutedVersion", version)))
    return found
