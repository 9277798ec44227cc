"""What commit 5ec7326 left in an account is taken over: every item and object is read, and nothing is lost.

`release_5ec7326/` was recorded by that commit's own code (`record.py`). The run that waited for approval there goes on
here where it stood, on its own definition, with today's functions.
"""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest

from taskgov.allocation.codec import plan_from_json
from taskgov.audit.trend import history_from_json
from taskgov.policy.parse import parse_policy
from taskgov.snapshot.codec import snapshot_from_json
from taskgov_embedded.sagemaker.governed import COMPUTE_QUOTA, Governed
from taskgov_embedded.stepfunctions.execution import Execution, Machine
from taskgov_embedded.stepfunctions.host import Position
from taskgov_embedded.walkthrough.model import Walkthrough
from taskgov_embedded.walkthrough.world import World
from tests.support.operating import CLUSTER, counts, data, taskgov, waiting

pytestmark = pytest.mark.long

FOLDER = Path(__file__).parent / "release_5ec7326"
Item = dict[str, Any]


def loaded(name: str) -> Any:
    return json.loads((FOLDER / f"{name}.json").read_text())


ITEMS: list[Item] = loaded("items")
OBJECTS: dict[str, str] = loaded("objects")
WAITING = loaded("waiting")
THERE = loaded("cluster")
PLAN = WAITING["variables"]["planId"]


def of(prefix: str) -> dict[str, bytes]:
    return {key: body.encode() for key, body in OBJECTS.items() if key.startswith(prefix)}


def items(world: World) -> dict[tuple[str, str], Item]:
    found = world.stack.client("dynamodb").scan(TableName=world.stack.outputs["TableName"])["Items"]
    return {(item["pk"]["S"], item["sk"]["S"]): item for item in found}


class Upgraded:
    """Today's stack over what the release left, and what of it was there before anything ran."""

    def __init__(self, world: World) -> None:
        self.world, self.stack = world, world.stack
        assert world.cluster_arn == THERE["arn"]
        same = ("TableName", "BucketName", "ReconcileStateMachineArn")
        assert {name: world.stack.outputs[name] for name in same} == {name: THERE["outputs"][name] for name in same}
        for described in THERE["quotas"]:
            self._put_quota(described)
        for key, body in OBJECTS.items():
            world.stack.client("s3").put_object(Bucket=THERE["outputs"]["BucketName"], Key=key, Body=body.encode())
        for item in ITEMS:
            world.stack.client("dynamodb").put_item(TableName=THERE["outputs"]["TableName"], Item=item)
        self.stack.advance(1, schedules=[])
        world.stack.client("sqs").purge_queue(QueueUrl=world.stack.outputs["IntakeQueueUrl"])  # of the puts above
        self.execution = self._go_on()
        self.stack.advance(1, schedules=[])
        self.before = items(world)

    def _put_quota(self, described: dict[str, Any]) -> None:
        governance = self.stack.sagemaker.governance
        spec = {name: described[name] for name in COMPUTE_QUOTA.spec if name in described}
        made = Governed(
            kind=COMPUTE_QUOTA,
            id=described["ComputeQuotaId"],
            arn=described["ComputeQuotaArn"],
            name=described["Name"],
            cluster_arn=described["ClusterArn"],
            created=datetime.fromisoformat(described["CreationTime"]["at"]),
            created_by=described["CreatedBy"],
            versions=[spec] * described["ComputeQuotaVersion"],
            status=described["Status"],
        )
        made.remember(self.stack.clock.now)
        governance._objects[made.id] = made
        for hook in governance._hooks[COMPUTE_QUOTA.name]:
            hook(made.describe())

    def _go_on(self) -> Execution:
        """Let the execution wait for its answer again, on the definition that it began with."""
        executions = self.stack.executions
        today = executions._machine(self.stack.outputs["ReconcileStateMachineArn"])
        machine = Machine(today.arn, today.name, today.role_arn, WAITING["definition"])
        execution = Execution(WAITING["arn"], WAITING["name"], machine, WAITING["input"], self.stack.clock.now)
        executions._executions[execution.arn] = execution
        executions._run(execution, Position(WAITING["state"], WAITING["given"], WAITING["variables"]))
        return execution


@pytest.fixture(scope="module")
def upgraded() -> Iterator[Upgraded]:
    starts = datetime.fromisoformat(THERE["now"]) + timedelta(minutes=5)
    walkthrough = {
        "name": "Upgrade",
        "source": "commit 5ec7326",
        "about": "what an older release left",
        "mode": "apply",
        "starts": starts.isoformat(),
        "cluster": CLUSTER,
        "steps": [{"title": "so it is", "do": [], "expect": {}}],
    }
    with World(Walkthrough.model_validate(walkthrough)) as world:
        boto3.setup_default_session()
        yield Upgraded(world)


def test_the_fixtures_hold_every_kind_of_item_that_the_release_stored() -> None:
    kinds = {item["sk"]["S"].partition("#")[0] for item in ITEMS}
    assert kinds == {"APPROVAL", "CLUSTER", "EDIT", "HELD", "ONCE", "QUOTA", "RUN", "STATE", "STOP"}
    prefixes = {key.partition("/")[0] for key in OBJECTS}
    assert prefixes == {"memory", "plans", "policies", "reports", "snapshots"}
    assert not any("schema" in item for item in ITEMS)


@pytest.mark.parametrize("key", sorted(of("snapshots/")))
def test_a_snapshot_is_read(key: str) -> None:
    snapshot = snapshot_from_json(of("snapshots/")[key])
    assert snapshot.cluster.arn == THERE["arn"]
    assert len(snapshot.nodes) == 4


@pytest.mark.parametrize("key", sorted(of("plans/")))
def test_a_plan_is_read(key: str) -> None:
    assert plan_from_json(of("plans/")[key]).plan_id in key


def test_document_and_memory_are_read() -> None:
    parsed = parse_policy(of("policies/")["policies/ml-cluster.yaml"])
    assert (parsed.violations, parsed.document is not None) == ((), True)
    assert history_from_json(of("memory/")["memory/ml-cluster/audits.json"]) is not None


def test_every_run_is_in_the_history_as_it_was(upgraded: Upgraded) -> None:
    waits, *runs = data("history", "ml-cluster")
    assert (waits["planId"], waits["outcome"], "waitsUntil" in waits) == (PLAN, "needs-approval", True)
    recorded = [item for item in ITEMS if item["sk"]["S"].startswith("RUN#")]
    assert [(run["planId"], run["outcome"]) for run in reversed(runs)] == [
        (item["planId"]["S"], item["outcome"]["S"]) for item in recorded
    ]
    assert taskgov("history", "ml-cluster").exit_code == 0


def test_the_stop_switch_is_as_it_was_left(upgraded: Upgraded) -> None:
    assert data("stop")["on"] is False


def test_the_request_that_stands_is_answered_and_what_it_asks_for_is_asked_again_and_written(
    upgraded: Upgraded,
) -> None:
    """The definition that it waits on writes otherwise than today's functions: it ends, and today's run asks."""
    held = {"shared-pool": 0, "team-a": 2, "team-b": 1}
    assert counts(upgraded.world) == held
    result = taskgov("approve", PLAN)
    assert result.exit_code == 0, result.output
    upgraded.stack.run_until_quiet(900)
    assert (upgraded.execution.status, upgraded.execution.cause) == ("SUCCEEDED", None)
    waits, last, *_ = data("history", "ml-cluster")
    assert (last["outcome"], counts(upgraded.world)) == ("blocked", held)
    (asked,) = {str(item["planId"]) for item in waiting(upgraded.world)}
    assert (waits["planId"], waits["outcome"]) == (asked, "needs-approval")
    assert taskgov("approve", asked).exit_code == 0
    upgraded.stack.run_until_quiet(900)
    assert counts(upgraded.world) == {"shared-pool": 2, "team-a": 1, "team-b": 1}
    last = data("history", "ml-cluster")[0]
    assert (last["outcome"], last["planId"], "approved by" in json.dumps(last)) == ("applied", asked, True)
    assert upgraded.stack.timeline.of("denied") == []


def test_the_next_runs_are_todays_and_leave_the_edited_quota_alone(upgraded: Upgraded) -> None:
    assert taskgov("reconcile", "ml-cluster").exit_code == 0
    upgraded.stack.run_until_quiet(900)
    assert counts(upgraded.world) == {"shared-pool": 2, "team-a": 1, "team-b": 1}
    (edited,) = [one for one in upgraded.stack.sagemaker.quotas(THERE["arn"]) if one["Name"] == "team-b-quota"]
    assert edited["ComputeQuotaTarget"]["FairShareWeight"] == 7
    findings = data("plan", "--cluster", "ml-cluster", "--stack", "taskgov")["findings"]
    assert "edited-by-hand" in {finding["code"] for finding in findings}
    assert "unreadable-item" not in {finding["code"] for finding in findings}
    failed = [one for one in upgraded.stack.timeline.of("execution") if "FAILED" in str(one)]
    assert failed == []


def test_no_item_and_no_object_is_lost(upgraded: Upgraded) -> None:
    after = items(upgraded.world)
    assert set(upgraded.before) - set(after) == set()
    found = upgraded.stack.client("s3").list_objects_v2(Bucket=THERE["outputs"]["BucketName"])["Contents"]
    assert set(OBJECTS) <= {each["Key"] for each in found}
    for key, item in upgraded.before.items():
        if key[1].startswith(("RUN#", "EDIT#", "ONCE#", "HELD#")):
            assert after[key] == item


def test_a_plan_that_the_release_wrote_can_be_looked_at_to_take_it_back(upgraded: Upgraded) -> None:
    first = next(item["planId"]["S"] for item in ITEMS if item["sk"]["S"].startswith("RUN#"))
    shown = taskgov("rollback", first)
    assert isinstance(shown.exception, SystemExit), shown.exception
    assert "team-a" in shown.output


def test_doctor_and_audit_read_all_of_it(upgraded: Upgraded) -> None:
    upgraded.stack.fire("AuditAllSchedule")
    upgraded.stack.run_until_quiet(300)
    assert "unreadable-item" not in {
        finding["code"] for finding in data("audit", "--cluster", "ml-cluster")["findings"]
    }
