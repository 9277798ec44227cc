"""Starting the `reconcile` state machine, and asking what became of a run."""

from datetime import UTC
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from taskgov.adapters.errors import translated
from taskgov.contracts.steps import Cause, ReconcileInput
from taskgov.ports import Execution

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions import SFNClient


class StateMachine:
    """The `Workflow` port over one state machine."""

    def __init__(self, client: "SFNClient", arn: str) -> None:
        self._client = client
        self._arn = arn

    def start(self, cluster_arn: str, cause: Cause, name: str) -> bool:
        """Start a run. The name makes it idempotent: a second start with the same name starts nothing."""
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

    def execution(self, arn: str) -> Execution | None:
        """Describe an execution, without its data: what it was started with may be encrypted."""
        if not arn.startswith(f"{self._arn.replace(':stateMachine:', ':execution:')}:"):
            return None  # somebody who writes by hand, or another machine
        with translated(f"describe {arn}"):
            try:
                found = self._client.describe_execution(executionArn=arn, includedData="METADATA_ONLY")
            except ClientError as error:
                if error.response["Error"]["Code"] == "ExecutionDoesNotExist":
                    return None
                raise
        return Execution(arn, found["status"], found["startDate"].astimezone(UTC))
