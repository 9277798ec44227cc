"""Where pods go, and what keeps them away."""

from __future__ import annotations

from typing import Any

import pytest

from taskgov_embedded.cluster.placement import place_all

GIB = 2**30


def node(name: str, *, ready: bool = True, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": spec,
        "status": {
            "allocatable": {"cpu": "44610m", "memory": "164Gi", "nvidia.com/gpu": "4", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True" if ready else "Unknown"}],
        },
    }


def pod(name: str, *, gpus: int = 4, cpu: str = "1", created: int = 0, **spec: Any) -> dict[str, Any]:
    requests = {"nvidia.com/gpu": str(gpus), "cpu": cpu}
    return {
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": f"{created:04}-{name}",
            "creationTimestamp": f"2026-11-20T09:00:{created:02}Z",
        },
        "spec": {"containers": [{"name": "main", "resources": {"requests": requests}}], **spec},
        "status": {"phase": "Pending"},
    }


def on(pods: list[dict[str, Any]], nodes: list[dict[str, Any]]) -> dict[str, str | None]:
    return {name: where for (_, name), (where, _) in place_all(pods, nodes).items()}


def why(one: dict[str, Any], *nodes: dict[str, Any]) -> str:
    [(where, because)] = place_all([one], nodes).values()
    assert where is None
    return because


def test_a_pod_gets_the_first_node_by_name_that_has_room() -> None:
    pods = [pod("a", gpus=2), pod("b", gpus=4), pod("c", gpus=2)]
    assert on(pods, [node("n-2"), node("n-1")]) == {"a": "n-1", "b": "n-2", "c": "n-1"}


def test_the_older_pod_goes_first() -> None:
    pods = [pod("a-young", created=9), pod("z-old", created=1)]
    assert on(pods, [node("n-1")]) == {"z-old": "n-1", "a-young": None}


def test_running_pods_keep_their_room() -> None:
    running = pod("there", nodeName="n-1")
    assert on([running, pod("late", gpus=1)], [node("n-1")]) == {"late": None}


def test_allocatable_bounds_every_resource() -> None:
    assert why(pod("a", gpus=4, cpu="45"), node("n-1")) == "0/1 nodes are available: 1 Insufficient cpu."
    assert on([pod("a", cpu="44610m")], [node("n-1")]) == {"a": "n-1"}


def test_each_reason_is_counted() -> None:
    nodes = [
        node("n-1", unschedulable=True),
        node("n-2", ready=False),
        node("n-3", taints=[{"key": "health", "value": "bad", "effect": "NoSchedule"}]),
        node("n-4", labels={"zone": "b"}),
        node("n-5", labels={"zone": "a"}),
    ]
    said = why(pod("a", gpus=8, nodeSelector={"zone": "a"}), *nodes)
    assert said == (
        "0/5 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) didn't match Pod's node affinity/selector, "
        "1 node(s) had untolerated taint {health: bad}, 1 node(s) were not ready, 1 node(s) were unschedulable."
    )


def test_no_nodes_at_all_is_said_so() -> None:
    assert why(pod("a")) == "no nodes available to schedule pods"


@pytest.mark.parametrize(
    ("toleration", "fits"),
    [
        ({"key": "health", "operator": "Exists"}, True),
        ({"key": "health", "value": "bad"}, True),
        ({"key": "health", "value": "bad", "effect": "NoExecute"}, False),
        ({"key": "health", "value": "good"}, False),
        ({"operator": "Exists"}, True),
    ],
)
def test_tolerations_are_matched_as_kubernetes_does(toleration: dict[str, str], *, fits: bool) -> None:
    tainted = node("n-1", taints=[{"key": "health", "value": "bad", "effect": "NoSchedule"}])
    assert on([pod("a", tolerations=[toleration])], [tainted]) == {"a": "n-1" if fits else None}


def test_a_taint_that_only_prefers_keeps_nobody_away() -> None:
    tainted = node("n-1", taints=[{"key": "health", "value": "bad", "effect": "PreferNoSchedule"}])
    assert on([pod("a")], [tainted]) == {"a": "n-1"}


@pytest.mark.parametrize(
    ("expression", "fits"),
    [
        ({"key": "zone", "operator": "In", "values": ["a", "b"]}, True),
        ({"key": "zone", "operator": "NotIn", "values": ["a"]}, False),
        ({"key": "zone", "operator": "Exists"}, True),
        ({"key": "zone", "operator": "DoesNotExist"}, False),
    ],
)
def test_required_node_affinity_holds(expression: dict[str, Any], *, fits: bool) -> None:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    here = node("n-1", labels={"zone": "a"})
    assert on([pod("a", affinity=affinity)], [here]) == {"a": "n-1" if fits else None}


def test_a_gated_pod_is_not_placed() -> None:
    assert on([pod("a", schedulingGates=[{"name": "kueue.x-k8s.io/admission"}])], [node("n-1")]) == {}


def test_limits_stand_in_for_requests() -> None:
    limited = pod("a")
    limited["spec"]["containers"] = [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "5"}}}]
    assert why(limited, node("n-1")) == "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
