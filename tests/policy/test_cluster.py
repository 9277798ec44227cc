"""Which document stands for which EKS cluster, also when it is full of mistakes."""

from __future__ import annotations

import pytest

from taskgov.policy.backends import Backend
from taskgov.policy.cluster import backend_named_in, eks_cluster_of, mistaken_cluster_of

EKS = "arn:aws:eks:us-east-1:111122223333:cluster/plain"
HYPERPOD = "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdefghijkl"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"cluster: {{name: plain, arn: '{EKS}', backend: kueue}}\nteams: 7", EKS),
        (f"cluster: {{name: other, arn: '{EKS}', backend: kueue}}", EKS),
        (f"cluster: {{name: plain, arn: '{EKS}', backend: kueu}}", None),
        (f"cluster: {{name: plain, arn: '{EKS}'}}", None),
        (f"cluster: {{name: plain, arn: '{HYPERPOD}', backend: kueue}}", None),
        ("cluster: {name: plain, backend: kueue}", None),
        (f"cluster: {{name: plain, arn: '{EKS}', backend: kueue", None),
        ("", None),
    ],
    ids=[
        "right",
        "another name",
        "backend spelled wrong",
        "no backend",
        "no EKS ARN",
        "no ARN",
        "not readable",
        "empty",
    ],
)
def test_a_document_with_the_backend_governs_the_cluster_of_its_arn(text: str, found: str | None) -> None:
    assert eks_cluster_of(text, Backend.KUEUE) == found


@pytest.mark.parametrize(
    "text",
    [
        f"cluster: {{name: plain, arn: '{EKS}', backend: kueu}}",
        f"cluster: {{arn: '{EKS}'}}",
        f"cluster: {{name: plain, arn: '{EKS}', backend: kueue\nteams: []",
        f"# {EKS} was moved\ncluster: '{EKS}'",
    ],
    ids=["backend spelled wrong", "no backend", "not readable", "no mapping"],
)
def test_a_document_with_mistakes_and_the_arn_of_its_cluster_may_stand_for_it(text: str) -> None:
    assert mistaken_cluster_of(text, "plain") == EKS


@pytest.mark.parametrize(
    "text",
    [
        f"# runs on {EKS}\ncluster: {{name: plain, arn: '{HYPERPOD}'}}",
        f"cluster: {{name: plain, arn: '{HYPERPOD}', backend: kueue}}",
        f"cluster: {{arn: '{EKS}-2'}}",
        f"cluster: {{name: plain, arn: '{EKS}-2'",
        f"# runs on {EKS}\ncluster: {{arn: '{EKS}-2'}}",
        f"cluster: {{name: other, arn: '{EKS}', backend: kueue}}",
        "cluster: {name: plain, backend: kueue}",
        "[",
        "",
    ],
    ids=[
        "HyperPod's",
        "no EKS ARN",
        "another's",
        "another's, not readable",
        "another's, its own in a comment",
        "with a backend that is right",
        "no ARN",
        "not readable",
        "empty",
    ],
)
def test_a_document_that_does_not_say_its_own_clusters_arn_stands_for_none(text: str) -> None:
    assert mistaken_cluster_of(text, "plain") is None


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("cluster: {backend: volcano}", "volcano"),
        ("cluster: {name: plain}", None),
        ("cluster: {backend: [kueue]}", None),
        ("cluster: kueue", None),
        ("[", None),
    ],
)
def test_the_backend_that_a_document_names_is_read_without_the_rest(text: str, name: str | None) -> None:
    assert backend_named_in(text) == name
