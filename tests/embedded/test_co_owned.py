"""A quota that Terraform writes too, from its CloudTrail event to the plan: left to it, or governed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import boto3
import pytest
import yaml

from tests.support.operating import BEFORE, DOCUMENT, G5, counts, data, opened, played

if TYPE_CHECKING:
    from taskgov_embedded.walkthrough.world import World

pytestmark = pytest.mark.long

TERRAFORM = "APN/1.0 HashiCorp/1.0 Terraform/1.9.5 (+https://www.terraform.io) terraform-provider-aws/5.70.0"


def by_terraform(world: World, count: int) -> None:
    """Let Terraform write team A's quota."""
    world.stack.sagemaker.trail.user_agents["terraform"] = TERRAFORM
    summary = world.quota_named("team-a")
    world.stack.client("sagemaker", "terraform").update_compute_quota(
        ComputeQuotaId=summary["ComputeQuotaId"],
        TargetVersion=summary["ComputeQuotaVersion"],
        ComputeQuotaConfig={"ComputeQuotaResources": [{"InstanceType": G5, "Count": count}]},
        ComputeQuotaTarget=summary["ComputeQuotaTarget"],
    )
    world.stack.run_until_quiet(300)


def put(world: World, **parts: Any) -> None:
    """Write the document past the entry, and let its run end."""
    text = yaml.safe_dump(DOCUMENT | parts).replace("${clusterArn}", world.cluster_arn)
    bucket = world.stack.outputs["BucketName"]
    boto3.client("s3").put_object(Bucket=bucket, Key="policies/ml-cluster.yaml", Body=text)
    world.stack.run_until_quiet(300)


def found(world: World) -> list[tuple[str, str]]:
    """Return what the newest plan says of the co-owner: severity and sentence."""
    pointer = data("history", "ml-cluster")[0]["plan"]
    plan = json.loads(boto3.client("s3").get_object(Bucket=pointer["bucket"], Key=pointer["key"])["Body"].read())
    return [(f["severity"], f["because"]) for f in plan["findings"] if f["code"] == "co-owned-quota"]


def test_terraform_keeps_its_quota_until_the_document_says_to_govern_it() -> None:
    document = DOCUMENT | {"handEdits": "putRight"}
    with opened({"policy": document}, {"waitMinutes": 2}) as world:
        played(world)
        assert (counts(world), found(world)) == (BEFORE, [])
        by_terraform(world, 1)
        assert counts(world)["team-a"] == 1
        [(severity, because)] = found(world)
        assert severity == "warning"
        assert because.startswith("The quota team-a-quota was last changed by Terraform, as arn:aws:iam::111122223333:")
        put(world, handEdits="putRight", coOwned="govern")
        assert counts(world) == BEFORE
        assert [severity for severity, _ in found(world)] == ["info"]
