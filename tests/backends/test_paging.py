"""A list that is known to be partial is an error, never a smaller world."""

from collections.abc import Iterable, Mapping
from typing import Any, cast

import boto3
import pytest
from botocore.stub import Stubber

from taskgov.adapters.kubernetes import paging, reader
from taskgov.adapters.kubernetes.request import ExpiredError
from taskgov.backends.hyperpod_eks import sagemaker as adapter
from taskgov.backends.hyperpod_eks.sagemaker import HyperPodEks
from taskgov.errors import UpstreamError


def page(token: str = "", *, remain: int | None = None, names: Iterable[str] = ("n",)) -> dict[str, Any]:
    metadata = {"continue": token, "remainingItemCount": remain}
    items = [{"metadata": {"name": name}} for name in names]
    return {"items": items, "metadata": {key: value for key, value in metadata.items() if value}}


class Server:
    """Answers with one page after the other; an exception is raised."""

    def __init__(self, *answers: dict[str, Any] | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[str | None] = []

    def get(self, path: str, what: str, query: Mapping[str, str] | None = None, parts: object = None) -> dict[str, Any]:
        assert path
        assert what
        assert parts is None
        self.asked.append((query or {}).get("continue"))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def nodes(self) -> list[Any]:
        return reader.read_all(cast("Any", self), "/api/v1/nodes", lambda item: item, "list nodes")


def test_all_pages_are_read() -> None:
    server = Server(page("a", remain=2), page("b", remain=1), page())
    assert len(server.nodes()) == 3
    assert server.asked == [None, "a", "b"]


def test_a_last_page_that_leaves_items_out_is_a_partial_list() -> None:
    with pytest.raises(UpstreamError, match="list nodes: the list ends, and the server says that 9 items remain"):
        Server(page(remain=9)).nodes()


@pytest.mark.parametrize("tokens", [("a", "a"), ("a", "b", "a")])
def test_a_token_that_comes_again_is_a_list_without_end(tokens: Iterable[str]) -> None:
    with pytest.raises(UpstreamError, match="the same page again"):
        Server(*map(page, tokens)).nodes()


def test_the_number_of_pages_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paging, "MAX_PAGES", 3)
    assert len(Server(page("a"), page("b"), page()).nodes()) == 3
    with pytest.raises(UpstreamError, match="more than 3 pages"):
        Server(*(page(str(number)) for number in range(4))).nodes()


def test_a_list_that_expires_between_pages_is_read_again_once() -> None:
    expired = ExpiredError("410")
    server = Server(page("a", names=["old"]), expired, page("b"), page())
    assert [item["metadata"]["name"] for item in server.nodes()] == ["n", "n"]
    assert server.asked == [None, "a", None, "b"]
    with pytest.raises(UpstreamError):
        Server(page("a"), expired, page("b"), expired).nodes()


@pytest.mark.parametrize("tokens", [("a", "a"), ("a", "b", "a")])
def test_a_next_token_of_sagemaker_that_comes_again_is_an_error(tokens: Iterable[str]) -> None:
    client = boto3.client("sagemaker", region_name="us-east-1")
    with Stubber(client) as stub:
        for token in tokens:
            stub.add_response("list_clusters", {"ClusterSummaries": [], "NextToken": token})
        with pytest.raises(UpstreamError, match=r"list.clusters: .*token|list_clusters: the list does not end"):
            HyperPodEks(client).clusters()


def test_the_pages_of_sagemaker_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter, "MAX_PAGES", 2)
    client = boto3.client("sagemaker", region_name="us-east-1")
    with Stubber(client) as stub:
        for token in ("a", "b", "c"):
            stub.add_response("list_clusters", {"ClusterSummaries": [], "NextToken": token})
        with pytest.raises(UpstreamError, match=r"does not end \(2 pages"):
            HyperPodEks(client).clusters()


@pytest.mark.parametrize("answer", [{}, {"items": None, "metadata": {}}, {"items": [], "metadata": None}], ids=str)
def test_an_answer_that_is_no_list_is_an_error_and_no_empty_world(answer: dict[str, Any]) -> None:
    with pytest.raises(UpstreamError, match="list nodes: the answer is not a list of objects"):
        Server(answer).nodes()
