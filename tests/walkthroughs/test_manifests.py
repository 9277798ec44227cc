"""`examples/jobs`: each manifest is sound, names its team's queue, and there is one of each kind."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from taskgov_embedded.cluster.jobs import SUBMITTED
from taskgov_embedded.cluster.submitted import problems_of
from taskgov_manifests.queue_name import labels_as_stored

ROOT = Path(__file__).parents[2]
MANIFESTS = sorted((ROOT / "examples" / "jobs").rglob("*.yaml"))


@pytest.mark.parametrize("file", MANIFESTS, ids=lambda file: file.stem)
def test_each_manifest_is_sound_and_names_its_teams_queue(file: Path) -> None:
    jobs = [one for one in yaml.safe_load_all(file.read_text()) if one["kind"] in SUBMITTED]
    assert jobs
    for job in jobs:
        assert problems_of(job) == []
        queue = labels_as_stored(job)["kueue.x-k8s.io/queue-name"]
        assert queue.startswith("hyperpod-ns-")
        assert queue == f"{job['metadata'].get('namespace', queue.removesuffix('-localqueue'))}-localqueue"


def test_there_is_a_manifest_of_each_kind() -> None:
    kinds = {one["kind"] for file in MANIFESTS for one in yaml.safe_load_all(file.read_text())}
    assert kinds >= SUBMITTED
