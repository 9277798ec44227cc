"""Plan the quotas of one cluster. Invoked by statemachines/reconcile.asl.yaml."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from taskgov.bootstrap.plan_quotas import plan_quotas
from taskgov.contracts.steps import PlanQuotasRequest
from taskgov.observability import logger


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001 - Lambda's signature
    """Parse, plan_quotas, map. Raises the errors that docs/architecture.md lists for this function."""
    result = plan_quotas()(PlanQuotasRequest.parse(event))
    logger.info("quotas planned", extra=result.to_json())
    return result.to_json()
