"""What Step Functions asks of a state machine's role when it is created with logs or traces."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from taskgov_embedded.gateway import Gateway
    from taskgov_embedded.resources import Resources

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


def check(resources: Resources, gateway: Gateway) -> None:
    """Have the gateway judge each machine's role; raises as it does for a call of that role that is not allowed."""
    for machine in resources.of("AWS::StepFunctions::StateMachine"):
        logs = machine.properties.get("LoggingConfiguration", {}).get("Destinations")
        traces = machine.properties.get("TracingConfiguration", {}).get("Enabled")
        for action in (*(LOG_DELIVERY if logs else ()), *(TRACING if traces else ())):
            gateway.allows(machine.properties["RoleArn"], action, "*")
