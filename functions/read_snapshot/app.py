"""Take the snapshot of one cluster. Invoked by statemachines/reconcile.asl.yaml."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from taskgov.bootstrap.read_snapshot import read_snapshot
from taskgov.contracts.steps import ReadSnapshotRequest, ReadSnapshotResult
from taskgov.observability import logger


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001 - Lambda's signature
    """Parse, read_snapshot, map. Raises the errors that docs/architecture.md lists for this function."""
    result = read_snapshot()(ReadSnapshotRequest.parse(event))
    logger.info(
        "snapshot taken" if isinstance(result, ReadSnapshotResult) else "cluster unreadable", extra=result.to_json()
    )
    return result.to_json()
