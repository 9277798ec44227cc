"""Which document stands for which EKS cluster, also when it is full of mistakes."""

from __future__ import annotations

import pytest

from taskgov.policy.cluster import kueue_cluster_of

EKS = "arn:aws:eks:us-east-1:111122223333:cluster/plain"
HYPERPOD = "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdefghijkl"


@pytest.mark.parametrize(
    "text",
    [
        f"cluster: {{name: plain, arn: '{EKS}', backend: kueue}}\nteams: 7",
        f"cluster: {{name: plain, arn: '{EKS}', backend: kueu}}",
        f"cluster: {{arn: '{EKS}'}}",
        f"cluster: {{name: plain, arn: '{EKS}', backend: kueue\nteams: []",
        f"# {EKS} was moved\ncluster: '{EKS}'",
    ],
    ids=["right", "backend spelled wrong", "no backend", "not readable", "no mapping"],
)
def test_a_document_with_the_arn_of_its_cluster_stands_for_it(text: str) -> None:
    assert kueue_cluster_of(text, "plain") == EKS


@pytest.mark.parametrize(
    "text",
    [
        f"# runs on {EKS}\ncluster: {{name: plain, arn: '{HYPERPOD}'}}",
        f"cluster: {{name: plain, arn: '{HYPERPOD}', backend: kueue}}",
        f"cluster: {{arn: '{EKS}-2'}}",
        f"cluster: {{name: plain, arn: '{EKS}-2'",
        "cluster: {name: plain, backend: kueue}",
        "[",
        "",
    ],
    ids=["HyperPod's", "no EKS ARN", "another's", "another's, not readable", "no ARN", "not readable", "empty"],
)
def test_a_document_that_does_not_say_its_own_clusters_arn_stands_for_none(text: str) -> None:
    assert kueue_cluster_of(text, "plain") is None


def test_with_the_backend_the_arn_may_be_of_another_name() -> None:
    text = f"cluster: {{arn: '{EKS}', backend: kueue}}"
    assert (kueue_cluster_of(text, "other"), kueue_cluster_of(f"cluster: {{arn: '{EKS}'}}", "other")) == (EKS, None)
