"""What can go wrong, in the words of the field.

The class name is what Step Functions matches in `ErrorEquals`, so it is part of the interface: the table of functions
in `docs/architecture.md` lists which function raises which.
"""

from taskgov.violations import Violation


class GovernanceError(Exception):
    """Base of every error that the automation raises on purpose."""

    refusal: str = ""
    """Why a write that met this error was refused for good (`RefusalError`); empty where another try may help."""
    cluster_unreadable: bool = False
    """Whether one cluster could not be read: a matter of that cluster, and no failure of the automation."""


class AppEnvError(GovernanceError):
    """The function's environment lacks a variable that it needs: a mistake of the deployment."""


class InvalidRequestError(GovernanceError):
    """The request breaks rules; `violations` names each of them."""

    refusal = "validation"

    def __init__(self, message: str, violations: tuple[Violation, ...] = ()) -> None:
        super().__init__("; ".join((message, *map(str, violations))))
        self.violations = violations


class NoClusterNamedError(InvalidRequestError):
    """A policy document names no cluster that it could govern: it is empty, damaged, or named after another cluster."""


class MalformedEventError(InvalidRequestError):
    """An event of a known kind lacks what it is documented to have: it goes to the dead-letter queue."""


class NotFoundError(GovernanceError):
    """A cluster, quota or document that was named does not exist."""

    refusal = "not-found"


class KueueMissingError(NotFoundError):
    """The API server lists no version of Kueue: it is not installed, or the server has only just been restarted."""


class NothingToReadError(NotFoundError):
    """The cluster is gone, or has neither Kueue nor anything that governs it: no failure of a schedule."""


class ConflictError(GovernanceError):
    """Somebody else changed it meanwhile (a stale TargetVersion): read again, plan again, never force."""


class LockLostError(GovernanceError):
    """The run no longer holds the cluster's lock: a later run took it over, so nothing more may be written."""


class ThrottledError(GovernanceError):
    """The service throttles: try again later."""


class UpstreamError(GovernanceError):
    """A service failed or could not be reached: worth another try."""


class NotAllowedError(GovernanceError):
    """AWS attests who the caller is, and the stack's parameters do not let that person do this."""
