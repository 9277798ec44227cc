"""One of many fails, and the others go on: where a loop over clusters or items leaves the error of one."""

from collections.abc import Sequence
from typing import Protocol

from taskgov.errors import UpstreamError
from taskgov.snapshot.unreadable import UnreadableItem


class Failures(Protocol):
    """Keeps what could not be done for one cluster. It is never lost: a log and the cluster's own metric have it."""

    def report(self, cluster_name: str, doing: str, error: Exception) -> None:
        """Report the error that `doing` (such as `read the policy document`) ended with for one cluster."""
        ...

    def untold(self, cluster_name: str, topics: Sequence[str]) -> None:
        """Report topics of teams that could not be told, each with the reason; they are tried again."""
        ...


class Raised:
    """The `Failures` port of whoever asks for one cluster only: its error is the answer."""

    def report(self, cluster_name: str, doing: str, error: Exception) -> None:  # noqa: ARG002 - the port's signature
        """Raise the error."""
        raise error

    def untold(self, cluster_name: str, topics: Sequence[str]) -> None:
        """Raise an UpstreamError that names them."""
        raise UpstreamError(f"{cluster_name}: {'; '.join(topics)}")


def left_out(item: UnreadableItem) -> None:
    """Go on without an item of the table that cannot be read: each look reads it too, and reports it as a finding."""
