"""Write one change of a plan, or take it back. Invoked by statemachines/reconcile.asl.yaml."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from taskgov.bootstrap.apply_change import apply_change
from taskgov.contracts.steps import ApplyChangeRequest
from taskgov.observability import logger


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001 - Lambda's signature
    """Parse, apply_change, map. Raises the errors that docs/architecture.md lists for this function."""
    result = apply_change()(ApplyChangeRequest.parse(event))
    logger.info("change done", extra=result.to_json())
    return result.to_json()
