"""Trimming what the API server sends: whatever it is, the list goes on."""

from typing import Any

import pytest

from taskgov.adapters.kubernetes.trimming import kept, trimmed, trimmed_node, trimmed_workload
from taskgov.snapshot.forms import UNTRIMMED, fault_of

SECRET = "password"


@pytest.mark.parametrize(
    "item",
    [
        None,
        7,
        "node",
        [],
        {},
        {"metadata": None},
        {"metadata": {"name": "n", "ownerReferences": [7]}},
        {"metadata": {"name": "n"}, "status": {"conditions": [{}]}, "spec": {"podSets": 7}},
        {"metadata": {"name": "n", "annotations": {"a": SECRET}}, "spec": SECRET, "status": SECRET},
    ],
    ids=str,
)
@pytest.mark.parametrize(
    ("kind", "trim"), [("Node", trimmed_node), ("Workload", trimmed_workload), ("ClusterQueue", trimmed)]
)
def test_an_item_that_cannot_be_trimmed_is_kept_by_its_name_alone(kind: str, trim: Any, item: Any) -> None:
    found = kept(item, trim)
    if UNTRIMMED in found:
        assert found.keys() == {"metadata", UNTRIMMED}
        assert found["metadata"].keys() <= {"name", "namespace"}
        assert fault_of(kind, found) == found[UNTRIMMED]
        assert SECRET not in str(found)
