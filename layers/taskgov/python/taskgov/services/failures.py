"""One of many fails, and the others continue: where a loop over clusters or items leaves the error of one."""

import traceback
from collections.abc import Sequence
from typing import Protocol

from taskgov.errors import GovernanceError, UpstreamError
from taskgov.snapshot.unreadable import UnreadableItem


class Failures(Protocol):
    """Keeps what could not be done for one cluster. It is never lost: a log and the cluster's own metric have it."""

    def report(self, cluster_name: str, doing: str, error: Exception) -> None:
        """Report the error that `doing` (such as `read the policy document`) ended with for one cluster."""
        ...

    def untold(self, cluster_name: str, topics: Sequence[str]) -> None:
        """Report topics of teams that could not be notified, each with the reason; they are tried again."""
        ...


class Raised:
    """The `Failures` port of a caller with one cluster only: its error is the answer."""

    def report(self, cluster_name: str, doing: str, error: Exception) -> None:  # noqa: ARG002 - the port's signature
        """Raise the error."""
        raise error

    def untold(self, cluster_name: str, topics: Sequence[str]) -> None:
        """Raise an UpstreamError that names them."""
        raise UpstreamError(f"{cluster_name}: {'; '.join(topics)}")


def said_of(error: Exception) -> str:
    """Return a notice's text for an error: that of a `GovernanceError`, else the class and where it was raised.

    Other errors may quote what was being read, so their own sentence is left out.
    """
    return str(error) if isinstance(error, GovernanceError) else raised_at(error)


def raised_at(error: Exception) -> str:
    """Return an error's class and the place that raised it, such as `KeyError at sns.py:33`."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {last.filename.rpartition('/')[2]}:{last.lineno}"


def left_out(item: UnreadableItem) -> None:
    """Continue without an item of the table that cannot be read: each snapshot reports it as a finding."""
