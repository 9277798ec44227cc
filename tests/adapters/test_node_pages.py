"""Of a page of nodes only what is kept is parsed, and every node is what it is in a page that is parsed whole."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.scale.objects import node
from taskgov.adapters.kubernetes import request
from taskgov.adapters.kubernetes.reader import read_all
from taskgov.adapters.kubernetes.request import Requests
from taskgov.adapters.kubernetes.trimming import NODES, trimmed_node
from taskgov.hyperpod.names import DEEP_HEALTH_CHECK_LABEL, INSTANCE_TYPE_LABEL, MIG_STATE_LABEL, NODE_HEALTH
from taskgov.snapshot.model import KubernetesObject
from taskgov.snapshot.nodes import INSTANCE_GROUP_LABEL, nodes_from_kubernetes


def read(items: object, parts: Any = NODES) -> list[KubernetesObject]:
    body = json.dumps({"kind": "NodeList", "metadata": {"resourceVersion": "7"}, "items": items}).encode()
    answer = SimpleNamespace(status=200, reason="OK", read=lambda: body)
    api: Any = SimpleNamespace(param_serialize=lambda *_, **__: (), call_api=lambda *_, **__: answer)
    return read_all(Requests(api), "/api/v1/nodes", trimmed_node, "list nodes", parts)


def odd(**members: Any) -> dict[str, Any]:
    return {**node(2), **members}


ODD = (
    None,
    "node",
    odd(metadata=None),
    odd(metadata={"name": "n", "labels": None}),
    odd(metadata={"name": "n", "labels": {"a": 7}, "ownerReferences": None}),
    odd(metadata={"name": "n", "ownerReferences": [{"kind": "Machine", "name": "m", "uid": "u", "more": 1}]}),
    odd(spec=None),
    odd(spec={"taints": None, "unschedulable": True, "podCIDR": "10.0.0.0/24"}),
    odd(spec={"taints": [{"key": "a", "value": "\ud800", "effect": "NoSchedule", "timeAdded": "now"}]}),
    odd(status=[]),
    odd(status={"conditions": None}),
    odd(status={"conditions": [{"type": "Ready"}, {"status": "True"}]}),
    odd(status={"allocatable": {"cpu": 3, "memory": None}}),
)


@pytest.mark.parametrize("item", ODD)
def test_an_odd_node_is_read_as_in_a_page_that_is_parsed_whole(item: object) -> None:
    items = [node(1), item, node(3)]
    assert read(items) == read(items, None)


def test_a_node_is_known_by_all_its_labels_as_without_trimming() -> None:
    labels = {
        INSTANCE_TYPE_LABEL: "ml.g5.8xlarge",
        INSTANCE_GROUP_LABEL: "workers",
        NODE_HEALTH: "Unschedulable",
        DEEP_HEALTH_CHECK_LABEL: "Passed",
        MIG_STATE_LABEL: "success",
    }
    whole = odd(metadata={**node(2)["metadata"], "labels": {**labels, "rack": "7"}})
    [known] = nodes_from_kubernetes(read([whole]))
    assert known == nodes_from_kubernetes([whole])[0]
    said = (known.instance_type, known.instance_group, known.health, known.deep_health_check, known.mig_state)
    assert said == tuple(labels.values())


def test_the_parts_that_are_dropped_are_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request, "from_json", lambda _: pytest.fail("the whole page was parsed"))
    assert [each["metadata"]["name"] for each in read([node(1)])] == [node(1)["metadata"]["name"]]
