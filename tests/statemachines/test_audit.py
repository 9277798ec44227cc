"""Every way through the audit state machine."""

from collections.abc import Callable
from typing import Any

import pytest

from taskgov.contracts.steps import AuditClusterRequest
from taskgov.services.metric_catalogue import ALL_CLUSTERS, AUDITS_MISSED
from taskgov_embedded.stepfunctions.host import Ended, TaskFailedError
from tests.statemachines import machines
from tests.statemachines.machines import SUBSTITUTIONS, Execution, definition

ARN = "arn:aws:sagemaker:us-east-1:111122223333:cluster/"
Page = dict[str, Any]


def page(*names: str, following: str | None = None) -> Page:
    clusters = [{"ClusterArn": ARN + name, "ClusterName": name, "ClusterStatus": "InService"} for name in names]
    return {"ClusterSummaries": clusters} | ({"NextToken": following} if following else {})


def audit(
    pages: list[Page],
    function: Callable[[str], Any] = lambda _: {"clusterName": "x", "findings": 2, "muted": 3},
    documents: tuple[Page, ...] = ({},),
) -> tuple[Ended, list[str]]:
    """Run the audit; return how it ended and the names of the clusters that were audited."""
    ended, audited, _ = counted_audit(pages, function, documents)
    return ended, audited


def counted_audit(
    pages: list[Page],
    function: Callable[[str], Any],
    documents: tuple[Page, ...] = ({},),
    *,
    count: Callable[[], Any] = dict,
) -> tuple[Ended, list[str], list[dict[str, Any]]]:
    """Run the audit; return what was put as metrics too."""
    audited: list[str] = []
    metrics: list[dict[str, Any]] = []
    tokens: list[str | None] = [None, *(each["NextToken"] for each in pages[:-1])]

    def answer(_: str, resource: str, arguments: Any) -> Any:
        if resource.endswith("aws-sdk:sagemaker:listClusters"):
            place = tokens.index(arguments.get("NextToken"))
            return pages[place]
        if resource.endswith("aws-sdk:s3:listObjectsV2"):
            assert (arguments["Bucket"], arguments["Prefix"]) == (SUBSTITUTIONS["GovernanceBucket"], "policies/")
            return documents[int(arguments.get("ContinuationToken", "0"))]
        if resource.endswith("aws-sdk:cloudwatch:putMetricData"):
            metrics.append(arguments)
            return count()
        request = AuditClusterRequest.parse(arguments["Payload"])
        name = request.cluster_arn.removeprefix(ARN)
        result = function(name)
        audited.append(name)
        return {"Payload": result}

    return Execution(answer).run(definition("audit"), {}), audited, metrics


def failing(names: str, error: str) -> Callable[[str], Any]:
    def function(name: str) -> Any:
        if name in names:
            raise TaskFailedError(error)
        return {"clusterName": name, "findings": 1, "muted": 0, "worst": "high"}

    return function


@pytest.mark.parametrize(
    ("pages", "clusters"),
    [
        ([page()], []),
        ([page("a")], ["a"]),
        ([page("a", "b")], ["a", "b"]),
        ([page("a", "b", following="2"), page("c", following="3"), page()], ["a", "b", "c"]),
    ],
    ids=["no cluster", "one", "two", "three pages"],
)
def test_every_cluster_of_every_page_is_audited_once(pages: list[Page], clusters: list[str]) -> None:
    ended, audited = audit(pages)
    assert audited == clusters
    assert ended.output == {
        "audited": len(clusters),
        "missed": [],
        "findings": 2 * len(clusters),
        "muted": 3 * len(clusters),
    }


@pytest.mark.parametrize(
    ("named", "clusters"),
    [
        ("", ["documented", "plain"]),
        ("named", ["documented", "named", "plain"]),
        ("named, other", ["documented", "named", "other", "plain"]),
        ("*", ["documented", "named", "other", "plain"]),
    ],
)
def test_only_clusters_with_a_document_or_named_by_the_parameter_are_audited(
    named: str, clusters: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SUBSTITUTIONS, "ClustersWithoutDocument", named)
    machines.written.cache_clear()
    listed = [page("documented", "named", following="2"), page("other")]
    documents = documents_page("policies/documented.yaml", "policies/plain.yaml")
    ended, audited = audit(listed, documents=(documents,))
    machines.written.cache_clear()
    assert audited == clusters
    assert ended.output is not None
    assert ended.output["audited"] == len(clusters)


def test_without_a_document_nothing_is_audited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SUBSTITUTIONS, "ClustersWithoutDocument", "")
    machines.written.cache_clear()
    ended, audited = audit([page("one", "two")])
    machines.written.cache_clear()
    assert (ended.error, audited) == (None, [])


@pytest.mark.parametrize(
    "error", ["ThrottledError", "UpstreamError", "InvalidRequestError", "KeyError", "States.Timeout"]
)
def test_a_cluster_that_cannot_be_audited_turns_nothing_red_but_its_own_metric(error: str) -> None:
    ended, audited, metrics = counted_audit([page("a", "b", "c")], failing("b", error))
    assert audited == ["a", "c"]
    assert ended.error is None
    assert ended.output == {"audited": 2, "missed": ["b"], "findings": 2, "muted": 0}
    (put,) = metrics
    assert put["Namespace"] == "TaskGovernance"
    assert put["MetricData"] == [
        {
            "MetricName": AUDITS_MISSED.name,
            "Unit": AUDITS_MISSED.unit,
            "Value": 1,
            "Dimensions": [{"Name": "Cluster", "Value": cluster}],
        }
        for cluster in ("b", ALL_CLUSTERS)
    ]


@pytest.mark.parametrize(("failures", "missed"), [(1, []), (3, []), (4, ["b"])])
def test_a_cluster_that_cannot_be_read_is_tried_again_and_then_missed(failures: int, missed: list[str]) -> None:
    answers = iter([{"unreadable": "UpstreamError: list nodes: 401"}] * failures)

    def function(name: str) -> Any:
        well = {"clusterName": name, "findings": 1, "muted": 0}
        return next(answers, well) if name == "b" else well

    ended, audited, metrics = counted_audit([page("a", "b")], function)
    assert audited.count("b") == min(failures + 1, 4)
    assert ended.output == {"audited": 2 - len(missed), "missed": missed, "findings": 2 - len(missed), "muted": 0}
    assert len(metrics) == len(missed)


def test_of_several_clusters_that_cannot_be_audited_each_is_counted() -> None:
    ended, audited, metrics = counted_audit(
        [page("a", "b")], failing("ab plain", "UpstreamError"), (documents_page("policies/plain.yaml"),)
    )
    assert audited == []
    assert ended.output == {"audited": 0, "missed": ["a", "b", "plain"], "findings": 0, "muted": 0}
    assert [put["MetricData"][0]["Dimensions"][0]["Value"] for put in metrics] == ["a", "b", "plain"]


def test_a_missed_audit_that_cannot_be_counted_fails_the_execution_after_the_others() -> None:
    def refuse() -> Any:
        raise TaskFailedError("CloudWatch.CloudWatchException", "access denied")

    ended, audited, _ = counted_audit([page("a", "b", "c")], failing("b", "UpstreamError"), count=refuse)
    assert audited == ["a", "c"]
    assert ended.error == "AuditIncomplete"
    assert ended.cause == "1 of 3 clusters were not audited, and that could not be counted as a metric of: b"


def test_a_cluster_that_was_deleted_meanwhile_is_no_failure() -> None:
    ended, audited = audit([page("a", "b")], failing("b", "NotFoundError"))
    assert audited == ["a"]
    assert ended.output == {"audited": 2, "missed": [], "findings": 1, "muted": 0}


def test_clusters_that_cannot_be_listed_fail_the_audit() -> None:
    def answer(*_: Any) -> Any:
        raise TaskFailedError("SageMaker.SageMakerException", "access denied")

    ended = Execution(answer).run(definition("audit"), {})
    assert (ended.error, ended.cause) == ("AuditFailed", "SageMaker.SageMakerException: access denied")


def documents_page(*keys: str, following: str | None = None) -> Page:
    contents = {"Contents": [{"Key": key} for key in keys]} if keys else {}
    return {**contents, **({"NextContinuationToken": following} if following else {})}


def test_an_eks_cluster_is_audited_by_the_name_of_its_document_and_no_hyperpod_cluster_twice() -> None:
    pages = [page("a", following="2"), page("b")]
    found = (
        documents_page("policies/a.yaml", "policies/plain.yaml", "policies/old/plain.yaml", following="1"),
        documents_page("policies/b.yaml", "policies/other.yaml", "policies/notes.txt"),
    )
    ended, audited = audit(pages, documents=found)
    assert audited == ["a", "b", "plain", "other"]
    assert ended.output == {"audited": 4, "missed": [], "findings": 8, "muted": 12}


def test_a_document_of_a_cluster_that_is_gone_is_no_failure() -> None:
    ended, audited = audit([page("a")], failing("gone", "NotFoundError"), (documents_page("policies/gone.yaml"),))
    assert audited == ["a"]
    assert ended.output == {"audited": 2, "missed": [], "findings": 1, "muted": 0}
