"""What a person orders of the stack through its signed entry, and who AWS says the person is.

The body of the request is an `Order`; it holds no identity. The caller is in the request context, which AWS fills in
after it has checked the signature: `requestContext.authorizer.iam` of a function URL or an HTTP API (payload 2.0).
"""

import base64
import re
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError

from taskgov.contracts.steps import MOST, StepModel
from taskgov.errors import InvalidRequestError
from taskgov.hyperpod.cluster_arn import cluster_arn
from taskgov.violations import Violation

MAX_BODY: Final = 3 * 1024 * 1024
"""Characters of a request: a policy document of 2 MB, escaped."""

ClusterArn = Annotated[str, Field(max_length=200), AfterValidator(cluster_arn)]
"""As events and steps name a cluster: an order for any other would start nothing."""
PLAN_ID: Final = re.compile(r"plan-[A-Za-z0-9-]{1,100}")
PlanId = Annotated[str, Field(pattern=f"^{PLAN_ID.pattern}$")]
Reason = Annotated[str, Field(max_length=1000, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")]


class AnswerOrder(StepModel):
    """Answer the run that waits with a plan."""

    action: Literal["approve", "reject"]
    cluster_arn: ClusterArn
    plan_id: PlanId


class StopOrder(StepModel):
    """Turn the stop switch on (`stop`) or off (`resume`)."""

    action: Literal["stop", "resume"]
    reason: Reason = ""


class DocumentOrder(StepModel):
    """Put a policy document into force, in place of the one with ETag `replaces` (none: where there is none yet)."""

    action: Literal["put-document"]
    cluster_arn: ClusterArn
    cluster_name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$")
    text: str = Field(max_length=MAX_BODY)
    replaces: str | None = Field(default=None, max_length=100)
    reviewed: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")
    """Digest of the changes that were reviewed with it: a run writes these, or requests an approval."""
    claim: str = Field(default="", max_length=200, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")
    """Who is said to have written it, for example by a forge. Kept as that; it is nobody's identity."""


class ManualOrder(StepModel):
    """Say that a command is about to write by hand: it applies a plan or rolls one back."""

    action: Literal["apply", "rollback"]
    cluster_arn: ClusterArn
    plan_id: PlanId


class RunOrder(StepModel):
    """Ask for a run on a cluster; `retry_refused`: which tries again writes that were refused before this order."""

    action: Literal["reconcile"]
    cluster_arn: ClusterArn
    retry_refused: bool = False


class UnlockOrder(StepModel):
    """Free the lock of a cluster as it was shown: owner, fencing token and end are the condition."""

    action: Literal["unlock"]
    cluster_arn: ClusterArn
    owner: str = Field(min_length=1, max_length=400)
    fencing_token: int = Field(ge=0, le=MOST)
    """0 for a lock without a token."""
    expires: int | None = Field(default=None, ge=0, le=MOST)
    """Epoch seconds; None for a lock without an end."""
    reason: str = Field(max_length=1000, pattern=r"^[^\x00-\x1f\x7f-\x9f]*[^\x00-\x20\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$")
    """One line that is not blank."""


Order = AnswerOrder | StopOrder | DocumentOrder | ManualOrder | RunOrder | UnlockOrder
_ORDER: TypeAdapter[Order] = TypeAdapter(
    Annotated[Order, Field(discriminator="action")], config=ConfigDict(defer_build=True)
)


def order_of(event: object) -> Order:
    """Read the order in the body of a request. Raises InvalidRequestError that names every member that is wrong."""
    try:
        # Strict: only a number is a number, and only a boolean is a boolean.
        return _ORDER.validate_json(_body(event), strict=True)
    except ValidationError as error:
        violations = tuple(
            Violation(".".join(map(str, problem["loc"])) or "(the whole)", repr(problem["input"])[:80], problem["msg"])
            for problem in error.errors()
        )
        raise InvalidRequestError("not an order", violations) from error


def _body(event: object) -> str | bytes:
    given: dict[str, Any] = event if isinstance(event, dict) else {}
    body = given.get("body")
    if not isinstance(body, str) or not body or len(body) > 2 * MAX_BODY:
        raise InvalidRequestError(f"an order is JSON text of at most {2 * MAX_BODY} characters")
    if not given.get("isBase64Encoded"):
        return body
    try:
        return base64.b64decode(body, validate=True)
    except ValueError as error:  # binascii.Error, or text that is not ASCII
        raise InvalidRequestError(f"the body is not base64: {error}") from error


def caller_of(event: dict[str, Any]) -> str:
    """Return the ARN of the caller as AWS attests it. Raises InvalidRequestError for a request without one."""
    found: Any = event
    for member in ("requestContext", "authorizer", "iam", "userArn"):
        found = found.get(member) if isinstance(found, dict) else None
    if not isinstance(found, str) or not found:
        raise InvalidRequestError("the request names no caller: requestContext.authorizer.iam.userArn is missing")
    return found
