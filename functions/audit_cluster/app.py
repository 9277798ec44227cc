"""Audit one cluster. Invoked by statemachines/audit.asl.yaml."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from taskgov.bootstrap.audit_cluster import audit_cluster
from taskgov.contracts.steps import AuditClusterRequest, ClusterUnreadable
from taskgov.observability import logger


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001 - Lambda's signature
    """Parse, audit_cluster, map. Raises the errors that docs/architecture.md lists for this function."""
    result = audit_cluster()(AuditClusterRequest.parse(event))
    logger.info(
        "cluster unreadable" if isinstance(result, ClusterUnreadable) else "cluster audited", extra=result.to_json()
    )
    return result.to_json()
