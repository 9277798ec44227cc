"""Estimate when the waiting jobs of one cluster start. Invoked by statemachines/fan_out.asl.yaml."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from taskgov.bootstrap.estimate_starts import estimate_starts
from taskgov.contracts.steps import EstimateStartsRequest
from taskgov.observability import logger


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001 - Lambda's signature
    """Parse, estimate_starts, map. Raises the errors that docs/architecture.md lists for this function."""
    result = estimate_starts()(EstimateStartsRequest.parse(event))
    logger.info("starts estimated", extra=result.to_json())
    return result.to_json()
