"""What is taken for true of SageMaker and CloudTrail although no page of AWS says it: all of it stands here.

| taken for true | name |
| --- | --- |
| CloudTrail writes members of quota and policy calls with a first letter in lower case, at every depth | `spellings` |
| Update and Delete calls name the quota or policy only; Create also names the cluster | `named_in_call` |
| CloudTrail has another word for a denied call than the API | `TRAIL_CODES` |
| a stale `TargetVersion`, a write while another settles, and a name that is taken are all one error | `CONFLICTS` |
| a cluster that has all the quotas it may have refuses another one with this error | `LIMIT_REACHED` |
| a quota of a cluster that does not exist is refused with this error | `UNKNOWN_CLUSTER` |
| a write settles within seconds, and within minutes at the most | `LOOKS`, `SETTLE_SECONDS` |
| which tool made a call, by user agent, by the service that called, and by the role behind the session | `TOOLS` |
| the health of a node that is well again | `HEALTHY` |

Both the product and the emulated account read it here, and `tests/hyperpod/test_inferred.py` keeps it in no other file.
`taskgov smoke` shows what a real account does: a report that says something else changes this file.
"""

import re
from dataclasses import dataclass
from typing import Final

QUOTA_CALLS: Final = frozenset({"CreateComputeQuota", "UpdateComputeQuota", "DeleteComputeQuota"})
POLICY_CALLS: Final = frozenset(
    {"CreateClusterSchedulerConfig", "UpdateClusterSchedulerConfig", "DeleteClusterSchedulerConfig"}
)
QUOTA_ID: Final = "ComputeQuotaId"
POLICY_ID: Final = "ClusterSchedulerConfigId"
CLUSTER_ARN: Final = "ClusterArn"
CLUSTER_NAME: Final = "ClusterName"
"""Members by their names in the API."""


def spellings(member: str) -> tuple[str, str]:
    """Return how a member of the API may be written in an event: as inferred, and as the API writes it.

    Example:
        >>> spellings("ComputeQuotaId")
        ('computeQuotaId', 'ComputeQuotaId')
    """
    return member[:1].lower() + member[1:], member


def named_in_call(event_name: str) -> str | None:
    """Return the member that names the quota or policy of a call, in its parameters or else in its answer."""
    if event_name in QUOTA_CALLS:
        return QUOTA_ID
    return POLICY_ID if event_name in POLICY_CALLS else None


TRAIL_CODES: Final = {"AccessDeniedException": "AccessDenied"}
"""The API's error -> CloudTrail's `errorCode`, where it is another one."""

STALE_VERSION: Final = "ConflictException"
STILL_SETTLING: Final = "ConflictException"
NAME_TAKEN: Final = "ConflictException"
CONFLICTS: Final = frozenset({STALE_VERSION, STILL_SETTLING, NAME_TAKEN})
"""Errors after which the cluster is read again. The API documents the error, but not its causes."""
LIMIT_REACHED: Final = "ResourceLimitExceeded"
UNKNOWN_CLUSTER: Final = "ValidationException"

SETTLE_SECONDS: Final = 5
"""How long a write takes to settle on the emulated account; a person's command checks as often."""
LOOKS: Final = ((3, 10), (6, 20), (18, 60))
"""How a run waits for a wave to settle: until the check of this number, so many seconds before each check.

Step Functions reads no Python: `statemachines/reconcile.asl.yaml` has a copy, and a test says what to write there.
"""
COMMAND_PATIENCE: Final = 300
"""For how many seconds a person's command waits for a wave to settle."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that keeps infrastructure as code: its name, and what shows that a call was made by it.

    `agent` is looked for in the user agent, `service` is who called for the tool, `role` is looked for in the name of
    the role behind the session. A tool shows itself by any of those that it has, and needs its role where it has one.
    """

    name: str
    agent: str | None = None
    service: str | None = None
    role: str | None = None

    def made(self, user_agent: str, invoked_by: str, role: str) -> bool:
        """Return whether it made a call."""
        if self.role is not None and not re.search(self.role, role):
            return False
        by_agent = self.agent is not None and re.search(self.agent, user_agent, re.IGNORECASE) is not None
        return by_agent or (self.service is not None and self.service in {user_agent, invoked_by})


_CLOUDFORMATION: Final = "cloudformation.amazonaws.com"
TOOLS: Final = (
    Tool("Terraform", agent=r"\bterraform\b|terraform-provider"),
    Tool("CDK", agent=r"\baws-cdk\b"),
    Tool("CDK", service=_CLOUDFORMATION, role=r"^cdk-.*-cfn-exec-role-"),
    Tool("CloudFormation", agent=r"\bcloudformation\b", service=_CLOUDFORMATION),
)
"""The first that fits made the call. The CDK deploys through CloudFormation, under the role that its bootstrap makes
(`cdk-<qualifier>-cfn-exec-role-<account>-<Region>`)."""


def tool_behind(user_agent: str | None, invoked_by: str | None, role_arn: str | None) -> str | None:
    """Return the name of the tool that made a call, or None: then a person or a program of its own did.

    Example:
        >>> tool_behind("APN/1.0 HashiCorp/1.0 Terraform/1.9.5 (+https://www.terraform.io)", None, None)
        'Terraform'
        >>> tool_behind(
        ...     "cloudformation.amazonaws.com", None, "arn:aws:iam::111122223333:role/cdk-hnb659fds-cfn-exec-role-1-eu"
        ... )
        'CDK'
        >>> tool_behind("aws-cli/2.31.0", None, "arn:aws:iam::111122223333:role/PlatformAdmin")
    """
    role = (role_arn or "").rpartition("/")[2]
    return next((tool.name for tool in TOOLS if tool.made(user_agent or "", invoked_by or "", role)), None)


HEALTHY: Final = "Healthy"
"""In `HealthSummary.HealthStatus`: no rule depends on it, and the emulated account sends it."""
