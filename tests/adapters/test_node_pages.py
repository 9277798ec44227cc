"""Of a page of nodes only what is kept is parsed, and every node is what it is in a page that is parsed whole."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from benchmarks.scale.objects import node
from taskgov.adapters.kubernetes import request
from taskgov.adapters.kubernetes.reader import read_all
from taskgov.adapters.kubernetes.request import Requests
from taskgov.adapters.kubernetes.trimming import NODES, trimmed_node
from taskgov.hyperpod.names import DEEP_HEALTH_CHECK_LABEL, INSTANCE_TYPE_LABEL, MIG_STATE_LABEL, NODE_HEALTH
from taskgov.snapshot.model import KubernetesObject
from taskgov.snapshot.nodes import INSTANCE_GROUP_LABEL, nodes_from_kubernetes


def read(items: object, parts: Any = NODES) -> list[KubernetesObject]:
    answer: dict[str, Any] = {"kind": "NodeList", "metadata": {"resourceVersion": "7"}, "items": items}
    body = json.dumps(answer, separators=(",", ":")).encode()  # without spaces, as the API server writes it
    response = SimpleNamespace(status=200, reason="OK", read=lambda: body)
    api: Any = SimpleNamespace(param_serialize=lambda *_, **__: (), call_api=lambda *_, **__: response)
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


NAMES = st.sampled_from(["images", "managedFields", "names", "sizeBytes", "spec", "status", "a"])
TEXTS = st.text(alphabet='[]{}",:\\as1', max_size=12) | st.sampled_from(
    ['],"sizeBytes":1}', ']},"spec":', ',"images":[', ',"managedFields":[', "\\"]
)
ANY = st.recursive(
    TEXTS | st.integers(0, 9) | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=12,
)
IMAGES = st.lists(st.fixed_dictionaries({"names": st.lists(TEXTS, max_size=2) | ANY, "sizeBytes": ANY | st.just(1)}))
FIELDS = st.lists(st.fixed_dictionaries({"manager": TEXTS, "fieldsV1": ANY}), max_size=2)
NODE = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries({"name": TEXTS}, optional={"managedFields": FIELDS | ANY, "other": ANY}),
        "spec": st.fixed_dictionaries({"taints": st.just([])}, optional={"other": ANY}),
        "status": st.fixed_dictionaries(
            {"allocatable": st.just({"cpu": "1"}), "conditions": st.just([{"type": "Ready"}])},
            optional={"images": IMAGES | ANY, "other": ANY},
        ),
    },
    optional={"other": ANY},
)


@given(st.lists(NODE, min_size=1, max_size=3))
@example([{"metadata": {"name": "n", "managedFields": [{"a": [1]}]}, "spec": {"taints": []}}])
@example([{"metadata": {"name": "n"}, "status": {"a": 1, "images": [{"names": [{"a": ["b"], "sizeBytes": 1}]}]}}])
def test_to_cut_out_odd_images_and_managed_fields_changes_no_node(nodes: list[Any]) -> None:
    """A page that a cut damages is refused, and is then read whole."""
    assert read(nodes) == read(nodes, None)


def test_images_and_managed_fields_are_cut_out_of_what_an_api_server_sends() -> None:
    key: dict[str, Any] = {'k:{"type":"Ready"}': {".": {}}, 'v:"10.0.0.0/24"': {}}
    sent = [odd(metadata={**node(2)["metadata"], "managedFields": [{"manager": "kubelet", "fieldsV1": key}]}), node(3)]
    text = json.dumps({"metadata": {}, "items": sent}, separators=(",", ":")).encode()
    for pattern in NODES.cut:
        text, times = pattern.subn(b"", text)
        assert times == len(sent)
    assert not any(name in text for name in (b"images", b"managedFields", b"kubelet", b"sha256"))
    assert NODES.form.validate_json(text)["items"] == NODES.form.validate_python({"items": sent})["items"]
