"""`taskgov apply` on an EKS cluster without HyperPod, which nobody lists: its document makes it known."""

from pathlib import Path

import pytest

from tests.support.operating import BEFORE, G5, counts, data, file_of, opened, played

pytestmark = pytest.mark.long


def test_the_first_document_of_an_eks_cluster_is_what_makes_it_known(tmp_path: Path) -> None:
    eks = {"name": "plain-eks", "backend": "kueue"}
    with opened(cluster=eks | {"groups": [{"instanceType": G5, "count": 4}]}) as world:
        played(world)
        file = file_of(world, tmp_path, cluster=eks | {"arn": "${clusterArn}"})
        assert data("apply", "--policy", file, "--yes")["ended"]["outcome"] == "applied"
        assert counts(world) == BEFORE
