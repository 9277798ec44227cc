"""Which backend answers for which cluster."""

from __future__ import annotations

from dataclasses import replace
from inspect import getmembers, isfunction, signature
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from taskgov.backends.backends import Backends
from taskgov.backends.registry import BACKENDS, Reach, Row, backend_of, backends
from taskgov.errors import NoClusterNamedError, NotFoundError
from taskgov.policy.backends import Backend
from taskgov.ports import ClusterBackend
from taskgov.services.metric_catalogue import ALL_CLUSTERS
from taskgov.snapshot.unreadable import UnreadableObject
from tests.support.memory import CLUSTER_ARN, InMemoryDocuments, InMemoryHyperPod, RecordingFailures
from tests.support.plans import instances, target

EKS = "arn:aws:eks:us-east-1:111122223333:cluster/plain"

if TYPE_CHECKING:
    from taskgov.ports import OnUnreadableObject, PolicyText


def document(arn: str = EKS, backend: str = "kueue") -> bytes:
    return f"cluster: {{name: plain, arn: '{arn}', backend: {backend}}}\nteams: 7\n".encode()


class World:
    def __init__(self) -> None:
        self.sagemaker, self.documents, self.failures = InMemoryHyperPod(), InMemoryDocuments(), RecordingFailures()
        self.backends = self.over(self.documents)

    def over(self, documents: InMemoryDocuments) -> Backends:
        """Return the registered backends, with a twin for SageMaker; Kubernetes and AWS are not asked."""
        nobody: Any = None
        hyperpod = replace(BACKENDS[0], build=lambda _reach, _above: self.sagemaker)
        reach = Reach(documents, nobody, nobody, nobody, nobody, nobody, self.failures)
        return backends(reach, (hyperpod, *BACKENDS[1:]))


@pytest.fixture
def world() -> World:
    return World()


def test_clusters_are_sagemakers_and_those_that_documents_name_even_broken_ones(world: World) -> None:
    world.documents.put("policies/plain.yaml", document(), "")
    world.documents.put("policies/ml-cluster.yaml", document(CLUSTER_ARN, "sagemaker"), "")
    world.documents.put("policies/odd.yaml", b"[", "")
    assert world.backends.clusters() == [CLUSTER_ARN, EKS]


class BrokenDocuments(InMemoryDocuments):
    """One document cannot be read, for a reason that nobody foresaw."""

    def policy(self, cluster_name: str) -> PolicyText | None:
        if cluster_name == "broken":
            raise RecursionError
        return super().policy(cluster_name)


def test_a_document_that_cannot_be_read_leaves_the_other_clusters_and_is_reported(world: World) -> None:
    documents = BrokenDocuments({"policies/broken.yaml": b"", "policies/plain.yaml": document()})
    assert world.over(documents).clusters() == [CLUSTER_ARN, EKS]
    assert world.failures.reported == [("broken", "read the policy document", "RecursionError")]


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-16-le"])
def test_a_document_in_another_encoding_still_stands_for_its_cluster(encoding: str, world: World) -> None:
    text = f"# \u00e9\ncluster: {{name: plain, arn: '{EKS}', backend: kueue}}\n"
    world.documents.put("policies/plain.yaml", text.encode(encoding), "")
    world.documents.put("policies/odd.yaml", "\u00e9".encode(encoding), "")
    assert world.backends.clusters() == [CLUSTER_ARN, EKS]
    assert world.failures.reported == []


def test_a_cluster_is_known_if_sagemaker_has_it_or_a_document_governs_it(world: World) -> None:
    world.documents.put("policies/plain.yaml", document(), "")
    unknown = (CLUSTER_ARN[:-1] + "x", EKS.replace("plain", "other"), EKS.replace("us-east-1", "us-west-2"))
    assert [world.backends.knows(arn) for arn in (CLUSTER_ARN, EKS)] == [True, True]
    assert [world.backends.knows(arn) for arn in unknown] == [False, False, False]


def test_a_document_in_which_a_mistake_hides_the_backend_is_still_its_clusters(world: World) -> None:
    world.documents.put("policies/plain.yaml", f"cluster: {{name: plain, arn: '{EKS}', backend: ku".encode(), "")
    assert world.backends.clusters() == [CLUSTER_ARN, EKS]
    assert world.backends.describe_cluster("plain")["ClusterArn"] == EKS


def test_a_hyperpod_clusters_document_with_the_eks_clusters_arn_stays_its_own(world: World) -> None:
    eks = "arn:aws:eks:us-east-1:111122223333:cluster/ml-cluster"
    world.documents.put("policies/ml-cluster.yaml", f"cluster: {{name: ml-cluster, arn: '{eks}'}}".encode(), "")
    assert world.backends.clusters() == [CLUSTER_ARN]
    assert world.backends.describe_cluster("ml-cluster")["ClusterArn"] == CLUSTER_ARN


def test_a_name_is_sagemakers_first_and_then_a_documents(world: World) -> None:
    world.documents.put("policies/plain.yaml", document(), "")
    assert world.backends.describe_cluster("ml-cluster")["ClusterArn"] == CLUSTER_ARN
    described = world.backends.describe_cluster("plain")
    assert described["ClusterArn"] == described["Orchestrator"]["Eks"]["ClusterArn"] == EKS
    assert world.backends.describe_cluster(EKS)["ClusterName"] == "plain"
    with pytest.raises(NotFoundError):
        world.backends.describe_cluster("nobody")
    assert world.backends.cluster_nodes(EKS) == []


HYPERPOD = "arn:aws:sagemaker:us-east-1:111122223333:cluster/deletedmlxyz"
NO_CLUSTER = {
    "empty": "",
    "a comment": "# truncated",
    "no cluster": "teams: []",
    "not readable": "[",
    "the ARN is lost": "cluster: {name: plain, backend: kueue}",
    "backend and ARN are lost": "cluster: {name: plain}",
    "a HyperPod cluster with the backend of others": f"cluster: {{name: plain, arn: '{HYPERPOD}', backend: kueue}}",
    "a HyperPod cluster of another name": f"cluster: {{name: other, arn: '{HYPERPOD}'}}",
}


@pytest.mark.parametrize("text", NO_CLUSTER.values(), ids=NO_CLUSTER.keys())
def test_a_document_that_names_no_cluster_is_a_mistake_and_no_deleted_cluster(text: str, world: World) -> None:
    world.documents.put("policies/plain.yaml", text.encode(), "")
    with pytest.raises(NoClusterNamedError, match=r"policies/plain\.yaml names no cluster"):
        world.backends.describe_cluster("plain")


def test_a_document_of_another_cluster_than_its_own_name_says_governs_nothing(world: World) -> None:
    """Of the cluster, the document of its own name is read."""
    world.documents.put("policies/plain-old.yaml", document(), "")
    with pytest.raises(NoClusterNamedError, match=r"plain-old\.yaml is of .*, whose document is policies/plain\.yaml"):
        world.backends.describe_cluster("plain-old")


@pytest.mark.parametrize("text", [f"cluster: {{name: plain, arn: '{HYPERPOD}'}}", f"cluster: {{arn: '{HYPERPOD}'}}"])
def test_the_document_of_a_hyperpod_cluster_that_was_deleted_names_one_that_is_not_found(
    text: str, world: World
) -> None:
    world.documents.put("policies/plain.yaml", text.encode(), "")
    with pytest.raises(NotFoundError):
        world.backends.describe_cluster("plain")


def test_the_arn_says_who_keeps_the_quotas(world: World) -> None:
    world.backends.create_quota(CLUSTER_ARN, "a", instances(1), target("team-a"))
    assert world.sagemaker.writes == ["create a"]
    third = InMemoryHyperPod()
    by_name = {"sagemaker": world.sagemaker, "volcano": third}
    volcano = Backends(by_name, lambda arn: "volcano" if arn.startswith("volcano:") else "sagemaker", world.failures)
    volcano.create_quota("volcano:ml", "b", instances(1), target("team-b"))
    assert (world.sagemaker.writes, third.writes) == (["create a"], ["create b"])
    assert [quota.name for quota in volcano.quotas("volcano:ml")] == ["b"]
    assert [quota.name for quota in volcano.quotas(CLUSTER_ARN)] == ["a"]


def test_each_name_that_a_document_may_give_has_one_row_and_each_arn_one_backend() -> None:
    assert [row.name for row in BACKENDS] == list(Backend)
    for arn_or_id, name in (
        (CLUSTER_ARN, Backend.SAGEMAKER),
        ("quota0000001", Backend.SAGEMAKER),
        (f"{EKS}/policy", Backend.KUEUE),
    ):
        assert [row.name for row in BACKENDS if row.recognises(arn_or_id)] == [name]
        assert backend_of(arn_or_id, lambda _: None) is name


@pytest.mark.parametrize(
    ("text", "sees"),
    [
        (document(), "kueue"),
        (document(backend="volcano"), "volcano"),
        (document(backend="kueu"), "kueue"),
        (document().replace(b"backend:", b"back:"), "kueue"),
        (None, "kueue"),
    ],
    ids=["named", "the other one named", "spelled wrong", "not named", "no document"],
)
def test_of_two_backends_of_eks_clusters_the_document_names_the_one(
    text: bytes | None, sees: str, world: World
) -> None:
    """A third backend whose clusters are EKS clusters too: nothing but a row is needed for it."""
    asked: list[str] = []

    def row(name: str) -> Row:
        twin: Any = SimpleNamespace(put_tag=lambda *_: asked.append(name))
        return replace(BACKENDS[1], name=cast("Backend", name), build=lambda _reach, _above: twin)

    if text is not None:
        world.documents.put("policies/plain.yaml", text, "")
    nobody: Any = None
    reach = Reach(world.documents, nobody, nobody, nobody, nobody, nobody, world.failures)
    several = backends(reach, (row("kueue"), row("volcano")))
    for arn_or_id in (EKS, f"{EKS}/quota/team-a"):
        several.put_tag(arn_or_id, "key", "value")
    assert asked == [sees, sees]


class Recorder:
    """Keeps which of a backend's methods were called with what, and answers each with its own name."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...]]] = []

    def __getattr__(self, name: str) -> Any:
        def call(*given: Any) -> str:
            self.calls.append((name, given))
            return name

        return call


OF_ALL_ROWS = {"clusters"}
METHODS = [name for name, _ in getmembers(ClusterBackend, isfunction) if not name.startswith("_")]


@pytest.mark.parametrize("name", sorted(set(METHODS) - OF_ALL_ROWS))
def test_each_call_about_a_cluster_goes_to_its_backend_alone_and_as_it_is(name: str, world: World) -> None:
    first, second = Recorder(), Recorder()
    by_name: Any = {"one": first, "two": second}
    both = Backends(by_name, lambda arn: arn.split(":")[2], world.failures)
    shape = signature(getattr(ClusterBackend, name))
    parameters = list(shape.parameters)[1:]
    for backend, other, arn in ((first, second, "arn:aws:one:c"), (second, first, "arn:aws:two:c")):
        given = (arn, *parameters[1:])
        before = len(other.calls)
        answer = getattr(both, name)(*given)
        assert (backend.calls[-1], len(other.calls)) == ((name, given), before)
        assert answer == (None if shape.return_annotation in {None, "None"} else name)


def test_what_cannot_be_listed_is_reported_of_its_cluster_or_of_all(world: World) -> None:
    class Odd(InMemoryHyperPod):
        def clusters(self, on_unreadable: OnUnreadableObject | None = None) -> list[str]:
            assert on_unreadable is not None
            on_unreadable(UnreadableObject("cluster", "ml", "why"))
            on_unreadable(UnreadableObject("cluster", "", "why"))
            return []

    assert Backends({"odd": Odd()}, lambda _: "odd", world.failures).clusters() == []
    assert [reported[0] for reported in world.failures.reported] == ["ml", ALL_CLUSTERS]


def test_a_name_that_no_backend_has_is_not_found_in_the_words_of_the_first(world: World) -> None:
    class Without(InMemoryHyperPod):
        def __init__(self, word: str) -> None:
            super().__init__()
            self.word = word

        def describe_cluster(self, cluster: str) -> Any:
            raise NotFoundError(f"{self.word} {cluster}")

    by_name = {"one": Without("first"), "two": Without("second")}
    with pytest.raises(NotFoundError, match="first ml"):
        Backends(by_name, lambda _: "one", world.failures).describe_cluster("ml")
