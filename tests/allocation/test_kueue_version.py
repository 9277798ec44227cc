"""Another Kueue than the one that predictions are made for is told, and so is one that nobody could read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from taskgov.allocation.planner import plan_quotas
from taskgov.snapshot.codec import snapshot_from_json, snapshot_to_json
from taskgov.snapshot.model import KueueObjects, Snapshot
from taskgov_cli.status import said_release
from tests.allocation.world import document, fixed, nodes, quota, row, snapshot

IMAGE = "registry.k8s.io/kueue/kueue:"


def running(image: str = "", silence: str = "") -> Snapshot:
    known = snapshot(document(fixed("team-a", row(Count=1)), pool=False), nodes(1), [quota("team-a")])
    return replace(known, kueue=KueueObjects(manager_image=image, manager_silence=silence))


def told(known: Snapshot) -> dict[str, str]:
    found = plan_quotas(known, mode="plan").findings
    return {finding.code: finding.because for finding in found if finding.code.startswith("kueue-version")}


@pytest.mark.parametrize("image", ["", f"{IMAGE}v0.19.2", f"{IMAGE}v0.19.10", "kueue:v1.6.0-eksbuild.1"])
def test_the_version_that_is_followed_is_no_finding_nor_is_one_that_nobody_looked_for(image: str) -> None:
    assert told(running(image)) == {}


def test_another_minor_version_is_reported_with_what_differs() -> None:
    newer = told(running(f"{IMAGE}v0.20.3"))["kueue-version"]
    assert newer.startswith("Kueue is 0.20.3, and predictions are those of 0.19.2; it has, beyond the model: ")
    assert "status.effectiveQuotas" in newer
    older = told(running("kueue:v1.5.0-eksbuild.1"))["kueue-version"]
    assert older.startswith("Kueue is 0.18, and predictions are those of 0.19.2; it does not have yet: ")


def test_a_version_that_could_not_be_read_is_reported_with_the_reason() -> None:
    assert told(running(silence="read Kueue's Deployment: 403 Forbidden")) == {
        "kueue-version-unknown": "Which Kueue the cluster runs is not known (read Kueue's Deployment: 403 Forbidden); "
        "predictions are those of 0.19.2."
    }
    assert "the image kueue@sha256:1 does not say it" in told(running("kueue@sha256:1"))["kueue-version-unknown"]


def test_the_image_travels_with_the_snapshot_and_one_of_before_has_none() -> None:
    known = running(f"{IMAGE}v0.20.3")
    assert snapshot_from_json(snapshot_to_json(known)).kueue.manager_image == f"{IMAGE}v0.20.3"
    assert b"manager" not in snapshot_to_json(running())
    assert said_release(KueueObjects()) == "unknown (not read)"
