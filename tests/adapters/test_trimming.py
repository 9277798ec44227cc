"""Trimming what the API server sends: whatever it is, the list goes on."""

from typing import Any

import pytest

from taskgov.adapters.kubernetes.trimming import Shared, kept, trimmed, trimmed_node, trimmed_workload
from taskgov.scheduling import KueueModel
from taskgov.snapshot.forms import UNTRIMMED, fault_of
from tests.scheduling.builders import a_job

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


def test_what_the_scheduling_model_does_not_follow_is_kept_so_that_it_is_named() -> None:
    """Also in a cluster that was read, not only in objects that are given whole."""
    job = a_job("j", "q")
    job["metadata"]["annotations"] = {"kueue.x-k8s.io/priority-boost": "1", "team/secret": SECRET}
    pod = job["spec"]["podSets"][0]["template"]["spec"]
    pod |= {"resourceClaims": [{"name": "gpu"}], "runtimeClassName": "nvidia", "volumes": [SECRET]}
    whole, trim = KueueModel(), KueueModel()
    whole.apply(job)
    trim.apply(trimmed_workload(job))
    assert {found.feature for found in whole.not_modelled} == {
        "PriorityBoost",
        "DynamicResourceAllocation",
    }
    assert trim.not_modelled == whole.not_modelled
    assert SECRET not in str(trimmed_workload(job))


def test_equal_pod_sets_of_workloads_are_one_object_and_others_are_not() -> None:
    def a_workload(name: str, gpus: int | str) -> dict[str, Any]:
        container = {"name": "main", "resources": {"requests": {"nvidia.com/gpu": gpus}}}
        pods = {"name": "main", "count": 1, "template": {"spec": {"containers": [container]}}}
        return {"metadata": {"name": name}, "spec": {"queueName": "q", "podSets": [pods]}}

    requests: tuple[int | str, ...] = (1, 1, "1", True)
    items = [a_workload(f"w-{number}", gpus) for number, gpus in enumerate(requests)]
    shared = Shared()
    trimmed = [trimmed_workload(item, shared=shared) for item in items]
    assert trimmed == [trimmed_workload(item) for item in items]
    first, same, text, other = (item["spec"]["podSets"][0] for item in trimmed)
    assert first is same
    assert len({id(first), id(text), id(other)}) == 3
