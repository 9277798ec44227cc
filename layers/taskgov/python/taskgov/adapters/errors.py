"""What an AWS error means to a use case: one translation for all adapters."""

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError

from taskgov.errors import (
    ConflictError,
    GovernanceError,
    InvalidRequestError,
    NotFoundError,
    ThrottledError,
    UpstreamError,
)
from taskgov.hyperpod.inferred import CONFLICTS, LIMIT_REACHED

THROTTLED = frozenset(
    {
        "LimitExceededException",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "SlowDown",
        "ThrottledException",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)
CONFLICT = frozenset(
    {
        "ConditionalCheckFailedException",
        "ConditionalRequestConflict",  # S3: two conditional writes at once
        *CONFLICTS,
        "PreconditionFailed",  # S3: another version is there
        "ResourceInUse",
        "ResourceInUseException",
    }
)
NOT_FOUND = frozenset({"404", "NotFound", "NoSuchKey", "ResourceNotFound", "ResourceNotFoundException"})
LIMITS = frozenset({LIMIT_REACHED, "ServiceQuotaExceededException"})
INVALID = frozenset({*LIMITS, "ValidationException", "ValidationError"})
DENIED = frozenset({"AccessDenied", "AccessDeniedException"})

UNREADABLE = (AttributeError, LookupError, TypeError, ValueError)
"""What reading an answer of another form than the documented one raises."""


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Turn botocore's errors into the domain's; `what` says what was being done.

    Access that is denied stays an UpstreamError with the service's own sentence. `refusal` distinguishes it and a limit
    that is reached from other errors. An answer of another form, such as a proxy's login page, is an UpstreamError.
    """
    try:
        yield
    except ParamValidationError as error:
        raise InvalidRequestError(f"{what}: {error}") from error
    except ClientError as error:
        raise _problem(what, error) from error
    except BotoCoreError as error:
        raise UpstreamError(f"{what}: {error}") from error
    except (AttributeError, LookupError, TypeError) as error:
        form = f"{what}: the answer has another form than AWS documents ({type(error).__name__}: {error})"
        raise UpstreamError(f"{form}; is a proxy between?") from error


def _problem(what: str, error: ClientError) -> GovernanceError:
    """Return the domain's error. No variable of the frame that raises it has it (`Requests._open` says why)."""
    details = error.response.get("Error", {})
    code = details.get("Code", "")
    problem = _domain_error(code)(f"{what}: {code}: {details.get('Message')}")
    if code in LIMITS:
        problem.refusal = "limit-reached"
    elif code in DENIED:
        problem.refusal = "access-denied"
    return problem


def _domain_error(
    code: str,
) -> type[InvalidRequestError | ConflictError | NotFoundError | ThrottledError | UpstreamError]:
    if code in THROTTLED:
        return ThrottledError
    if code in CONFLICT:
        return ConflictError
    if code in NOT_FOUND:
        return NotFoundError
    if code in INVALID:
        return InvalidRequestError
    return UpstreamError
