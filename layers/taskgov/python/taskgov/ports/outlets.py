"""Where events, notices and measurements go."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol


class EventBus(Protocol):
    """The project's own bus."""

    def publish(self, detail_type: str, detail: Mapping[str, Any]) -> None:
        """Publish one event. Raises ThrottledError, UpstreamError."""
        ...

    def publish_all(self, events: Sequence[tuple[str, Mapping[str, Any]]]) -> Mapping[int, str]:
        """Publish events (detail type, detail), and return the places of those that were not taken, with the reason."""
        ...


class Notices(Protocol):
    """Messages to people."""

    def send(self, subject: str, text: str) -> None:
        """Send one notice. Raises ThrottledError, UpstreamError."""
        ...


class TeamTopics(Protocol):
    """Topics of the teams, which belong to them."""

    @property
    def begin_with(self) -> str:
        """How the ARN of a topic must begin for messages to be allowed there."""
        ...

    def send(self, topic_arn: str, subject: str, text: str) -> None:
        """Send one message. Raises NotFoundError, InvalidRequestError, ThrottledError, UpstreamError."""
        ...

    def send_chat(self, topic_arn: str, message: Mapping[str, Any]) -> None:
        """Send one message as JSON, for chat clients. Raises as `send`."""
        ...


class Measurement(NamedTuple):
    """One metric value with its dimensions beyond `Cluster`, and properties that cost nothing."""

    name: str
    value: float
    unit: str
    dimensions: Mapping[str, str]
    properties: Mapping[str, str | int | float | bool]


class Meter(Protocol):
    """Where measurements go (CloudWatch, by the embedded metric format)."""

    def record(self, cluster_name: str, measurements: Iterable[Measurement]) -> None:
        """Emit the measurements of one cluster at one moment."""
        ...
