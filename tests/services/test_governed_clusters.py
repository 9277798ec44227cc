"""Which clusters the resync, the measurements and the audit go through."""

import pytest

from taskgov.services.governed_clusters import GovernedClusters
from tests.support.memory import InMemoryDocuments


@pytest.mark.parametrize(
    ("named", "governed"),
    [
        ("", {"documented"}),
        ("other", {"documented", "other"}),
        ("other, third", {"documented", "other", "third"}),
        ("*", {"documented", "other", "third"}),
    ],
)
def test_a_cluster_is_governed_by_its_document_or_because_it_is_named(named: str, governed: set[str]) -> None:
    documents = InMemoryDocuments()
    documents.put("policies/documented.yaml", b"", "text/yaml")
    is_governed = GovernedClusters(documents, named)()
    assert {name for name in ("documented", "other", "third", "") if is_governed(name)} - {""} == governed
