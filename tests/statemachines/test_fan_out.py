"""Every way through the state machine that begins something for each governed cluster."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from taskgov.contracts.events import Hint, parse_event
from taskgov.contracts.steps import EstimateStartsRequest, PublishUsageRequest
from taskgov.services.metric_catalogue import ALL_CLUSTERS, AUDITS_MISSED, CLUSTER_UNREADABLE
from taskgov_embedded.stepfunctions.execution import MOST_EXPRESS_SECONDS
from taskgov_embedded.stepfunctions.host import Ended, TaskFailedError
from tests.statemachines import machines
from tests.statemachines.machines import SUBSTITUTIONS, Execution, definition

ARN = "arn:aws:sagemaker:us-east-1:111122223333:cluster/"
START = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)
AT = "2026-11-20T09:00:00Z"
Page = dict[str, Any]


def arn(name: str) -> str:
    return ARN + name.replace(" ", "x").rjust(12, "0")[-12:]


def page(*names: str, following: str | None = None) -> Page:
    clusters = [{"ClusterArn": arn(name), "ClusterName": name, "ClusterStatus": "InService"} for name in names]
    return {"ClusterSummaries": clusters} | ({"NextToken": following} if following else {})


def documents_page(*keys: str, following: str | None = None) -> Page:
    contents = {"Contents": [{"Key": key} for key in keys]} if keys else {}
    return {**contents, **({"NextContinuationToken": following} if following else {})}


def well(_: str) -> None:
    """Let everything that is begun be taken."""


@dataclass
class FanOut:
    """What the machine lists, and what it begins; `begin` is called with the name of each cluster."""

    pages: list[Page]
    documents: tuple[Page, ...] = ({},)
    begin: Callable[[str], None] = well
    count: Callable[[], Any] = dict
    begun: list[tuple[str, float]] = field(default_factory=list)
    """Names and after how many seconds: when the call was made, or how long the message or the audit waits."""
    sent: list[Any] = field(default_factory=list)
    metrics: list[dict[str, Any]] = field(default_factory=list)

    def run(self, work: str, at: str = AT, started: datetime = START) -> Ended:
        self.execution = Execution(self._answer, moment=started)
        return self.execution.run(definition("fan_out"), {"for": work, "at": at})

    def __post_init__(self) -> None:
        self._names = {one["ClusterArn"]: one["ClusterName"] for page in self.pages for one in page["ClusterSummaries"]}

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.begun]

    def _answer(self, _: str, resource: str, arguments: Any) -> Any:
        match resource.partition(":::")[2]:
            case "aws-sdk:sagemaker:listClusters":
                tokens = [None, *(each["NextToken"] for each in self.pages[:-1])]
                return self.pages[tokens.index(arguments.get("NextToken"))]
            case "aws-sdk:s3:listObjectsV2":
                assert (arguments["Bucket"], arguments["Prefix"]) == (SUBSTITUTIONS["GovernanceBucket"], "policies/")
                return self.documents[int(arguments.get("ContinuationToken", "0"))]
            case "aws-sdk:cloudwatch:putMetricData":
                self.metrics.append(arguments)
                return self.count()
            case "lambda:invoke":
                starts = arguments["FunctionName"] == SUBSTITUTIONS["EstimateStartsFunction"]
                asked = (EstimateStartsRequest if starts else PublishUsageRequest).parse(arguments["Payload"])
                self._note(asked.cluster_arn or "", (self.execution.moment - START).total_seconds(), asked)
                return {"Payload": {"published": 1}}
            case "sqs:sendMessage":
                hint = parse_event(json.loads(json.dumps(arguments["MessageBody"])), own_role_arn="")
                assert isinstance(hint, Hint)
                self._note(hint.subject.cluster_arn or hint.subject.cluster_name or "", arguments["DelaySeconds"], hint)
                return {}
            case "aws-sdk:sfn:startExecution":
                given = json.loads(arguments["Input"])
                self._note(given["clusterArn"], given["after"], arguments)
                return {}
            case other:
                raise AssertionError(other)

    def _note(self, cluster: str, after: float, sent: Any) -> None:
        name = self._names.get(cluster, cluster)
        self.begin(name)
        self.begun.append((name, after))
        self.sent.append(sent)


def failing(name: str, error: str) -> Callable[[str], None]:
    def begin(asked: str) -> None:
        if asked == name:
            raise TaskFailedError(error)

    return begin


def refuse() -> Any:
    raise TaskFailedError("CloudWatch.CloudWatchException", "access denied")


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch) -> Any:
    def name(names: str) -> None:
        monkeypatch.setitem(SUBSTITUTIONS, "ClustersWithoutDocument", names)
        machines.written.cache_clear()

    yield name
    machines.written.cache_clear()


WORKS = pytest.mark.parametrize("work", ["usage", "starts", "resync", "audit"])


@WORKS
@pytest.mark.parametrize(
    ("pages", "clusters"),
    [
        ([page("a")], ["a"]),
        ([page("b", "a")], ["a", "b"]),
        ([page("a", "b", following="2"), page("c", following="3"), page()], ["a", "b", "c"]),
    ],
    ids=["one", "two", "three pages"],
)
def test_something_is_begun_once_for_every_cluster_of_every_page(
    pages: list[Page], clusters: list[str], work: str
) -> None:
    fan_out = FanOut(pages)
    assert fan_out.run(work).output == {"clusters": len(clusters)}
    assert fan_out.names == clusters


@WORKS
@pytest.mark.parametrize(
    ("without_document", "clusters"),
    [
        ("", ["documented", "plain"]),
        ("named", ["documented", "named", "plain"]),
        ("named, other", ["documented", "named", "other", "plain"]),
        ("*", ["documented", "named", "other", "plain"]),
    ],
)
def test_only_clusters_with_a_document_or_named_by_the_parameter_are_governed(
    without_document: str, clusters: list[str], work: str, named: Callable[[str], None]
) -> None:
    named(without_document)
    fan_out = FanOut(
        [page("documented", "named", following="2"), page("other")],
        (documents_page("policies/documented.yaml", "policies/plain.yaml"),),
    )
    fan_out.run(work)
    assert fan_out.names == clusters


@WORKS
def test_an_eks_cluster_is_known_by_the_name_of_its_document_and_no_hyperpod_cluster_twice(work: str) -> None:
    found = (
        documents_page("policies/a.yaml", "policies/plain.yaml", "policies/old/plain.yaml", following="1"),
        documents_page("policies/b.yaml", "policies/other.yaml", "policies/notes.txt"),
    )
    fan_out = FanOut([page("a", following="2"), page("b")], found)
    fan_out.run(work)
    assert fan_out.names == ["a", "b", "other", "plain"]


def test_without_a_governed_cluster_one_look_says_so_and_nothing_else_is_begun(named: Callable[[str], None]) -> None:
    named("")
    begun = {}
    for work in ("usage", "starts", "resync", "audit"):
        fan_out = FanOut([page("one", "two")])
        assert fan_out.run(work).output == {"clusters": 0}
        begun[work] = fan_out.sent
    assert begun == {"usage": [PublishUsageRequest()], "starts": [], "resync": [], "audit": []}


@pytest.mark.parametrize(
    ("work", "count", "last", "most_in_a_second"),
    [
        ("usage", 1, 0, 1),
        ("usage", 10, 9, 1),
        ("usage", 200, 39, 5),
        ("starts", 200, 39, 5),
        ("resync", 1, 0, 1),
        ("resync", 10, 27, 1),
        ("resync", 200, 597, 1),
        ("audit", 1, 0, 1),
        ("audit", 10, 54, 1),
        ("audit", 200, 1194, 1),
    ],
)
def test_clusters_begin_a_moment_apart_and_the_last_in_time(
    work: str, count: int, last: float, most_in_a_second: int
) -> None:
    fan_out = FanOut([page(*(f"c{number:04}" for number in range(count)))])
    fan_out.run(work)
    after = [after for _, after in fan_out.begun]
    assert after == sorted(after)
    assert (after[0], int(after[-1])) == (0, last)
    assert max(Counter(int(each) for each in after).values()) == most_in_a_second


@WORKS
def test_a_cluster_has_its_turn_whatever_the_order_of_the_list(work: str) -> None:
    one, other = FanOut([page("a", "b", "c")]), FanOut([page("c", "a", "b")])
    one.run(work)
    other.run(work)
    assert one.begun == other.begun


def test_the_last_turn_leaves_a_look_its_time_and_a_message_may_be_delayed_so_long() -> None:
    rhythm = definition("fan_out")["States"]["Note the start"]["Assign"]["rhythm"]
    within = {
        work: int(rhythm.partition(f"'{work}'")[2].partition("'within': ")[2].partition("}")[0]) for work in WITHIN
    }
    assert within == WITHIN
    states = definition("fan_out")["States"]["Begin each"]["ItemProcessor"]["States"]
    whole = definition("fan_out")["TimeoutSeconds"]
    for work, look in (("usage", states["Look at the usage"]), ("starts", states["Estimate the starts"])):
        assert within[work] + look["TimeoutSeconds"] < whole <= MOST_EXPRESS_SECONDS
    assert within["resync"] <= 900  # SendMessage, DelaySeconds


WITHIN = {"usage": 40, "starts": 40, "resync": 600, "audit": 1800}


def test_a_run_is_asked_for_by_an_event_that_names_the_cluster() -> None:
    fan_out = FanOut([page("a")], (documents_page("policies/plain.yaml"),))
    fan_out.run("resync")
    subjects = [(hint.subject.cluster_arn, hint.subject.cluster_name) for hint in fan_out.sent]
    assert subjects == [(arn("a"), "a"), (None, "plain")]
    assert {hint.cause.at for hint in fan_out.sent} == {START}


def test_an_audit_has_the_same_name_when_the_schedule_is_delivered_twice_and_another_one_the_next_night() -> None:
    names: list[list[str]] = []
    for at in (AT, AT, "2026-11-21T09:00:00Z"):
        fan_out = FanOut([page("a" * 63, "b b")])
        fan_out.run("audit", at, START + timedelta(seconds=len(names)))
        names.append([sent["Name"] for sent in fan_out.sent])
    assert names[0] == names[1] == ["a" * 50 + "-0-20261120T090000Z", "b-b-6-20261120T090000Z"]
    assert not set(names[0]) & set(names[2])
    assert all(len(name) <= 80 for name in names[0])


def test_an_audit_that_was_started_already_is_no_failure() -> None:
    fan_out = FanOut([page("a", "b")], begin=failing("a", "Sfn.ExecutionAlreadyExistsException"))
    assert (fan_out.run("audit").error, fan_out.names, fan_out.metrics) == (None, ["b"], [])


@pytest.mark.parametrize(
    "error",
    ["ThrottledError", "UpstreamError", "InvalidRequestError", "KeyError", "Sandbox.Timedout", "States.Timeout"],
)
@pytest.mark.parametrize("work", ["usage", "starts"])
def test_a_look_that_fails_or_hangs_is_its_clusters_own_metric_and_holds_up_no_other(error: str, work: str) -> None:
    fan_out = FanOut([page("a", "b", "c")], begin=failing("b", error))
    assert fan_out.run(work).error is None
    assert fan_out.names == ["a", "c"]
    (put,) = fan_out.metrics
    assert put == counted(CLUSTER_UNREADABLE.name, "b")


def test_an_audit_that_cannot_be_started_is_missed_and_the_others_are_started() -> None:
    fan_out = FanOut([page("a", "b", "c")], begin=failing("b", "Sfn.SfnException"))
    assert fan_out.run("audit").error is None
    assert fan_out.names == ["a", "c"]
    assert fan_out.metrics == [counted(AUDITS_MISSED.name, "b")]


def test_a_run_that_cannot_be_asked_for_fails_the_execution_after_the_others() -> None:
    fan_out = FanOut([page("a", "b", "c")], begin=failing("b", "SQS.SdkClientException"))
    ended = fan_out.run("resync")
    assert fan_out.names == ["a", "c"]
    assert (ended.error, ended.cause) == (
        "FanOutIncomplete",
        "1 of 3 clusters: resync failed, and no metric says so: b",
    )


@pytest.mark.parametrize("work", ["usage", "starts", "audit"])
def test_what_fails_and_cannot_be_counted_fails_the_execution_after_the_others(work: str) -> None:
    fan_out = FanOut([page("a", "b", "c")], begin=failing("b", "KeyError"), count=refuse)
    ended = fan_out.run(work)
    assert fan_out.names == ["a", "c"]
    assert (ended.error, ended.cause) == (
        "FanOutIncomplete",
        f"1 of 3 clusters: {work} failed, and no metric says so: b",
    )


@pytest.mark.parametrize(("times", "counted_as_failed"), [(1, 0), (3, 0), (4, 1)])
@pytest.mark.parametrize("work", ["usage", "starts"])
def test_a_call_that_lambda_throttles_is_tried_three_more_times(work: str, times: int, counted_as_failed: int) -> None:
    refusals = iter(range(times))

    def begin(_asked: str) -> None:
        if next(refusals, None) is not None:
            raise TaskFailedError("Lambda.TooManyRequestsException", "Rate Exceeded")

    fan_out = FanOut([page("a")], begin=begin)
    assert (fan_out.run(work).error, len(fan_out.metrics)) == (None, counted_as_failed)


@pytest.mark.parametrize("work", ["usage", "starts"])
def test_a_function_that_does_not_find_what_it_needs_is_its_clusters_own_metric(work: str) -> None:
    """The functions say by themselves that a cluster was deleted meanwhile: whatever else is not found is a failure."""
    fan_out = FanOut([page("a", "b")], begin=failing("b", "NotFoundError"))
    assert fan_out.run(work).error is None
    assert fan_out.metrics == [counted(CLUSTER_UNREADABLE.name, "b")]


@WORKS
def test_clusters_that_cannot_be_listed_fail_the_execution(work: str) -> None:
    def answer(*_: Any) -> Any:
        raise TaskFailedError("SageMaker.SageMakerException", "access denied")

    ended = Execution(answer).run(definition("fan_out"), {"for": work})
    assert (ended.error, ended.cause) == ("FanOutFailed", "SageMaker.SageMakerException: access denied")


def counted(metric: str, cluster: str) -> dict[str, Any]:
    data = [
        {"MetricName": metric, "Unit": "Count", "Value": 1, "Dimensions": [{"Name": "Cluster", "Value": name}]}
        for name in (cluster, ALL_CLUSTERS)
    ]
    return {"Namespace": "TaskGovernance", "MetricData": data}
