"""An embedded account on which commands are run as a person runs them, with boto3's own default clients."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest
import yaml
from typer.testing import CliRunner, Result

from taskgov_cli.main import app
from taskgov_embedded.walkthrough.model import Walkthrough
from taskgov_embedded.walkthrough.runner import Runner
from taskgov_embedded.walkthrough.world import World

G5 = "ml.g5.8xlarge"
DOCUMENT = {
    "apiVersion": "taskgov/v1",
    "cluster": {"name": "ml-cluster", "arn": "${clusterArn}"},
    "teams": [{"name": "team-a", "quota": {"ComputeQuotaResources": [{"InstanceType": G5, "Count": 2}]}}],
    "sharedPool": {"team": "shared-pool", "takes": "remainder"},
    "capacity": {"holdUnhealthyMinutes": 0, "growAfterMinutes": 0},
}
ASKS = {"guardrails": {"approveAbove": {"changedGpus": 2}}}
HALF = [{"name": "team-a", "quota": {"ComputeQuotaResources": [{"InstanceType": G5, "Count": 1}]}}]
CLUSTER = {"groups": [{"instanceType": G5, "count": 4}]}
BEFORE, AFTER = {"team-a": 2, "shared-pool": 2}, {"team-a": 1, "shared-pool": 3}


def opened(*steps: dict[str, Any], mode: str = "apply", cluster: dict[str, Any] = CLUSTER, **parameters: str) -> World:
    return World(
        Walkthrough.model_validate(
            {
                "name": "Operating",
                "source": "a person at a terminal",
                "about": "what people do by hand",
                "mode": mode,
                "starts": "2026-11-20T09:00:00Z",
                "cluster": cluster,
                "steps": [{"title": "so it is", "do": [*steps], "expect": {}}],
            }
        ),
        more=parameters,
    )


def played(world: World) -> World:
    list(Runner(world.walkthrough, world).run())
    boto3.setup_default_session()  # a command is a process of its own: it reads its credentials anew
    return world


def taskgov(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def data(*arguments: str) -> Any:
    return json.loads(taskgov(*arguments, "--json").stdout)


def pending_plan(world: World) -> str:
    items = boto3.resource("dynamodb").Table(world.stack.outputs["TableName"]).scan()["Items"]
    (plan,) = {str(item["planId"]) for item in items if str(item["sk"]).startswith("APPROVAL#")}
    return plan


def waiting(world: World) -> list[dict[str, Any]]:
    items = boto3.resource("dynamodb").Table(world.stack.outputs["TableName"]).scan()["Items"]
    return [item for item in items if str(item["sk"]).startswith("APPROVAL#") and "answeredBy" not in item]


def counts(world: World) -> dict[str, int]:
    return {team: rows[0]["Count"] for team, rows in world.quotas().items()}


def last_plan() -> str:
    return str(data("history", "ml-cluster")[0]["planId"])


def state(world: World) -> dict[str, Any]:
    """What the stack keeps of the cluster, its lock included."""
    table, key = _state(world)
    return dict(table.get_item(Key=key)["Item"])


@contextmanager
def a_run_with_the_lock(world: World) -> Iterator[None]:
    """Let a run hold the cluster's lock meanwhile."""
    table, key = _state(world)
    in_an_hour = int(world.clock.now.timestamp()) + 3600
    table.update_item(
        Key=key,
        UpdateExpression="SET lockOwner = :run, lockExpires = :then",
        ExpressionAttributeValues={":run": "a run", ":then": in_an_hour},
    )
    try:
        yield
    finally:
        table.update_item(Key=key, UpdateExpression="REMOVE lockOwner, lockExpires")


def _state(world: World) -> tuple[Any, dict[str, str]]:
    table = boto3.resource("dynamodb").Table(world.stack.outputs["TableName"])
    return table, {"pk": f"CLUSTER#{world.cluster_arn}", "sk": "STATE"}


def be(person: str, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Be a user, or a session of a role (`Approvers/ana`)."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", world.stack.account.identities.key_of(person))
    boto3.setup_default_session()


def file_of(world: World, at: Path, **parts: Any) -> str:
    text = yaml.safe_dump(DOCUMENT | parts).replace("${clusterArn}", world.cluster_arn)
    (at / "new.yaml").write_text(text)
    return str(at / "new.yaml")


def write_as(author: str, world: World) -> None:
    """Write the document past the signed entry, as a writer would who says who it is."""
    bucket = world.stack.outputs["BucketName"]
    client = boto3.client("s3")
    text = client.get_object(Bucket=bucket, Key="policies/ml-cluster.yaml")["Body"].read() + b"\n# reviewed\n"
    client.put_object(Bucket=bucket, Key="policies/ml-cluster.yaml", Body=text, Metadata={"author": author})
    world.stack.run_until_quiet(300)


APPLIED = ({"policy": DOCUMENT}, {"waitMinutes": 2}, {"policyChange": {"teams": HALF}}, {"waitMinutes": 2})
"""A plan that moved one instance from team A to the pool, applied."""


def stop_at(world: World, name: str) -> str:
    """Stop the next run when it comes to this state; return its ARN."""
    stopped: list[str] = []
    own_add = world.stack.timeline.add

    def add(kind: Any, what: str, **detail: Any) -> None:
        own_add(kind, what, **detail)
        if (kind, what) == ("state", name) and not stopped:
            stopped.append(str(detail["execution"]))
            world.stack.client("stepfunctions").stop_execution(executionArn=stopped[0])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(world.stack.timeline, "add", add)
        while not stopped:
            world.stack.advance(1, schedules=[])
    return stopped[0]
