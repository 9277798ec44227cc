"""The two served versions of Kueue's API."""

from __future__ import annotations

from typing import Any

from taskgov_embedded.cluster.versions import as_v1beta1, as_v1beta2


def thing(kind: str, version: str, spec: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"apiVersion": f"kueue.x-k8s.io/{version}", "kind": kind, "metadata": {"name": "x"}, "spec": spec, **more}


def test_an_older_cluster_queue_is_stored_in_the_newer_words() -> None:
    older = {
        "cohort": "shared-pool",
        "flavorFungibility": {"whenCanBorrow": "Borrow", "whenCanPreempt": "TryNextFlavor"},
    }
    newer = {
        "cohortName": "shared-pool",
        "flavorFungibility": {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "TryNextFlavor"},
    }
    assert as_v1beta2(thing("ClusterQueue", "v1beta1", older)) == thing("ClusterQueue", "v1beta2", newer)


def test_a_cohorts_parent_goes_both_ways() -> None:
    older, newer = thing("Cohort", "v1beta1", {"parent": "root"}), thing("Cohort", "v1beta2", {"parentName": "root"})
    assert as_v1beta2(older) == newer
    assert as_v1beta1(newer) == older


def test_a_local_queues_usage_has_its_older_name() -> None:
    newer = thing("LocalQueue", "v1beta2", {"clusterQueue": "q"}, status={"flavorsUsage": [], "pendingWorkloads": 1})
    older = thing("LocalQueue", "v1beta1", {"clusterQueue": "q"}, status={"flavorUsage": [], "pendingWorkloads": 1})
    assert as_v1beta1(newer) == older


def test_an_object_without_spec_stays_so() -> None:
    priority_class = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "WorkloadPriorityClass", "value": 70}
    assert as_v1beta2(priority_class) == {**priority_class, "apiVersion": "kueue.x-k8s.io/v1beta2"}
    assert as_v1beta1(as_v1beta2(priority_class)) == priority_class
