"""Take a person's signed order. Invoked through the stack's entry: a function URL or an HTTP API, both with IAM."""

import json
from http import HTTPStatus
from typing import Any, Final

from aws_lambda_powertools.utilities.typing import LambdaContext

from taskgov.bootstrap.take_order import take_order
from taskgov.contracts.orders import caller_of, order_of
from taskgov.errors import (
    ConflictError,
    GovernanceError,
    InvalidRequestError,
    NotAllowedError,
    NotFoundError,
    ThrottledError,
)
from taskgov.observability import logger

STATUS: Final[dict[type[GovernanceError], HTTPStatus]] = {
    InvalidRequestError: HTTPStatus.BAD_REQUEST,
    NotAllowedError: HTTPStatus.FORBIDDEN,
    NotFoundError: HTTPStatus.NOT_FOUND,
    ConflictError: HTTPStatus.CONFLICT,
    ThrottledError: HTTPStatus.TOO_MANY_REQUESTS,
}


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001 - Lambda's signature
    """Parse, take_order, map. An error that is raised on purpose is an answer with its name and its sentence."""
    try:
        caller, order = caller_of(event), order_of(event)
        result = take_order()(caller, order)
    except GovernanceError as error:
        logger.warning("order refused", extra={"error": type(error).__name__, "reason": str(error)})
        status = STATUS.get(type(error), HTTPStatus.BAD_GATEWAY)
        return _answer(status, {"error": type(error).__name__, "message": str(error)})
    logger.info("order taken", extra={"action": result.action, "by": result.by, "cluster": result.cluster_arn})
    return _answer(HTTPStatus.OK, result.to_json())


def _answer(status: HTTPStatus, body: dict[str, Any]) -> dict[str, Any]:
    return {"statusCode": status.value, "headers": {"content-type": "application/json"}, "body": json.dumps(body)}
