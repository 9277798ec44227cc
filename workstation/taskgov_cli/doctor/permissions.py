"""What does each function's role have to be allowed? The questions that `taskgov doctor` puts to IAM.

It is the one list of what functions may do: tests hold the roles in `template.yaml` to it, both ways. What every
function needs to run at all (logs, traces, keys of the topic) is not asked. Resources are named by what they are, and
resolved for one cluster and stack by `resources_of`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskgov_cli.doctor.facts import Cluster, DeployedStack

PREFIXES: Final = ("policies", "snapshots", "plans", "reports")
LISTS: Final = {"*": ("sagemaker:ListComputeQuotas", "sagemaker:ListClusterSchedulerConfigs")}
_DESCRIBES: Final = {
    "quota": ("sagemaker:DescribeComputeQuota",),
    "scheduler-config": ("sagemaker:DescribeClusterSchedulerConfig",),
}
_SNAPSHOT: Final = {
    **LISTS,
    **_DESCRIBES,
    "cluster": ("sagemaker:DescribeCluster", "sagemaker:ListClusterNodes"),
    "training-plan": ("sagemaker:DescribeTrainingPlan",),
    "eks": ("eks:DescribeCluster",),
    "policies": ("s3:GetObject",),
    "bucket": ("s3:ListBucket",),
}

NEEDED: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "ReceiveEventRole": {
        **_DESCRIBES,
        "*": ("sagemaker:ListClusters",),
        "cluster": ("sagemaker:DescribeCluster",),
        "table": (
            "dynamodb:GetItem",
            "dynamodb:PutItem",
            "dynamodb:Query",
            "dynamodb:UpdateItem",
            "dynamodb:DeleteItem",
        ),
        "reconcile": ("states:StartExecution",),
        "runs": ("states:DescribeExecution",),
        "policies": ("s3:GetObject",),
        "bucket": ("s3:ListBucket",),
        "intake": ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"),
    },
    "ReadSnapshotRole": {
        **_SNAPSHOT,
        "cluster": (*_SNAPSHOT["cluster"], "sagemaker:ListTags"),
        "snapshots": ("s3:GetObject", "s3:PutObject"),
        "state": ("s3:PutObject",),
        "table": (
            "dynamodb:GetItem",
            "dynamodb:BatchGetItem",
            "dynamodb:Query",
            "dynamodb:PutItem",
            "dynamodb:UpdateItem",
        ),
    },
    "PlanQuotasRole": {"snapshots": ("s3:GetObject",), "plans": ("s3:PutObject",)},
    "ApplyChangeRole": {
        **LISTS,
        "quota": (
            *(f"sagemaker:{verb}ComputeQuota" for verb in ("Create", "Update", "Delete", "Describe")),
            "sagemaker:AddTags",
        ),
        "scheduler-config": (
            *(f"sagemaker:{verb}ClusterSchedulerConfig" for verb in ("Create", "Update", "Delete", "Describe")),
            "sagemaker:AddTags",
        ),
        "access-entry": ("eks:ListAssociatedAccessPolicies", "eks:AssociateAccessPolicy"),
        "plans": ("s3:GetObject",),
        "bucket": ("s3:ListBucket",),
        "cluster": (
            *("sagemaker:CreateComputeQuota", "sagemaker:CreateClusterSchedulerConfig", "sagemaker:DescribeCluster"),
            *("sagemaker:ListTags", "sagemaker:AddTags"),
        ),
        "eks": ("eks:DescribeCluster", "eks:TagResource"),
        "table": (
            "dynamodb:DeleteItem",
            "dynamodb:GetItem",
            "dynamodb:PutItem",
            "dynamodb:Query",
            "dynamodb:UpdateItem",
        ),
    },
    "VerifyPlanRole": {
        **LISTS,
        **_DESCRIBES,
        "plans": ("s3:GetObject",),
        "bucket": ("s3:ListBucket",),
        "eks": ("eks:DescribeCluster",),
        "table": ("dynamodb:PutItem", "dynamodb:Query", "dynamodb:UpdateItem"),
    },
    "PublishUsageRole": {
        **_SNAPSHOT,
        "*": (*LISTS["*"], "sagemaker:ListClusters"),
        "use": ("s3:PutObject",),
        "table": ("dynamodb:GetItem", "dynamodb:Query", "dynamodb:PutItem"),
        "topic": ("sns:Publish",),
        "bus": ("events:PutEvents",),
    },
    "EstimateStartsRole": {
        "*": ("sagemaker:ListClusterSchedulerConfigs",),
        "cluster": ("sagemaker:DescribeCluster",),
        "scheduler-config": _DESCRIBES["scheduler-config"],
        "eks": ("eks:DescribeCluster",),
        "policies": ("s3:GetObject",),
        "starts": ("s3:GetObject", "s3:PutObject"),
        "bucket": ("s3:ListBucket",),
    },
    "AuditClusterRole": {
        **_SNAPSHOT,
        "reports": ("s3:PutObject",),
        "table": ("dynamodb:DeleteItem", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query"),
        "topic": ("sns:Publish",),
    },
    "TakeOrderRole": {
        "*": ("states:SendTaskSuccess",),
        "table": ("dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"),
        "plans": ("s3:GetObject",),
        "policies": ("s3:GetObject", "s3:PutObject"),
        "rights": ("ssm:GetParameter",),
        "intake": ("sqs:SendMessage",),
    },
}
"""Role's logical id -> resource -> actions on it."""


HYPERPOD_ACCESS: Final = "arn:{partition}:eks::aws:cluster-access-policy/AmazonSagemakerHyperpodControllerPolicy"
"""An access policy that SageMaker may associate when it creates quotas: asked with `eks:AssociateAccessPolicy`."""


def resources_of(cluster: Cluster, stack: DeployedStack) -> dict[str, str]:
    """Return the ARN of each resource that `NEEDED` names. Raises KeyError for a stack that lacks one."""
    outputs, place = stack.outputs, f"{cluster.region}:{cluster.account}"
    sagemaker = f"arn:{cluster.partition}:sagemaker:{place}"
    bucket = f"arn:{cluster.partition}:s3:::{outputs['BucketName']}"

    def queue(output: str) -> str:
        return f"arn:{cluster.partition}:sqs:{place}:{outputs[output].rpartition('/')[2]}"

    return {
        "*": "*",
        "cluster": cluster.arn,
        "quota": f"{sagemaker}:compute-quota/000000000000",
        "scheduler-config": f"{sagemaker}:cluster-scheduler-config/000000000000",
        "training-plan": f"{sagemaker}:training-plan/any",
        "eks": cluster.eks_arn or "*",
        "access-entry": f"{(cluster.eks_arn or '*').replace(':cluster/', ':access-entry/')}/role/*",
        "table": f"arn:{cluster.partition}:dynamodb:{place}:table/{outputs['TableName']}",
        "bucket": bucket,
        **{prefix: f"{bucket}/{prefix}/{cluster.name}.yaml" for prefix in PREFIXES},
        "state": f"{bucket}/memory/{cluster.name}/state.json",
        "use": f"{bucket}/memory/{cluster.name}/use.json.gz",
        "starts": f"{bucket}/starts/{cluster.name}/estimates.json.gz",
        "reconcile": outputs["ReconcileStateMachineArn"],
        "runs": f"{outputs['ReconcileStateMachineArn'].replace(':stateMachine:', ':execution:')}:*",
        "intake": queue("IntakeQueueUrl"),
        "topic": outputs["NoticeTopicArn"],
        "rights": f"arn:{cluster.partition}:ssm:{place}:parameter/{stack.resources['OrderRights']}",
        "bus": f"arn:{cluster.partition}:events:{place}:event-bus/{outputs['BusName']}",
    }
