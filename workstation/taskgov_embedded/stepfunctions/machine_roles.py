"""What Step Functions needs in a state machine's role: logs and traces when it is created, and its key later.

Without the key no execution begins: StartExecution answers `KmsAccessDeniedException`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from taskgov_embedded.aws_api.aws_requests import AwsRequests
    from taskgov_embedded.cloudformation.resources import Resources
    from taskgov_embedded.place import Place

LOG_DELIVERY = (
    "logs:CreateLogDelivery",
    "logs:GetLogDelivery",
    "logs:UpdateLogDelivery",
    "logs:DeleteLogDelivery",
    "logs:ListLogDeliveries",
    "logs:PutResourcePolicy",
    "logs:DescribeResourcePolicies",
    "logs:DescribeLogGroups",
)
TRACING = (
    "xray:PutTraceSegments",
    "xray:PutTelemetryRecords",
    "xray:GetSamplingRules",
    "xray:GetSamplingTargets",
)
"""What Step Functions documents that a machine's role needs for logs and for traces."""

ENCRYPTION = ("kms:Decrypt", "kms:GenerateDataKey")
"""What it needs for the data of an execution, with the machine's ARN as encryption context."""

Asked = tuple[str, str, dict[str, str]]
"""An action, the resource, and the condition keys that the service gives."""


def needs_of_creation(properties: Mapping[str, Any], place: Place) -> Iterator[Asked]:
    """Yield what a machine's role must be allowed before the machine runs."""
    logs = properties.get("LoggingConfiguration", {}).get("Destinations")
    traces = properties.get("TracingConfiguration", {}).get("Enabled")
    for action in (*(LOG_DELIVERY if logs else ()), *(TRACING if traces else ())):
        yield action, "*", {}
    key = properties.get("EncryptionConfiguration", {}).get("KmsKeyId")
    if logs and key:
        whose = {"kms:EncryptionContext:SourceArn": place.arn("logs", "*")}
        yield "kms:GenerateDataKey", key if key.startswith("arn:") else place.arn("kms", f"key/{key}"), whose


def check(resources: Resources, requests: AwsRequests) -> None:
    """Judge each machine's role; what is not allowed is on the timeline as denied."""
    for machine in resources.of("AWS::StepFunctions::StateMachine"):
        for action, resource, context in needs_of_creation(machine.properties, requests.place):
            requests.allows(machine.properties["RoleArn"], action, resource, context)
