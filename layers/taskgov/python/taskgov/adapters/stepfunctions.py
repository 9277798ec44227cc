"""Starting the `reconcile` state machine."""

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from taskgov.adapters.errors import translated
from taskgov.contracts.steps import Cause, ReconcileInput

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions import SFNClient


class StateMachine:
    """The `Workflow` port over one state machine."""

    def __init__(self, client: "SFNClient", arn: str) -> None:
        self._client = client
        self._arn = arn

    def start(self, cluster_arn: str, cause: Cause, name: str) -> bool:
        """Start a run. The name makes it idempotent: a second start of the same name is no second run."""
        document = ReconcileInput(cluster_arn=cluster_arn, cause=cause).model_dump_json(
            by_alias=True, exclude_none=True
        )
        with translated(f"start reconcile of {cluster_arn}"):
            try:
                self._client.start_execution(stateMachineArn=self._arn, name=name, input=document)
            except ClientError as error:
                if error.response["Error"]["Code"] == "ExecutionAlreadyExists":
                    return False
                raise
        return True
