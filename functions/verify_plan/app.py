"""Check that the cluster matches the plan. Invoked by statemachines/reconcile.asl.yaml."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from taskgov.bootstrap.verify_plan import verify_plan
from taskgov.contracts.steps import VerifyPlanRequest
from taskgov.observability import logger


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001 - Lambda's signature
    """Parse, verify_plan, map. Raises the errors that docs/architecture.md lists for this function."""
    result = verify_plan()(VerifyPlanRequest.parse(event))
    logger.info("plan verified", extra=result.to_json())
    return result.to_json()
