"""Do Kueue and `taskgov.scheduling` decide alike? Random sequences on both, many at once, step by step."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from taskgov.kueue.render import manager_configuration
from tests.cluster.differential.company import Company
from tests.cluster.differential.generate import generate
from tests.cluster.differential.report import CLOSING_LINES, Ledger, explain, kept
from tests.cluster.workbench import a_policy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.cluster.conftest import Cluster

pytestmark = pytest.mark.cluster
SEQUENCES = int(os.environ.get("TASKGOV_TEST_SEQUENCES", "200"))
FIRST_SEED = int(os.environ.get("TASKGOV_TEST_FIRST_SEED", "0"))
REPLAY = os.environ.get("TASKGOV_TEST_REPLAY")


@pytest.fixture(scope="module", autouse=True)
def one_version_of_each_kind(cluster: Cluster) -> Iterator[None]:
    """Serve no other version meanwhile: the API server keeps all objects in each, and asks Kueue to convert them."""
    cluster.serve_old_versions(served=False)
    yield
    cluster.serve_old_versions(served=True)


@pytest.fixture(scope="module")
def ledger() -> Ledger:
    return Ledger()


@pytest.mark.parametrize("fair_sharing", [True, False], ids=["fair", "classical"])
def test_kueue_and_the_model_decide_alike(cluster: Cluster, ledger: Ledger, fair_sharing: bool) -> None:
    if REPLAY:
        sequences = [one for one in [kept(Path(REPLAY))] if one.fair_sharing is fair_sharing]
    else:
        seeds = range(FIRST_SEED, FIRST_SEED + SEQUENCES // 2)
        sequences = [generate(seed, fair_sharing=fair_sharing) for seed in seeds]
    policy = a_policy("Enabled" if fair_sharing else "Disabled")
    cluster.run_kueue(manager_configuration(policy).to_manifest())
    with Company(cluster.kube.kubeconfig, cluster.kueue_log) as company:
        played = ledger.take(company.play(sequences), company)
        assert explain(played, company) == ""


def test_the_sequences_reach_what_matters(ledger: Ledger, record_property: Callable[[str, object], None]) -> None:
    if not ledger.played:
        pytest.skip("no sequence was played")
    record_property(CLOSING_LINES, ledger.lines)
    assert ledger.missed == []
