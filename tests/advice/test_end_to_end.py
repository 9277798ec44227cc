"""From the record of work to other quotas, on the embedded stack: the audit's section, the advice, and applying it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from tests.advice.synthetic import MONDAY, WEEKS, by_clock, history, steady, with_record
from tests.support.operating import G5, data, opened, played, taskgov

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from taskgov_embedded.walkthrough.world import World

pytestmark = pytest.mark.long


def team(name: str, count: int) -> dict[str, Any]:
    sharing = {"Strategy": "LendAndBorrow", "BorrowLimit": 50}
    rows = [{"InstanceType": G5, "Count": count}]
    return {"name": name, "quota": {"ComputeQuotaResources": rows, "ResourceSharingConfig": sharing}}


DOCUMENT = {
    "apiVersion": "taskgov/v1",
    "cluster": {"name": "ml-cluster", "arn": "${clusterArn}"},
    "teams": [team("burst", 2), team("calm", 8)],
}


@pytest.fixture
def world() -> Iterator[World]:
    cluster = {"groups": [{"instanceType": G5, "count": 10}]}
    with opened({"policy": DOCUMENT}, {"waitMinutes": 3}, cluster=cluster) as opened_world:
        yield played(opened_world)


def test_the_audit_shows_it_and_the_advised_document_is_applied_like_any_other(world: World, tmp_path: Path) -> None:
    bucket, s3 = world.stack.outputs["BucketName"], boto3.client("s3")
    past = history(lambda chance: [*by_clock(chance, "burst", 6, 8, 14), *steady(chance, "calm", 0.5)])
    begun = world.clock.now - WEEKS * 7 * (MONDAY - MONDAY.replace(day=4))
    work = tmp_path / "work"
    work.mkdir()
    for key, body in with_record(past, begun.replace(minute=0, second=0, microsecond=0), G5).items():
        if f"{world.clock.now:%Y-%m-%d}" not in key:
            s3.put_object(Bucket=bucket, Key=key, Body=body)
            (work / key.rpartition("/")[2]).write_bytes(body)
    world.stack.client("stepfunctions").start_execution(
        stateMachineArn=world.stack.outputs["AuditStateMachineArn"],
        input=json.dumps({"clusterArn": world.cluster_arn, "name": "ml-cluster"}),
    )
    world.stack.run_until_quiet(300)
    [report] = [
        item["Key"]
        for item in s3.list_objects_v2(Bucket=bucket, Prefix="reports/ml-cluster/")["Contents"]
        if item["Key"].endswith("Z.json")
    ]
    found = json.loads(s3.get_object(Bucket=bucket, Key=report)["Body"].read())
    [advice] = found["advice"]
    assert (advice["instanceType"], advice["advised"]) == (G5, "today's quotas, limit 200 %"), advice
    assert any(finding["code"] == "quotas-advised" for finding in found["findings"])

    document = tmp_path / "policy.yaml"
    document.write_bytes(s3.get_object(Bucket=bucket, Key="policies/ml-cluster.yaml")["Body"].read())
    advised = tmp_path / "advised.yaml"
    answer = data("advise", str(work), "--policy", str(document), "-o", str(advised), "--no-exact")
    assert answer["advice"]["limit"] == 200
    shown = taskgov("apply", "--policy", str(advised))
    assert (shown.exit_code, "Nothing was written" in shown.stdout) == (0, True), shown.output
    applied = data("apply", "--policy", str(advised), "--yes")
    assert applied["ended"]["outcome"] == "applied"
    limits = {
        team: world.stack.client("sagemaker").describe_compute_quota(
            ComputeQuotaId=world.quota_named(team)["ComputeQuotaId"]
        )["ComputeQuotaConfig"]["ResourceSharingConfig"]["BorrowLimit"]
        for team in ("burst", "calm")
    }
    assert limits == {"burst": 200, "calm": 200}
