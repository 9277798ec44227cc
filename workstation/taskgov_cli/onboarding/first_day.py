"""The first day with a cluster, played in `taskgov demo`: init, validate, an empty plan, the doctor, a broken part.

The commands are the ones that people type; they run against the embedded account.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import boto3

from taskgov_cli.in_process import typed
from taskgov_embedded.walkthrough.model import Walkthrough
from taskgov_embedded.walkthrough.runner import Runner
from taskgov_embedded.walkthrough.step_result import Check
from taskgov_embedded.walkthrough.world import EKS_NAME, World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typer import Typer

NAME: Final = "00-the-first-day"
TITLE: Final = "The first day: from a cluster with quotas to one that is governed"
ABOUT: Final = (
    "Two teams have quotas that administrators made by hand. A document is written from them, and changes nothing."
)
SOURCE: Final = "AWS's workshop of task governance: set up by script, add-on checks"
G5: Final = "ml.g5.8xlarge"


@dataclass(frozen=True, slots=True)
class Step:
    """One command as it was typed, what it printed, and what was expected of it."""

    title: str
    command: str
    output: str
    checks: tuple[Check, ...]
    document: str = ""
    """The policy document, where the step wrote one."""


def play(app: Typer) -> Iterator[Step]:
    """Play the day in a world of its own; `app` is the command line."""
    with World(_walkthrough()) as world, TemporaryDirectory() as folder:
        list(Runner(world.walkthrough, world).run())
        _prepare(world)
        day = _Day(app, world, Path(folder) / "ml-cluster.yaml")
        yield from day.init()
        yield from day.validate()
        yield from day.plan()
        yield from day.doctor()


class _Day:
    def __init__(self, app: Typer, world: World, file: Path) -> None:
        self._app, self._world, self._file = app, world, file

    def init(self) -> Iterator[Step]:
        before = self._world.quotas()
        code, out = self._type("init", "ml-cluster", "-o", str(self._file))
        held = _same("quotas in AWS", repr(before), repr(self._world.quotas()))
        title = "A first document is written from what is there"
        step = self._step(title, "init ml-cluster", out, _exit(0, code), held)
        yield replace(step, document=self._file.read_text())

    def validate(self) -> Iterator[Step]:
        code, out = self._type("validate", str(self._file))
        yield self._step("It is valid", "validate ml-cluster.yaml", out, _exit(0, code))

    def plan(self) -> Iterator[Step]:
        snapshot = self._file.with_name("snapshot.json")
        self._type("snapshot", "ml-cluster", "-o", str(snapshot))
        code, out = self._type("plan", "-s", str(snapshot), "-p", str(self._file))
        _, data = self._type("plan", "-s", str(snapshot), "-p", str(self._file), "--json")
        changes = _same("changes of the plan", "0", str(len(json.loads(data)["changes"])))
        command = "plan -s snapshot.json -p ml-cluster.yaml"
        yield self._step("A plan with it changes nothing", command, out, _exit(0, code), changes)

    def doctor(self) -> Iterator[Step]:
        self._put_document()
        code, out = self._type("doctor", "ml-cluster")
        yield self._step("With the document in its place, all is well", "doctor ml-cluster", out, _exit(0, code))
        role, *_ = self._world.stack.outputs["KubernetesRoleArns"].split(",")
        boto3.client("eks").delete_access_entry(clusterName=EKS_NAME, principalArn=role)
        code, out = self._type("doctor", "ml-cluster", "--no-event")
        _, data = self._type("doctor", "ml-cluster", "--no-event", "--json")
        bad = [check for check in json.loads(data)["checks"] if check["status"] != "ok"]
        fix = f"aws eks create-access-entry --region us-east-1 --cluster-name {EKS_NAME} --principal-arn {role}"
        yield self._step(
            "Somebody removes an access entry, and the doctor names it with the command that fixes it",
            "doctor ml-cluster --no-event",
            out,
            _exit(1, code),
            _same("what is broken", "access-entries", ", ".join(check["check"] for check in bad)),
            _same("the command begins", fix, bad[0]["fix"][0][: len(fix)] if bad else ""),
        )

    def _put_document(self) -> None:
        bucket = self._world.stack.outputs["BucketName"]
        boto3.client("s3").put_object(Bucket=bucket, Key="policies/ml-cluster.yaml", Body=self._file.read_bytes())
        self._world.stack.run_until_quiet()

    def _type(self, *words: str) -> tuple[int, str]:
        result = typed(self._app, words)
        return result.exit_code, result.stdout

    def _step(self, title: str, command: str, output: str, *checks: Check) -> Step:
        return Step(title, f"taskgov {command}", output.replace(f"{self._file.parent}/", ""), checks)


def _exit(wanted: int, got: int) -> Check:
    return _same("exit code", str(wanted), str(got))


def _same(what: str, wanted: str, got: str) -> Check:
    return Check(what, passed=wanted == got, wanted=wanted, got=got)


def _prepare(world: World) -> None:
    """Have what a well-kept account has: a trail that logs, and a subscriber."""
    boto3.setup_default_session()  # a person's own, made before the account was
    boto3.client("s3").create_bucket(Bucket="trail")
    trails = boto3.client("cloudtrail")
    trails.create_trail(Name="management-events", S3BucketName="trail")
    trails.start_logging(Name="management-events")
    topic = world.stack.outputs["NoticeTopicArn"]
    boto3.client("sns").subscribe(TopicArn=topic, Protocol="email", Endpoint="ops@example.com")


def _walkthrough() -> Walkthrough:
    """Return the cluster as AWS's guide leaves it: 4 instances, two teams, a cluster policy."""
    scheduler: dict[str, Any] = {
        "PriorityClasses": [{"Name": "inference", "Weight": 90}, {"Name": "training", "Weight": 70}],
        "FairShare": "Enabled",
    }
    named = {"Name": "example-cluster-scheduler-config", "ClusterArn": "${clusterArn}", "SchedulerConfig": scheduler}
    calls = [{"call": {"operation": "create_cluster_scheduler_config", "arguments": named}}, *map(_quota, "ab")]
    return Walkthrough.model_validate(
        {
            "name": TITLE,
            "source": SOURCE,
            "about": ABOUT,
            "mode": "plan",
            "starts": "2026-11-20T09:00:00Z",
            "cluster": {"groups": [{"instanceType": G5, "count": 4}]},
            "steps": [{"title": "as it was", "do": [*calls, {"waitMinutes": 1}], "expect": {}}],
        }
    )


def _quota(letter: str) -> dict[str, Any]:
    config = {
        "ComputeQuotaResources": [{"InstanceType": G5, "Count": 2}],
        "ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 50},
        "PreemptTeamTasks": "LowerPriority",
    }
    arguments = {
        "Name": f"Team-{letter.upper()}-Quota-Allocation",
        "ClusterArn": "${clusterArn}",
        "ComputeQuotaConfig": config,
        "ComputeQuotaTarget": {"TeamName": f"team-{letter}", "FairShareWeight": 0},
        "ActivationState": "Enabled",
    }
    return {"call": {"operation": "create_compute_quota", "arguments": arguments}}
