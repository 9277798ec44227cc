"""What an AWS error means to a use case: one translation for all adapters."""

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError

from taskgov.errors import ConflictError, InvalidRequestError, NotFoundError, ThrottledError, UpstreamError

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
        "ConflictException",
        "ResourceInUse",
        "ResourceInUseException",
    }
)
NOT_FOUND = frozenset({"404", "NotFound", "NoSuchBucket", "NoSuchKey", "ResourceNotFound", "ResourceNotFoundException"})
INVALID = frozenset(
    {"ResourceLimitExceeded", "ServiceQuotaExceededException", "ValidationException", "ValidationError"}
)


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Turn botocore's errors into the domain's; `what` says what was being done.

    Access that is denied stays an UpstreamError with the service's own sentence: no retry mends it, but the record
    shows it.
    """
    try:
        yield
    except ParamValidationError as error:
        raise InvalidRequestError(f"{what}: {error}") from error
    except ClientError as error:
        details = error.response.get("Error", {})
        raise _domain_error(details.get("Code", ""))(
            f"{what}: {details.get('Code')}: {details.get('Message')}"
        ) from error
    except BotoCoreError as error:
        raise UpstreamError(f"{what}: {error}") from error


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
