"""Publish usage and the end of a run. Invoked by statemachines/reconcile.asl.yaml and fan_out.asl.yaml."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from taskgov.bootstrap.publish_usage import publish_usage
from taskgov.contracts.steps import PublishUsageRequest
from taskgov.observability import logger


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001 - Lambda's signature
    """Parse, publish_usage, map. Raises the errors that docs/architecture.md lists for this function."""
    result = publish_usage()(PublishUsageRequest.parse(event))
    logger.info("usage published", extra=result.to_json())
    return result.to_json()
