"""Settings of a quota that nobody here knows are seen in the answer as it was sent, and keep the quota from updates."""

import json
from collections.abc import Callable
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders

from taskgov.allocation.plan import Plan
from taskgov.allocation.planner import plan_quotas
from taskgov.backends.hyperpod_eks.sagemaker import HyperPodEks
from taskgov.hyperpod.model import ComputeQuota
from taskgov.snapshot.codec import snapshot_from_json, snapshot_to_json
from tests.allocation.world import document, fixed, nodes, row, snapshot
from tests.support.memory import CLUSTER_ARN

TYPE = "ml.g5.8xlarge"
ROW = {"InstanceType": TYPE, "Count": 2}
NEW_LIMIT = {"ResourceSharingConfig": {"Strategy": "LendAndBorrow", "LendLimit": 50, "BorrowLimit": None}}


def sent_quota(**config: Any) -> dict[str, Any]:
    return {
        "ComputeQuotaArn": "arn:aws:sagemaker:us-east-1:111122223333:compute-quota/abcdefghijkl",
        "ComputeQuotaId": "abcdefghijkl",
        "Name": "ant-quota",
        "ComputeQuotaVersion": 3,
        "Status": "Created",
        "ClusterArn": CLUSTER_ARN,
        "CreationTime": 1_790_000_000,
        "ComputeQuotaConfig": {"ComputeQuotaResources": [ROW], **config},
        "ComputeQuotaTarget": {"TeamName": "ant", "FairShareWeight": 1},
    }


def backend_that_gets(answer: dict[str, Any]) -> HyperPodEks:
    """A backend over a real client of botocore, which parses this answer."""

    class Raw:
        def stream(self, **_: Any) -> list[bytes]:
            return [json.dumps(answer).encode()]

    client = boto3.client("sagemaker", region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
    events: Any = client.meta.events
    events.register("before-send", lambda request, **_: AWSResponse(request.url, 200, HTTPHeaders(), Raw()))
    return HyperPodEks(client)


def listed(quota: dict[str, Any]) -> ComputeQuota:
    return backend_that_gets({"ComputeQuotaSummaries": [quota]}).quotas(CLUSTER_ARN)[0]


def described(quota: dict[str, Any]) -> ComputeQuota:
    return backend_that_gets(quota).quota("abcdefghijkl")


@pytest.mark.parametrize("read", [listed, described])
@pytest.mark.parametrize(
    ("config", "paths"),
    [
        ({}, ()),
        ({"PreemptTeamTasks": None, "NewSwitch": None}, ()),
        ({"NewSwitch": "Enabled"}, ("ComputeQuotaConfig.NewSwitch",)),
        (NEW_LIMIT, ("ComputeQuotaConfig.ResourceSharingConfig.LendLimit",)),
        (
            {"ComputeQuotaResources": [ROW, {**ROW, "InstanceType": "ml.p5.48xlarge", "Racks": 1}]},
            ("ComputeQuotaConfig.ComputeQuotaResources[1].Racks",),
        ),
    ],
    ids=["nothing new", "null says nothing", "a switch", "a limit", "a part of a row"],
)
def test_what_the_model_lacks_is_found(
    read: Callable[[dict[str, Any]], ComputeQuota], config: dict[str, Any], paths: tuple[str, ...]
) -> None:
    assert read(sent_quota(**config)).unknown_members == paths


def planned(quota: ComputeQuota) -> Plan:
    world = snapshot(document(fixed("ant", row(TYPE, Count=1)), pool=False), nodes(2, TYPE), [quota])
    return plan_quotas(snapshot_from_json(snapshot_to_json(world)), mode="apply")


def test_a_quota_with_unknown_settings_is_left_alone_with_a_finding() -> None:
    plan = planned(listed(sent_quota(**NEW_LIMIT)))
    assert plan.changes == ()
    [finding] = [found for found in plan.findings if found.code == "unknown-settings"]
    assert "ComputeQuotaConfig.ResourceSharingConfig.LendLimit" in finding.because
    assert [change.team for change in planned(listed(sent_quota())).changes] == ["ant"]
