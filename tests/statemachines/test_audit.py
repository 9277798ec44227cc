"""Every way through the audit state machine."""

from collections.abc import Callable
from typing import Any

import pytest

from taskgov.contracts.steps import AuditClusterRequest
from tests.statemachines.interpreter import SUBSTITUTIONS, Ended, Execution, TaskFailedError, definition

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
    audited: list[str] = []
    tokens: list[str | None] = [None, *(each["NextToken"] for each in pages[:-1])]

    def answer(_: str, resource: str, arguments: Any) -> Any:
        if resource.endswith("aws-sdk:sagemaker:listClusters"):
            place = tokens.index(arguments.get("NextToken"))
            return pages[place]
        if resource.endswith("aws-sdk:s3:listObjectsV2"):
            assert (arguments["Bucket"], arguments["Prefix"]) == (SUBSTITUTIONS["GovernanceBucket"], "policies/")
            return documents[int(arguments.get("ContinuationToken", "0"))]
        request = AuditClusterRequest.parse(arguments["Payload"])
        name = request.cluster_arn.removeprefix(ARN)
        result = function(name)
        audited.append(name)
        return {"Payload": result}

    return Execution(answer).run(definition("audit"), {}), audited


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
    assert ended.output == {"audited": len(clusters), "findings": 2 * len(clusters), "muted": 3 * len(clusters)}


@pytest.mark.parametrize(
    "error", ["ThrottledError", "UpstreamError", "InvalidRequestError", "KeyError", "States.Timeout"]
)
def test_a_cluster_that_cannot_be_audited_does_not_keep_the_others_from_it(error: str) -> None:
    ended, audited = audit([page("a", "b", "c")], failing("b", error))
    assert audited == ["a", "c"]
    assert ended.error == "AuditIncomplete"
    assert ended.cause == "1 of 3 clusters were not audited; the others were"


def test_a_cluster_that_was_deleted_meanwhile_is_no_failure() -> None:
    ended, audited = audit([page("a", "b")], failing("b", "NotFoundError"))
    assert audited == ["a"]
    assert ended.output == {"audited": 2, "findings": 1, "muted": 0}


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
    assert ended.output == {"audited": 4, "findings": 8, "muted": 12}


def test_a_document_of_a_cluster_that_is_gone_is_no_failure() -> None:
    ended, audited = audit([page("a")], failing("gone", "NotFoundError"), (documents_page("policies/gone.yaml"),))
    assert audited == ["a"]
    assert ended.output == {"audited": 2, "findings": 1, "muted": 0}
