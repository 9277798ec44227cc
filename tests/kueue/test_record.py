"""Quotas kept on ClusterQueues: what is read back, and how edits by hand show."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskgov.hyperpod.equality import is_same_config
from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.hyperpod.model import ActivationState, ComputeQuota, ComputeQuotaConfig
from taskgov.kueue.ownership import MADE, Ownership, marked, ownership_of
from taskgov.kueue.policy_record import POLICY, PolicyRecord
from taskgov.kueue.queue_text import config_of
from taskgov.kueue.record import FOREIGN, RECORD, Reading, Record, quotas_of, version_of

ARN = "arn:aws:eks:us-east-1:111122223333:cluster/ml"
TABLE = InstanceTypeTable()
READING = Reading(ARN, TABLE, "v1beta2")
G5 = "ml.g5.8xlarge"
Objects = list[dict[str, Any]]


def a_config(*rows: dict[str, Any], **more: Any) -> ComputeQuotaConfig:
    return ComputeQuotaConfig.model_validate({"ComputeQuotaResources": rows, **more})


def two_instances() -> ComputeQuotaConfig:
    return a_config({"InstanceType": G5, "Count": 2})


def stored(config: ComputeQuotaConfig, *, weight: int = 0, generation: int = 1, version: int = 1) -> Objects:
    """Return a team's objects as they stand in the cluster right after they were written, the queue first."""
    rendered = READING.rendered("team-a", config, weight, ActivationState.ENABLED)
    [queue] = rendered.cluster_queues
    record = Record("team-a-quota", config, weight, version, generation)
    queue = marked(queue, Ownership.ABSENT, **{RECORD: record.to_json()})
    queue["metadata"] = {**queue["metadata"], "generation": generation}
    seen = {"type": "Active", "status": "True", "reason": "Ready", "observedGeneration": generation}
    queue["status"] = {"conditions": [seen]}
    return copy.deepcopy([queue, *rendered.namespaces, *rendered.resource_flavors, *rendered.local_queues])


def read(objects: Objects) -> ComputeQuota:
    queue, *beside = objects
    [quota] = quotas_of(READING, [queue], beside)
    return quota


def edited(objects: Objects, resource: str, **limits: str) -> Objects:
    """Change one resource of the queue as kubectl edit does: the generation is one more."""
    queue = objects[0]
    [flavor] = queue["spec"]["resourceGroups"][0]["flavors"]
    [entry] = [one for one in flavor["resources"] if one["name"] == resource]
    entry.update(limits)
    return raised(objects)


def raised(objects: Objects) -> Objects:
    queue = objects[0]
    queue["metadata"]["generation"] += 1
    queue["status"]["conditions"][0]["observedGeneration"] += 1
    return objects


def test_what_was_written_is_read_back_as_it_was_asked() -> None:
    quota = read(stored(two_instances(), weight=10))
    assert quota.compute_quota_id == f"{ARN}/quota/team-a"
    assert (quota.name, quota.compute_quota_version, quota.status) == ("team-a-quota", 1, "Created")
    assert quota.compute_quota_config == two_instances()
    assert (quota.compute_quota_target.team_name, quota.compute_quota_target.fair_share_weight) == ("team-a", 10)


def test_other_spellings_of_the_same_amounts_are_no_edit() -> None:
    quota = read(edited(stored(two_instances()), "cpu", nominalQuota="64000m"))
    assert quota.compute_quota_config == two_instances()
    assert (quota.compute_quota_version, quota.status) == (2, "Updated")


def test_an_edit_by_hand_is_a_newer_version_with_another_content() -> None:
    objects = stored(a_config({"InstanceType": G5, "Accelerators": 1, "VCpu": 8}), generation=4, version=7)
    quota = read(edited(objects, "nvidia.com/gpu", nominalQuota="2"))
    [row] = quota.compute_quota_config.compute_quota_resources
    assert (row.accelerators, row.vcpu) == (2, 8)
    assert quota.compute_quota_version == 8


def test_whole_instances_are_read_as_such() -> None:
    [queue, *_] = stored(a_config({"InstanceType": G5, "Count": 3}))
    config = config_of(queue["spec"], TABLE, ComputeQuotaConfig())
    assert config.compute_quota_resources[0].to_api() == {"InstanceType": G5, "Count": 3}


def test_a_field_that_no_quota_mentions_shows_as_a_failed_update_that_names_it() -> None:
    objects = stored(two_instances())
    objects[0]["spec"]["preemption"]["withinClusterQueue"] = "LowerOrNewerEqualPriority"
    quota = read(raised(objects))
    assert quota.status == "UpdateFailed"
    assert quota.failure_reason == ("spec.preemption of ClusterQueue hyperpod-ns-team-a-clusterqueue was changed")
    assert is_same_config(quota.compute_quota_config, two_instances())


@pytest.mark.parametrize("gone", ["Namespace", "ResourceFlavor", "LocalQueue"])
def test_a_missing_object_shows_as_a_failed_update_that_names_it(gone: str) -> None:
    quota = read([one for one in stored(two_instances()) if one["kind"] != gone])
    assert quota.status == "UpdateFailed"
    assert quota.failure_reason is not None
    assert quota.failure_reason.startswith(gone)
    assert quota.failure_reason.endswith("is missing")


def test_what_others_add_to_an_object_is_their_business() -> None:
    objects = stored(two_instances())
    namespace = next(one for one in objects if one["kind"] == "Namespace")
    namespace["metadata"]["labels"]["cost-center"] = "42"
    assert read(objects).status == "Created"


def test_a_queue_that_kueue_has_not_seen_yet_is_in_flight() -> None:
    objects = stored(two_instances())
    objects[0]["metadata"]["generation"] = 2
    objects[0]["metadata"]["annotations"][RECORD] = Record("q", two_instances(), 0, 2, 2).to_json()
    assert read(objects).status == "Updating"
    objects[0]["status"]["conditions"][0].update(observedGeneration=2, status="False", reason="FlavorNotFound")
    assert read(objects).status == "Updating"
    objects[0]["status"]["conditions"][0].update(reason="Stopped")
    assert read(objects).status == "Updated"


def test_a_queue_of_somebody_else_is_foreign_and_says_whose() -> None:
    objects = stored(two_instances())
    objects[0]["metadata"]["annotations"] = {}
    objects[0]["metadata"]["managedFields"] = [{"manager": "kubectl"}, {"manager": "kueue", "subresource": "status"}]
    quota = read(objects)
    assert quota.status == FOREIGN
    assert quota.failure_reason is not None
    assert "was made by kubectl, and" in quota.failure_reason
    assert quota.compute_quota_version == 1


def test_a_stopped_queue_is_a_quota_that_is_switched_off() -> None:
    objects = stored(two_instances())
    for one in objects:
        if "stopPolicy" in one.get("spec", {}):
            one["spec"]["stopPolicy"] = "Hold"
    assert read(objects).activation_state is ActivationState.DISABLED


ENDLESS = Record("q", two_instances(), 0, 4711, 1).to_json().replace("4711", "1e999")


@pytest.mark.parametrize("text", ["{}", "[" * 20_000, ENDLESS], ids=["empty", "deep", "endless"])
def test_a_record_that_somebody_wrote_in_counts_as_none(text: str) -> None:
    objects = stored(two_instances(), generation=3)
    objects[0]["metadata"]["annotations"][RECORD] = text
    quota = read(objects)
    assert (quota.compute_quota_version, version_of(objects[0])) == (3, 3)
    assert is_same_config(
        quota.compute_quota_config, two_instances().model_copy(update={"resource_sharing_config": None})
    )


@pytest.mark.parametrize("text", ["{}", "[" * 20_000, '{"name": "p", "config": {}, "version": 1e999}'])
def test_a_policy_record_that_somebody_wrote_in_counts_as_none(text: str) -> None:
    assert PolicyRecord.of({"metadata": {"annotations": {POLICY: text}}}) is None


@pytest.mark.parametrize("spec", [{}, {"spec": None}, {"spec": {}}, {"spec": {"fairSharing": {"weight": None}}}])
def test_a_queue_whose_spec_was_emptied_is_an_edit_to_nothing(spec: dict[str, Any]) -> None:
    [queue, *beside] = raised(stored(two_instances()))
    del queue["spec"]
    quota = read([queue | spec, *beside])
    assert quota.compute_quota_version == 2
    assert quota.compute_quota_config.compute_quota_resources == ()
    assert quota.activation_state is ActivationState.ENABLED


@pytest.mark.parametrize(
    ("sharing", "limits"),
    [
        ({"Strategy": "DontLend"}, None),
        ({"Strategy": "Lend"}, None),
        ({"Strategy": "LendAndBorrow", "BorrowLimit": 300}, None),
        (
            {"Strategy": "LendAndBorrow", "AbsoluteBorrowLimits": [{"InstanceType": "ml.p5.48xlarge", "Count": 1}]},
            None,
        ),
    ],
    ids=["apart", "only lends", "by percent", "what it has none of itself"],
)
def test_how_a_team_shares_is_read_from_the_queue_alone(sharing: dict[str, Any], limits: None) -> None:
    """Without the record, another quota may be read than was asked: one that renders to the same queue."""
    asked = a_config({"InstanceType": G5, "Count": 2}, ResourceSharingConfig=sharing)
    [queue, *_] = stored(asked)
    found = config_of(queue["spec"], TABLE, ComputeQuotaConfig())
    again = READING.rendered("team-a", found, 0, ActivationState.ENABLED).cluster_queues[0]
    assert again["spec"]["resourceGroups"] == queue["spec"]["resourceGroups"]
    assert again["spec"].get("cohortName") == queue["spec"].get("cohortName")


@given(
    count=st.integers(0, 50),
    percent=st.integers(0, 10_000),
    strategy=st.sampled_from(["Lend", "DontLend", "LendAndBorrow"]),
    other=st.integers(0, 9),
)
def test_reading_and_rendering_are_each_others_inverse(count: int, percent: int, strategy: str, other: int) -> None:
    sharing = {"Strategy": strategy, **({"BorrowLimit": percent} if strategy == "LendAndBorrow" else {})}
    rows = [{"InstanceType": G5, "Count": count}, {"InstanceType": "ml.p5.48xlarge", "Accelerators": other}]
    asked = a_config(*rows, ResourceSharingConfig=sharing)
    [queue, *_] = stored(asked)
    found = config_of(queue["spec"], TABLE, ComputeQuotaConfig())
    again = READING.rendered("team-a", found, 0, ActivationState.ENABLED).cluster_queues[0]
    assert again["spec"]["resourceGroups"] == queue["spec"]["resourceGroups"]


def test_whose_an_object_is() -> None:
    assert ownership_of(None) is Ownership.ABSENT
    made = {"metadata": {"annotations": {MADE: "true"}}}
    assert ownership_of(made) is Ownership.MADE
    assert ownership_of({"metadata": {"managedFields": [{"manager": "taskgov"}]}}) is Ownership.ADOPTED
    assert ownership_of({"metadata": {"managedFields": [{"manager": "kubectl"}]}}) is Ownership.FOREIGN
    assert "annotations" not in marked({"metadata": {}}, Ownership.ADOPTED)["metadata"]
