"""The three policies for people: each allows what its commands do, nothing more, and nothing past the signed entry."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from taskgov_embedded.iam import actions, evaluation
from taskgov_embedded.iam.conditions import conditions
from tests.support.operating import ASKS, DOCUMENT, file_of, opened, pending_plan, played, taskgov

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskgov_embedded.aws_api.aws_requests import Call
    from taskgov_embedded.walkthrough.world import World

POLICIES = ("DocumentAuthorPolicy", "ApproverPolicy", "StopperPolicy")
Asked = tuple[str, tuple[str, ...], dict[str, Any]]
NO_PERMISSION_NEEDED = {"sts:GetCallerIdentity"}
EVERYTHING = evaluation.statements(
    "everything", "everything", {"Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
)
"""What an administrator's role may do beside the policy."""


class People:
    """What the commands of approvers and stoppers called, on a stack where a plan waits."""

    def __init__(self, world: World, at: Path) -> None:
        self.stack = world.stack
        self.asked = {
            "ApproverPolicy": self.asked_by(lambda: [taskgov("approve", pending_plan(world))], skip="Scan"),
            "StopperPolicy": self.asked_by(lambda: [taskgov("stop", "on"), taskgov("stop"), taskgov("stop", "off")]),
            "DocumentAuthorPolicy": self.asked_by(lambda: self.put_a_document(file_of(world, at))),
        }

    def asked_by(self, work: Any, skip: str = "") -> list[Asked]:
        before = len(self.stack.calls)
        for result in work():
            assert result.exit_code == 0, result.stderr
        calls = [call for call in self.stack.calls[before:] if call.principal.role_arn is None]
        return [asked for call in calls if call.operation != skip for asked in self.needs(call)]

    def put_a_document(self, file: str) -> list[Any]:
        """Do what `taskgov apply --policy` does to put a document into force; its plan is a look at the cluster."""
        from taskgov.policy.parse import parse_policy
        from taskgov_cli.applying.document import Review, store, tag_of
        from taskgov_cli.deployed import deployed

        text = Path(file).read_text()
        document = parse_policy(text).document
        assert document is not None
        place = deployed("taskgov")
        store(place, document.cluster, text, replaces=tag_of(place, document.cluster.name), review=Review())
        return []

    def needs(self, call: Call) -> Iterator[Asked]:
        context = conditions(call.service, call.operation, call.params, self.stack.place)
        for need in actions.needs(call.service, call.operation, call.params, self.stack.place):
            if need.action not in NO_PERMISSION_NEEDED:
                yield need.action, need.resources, context

    def policy(self, name: str) -> tuple[evaluation.Statement, ...]:
        document = self.stack.resolved(name).properties["PolicyDocument"]
        return evaluation.statements(name, name, document)

    def refused(self, asked: list[Asked], *policies: str) -> set[str]:
        """Return the actions that a person who holds these policies may not do."""
        statements = tuple(one for name in policies for one in self.policy(name))
        return {
            action
            for action, resources, context in asked
            if not any(evaluation.evaluate(statements, action, one, context).allowed for one in resources)
        }

    def denied(self, policy: str, action: str, resource: str, context: dict[str, Any] | None = None) -> bool:
        """Say whether the policy denies what an administrator's policy beside it allows."""
        verdict = evaluation.evaluate((*self.policy(policy), *EVERYTHING), action, resource, context or {})
        return verdict.denied_by is not None

    @property
    def table(self) -> str:
        return self.stack.place.arn("dynamodb", f"table/{self.stack.physical('GovernanceTable')}")


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    with opened({"policy": DOCUMENT | ASKS}, {"waitMinutes": 2}) as world:
        yield People(played(world), tmp_path_factory.mktemp("people"))


policies = pytest.mark.parametrize("policy", POLICIES)


@policies
def test_each_may_do_all_that_its_commands_do(people: People, policy: str) -> None:
    assert len(people.asked[policy]) >= 3
    assert people.refused(people.asked[policy], policy) == set()


@policies
def test_each_holds_nothing_that_its_commands_do_not_need(people: People, policy: str) -> None:
    allowed = {grant.action for grant in evaluation.grants_of(people.policy(policy))}
    assert allowed == {action for action, _, _ in people.asked[policy]}


@policies
@pytest.mark.parametrize("action", ["SendTaskSuccess", "SendTaskFailure", "SendTaskHeartbeat", "GetExecutionHistory"])
def test_nobody_answers_a_run_past_the_entry_whatever_else_is_allowed(people: People, policy: str, action: str) -> None:
    assert people.denied(policy, f"states:{action}", "*")


@policies
@pytest.mark.parametrize("action", ["GetItem", "BatchGetItem", "Query"])
def test_nobody_reads_a_request_with_its_token(people: People, policy: str, action: str) -> None:
    token = {"dynamodb:LeadingKeys": ["APPROVAL#arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdefghijkl"]}
    assert people.denied(policy, f"dynamodb:{action}", people.table, token)
    mixed = {"dynamodb:LeadingKeys": ["SWITCH", *token["dynamodb:LeadingKeys"]]}
    assert people.denied(policy, f"dynamodb:{action}", people.table, mixed)
    assert not people.denied(policy, f"dynamodb:{action}", people.table, {"dynamodb:LeadingKeys": ["CLUSTER#x"]})


@policies
@pytest.mark.parametrize(
    "action",
    ["Scan", "PartiQLSelect", "PartiQLInsert", "PartiQLUpdate", "PartiQLDelete", "ExportTableToPointInTime"],
)
def test_nobody_reads_the_table_without_naming_a_key(people: People, policy: str, action: str) -> None:
    assert people.denied(policy, f"dynamodb:{action}", people.table)


@policies
@pytest.mark.parametrize("action", ["PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem"])
@pytest.mark.parametrize("key", ["APPROVAL#x", "DOCUMENT#ml-cluster", "ORDER#x", "SWITCH"])
def test_nobody_writes_a_record_of_who_did_what(people: People, policy: str, action: str, key: str) -> None:
    assert people.denied(policy, f"dynamodb:{action}", people.table, {"dynamodb:LeadingKeys": [key]})


@policies
@pytest.mark.parametrize("action", ["PutObject", "DeleteObject", "DeleteObjectVersion"])
def test_nobody_writes_a_document_past_the_entry(people: People, policy: str, action: str) -> None:
    bucket = people.stack.physical("GovernanceBucket")
    assert people.denied(policy, f"s3:{action}", f"arn:aws:s3:::{bucket}/policies/ml-cluster.yaml")


@policies
def test_nobody_invokes_the_function_with_an_event_of_his_own(people: People, policy: str) -> None:
    function = people.stack.place.arn("lambda", f"function:{people.stack.physical('TakeOrderFunction')}")
    for resource in (function, f"{function}:live", f"{function}:3", f"{function}:$LATEST"):
        assert people.denied(policy, "lambda:InvokeFunction", resource)
        assert people.denied(policy, "lambda:InvokeFunction", resource, {"lambda:InvokedViaFunctionUrl": "false"})
    assert people.denied(policy, "lambda:InvokeAsync", function)
    through = {"lambda:InvokedViaFunctionUrl": "true"}
    assert not people.denied(policy, "lambda:InvokeFunction", f"{function}:live", through)


@policies
@pytest.mark.parametrize("function", ["ReceiveEvent", "PlanQuotas", "ApplyChange", "PublishUsage"])
def test_nobody_says_to_a_step_of_a_run_who_asked_or_approved(people: People, policy: str, function: str) -> None:
    arn = people.stack.place.arn("lambda", f"function:{people.stack.physical(f'{function}Function')}")
    for action, resource in product(("InvokeFunction", "InvokeAsync"), (arn, f"{arn}:live", f"{arn}:$LATEST")):
        assert people.denied(policy, f"lambda:{action}", resource)


@policies
def test_nobody_starts_a_run_or_puts_an_order_into_the_queue_in_the_name_of_another(
    people: People, policy: str
) -> None:
    place, queue = people.stack.place, people.stack.physical("IntakeQueue").rpartition("/")[2]
    assert people.denied(policy, "states:StartExecution", people.stack.outputs["ReconcileStateMachineArn"])
    assert people.denied(policy, "sqs:SendMessage", place.arn("sqs", queue))
    assert not people.denied(policy, "sqs:SendMessage", place.arn("sqs", "another"))


@policies
@pytest.mark.parametrize("action", ["PutParameter", "DeleteParameter", "DeleteParameters"])
def test_nobody_changes_who_may_order_what(people: People, policy: str, action: str) -> None:
    parameter = people.stack.place.arn("ssm", f"parameter/{people.stack.physical('OrderRights')}")
    assert people.denied(policy, f"ssm:{action}", parameter)


@policies
def test_each_is_no_larger_than_iam_allows(people: People, policy: str) -> None:
    document = people.stack.resolved(policy).properties["PolicyDocument"]
    assert len(json.dumps(document, separators=(",", ":"))) <= 6144


def holders(people: People, action: str, resource: str, context: dict[str, Any]) -> set[str]:
    """Return the roles of the stack that may do this."""
    policies = people.stack.account.policies
    return {
        role.rpartition("taskgov-")[2].partition("-")[0]
        for role in policies.role_arns()
        if evaluation.evaluate(policies.of_role(role), action, resource, context).allowed
    }


def test_one_role_alone_reads_tokens_answers_runs_and_writes_who_did_what(people: People) -> None:
    items = boto3.resource("dynamodb").Table(people.stack.physical("GovernanceTable")).scan()["Items"]
    (request,) = [one for one in items if "taskToken" in one]
    context = {"dynamodb:LeadingKeys": [str(request["pk"])]}
    readers = {
        reader
        for action in ("dynamodb:GetItem", "dynamodb:Query", "dynamodb:Scan", "dynamodb:BatchGetItem")
        for reader in holders(people, action, people.table, context)
    }
    assert readers == {"TakeOrderRole"}
    assert holders(people, "states:SendTaskSuccess", "*", {}) == {"TakeOrderRole"}
    for action, key in (("UpdateItem", "DOCUMENT#x"), ("PutItem", "SWITCH"), ("PutItem", "ORDER#x")):
        writers = holders(people, f"dynamodb:{action}", people.table, {"dynamodb:LeadingKeys": [key]})
        assert writers == {"TakeOrderRole"}


LOCK = ["pk", "sk", "lockOwner", "lockExpires", "fencingToken"]


@pytest.mark.parametrize(
    ("action", "context", "may"),
    [
        ("UpdateItem", {"dynamodb:Attributes": LOCK, "dynamodb:ReturnValues": "NONE"}, True),
        ("UpdateItem", {"dynamodb:Attributes": LOCK[:4]}, True),
        ("UpdateItem", {"dynamodb:Attributes": [*LOCK, "record"]}, False),
        ("UpdateItem", {"dynamodb:Attributes": [*LOCK, "expiresAt"]}, False),
        ("UpdateItem", {"dynamodb:Attributes": LOCK, "dynamodb:ReturnValues": "ALL_NEW"}, False),
        ("UpdateItem", {}, False),
        ("PutItem", {"dynamodb:Attributes": LOCK}, False),
        ("DeleteItem", {"dynamodb:Attributes": LOCK[:2]}, False),
        ("GetItem", {"dynamodb:Attributes": LOCK}, False),
        ("Query", {"dynamodb:Attributes": LOCK}, False),
    ],
)
def test_the_entry_changes_nothing_of_a_cluster_but_its_lock(
    people: People, action: str, context: dict[str, Any], *, may: bool
) -> None:
    known = {"dynamodb:LeadingKeys": ["CLUSTER#x"], **context}
    assert ("TakeOrderRole" in holders(people, f"dynamodb:{action}", people.table, known)) is may


def test_author_and_approver_are_both_on_record(people: People) -> None:
    items = boto3.resource("dynamodb").Table(people.stack.physical("GovernanceTable")).scan()["Items"]
    (request,) = [one for one in items if "taskToken" in one]
    assert request["answeredBy"] == request["answeredPerson"] == "arn:aws:iam::111122223333:user/operator"
    assert request["author"] == "unknown"  # the walkthrough wrote it past the entry
    (document,) = [one for one in items if str(one["pk"]).startswith("DOCUMENT#")]
    assert document["author"] == "arn:aws:iam::111122223333:user/operator"
