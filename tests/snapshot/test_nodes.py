from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from taskgov.quantities import GIBIBYTE
from taskgov.snapshot.model import Node, Taint
from taskgov.snapshot.nodes import nodes_from_kubernetes

P5 = "ml.p5.48xlarge"


def item(name: str = "hyperpod-i-0abc", *, ready: str = "True", **parts: Any) -> dict[str, Any]:
    """A Node as the API server sends it, cut to what is read."""
    labels = {"node.kubernetes.io/instance-type": P5, **parts.pop("labels", {})}
    return {
        "metadata": {"name": name, "creationTimestamp": "2026-11-01T08:00:00Z", "labels": labels},
        "spec": parts.pop("spec", {}),
        "status": {
            "allocatable": parts.pop("allocatable", {}),
            "conditions": [{"type": "DiskPressure", "status": "False"}, {"type": "Ready", "status": ready}],
            **parts,
        },
    }


def summary(instance_id: str = "i-0abc", status: str = "Running", **fields: Any) -> dict[str, Any]:
    return {
        "InstanceGroupName": "workers",
        "InstanceId": instance_id,
        "InstanceType": P5,
        "InstanceStatus": {"Status": status},
        **fields,
    }


def test_a_node_is_what_both_say_of_it() -> None:
    labels = {
        "sagemaker.amazonaws.com/node-health-status": "Schedulable",
        "sagemaker.amazonaws.com/deep-health-check-status": "Passed",
        "nvidia.com/mig.config.state": "success",
    }
    spec = {"unschedulable": True, "taints": [{"key": "nvidia.com/gpu", "value": "yes", "effect": "NoSchedule"}]}
    offer = {"cpu": "191450m", "memory": "2000Gi", "nvidia.com/gpu": "8", "hugepages-2Mi": "0"}
    [node] = nodes_from_kubernetes([item(labels=labels, spec=spec, allocatable=offer)], [summary()])
    assert node == Node(
        name="hyperpod-i-0abc",
        instance_type=P5,
        instance_id="i-0abc",
        instance_group="workers",
        instance_status="Running",
        cordoned=True,
        health="Schedulable",
        deep_health_check="Passed",
        mig_state="success",
        taints=(Taint("nvidia.com/gpu", "yes", "NoSchedule"),),
        joined_at=datetime(2026, 11, 1, 8, tzinfo=UTC),
        allocatable={"cpu": 191_450, "memory": 2000 * GIBIBYTE, "nvidia.com/gpu": 8},
    )


def test_a_node_is_found_by_its_host_name_where_its_name_is_another() -> None:
    host = "ip-10-0-0-7.ec2.internal"
    [node] = nodes_from_kubernetes([item(host)], [summary(PrivateDnsHostname=host)])
    assert (node.name, node.instance_id) == (host, "i-0abc")


def test_a_node_of_plain_eks_has_no_instance_status() -> None:
    [node] = nodes_from_kubernetes([item("ip-10-0-0-7")])
    assert (node.instance_type, node.instance_status, node.in_kubernetes) == (P5, None, True)


def test_a_machine_that_only_sagemaker_has_is_not_in_kubernetes() -> None:
    [node] = nodes_from_kubernetes([], [summary(status="Pending")])
    assert (node.name, node.instance_status, node.in_kubernetes, node.ready) == (
        "hyperpod-i-0abc",
        "Pending",
        False,
        False,
    )


def test_the_type_that_sagemaker_says_wins() -> None:
    [node] = nodes_from_kubernetes([item()], [summary(InstanceType="ml.p5en.48xlarge")])
    assert node.instance_type == "ml.p5en.48xlarge"


def test_a_node_whose_readiness_is_unknown_or_unsaid_is_not_ready() -> None:
    silent = item("b")
    silent["status"]["conditions"] = []
    unknown, unsaid = nodes_from_kubernetes([item("a", ready="Unknown"), silent])
    assert (unknown.ready, unsaid.ready) == (False, False)


def test_a_bare_node_is_read() -> None:
    [node] = nodes_from_kubernetes([{"metadata": {"name": "n"}}])
    assert node == Node(name="n", instance_type="", ready=False)


@given(st.permutations([item("b"), item("a"), item("hyperpod-i-0abc")]))
def test_nodes_come_by_name_in_whatever_order_they_are_listed(items: list[dict[str, Any]]) -> None:
    found = nodes_from_kubernetes(items, [summary("i-0zzz"), summary()])
    assert [node.name for node in found] == ["a", "b", "hyperpod-i-0abc", "hyperpod-i-0zzz"]
