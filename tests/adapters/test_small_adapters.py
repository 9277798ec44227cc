"""The bus, the topic, the workflow and the meter, each against the emulated service or its own output."""

import json

import boto3
import pytest
from botocore.stub import Stubber
from moto import mock_aws

from taskgov.adapters.errors import translated
from taskgov.adapters.eventbridge import Bus
from taskgov.adapters.metrics import EmbeddedMetrics
from taskgov.adapters.sns import Topic, TopicsOfTeams
from taskgov.adapters.stepfunctions import StateMachine
from taskgov.contracts.steps import Cause
from taskgov.errors import NotFoundError, UpstreamError
from taskgov.ports import Measurement
from tests.support.memory import CLUSTER_ARN, NOON

CAUSE = Cause(event_id="e-1", source="taskgov.operator", detail_type="Reconcile Requested", at=NOON)
MACHINE_ARN = "arn:aws:states:us-east-1:111122223333:stateMachine:reconcile"


@pytest.fixture
def _namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", "TaskGovernance")
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "publish-usage")


def measured(name: str, value: float, **dimensions: str) -> Measurement:
    return Measurement(name, value, "Count", dimensions, {})


@pytest.mark.usefixtures("_namespace")
def test_values_with_the_same_dimensions_share_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    values = [
        measured("Borrowed", 1, Team="team-a"),
        measured("Lent", 1, Team="team-b"),
        measured("Idle", 2, Team="team-a"),
    ]
    EmbeddedMetrics().record("ml-cluster", values)
    documents = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    directives = [document["_aws"]["CloudWatchMetrics"][0] for document in documents]
    assert [[metric["Name"] for metric in directive["Metrics"]] for directive in directives] == [
        ["Borrowed", "Idle"],
        ["Lent"],
    ]
    assert {directive["Namespace"] for directive in directives} == {"TaskGovernance"}
    assert [sorted(directive["Dimensions"][0]) for directive in directives] == [["Cluster", "Team"]] * 2
    assert (documents[0]["Cluster"], documents[0]["Team"], documents[0]["Borrowed"]) == ("ml-cluster", "team-a", [1.0])


@pytest.mark.usefixtures("_namespace")
def test_more_values_than_one_document_takes_are_split(capsys: pytest.CaptureFixture[str]) -> None:
    EmbeddedMetrics().record("ml-cluster", [measured(f"M{number:03}", number) for number in range(130)])
    sizes = [
        len(json.loads(line)["_aws"]["CloudWatchMetrics"][0]["Metrics"])
        for line in capsys.readouterr().out.splitlines()
    ]
    assert sizes == [99, 31]


def test_an_event_that_the_bus_refuses_is_an_error_although_the_call_succeeds() -> None:
    client = boto3.client("events")
    with Stubber(client) as stub:
        refused = {"FailedEntryCount": 1, "Entries": [{"ErrorCode": "InternalFailure", "ErrorMessage": "try again"}]}
        stub.add_response("put_events", refused)
        with pytest.raises(UpstreamError, match="try again"):
            Bus(client, "governance").publish("Quota Changes Applied", {"cluster": "ml-cluster"})


def test_events_are_published_ten_at_a_time_and_those_that_are_refused_are_named_by_their_place() -> None:
    client = boto3.client("events")
    taken = {"FailedEntryCount": 0, "Entries": [{"EventId": "e"}] * 10}
    refused = {"ErrorCode": "InternalFailure", "ErrorMessage": "try again"}
    with Stubber(client) as stub:
        stub.add_response("put_events", taken)
        stub.add_response("put_events", {"FailedEntryCount": 1, "Entries": [refused, *([{"EventId": "e"}] * 9)]})
        stub.add_client_error("put_events", "ThrottlingException", "slow down")
        answer = Bus(client, "governance").publish_all([("Task Preempted", {"id": f"{n}"}) for n in range(35)])
        stub.assert_no_pending_responses()
    assert sorted(answer) == [10, *range(20, 35)]  # after a call that fails no other is made
    assert answer[10] == "InternalFailure: try again"
    assert answer[34].startswith("ThrottledError: ")


def test_no_events_are_no_call() -> None:
    client = boto3.client("events")
    with Stubber(client):
        assert Bus(client, "governance").publish_all([]) == {}


def test_a_subject_is_cut_to_what_sns_takes() -> None:
    with mock_aws():
        client = boto3.client("sns")
        arn = client.create_topic(Name="notices")["TopicArn"]
        Topic(client, arn).send("x" * 150, "text")  # SNS refuses 100 characters and more


def test_a_message_reaches_the_topic_it_names_and_one_that_is_not_there_is_an_error() -> None:
    with mock_aws():
        client, queues = boto3.client("sns"), boto3.client("sqs")
        arn = client.create_topic(Name="taskgov-team-a")["TopicArn"]
        url = queues.create_queue(QueueName="inbox")["QueueUrl"]
        inbox = queues.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        client.subscribe(TopicArn=arn, Protocol="sqs", Endpoint=inbox)
        topics = TopicsOfTeams(client, arn)
        topics.send(arn, "subject", "text")
        [message] = queues.receive_message(QueueUrl=url)["Messages"]
        told = json.loads(message["Body"])
        assert (told["TopicArn"], told["Subject"], told["Message"]) == (arn, "subject", "text")
        with pytest.raises(NotFoundError):
            topics.send(f"{arn}-gone", "subject", "text")
        topics.send_chat(arn, {"version": "1.0", "content": {"description": "\u202e"}})
        [message] = queues.receive_message(QueueUrl=url)["Messages"]
        assert json.loads(json.loads(message["Body"])["Message"])["version"] == "1.0"
        with pytest.raises(NotFoundError):
            topics.send_chat(f"{arn}-gone", {})


def test_a_run_of_the_same_name_is_started_once() -> None:
    client = boto3.client("stepfunctions")
    workflow = StateMachine(client, MACHINE_ARN)
    asked = {
        "stateMachineArn": MACHINE_ARN,
        "name": "ml-cluster-1-e1",
        "input": json.dumps(
            {"clusterArn": CLUSTER_ARN, "cause": CAUSE.model_dump(mode="json", by_alias=True, exclude_none=True)},
            separators=(",", ":"),
        ),
    }
    with Stubber(client) as stub:
        stub.add_response("start_execution", {"executionArn": MACHINE_ARN + ":x", "startDate": NOON}, asked)
        stub.add_client_error("start_execution", "ExecutionAlreadyExists", "there is one", expected_params=asked)
        assert [workflow.start(CLUSTER_ARN, CAUSE, "ml-cluster-1-e1") for _ in range(2)] == [True, False]
        stub.assert_no_pending_responses()


@pytest.mark.parametrize("error", [KeyError("Stacks"), TypeError("not a mapping"), AttributeError("no get")])
def test_an_answer_of_another_form_is_an_error_of_the_service(error: Exception) -> None:
    said = pytest.raises(UpstreamError, match=r"describe stack x: the answer has another form .*is a proxy between")
    with said, translated("describe stack x"):
        raise error
