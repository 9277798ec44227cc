"""The three policies for people: each allows what its commands do, nothing more, and none of the others' work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import boto3
import pytest

from taskgov_embedded import access, iam
from tests.support.operating import ASKS, DOCUMENT, opened, pending_plan, played, taskgov

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskgov_embedded.gateway import Call
    from taskgov_embedded.walkthrough.world import World

POLICIES = ("DocumentAuthorPolicy", "ApproverPolicy", "StopperPolicy")
Asked = tuple[str, tuple[str, ...], dict[str, Any]]
NO_PERMISSION_NEEDED = {"sts:GetCallerIdentity"}


class People:
    """What the commands of approvers, stoppers and authors called, on a stack where a plan waits."""

    def __init__(self, world: World) -> None:
        self.stack = world.stack
        self.asked = {
            "ApproverPolicy": self.asked_by(lambda: [taskgov("approve", pending_plan(world))], skip="Scan"),
            "StopperPolicy": self.asked_by(lambda: [taskgov("stop", "on"), taskgov("stop"), taskgov("stop", "off")]),
            "DocumentAuthorPolicy": self.asked_by(self.write_a_document),
        }

    def asked_by(self, work: Any, skip: str = "") -> list[Asked]:
        before = len(self.stack.calls)
        for result in work():
            assert result.exit_code == 0, result.stderr
        calls = [call for call in self.stack.calls[before:] if call.principal.role_arn is None]
        return [asked for call in calls if call.operation != skip for asked in self.needs(call)]

    def write_a_document(self) -> list[Any]:
        bucket = self.stack.outputs["BucketName"]
        boto3.client("cloudformation").describe_stacks(StackName="taskgov")
        s3 = boto3.client("s3")
        body = s3.get_object(Bucket=bucket, Key="policies/ml-cluster.yaml")["Body"].read()
        s3.put_object(Bucket=bucket, Key="policies/ml-cluster.yaml", Body=body)
        return []

    def needs(self, call: Call) -> Iterator[Asked]:
        context = access.conditions(call.service, call.operation, call.params, self.stack.place)
        for need in access.needs(call.service, call.operation, call.params, self.stack.place):
            if need.action not in NO_PERMISSION_NEEDED:
                yield need.action, need.resources, context

    def policy(self, name: str) -> tuple[iam.Statement, ...]:
        document = self.stack.resolved(name).properties["PolicyDocument"]
        return iam.statements(name, name, document)

    def refused(self, asked: list[Asked], *policies: str) -> set[str]:
        """Return the actions that a person who holds these policies may not do."""
        statements = tuple(one for name in policies for one in self.policy(name))
        return {
            action
            for action, resources, context in asked
            if not any(iam.evaluate(statements, action, one, context).allowed for one in resources)
        }


@pytest.fixture(scope="module")
def people() -> Iterator[People]:
    with opened({"policy": DOCUMENT | ASKS}, {"waitMinutes": 2}) as world:
        yield People(played(world))


@pytest.mark.parametrize("policy", POLICIES)
def test_each_may_do_all_that_its_commands_do(people: People, policy: str) -> None:
    assert len(people.asked[policy]) >= 3
    assert people.refused(people.asked[policy], policy) == set()


@pytest.mark.parametrize("policy", POLICIES)
def test_each_holds_nothing_that_its_commands_do_not_need(people: People, policy: str) -> None:
    allowed = {grant.action for grant in iam.grants_of(people.policy(policy))}
    assert allowed == {action for action, _, _ in people.asked[policy]}


def test_who_writes_documents_can_neither_approve_nor_stop(people: People) -> None:
    assert {"dynamodb:GetItem", "states:SendTaskSuccess"} <= people.refused(
        people.asked["ApproverPolicy"], "DocumentAuthorPolicy"
    )
    assert "dynamodb:PutItem" in people.refused(people.asked["StopperPolicy"], "DocumentAuthorPolicy")


def test_who_approves_writes_no_document_even_when_another_policy_allows_it(people: People) -> None:
    both = ("ApproverPolicy", "DocumentAuthorPolicy")
    assert "s3:PutObject" in people.refused(people.asked["DocumentAuthorPolicy"], "ApproverPolicy")
    assert people.refused(people.asked["DocumentAuthorPolicy"], *both) == {"s3:PutObject"}
    assert people.refused(people.asked["ApproverPolicy"], *both) == {"dynamodb:GetItem"}


def test_who_stops_can_neither_approve_nor_write(people: People) -> None:
    assert {"dynamodb:GetItem", "states:SendTaskSuccess"} <= people.refused(
        people.asked["ApproverPolicy"], "StopperPolicy"
    )
    assert "s3:PutObject" in people.refused(people.asked["DocumentAuthorPolicy"], "StopperPolicy")


def test_the_task_token_is_where_no_role_of_the_stack_may_read(people: People) -> None:
    table = people.stack.physical("GovernanceTable")
    items = boto3.resource("dynamodb").Table(table).scan()["Items"]
    (request,) = [one for one in items if "taskToken" in one]
    arn = people.stack.place.arn("dynamodb", f"table/{table}")
    context = {"dynamodb:LeadingKeys": [str(request["pk"])]}
    policies = people.stack._policies
    readers = {
        (role, action)
        for role in policies.role_arns()
        for action in ("dynamodb:GetItem", "dynamodb:Query", "dynamodb:Scan", "dynamodb:BatchGetItem")
        if iam.evaluate(policies.of_role(role), action, arn, context).allowed
    }
    assert readers == set()
    assert iam.evaluate(people.policy("ApproverPolicy"), "dynamodb:GetItem", arn, context).allowed


def test_author_and_approver_are_both_on_record(people: People) -> None:
    items = boto3.resource("dynamodb").Table(people.stack.physical("GovernanceTable")).scan()["Items"]
    (request,) = [one for one in items if "taskToken" in one]
    assert request["answeredBy"] == "arn:aws:iam::111122223333:user/operator"
    assert request["author"] == "unknown"  # this document carried no author
