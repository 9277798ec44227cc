"""Do Kueue and `taskgov.scheduling` decide alike? Random sequences on both, step by step."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from taskgov.kueue.render import manager_configuration
from tests.cluster.sequences import sequence
from tests.cluster.twin import Twin
from tests.cluster.workbench import clear

if TYPE_CHECKING:
    from tests.cluster.conftest import Cluster

pytestmark = pytest.mark.cluster
SEQUENCES = int(os.environ.get("TASKGOV_TEST_SEQUENCES", "20"))
FIRST_SEED = int(os.environ.get("TASKGOV_TEST_FIRST_SEED", "0"))


@pytest.mark.parametrize("fair_share", [True, False], ids=["fair", "classical"])
def test_kueue_and_the_model_decide_alike(cluster: Cluster, fair_share: bool) -> None:
    found, preemptions = [], 0
    for seed in range(FIRST_SEED, FIRST_SEED + SEQUENCES // 2):
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
