"""The walkthroughs of AWS's documents and our own, played on the real Kueue through the `kueue` backend.

The same files as on the simulated cluster, with the same checks: jobs, usage, preemptions, conditions and messages,
metrics in CloudWatch, plans. Events, state machines and functions are the real ones; so are tokens and RBAC.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from taskgov_embedded.walkthrough.model import all_files, load
from taskgov_embedded.walkthrough.runner import Runner
from tests.cluster.conftest import OwnCluster
from tests.cluster.real_world import RealActor, RealWorld

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.conftest import Cluster

pytestmark = pytest.mark.cluster

SEEDS = ("01", "02", "03", "04", "05", "06", "07", "25")
"""By default: the workshop pages, the blog posts, and the cluster without HyperPod; `TASKGOV_TEST_WALKTHROUGHS` names
others, separated by commas."""
CHOSEN = tuple(os.environ.get("TASKGOV_TEST_WALKTHROUGHS", ",".join(SEEDS)).split(","))


@pytest.mark.parametrize("file", [pytest.param(one, id=one.stem) for one in all_files() if one.name.startswith(CHOSEN)])
def test_it_comes_out_on_the_real_kueue_as_on_the_simulated_one(cluster: Cluster, file: Path) -> None:
    if not isinstance(cluster, OwnCluster):
        pytest.skip("a given cluster does not ask this machine who signed a token")
    refused_before = len(cluster.plane.authenticator.refused)
    with RealWorld(load(file), cluster) as world:
        runner = Runner(world.walkthrough, world, RealActor(world))
        results = list(runner.run())
        forbidden = [one["uri"] for one in world.audit.requests() if one["code"] in {401, 403}]
    failed = [
        f"{result.title}: {check.what}: wanted {check.wanted}, got {check.got}"
        for result in results
        for check in result.checks
        if not check.passed
    ]
    assert not failed, "\n".join(failed)
    assert forbidden == []
    assert cluster.plane.authenticator.refused[refused_before:] == []
