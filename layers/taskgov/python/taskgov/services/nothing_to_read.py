"""Decide whether it is a failure that something is not found while a cluster is read.

It is none where there is nothing to read: the cluster itself is gone or being deleted, or it has no Kueue and nothing
governs it. Whatever else is not found (a table, a bucket, the EKS cluster below, Kueue on a cluster that is governed)
is a failure of that cluster, so that it is reported.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from taskgov.errors import KueueMissingError, NotFoundError, NothingToReadError
from taskgov.services.reading import reading
from taskgov.snapshot.model import ClusterFacts

DELETING: Final = "Deleting"
"""The status of a HyperPod cluster that is about to be gone."""


@contextmanager
def describing(cluster: str) -> Iterator[None]:
    """Mark the errors of describing a cluster, as `reading` does. Raises NothingToReadError when there is none."""
    with reading(f"describe cluster {cluster}"):
        try:
            yield
        except NotFoundError as error:
            raise NothingToReadError(str(error)) from error


@contextmanager
def reading_of(cluster: ClusterFacts, what: str, is_governed: Callable[[], bool] = lambda: True) -> Iterator[None]:
    """Mark the errors of reading a cluster's own API, as `reading` does.

    `is_governed` is called only where Kueue is missing. Raises NothingToReadError when that is not a failure.
    """
    with reading(what, throttled=True):
        try:
            yield
        except NotFoundError as error:
            if cluster.status == DELETING:
                raise NothingToReadError(f"cluster {cluster.name} is being deleted; {what}: {error}") from error
            if isinstance(error, KueueMissingError) and not is_governed():
                because = f"cluster {cluster.name} has neither a policy document nor quotas, and {error}"
                raise NothingToReadError(because) from error
            raise
