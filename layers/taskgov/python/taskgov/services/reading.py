"""Distinguish failures because one cluster cannot be read from all others."""

from collections.abc import Iterator
from contextlib import contextmanager

from taskgov.contracts.steps import ClusterUnreadable
from taskgov.errors import GovernanceError, ThrottledError, UpstreamError
from taskgov.services.failures import raised_at
from taskgov.services.wording import MOST_OF_AN_ERROR, shortened


@contextmanager
def reading(what: str, *, throttled: bool = False) -> Iterator[None]:
    """Mark the errors of reading a cluster (`GovernanceError.cluster_unreadable`).

    An answer whose form is not the documented one raises whatever its reader raises: that becomes an UpstreamError,
    which does not quote the answer. Being throttled is left as it is, because SageMaker throttles the account and not
    one cluster; `throttled` marks it too, for APIs that are the cluster's own.
    """
    try:
        yield
    except ThrottledError as error:
        error.cluster_unreadable = throttled
        raise
    except GovernanceError as error:
        error.cluster_unreadable = True
        raise
    except Exception as error:
        problem = UpstreamError(f"{what}: the answer cannot be read ({raised_at(error)})")
        problem.cluster_unreadable = True
        raise problem from error


def unreadable(error: GovernanceError) -> ClusterUnreadable:
    """Return the answer that a cluster cannot be read, cut to what a state carries; an error may quote its service.

    Raises the error itself if it has another reason.
    """
    if not error.cluster_unreadable:
        raise error
    return ClusterUnreadable(unreadable=shortened(f"{type(error).__name__}: {error}", MOST_OF_AN_ERROR))
