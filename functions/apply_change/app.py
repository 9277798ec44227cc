"""Write changes of a plan, or take them back. Invoked by statemachines/reconcile.asl.yaml."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from taskgov.bootstrap.apply_change import apply_changes
from taskgov.contracts.steps import ApplyChangeRequest
from taskgov.observability import logger

ENOUGH_MS = 20_000
"""Left of the function's time: enough for one change whose calls are all throttled and tried again."""


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Parse, apply_changes, map. Raises the errors that docs/architecture.md lists for this function."""
    request = ApplyChangeRequest.parse(event)
    result = apply_changes()(request, lambda: context.get_remaining_time_in_millis() < ENOUGH_MS)
    logger.info("changes done", extra=result.to_json())
    return result.to_json()
