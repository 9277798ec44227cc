"""Does it come to the same with real Jobs? A few sequences through Kueue's job controller, and `KueueModel.settle`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from taskgov.kueue.render import manager_configuration
from tests.cluster.job_sequences import sequence
from tests.cluster.twin import Twin
from tests.cluster.workbench import clear

if TYPE_CHECKING:
    from tests.cluster.conftest import Cluster

pytestmark = pytest.mark.cluster
SEQUENCES = int(os.environ.get("TASKGOV_TEST_JOB_SEQUENCES", "4"))


@pytest.mark.parametrize("fair_share", [False, True], ids=["classical", "fair"])
def test_with_real_jobs_the_model_settles_where_kueue_does(cluster: Cluster, fair_share: bool) -> None:
    found, preemptions = [], 0
    for seed in range(SEQUENCES // 2):
        played = sequence(seed, fair_share=fair_share)
        cluster.run_kueue(manager_configuration(played.policy).to_manifest())
        twin = Twin(cluster.kube, played)
        try:
            found += twin.play()
        finally:
            clear(cluster.kube)
        preemptions += twin.preemptions
        told = f"{twin.compared} states, {twin.preemptions} preemptions, {len(found)} differences, loop {twin.loop}"
        print(f"sequence {seed}: {told}", flush=True)
    assert found == []
    assert preemptions > 0
