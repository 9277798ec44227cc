"""One cluster's run on DynamoDB's conditions: the table is moto's, the functions answer what the test tells them to."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from taskgov.contracts.steps import (
    ApplyChangeRequest,
    AuditClusterRequest,
    PlanQuotasRequest,
    PublishUsageRequest,
    ReadSnapshotRequest,
    ReconcileInput,
    StepModel,
    VerifyPlanRequest,
)
from taskgov_embedded.stepfunctions.host import Ended, TaskFailedError
from tests.statemachines.machines import SUBSTITUTIONS, Execution, definition

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

CLUSTER = "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdefghijkl"
CAUSE = {
    "eventId": "7bf73129-1428",
    "source": "aws.sagemaker",
    "detailType": "SageMaker HyperPod Cluster State Change",
    "at": "2026-11-20T08:59:30Z",
    "what": "cluster InService",
}
DIGEST = "a" * 64
REQUESTS: dict[str, type[StepModel]] = {
    "ReadSnapshot": ReadSnapshotRequest,
    "PlanQuotas": PlanQuotasRequest,
    "ApplyChange": ApplyChangeRequest,
    "VerifyPlan": VerifyPlanRequest,
    "PublishUsage": PublishUsageRequest,
    "AuditCluster": AuditClusterRequest,
}
Step = Callable[[dict[str, Any]], Any]


def pointer(kind: str) -> dict[str, str]:
    return {"bucket": "governance", "key": f"{kind}/ml-cluster/1.json", "sha256": DIGEST}


def planned(
    outcome: str, changes: int = 0, digest: str = DIGEST, waves: tuple[int, ...] = (), **more: Any
) -> dict[str, Any]:
    """Answer with a plan; `waves` says how many changes have been made when each wave ends (by default one wave)."""
    ends = list(waves) or ([changes] if changes else [])
    return {
        **more,
        "outcome": outcome,
        "planId": "plan-1",
        "plan": pointer("plans"),
        "changeCount": changes,
        "waveCount": len(ends),
        "waves": ends,
        "changesSha256": digest,
        "summary": 'Plan plan-1: team-a 2 -> 1, "because"',
    }


def one_change(payload: dict[str, Any], *, written: int = 1) -> dict[str, Any]:
    """Answer that a single change was made."""
    return {"next": payload["index"] + 1, "written": written}


def one_refusal(payload: dict[str, Any]) -> dict[str, Any]:
    """Answer that a single change was refused for good."""
    return one_change(payload, written=0) | {"refused": ["team-c (limit-reached): the account has no more"]}


def looked(**what: Any) -> dict[str, Any]:
    """Answer as verify_plan does: settled, unless something else is said."""
    return {"settled": True, "pending": [], "refused": [], "edited": [], "problems": [], **what}


PENDING = looked(settled=False, pending=["team-a has status Updating at version 2"])


class Failing:
    """A step that fails a number of times with an error, and is well afterwards."""

    def __init__(self, error: str, times: int, then: Step) -> None:
        self.error, self.times, self.then = error, times, then

    def __call__(self, payload: dict[str, Any]) -> Any:
        if self.times > 0:
            self.times -= 1
            raise TaskFailedError(self.error, "as the test says")
        return self.then(payload)


def in_turn(*answers: Any) -> Step:
    """Return a step that gives one answer after another, the last one forever; an exception is raised."""
    left = list(answers)

    def step(payload: dict[str, Any]) -> Any:
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, Exception):
            raise answer
        return answer(payload) if callable(answer) else answer

    return step


@dataclass
class World:
    """What the machine talks to, and what it did there."""

    table: "DynamoDBClient"
    steps: dict[str, Step] = field(default_factory=dict)
    integrations: dict[str, Step] = field(default_factory=dict)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    schedules: list[dict[str, Any]] = field(default_factory=list)
    before_task: Callable[[str], None] = lambda _: None
    waves: list[int] = field(default_factory=list)
    """Where the waves of the last plan end."""
    execution: Execution = field(init=False)

    def __post_init__(self) -> None:
        self.execution = Execution(self._answer)
        self.steps = {
            "ReadSnapshot": lambda _: {
                "snapshot": pointer("snapshots"),
                "generation": int(self.state().get("generation", {"N": "0"})["N"]),
                "clusterName": "ml-cluster",
                "takenAt": "2026-11-20T09:00:00Z",
            },
            "PlanQuotas": lambda _: planned("nothing-to-do"),
            "ApplyChange": one_change,
            "VerifyPlan": lambda _: looked(),
            "PublishUsage": lambda _: {"published": 1},
        }

    def run(self) -> Ended:
        given = {"clusterArn": CLUSTER, "cause": CAUSE}
        ReconcileInput.parse(given)
        return self.execution.run(definition("reconcile"), given)

    def state(self) -> dict[str, Any]:
        key = {"pk": {"S": f"CLUSTER#{CLUSTER}"}, "sk": {"S": "STATE"}}
        return self.table.get_item(TableName=SUBSTITUTIONS["TableName"], Key=key).get("Item", {})

    def set_state(self, **attributes: Any) -> None:
        self.put({"pk": {"S": f"CLUSTER#{CLUSTER}"}, "sk": {"S": "STATE"}, **attributes})

    def put(self, item: dict[str, Any]) -> None:
        self.table.put_item(TableName=SUBSTITUTIONS["TableName"], Item=item)

    def items(self) -> list[dict[str, Any]]:
        return list(self.table.scan(TableName=SUBSTITUTIONS["TableName"])["Items"])

    def hint(self) -> None:
        """Mark the cluster dirty, as receive_event does."""
        self.table.update_item(
            TableName=SUBSTITUTIONS["TableName"],
            Key={"pk": {"S": f"CLUSTER#{CLUSTER}"}, "sk": {"S": "STATE"}},
            UpdateExpression="ADD generation :one",
            ExpressionAttributeValues={":one": {"N": "1"}},
        )

    def payloads(self, step: str) -> list[dict[str, Any]]:
        return [payload for name, payload in self.calls if name == step]

    def published(self) -> list[tuple[str, int]]:
        return [(payload["outcome"], payload["applied"]) for payload in self.payloads("PublishUsage")]

    def _answer(self, name: str, resource: str, arguments: dict[str, Any]) -> Any:
        self.before_task(name)
        if name in self.integrations:
            return self.integrations[name](arguments)
        operation = resource.split(":::", 1)[1]
        assert operation in self._integrations(), f"{name} uses {operation}"
        return self._integrations()[operation](arguments)

    def _integrations(self) -> dict[str, Step]:
        return {
            "lambda:invoke": lambda arguments: {"Payload": self._invoke(arguments)},
            "dynamodb:updateItem": lambda arguments: self._call(lambda: self.table.update_item(**arguments)),
            "dynamodb:putItem": lambda arguments: self._call(lambda: self.table.put_item(**arguments)),
            "aws-sdk:dynamodb:putItem.waitForTaskToken": self._ask,
            "sns:publish": self._notify,
            "aws-sdk:scheduler:createSchedule": self._schedule,
            "aws-sdk:scheduler:updateSchedule": self._schedule,
        }

    def _ask(self, arguments: dict[str, Any]) -> None:
        """Keep the request, and answer as nobody does: the time-out."""
        self._call(lambda: self.table.put_item(**arguments))
        raise TaskFailedError("States.Timeout")

    def _notify(self, arguments: dict[str, Any]) -> dict[str, Any]:
        self.notices.append(arguments["Subject"] + "\n" + arguments["Message"])
        return {"MessageId": "1"}

    def _schedule(self, arguments: dict[str, Any]) -> dict[str, Any]:
        self.schedules.append(arguments)
        return {"ScheduleArn": "arn:aws:scheduler:us-east-1:111122223333:schedule/schedules/x"}

    def _invoke(self, arguments: dict[str, Any]) -> Any:
        step = arguments["FunctionName"].rsplit(":", 1)[-1]
        REQUESTS[step].parse(arguments["Payload"])
        self.calls.append((step, arguments["Payload"]))
        answer = self.steps[step](arguments["Payload"])
        if step == "PlanQuotas":
            self.waves = answer["waves"]
        if step == "ApplyChange":
            return {"waveEnds": self._leaves_wave(arguments["Payload"], answer["next"]), "refused": []} | answer
        return answer

    def _leaves_wave(self, payload: dict[str, Any], following: int) -> bool:
        """Say whether the next change is in another wave, as the function does."""
        return self._wave(following) != self._wave(payload["index"])

    def _wave(self, index: int) -> int | None:
        ends = [0, *self.waves]
        return next((number for number in range(1, len(ends)) if ends[number - 1] <= index < ends[number]), None)

    def _call(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except ClientError as error:
            raise TaskFailedError(f"DynamoDB.{error.response['Error']['Code']}", str(error)) from error


@pytest.fixture(scope="module")
def table() -> "Iterator[DynamoDBClient]":
    with pytest.MonkeyPatch.context() as patch, mock_aws():
        patch.setenv("AWS_ACCESS_KEY_ID", "testing")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
        client = boto3.client("dynamodb", region_name="us-east-1")
        client.create_table(
            TableName=SUBSTITUTIONS["TableName"],
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[
                {"AttributeName": "pk", "AttributeType": "S"},
                {"AttributeName": "sk", "AttributeType": "S"},
            ],
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        )
        yield client


@pytest.fixture
def world(table: "DynamoDBClient") -> World:
    name = SUBSTITUTIONS["TableName"]
    for item in [item for page in table.get_paginator("scan").paginate(TableName=name) for item in page["Items"]]:
        table.delete_item(TableName=name, Key={"pk": item["pk"], "sk": item["sk"]})
    return World(table)
