"""Every setting of Kueue's manager has its row, and what a configuration says is what Kueue reads in it."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from taskgov.scheduling import KueueModel, ManagerConfig, RequeueBackoff, Strategy
from taskgov.scheduling.config import AdmissionFairSharing, ResourceTransformation
from taskgov.scheduling.kueue_fields import Followed
from taskgov.scheduling.kueue_settings import ROWS, read_configuration, row_of
from tests.cluster.binaries import kueue_module

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

V1BETA1, V1BETA2 = ({"apiVersion": f"config.kueue.x-k8s.io/{version}"} for version in ("v1beta1", "v1beta2"))
OLDER, NEWER = {"queueVisibility", "waitForPodsReady.enable"}, {"visibilityServer", "resources.quotaCheckStrategy"}
_STRUCT = re.compile(r"^type (\w+) struct \{(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^\s+(?:\w+\s+)?([\w.*\[\]]+)\s+`json:\"(\w*)[^`]*`", re.MULTILINE)


def _settings(structs: Mapping[str, str], kind: str, path: str = "") -> Iterator[str]:
    """Give the paths of a Go type, down to types of other packages."""
    for of, name in _FIELD.findall(structs[kind]):
        below = of.replace("*", "").rpartition("]")
        here = path + (f".{name}" if path and name else name) + ("[]" if below[0].startswith("[") else "")
        if below[2] in structs:
            yield from _settings(structs, below[2], here)
        elif name:
            yield here


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_every_setting_of_kueues_manager_has_a_row(version: str) -> None:
    module = kueue_module()
    if module is None:
        pytest.skip("Kueue's Go module is not at hand (make cluster-programs fetches it)")
    source = (module / "apis/config" / version / "configuration_types.go").read_text()
    settings = set(_settings(dict(_STRUCT.findall(source)), "Configuration"))
    assert len(settings) > 60
    assert sorted(setting for setting in settings if row_of(setting) is None) == []
    gone = {row.path for row in ROWS if not any(row_of(setting) == row for setting in settings)}
    assert gone == {"apiVersion", "kind", *(NEWER if version == "v1beta1" else OLDER)}


def test_no_row_of_a_setting_stands_twice() -> None:
    assert [path for path, count in Counter(row.path for row in ROWS).items() if count > 1] == []
    assert all(bool(row.note) is (row.followed is not Followed.MODELLED) for row in ROWS)


BOTH = (Strategy.LESS_THAN_OR_EQUAL_TO_FINAL_SHARE, Strategy.LESS_THAN_INITIAL_SHARE)
READ = {
    "nothing": ({**V1BETA2}, ManagerConfig()),
    "fair sharing": (
        {**V1BETA2, "fairSharing": {"preemptionStrategies": ["LessThanInitialShare"]}},
        ManagerConfig(fair_sharing=True, strategies=BOTH[1:]),
    ),
    "fair sharing, as v1beta1 has it": (
        {**V1BETA1, "fairSharing": {"enable": True}},
        ManagerConfig(fair_sharing=True, strategies=BOTH),
    ),
    "fair sharing, switched off in v1beta1": (
        {**V1BETA1, "fairSharing": {"enable": False, "preemptionStrategies": list(BOTH)}},
        ManagerConfig(),
    ),
    "gates": (
        {**V1BETA2, "featureGates": {"PartialAdmission": False}},
        ManagerConfig(gates={"PartialAdmission": False}),
    ),
    "backoff": (
        {
            **V1BETA2,
            "waitForPodsReady": {
                "timeout": "5m",
                "requeuingStrategy": {"timestamp": "Creation", "backoffBaseSeconds": 10, "backoffLimitCount": 3},
            },
        },
        ManagerConfig(backoff=RequeueBackoff(base_seconds=10, limit=3, by_creation=True)),
    ),
    "what no decision rests on": (
        {**V1BETA2, "clientConnection": {"qps": 50}, "multiKueue": {"origin": "o"}, "integrations": {}},
        ManagerConfig(),
    ),
    "admission blocked, as v1beta1 has it by default": (
        {**V1BETA1, "waitForPodsReady": {"enable": True}},
        ManagerConfig(wait_for_pods_ready_block_admission=True),
    ),
    "resources left out and transformed": (
        {
            **V1BETA2,
            "resources": {
                "excludeResourcePrefixes": ["example.com/"],
                "transformations": [
                    {"input": "nvidia.com/mig-1g.5gb", "strategy": "Replace", "outputs": {"memory": "5Gi"}},
                    {"input": "cpu", "multiplyBy": "nvidia.com/gpu", "outputs": {"credits": "2"}},
                ],
            },
        },
        ManagerConfig(
            resources_exclude_prefixes=("example.com/",),
            resource_transformations=(
                ResourceTransformation("nvidia.com/mig-1g.5gb", {"memory": "5Gi"}, "Replace"),
                ResourceTransformation("cpu", {"credits": "2"}, "Retain", "nvidia.com/gpu"),
            ),
        ),
    ),
    "LocalQueues that take turns": (
        {
            **V1BETA2,
            "admissionFairSharing": {"usageHalfLifeTime": "1h30m", "resourceWeights": {"cpu": 2, "memory": 0.5}},
        },
        ManagerConfig(admission_fair_sharing=AdmissionFairSharing(5400, 300, {"cpu": 2, "memory": 0.5})),
    ),
    "not waited for pods, as a gate has it": (
        {
            **V1BETA2,
            "waitForPodsReady": {"blockAdmission": True},
            "featureGates": {"DisableWaitForPodsReady": True},
        },
        ManagerConfig(gates={"DisableWaitForPodsReady": True}),
    ),
    "quota checked as by default": (
        {**V1BETA2, "resources": {"quotaCheckStrategy": "BlockUndeclared"}},
        ManagerConfig(),
    ),
    "quota not checked": (
        {**V1BETA2, "resources": {"quotaCheckStrategy": "IgnoreUndeclared"}},
        ManagerConfig(not_followed=(("QuotaCheckStrategy", "resources.quotaCheckStrategy"),)),
    ),
}


@pytest.mark.parametrize(("configuration", "config"), READ.values(), ids=READ)
def test_a_configuration_is_read_as_kueue_reads_it(configuration: dict[str, Any], config: ManagerConfig) -> None:
    assert read_configuration(configuration) == config


WRONG = {
    "another version": ({"apiVersion": "config.kueue.x-k8s.io/v2"}, "apiVersion: .*/v2 is neither"),
    "a strategy that there is not": (
        {**V1BETA2, "fairSharing": {"preemptionStrategies": ["Best"]}},
        "fairSharing.preemptionStrategies: Kueue has no",
    ),
    "no strategies": ({**V1BETA2, "fairSharing": {}}, "v1beta2 needs them"),
    "a gate that is neither": ({**V1BETA2, "featureGates": {"TLSOptions": "yes"}}, "featureGates.TLSOptions: yes"),
    "a list for an object": ({**V1BETA2, "resources": []}, "resources: it has to be an object"),
    "a prefix that is no text": (
        {**V1BETA2, "resources": {"excludeResourcePrefixes": [1]}},
        "excludeResourcePrefixes: ",
    ),
    "a transformation of nothing": (
        {**V1BETA2, "resources": {"transformations": [{"outputs": {}}]}},
        r"transformations\[0\].input: it has to name a resource",
    ),
    "no quantity": (
        {**V1BETA2, "resources": {"transformations": [{"input": "cpu", "outputs": {"credits": [1]}}]}},
        r"transformations\[0\].outputs.credits: \[1\] is not a quantity",
    ),
    "a multiplier that is no text": (
        {**V1BETA2, "resources": {"transformations": [{"input": "cpu", "multiplyBy": 2}]}},
        "multiplyBy: 2 names no resource",
    ),
    "an input twice": (
        {**V1BETA2, "resources": {"transformations": [{"input": "cpu"}, {"input": "cpu"}]}},
        r"transformations\[1\].input: cpu is transformed already",
    ),
    "a strategy of transforming": (
        {**V1BETA2, "resources": {"transformations": [{"input": "cpu", "strategy": "Keep"}]}},
        "strategy: Keep is neither",
    ),
    "blocked by a text": (
        {**V1BETA2, "waitForPodsReady": {"blockAdmission": "yes"}},
        "waitForPodsReady.blockAdmission: yes",
    ),
    "no duration": (
        {**V1BETA2, "admissionFairSharing": {"usageHalfLifeTime": "a day"}},
        "admissionFairSharing.usageHalfLifeTime: a day is not a duration",
    ),
    "a weight below nothing": (
        {**V1BETA2, "admissionFairSharing": {"resourceWeights": {"cpu": -1}}},
        "resourceWeights.cpu: -1",
    ),
    "a backoff below nothing": (
        {**V1BETA2, "waitForPodsReady": {"requeuingStrategy": {"backoffBaseSeconds": -1}}},
        "backoffBaseSeconds: -1",
    ),
    "another timestamp": (
        {**V1BETA2, "waitForPodsReady": {"requeuingStrategy": {"timestamp": "Now"}}},
        "timestamp: Now is neither",
    ),
}


@pytest.mark.parametrize(("configuration", "said"), WRONG.values(), ids=WRONG)
def test_a_configuration_that_kueue_refuses_is_refused_by_name(configuration: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_configuration(configuration)


def test_a_setting_that_is_not_followed_is_named() -> None:
    config = read_configuration({**V1BETA2, "resources": {"quotaCheckStrategy": "IgnoreUndeclared"}})
    [named] = KueueModel(config).not_modelled
    assert (named.feature, named.kind, named.name) == (
        "QuotaCheckStrategy",
        "Configuration",
        "resources.quotaCheckStrategy",
    )
