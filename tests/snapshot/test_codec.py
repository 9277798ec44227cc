import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from taskgov.findings import Finding, Severity
from taskgov.hyperpod.model import ResourceSharingConfig
from taskgov.snapshot.codec import PART, snapshot_form, snapshot_from_json, snapshot_sha256, snapshot_to_json
from taskgov.snapshot.model import (
    BudgetUse,
    ClusterFacts,
    GroupInstanceType,
    InstanceGroup,
    KueueObjects,
    ManagerSettings,
    ObservedUse,
    Snapshot,
    Taint,
)
from taskgov.snapshot.records import AppliedQuota, PastQuota, QuotaEdit
from taskgov.violations import Violation
from tests.allocation.world import NOW, document, fixed, nodes, quota, row, share, snapshot
from tests.support.refusals import REFUSED


def full() -> Snapshot:
    """A snapshot with something in every field."""
    held = quota("team-a", row(Count=2), weight=5)
    written = AppliedQuota(
        compute_quota_id="id-team-a",
        version=1,
        config=held.compute_quota_config,
        target=held.compute_quota_target,
        plan_id="plan-1",
        at=NOW,
        history=(PastQuota(NOW, held.compute_quota_config),),
        adopted=held.compute_quota_config,
        promise="digest",
        sharing_within_budget=ResourceSharingConfig(borrow_limit=200),
    )
    lease = {
        "to": "a",
        "from": "b",
        "instanceType": "ml.g5.8xlarge",
        "count": 1,
        "reason": "why",
        "start": NOW,
        "end": NOW,
    }
    world = snapshot(
        document(fixed("a", row(Count=1)), share("b", 12.5), leases=[lease], handEdits="adopt"),
        nodes(2, allocatable={"nvidia.com/gpu": 1, "cpu": 7}, taints=(Taint("k", "v", "NoSchedule"),), turns=(NOW,)),
        [held],
        kueue=KueueObjects(workloads=({"metadata": {"name": "w", "labels": {"ü": "é"}}},)),
        applied=(written,),
        edits=(QuotaEdit("id-team-a", "alice", NOW, "UpdateComputeQuota"),),
        observed_use=(ObservedUse("a", "ml.g5.8xlarge", 168, 1.5),),
        budget_use=(BudgetUse("a", NOW, 12.5),),
        stopped=None,
        refusals=(REFUSED,),
    )
    group = InstanceGroup("workers", (GroupInstanceType("ml.g5.8xlarge", threads_per_core=1),))
    world = replace(world, cluster=replace(world.cluster, instance_groups=(group,)))
    finding = Finding("code", Severity.INFO, "subject", "because", evidence={"n": 1, "flag": True, "part": 0.5})
    return replace(world, policy_findings=(finding,), policy_violations=(Violation("path", "value", "rule"),))


def test_a_snapshot_survives_its_bytes() -> None:
    assert snapshot_from_json(snapshot_to_json(full())) == full()


def test_a_snapshot_of_before_instance_groups_were_read_has_none_and_keeps_its_digest() -> None:
    before = snapshot_to_json(replace(full(), cluster=ClusterFacts("ml-cluster", "arn")))
    assert b"instanceGroups" not in before
    read = snapshot_from_json(before)
    assert read.cluster.instance_groups == ()
    assert snapshot_to_json(read) == before


def test_a_snapshot_of_before_refusals_were_recorded_has_none_and_keeps_its_digest() -> None:
    before = snapshot_to_json(replace(full(), refusals=()))
    assert b"refusals" not in before
    assert snapshot_to_json(snapshot_from_json(before)) == before


def test_the_same_snapshot_gives_the_same_bytes() -> None:
    travelled = snapshot_from_json(snapshot_to_json(full()))
    assert snapshot_to_json(travelled) == snapshot_to_json(full())
    assert snapshot_sha256(travelled) == snapshot_sha256(full())


def test_the_order_in_which_a_mapping_was_filled_does_not_matter() -> None:
    one, other = ({"cpu": 7, "nvidia.com/gpu": 1}, {"nvidia.com/gpu": 1, "cpu": 7})
    bodies = {snapshot_to_json(snapshot(None, nodes(1, allocatable=offer))) for offer in (one, other)}
    assert len(bodies) == 1


def test_the_managers_configuration_keeps_kueues_own_names() -> None:
    settings = ManagerSettings({"featureGates": {"PartialAdmission": False}, "waitForPodsReady": {"timeout": "5m"}})
    managed = snapshot(manager=settings)
    assert snapshot_from_json(snapshot_to_json(managed)) == managed


def test_what_could_not_be_read_is_distinguished_from_what_was_not_said() -> None:
    unread = snapshot(stopped=None)
    assert snapshot_from_json(snapshot_to_json(unread)).stopped is None
    assert snapshot_from_json(snapshot_to_json(snapshot())).stopped is False


def test_a_moment_is_the_same_in_every_zone() -> None:
    berlin = NOW.astimezone(timezone(timedelta(hours=1)))
    assert snapshot_from_json(snapshot_to_json(snapshot(now=berlin))).taken_at == NOW


def test_another_snapshot_has_another_digest() -> None:
    assert snapshot_sha256(full()) != snapshot_sha256(replace(full(), taken_at=datetime(2026, 1, 1, tzinfo=UTC)))


@pytest.mark.parametrize("place", ["taken_at", "takenAt"])
def test_a_time_without_a_zone_is_refused_in_either_form(place: str) -> None:
    with pytest.raises(ValueError, match="timezone info"):
        snapshot_from_json(json.dumps({"cluster": {"name": "c", "arn": "a"}, place: "2026-11-20T09:00"}).encode())


def test_members_that_a_snapshot_does_not_have_are_given_beside_it() -> None:
    members = {"cluster": {"name": "c", "arn": "a"}, "takenAt": "2026-11-20T09:00Z", "release": "v9"}
    text = json.dumps(members).encode()
    assert snapshot_form().read_with_members(text) == (snapshot_from_json(text), members)


@pytest.mark.parametrize("text", [b"", b"{}", b'{"cluster":{"name":"c","arn":"a"},"taken_at":"noon"}'])
def test_what_is_no_snapshot_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match="Snapshot"):
        snapshot_from_json(text)


@pytest.mark.parametrize("workloads", [0, 1, PART, PART + 1])
def test_a_snapshot_is_written_in_parts_as_it_would_be_at_once(workloads: int) -> None:
    some = tuple(
        {"metadata": {"name": f"w-{number}", "labels": {"b": "1", "a": "\ud800"}}} for number in range(workloads)
    )
    kueue = KueueObjects(workloads=some, cohorts=({"spec": {}, "metadata": {"name": "c"}},), manager_image="image")
    data = {**snapshot_form().data(replace(full(), kueue=KueueObjects()), without_defaults=True)}
    data["kueue"] = {"cohorts": kueue.cohorts, "managerImage": "image", **({"workloads": some} if some else {})}
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert snapshot_to_json(replace(full(), kueue=kueue)) == text.encode(errors="replace")
