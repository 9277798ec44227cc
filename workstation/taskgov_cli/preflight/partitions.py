"""What of the stack works in which partition of AWS? Facts of AWS's own pages; the template follows them.

Nothing was ever deployed outside the partition `aws`: what is "yes" elsewhere is what the pages and cfn-lint say.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_CHINA: Final = "https://docs.amazonaws.cn/en_us/aws/latest/userguide/"
_GOVCLOUD: Final = "https://docs.aws.amazon.com/govcloud-us/latest/UserGuide/"
CHINA, GOVCLOUD = "aws-cn", "aws-us-gov"
KNOWN: Final = ("aws", GOVCLOUD, CHINA)
"""The partitions of which something is known; in any other, preflight warns."""
YES: Final = "yes"
THROUGH_API: Final = "with `OrdersThrough=api-gateway`"
PLAIN_LOGS: Final = "as text: the template sets it there"
UNTRACED: Final = "without traces: the template leaves them out there"
UNSAID: Final = "not stated; `taskgov preflight` checks the service"


@dataclass(frozen=True, slots=True)
class Feature:
    """Something of AWS that the stack uses: by which functions, and whether each partition has it."""

    name: str
    used_by: str
    """Functions by their folder's name, or what else of the stack uses it."""
    govcloud: str
    china: str
    source: str


FEATURES: Final = (
    Feature(
        "function URL",
        "`take_order`",
        THROUGH_API,
        THROUGH_API,
        f"{_GOVCLOUD}govcloud-lambda.html, {_CHINA}lambda.html: not available",
    ),
    Feature(
        "JSON log format",
        "every function",
        PLAIN_LOGS,
        PLAIN_LOGS,
        f"{_GOVCLOUD}govcloud-lambda.html: not available; the page of China does not say",
    ),
    Feature(
        "X-Ray for functions",
        "every function",
        YES,
        UNTRACED,
        f"{_CHINA}lambda.html: not available",
    ),
    Feature(
        "Step Functions",
        "`reconcile`, `fan_out`, `audit`",
        YES,
        YES,
        f"{_GOVCLOUD}govcloud-step-functions.html, {_CHINA}step-functions.html: only HTTPS tasks are missing",
    ),
    Feature(
        "EventBridge rules and bus",
        "`receive_event`, `publish_usage`",
        YES,
        YES,
        f"{_GOVCLOUD}govcloud-eventbridge.html: Pipes and API destinations are missing",
    ),
    Feature(
        "EventBridge Scheduler",
        "`fan_out`, `reconcile`",
        YES,
        YES,
        "botocore has its endpoints",
    ),
    Feature("CodeDeploy", "every function's alias", YES, YES, "botocore has its endpoints"),
    Feature(
        "IAM Identity Center",
        "`take_order`, to identify people",
        YES,
        YES,
        "botocore has its endpoints; roles with `NamedSessionRoles` do without it",
    ),
    Feature(
        "SageMaker HyperPod",
        "`read_snapshot`, `apply_change`, `verify_plan`, `publish_usage`, `estimate_starts`, `audit_cluster`",
        UNSAID,
        UNSAID,
        "https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod.html names no such Region",
    ),
    Feature(
        "EKS",
        "`read_snapshot`, `apply_change`, `verify_plan`, `publish_usage`, `estimate_starts`, `audit_cluster`",
        YES,
        YES,
        "botocore has its endpoints; `backend: kueue` needs nothing of HyperPod",
    ),
)
"""As of the pages in November 2026."""

WITHOUT_FUNCTION_URLS: Final = frozenset(
    {
        *("ap-east-2", "ap-south-2", "ap-southeast-4", "ap-southeast-5", "ap-southeast-6", "ap-southeast-7"),
        *("ca-west-1", "eu-central-2", "eu-south-2", "il-central-1", "me-central-1"),
    }
)
"""Regions of the partition `aws` (https://docs.aws.amazon.com/lambda/latest/dg/urls-configuration.html)."""


def has_function_urls(partition: str, region: str) -> bool:
    """Return whether Lambda has function URLs in a Region; where no page says so, it counts as having none.

    >>> has_function_urls("aws", "us-east-1"), has_function_urls("aws-cn", "cn-north-1")
    (True, False)
    """
    return partition == "aws" and region not in WITHOUT_FUNCTION_URLS


def features_table() -> str:
    """Return the table of the documentation."""
    head = (
        "| what | used by | GovCloud (`aws-us-gov`) | China (`aws-cn`) | source |",
        "| --- | --- | --- | --- | --- |",
    )
    rows = (
        f"| {feature.name} | {feature.used_by} | {feature.govcloud} | {feature.china} | {feature.source} |"
        for feature in FEATURES
    )
    return "\n".join((*head, *rows))
