"""Which queue is in a workload's way, as in Kueue's message."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from taskgov_embedded.cluster.inadmissible import with_blocker
from taskgov_embedded.cluster.objects import ObjectStore

MOMENT = "2026-11-20T09:00:00Z"
WORKLOAD = {"kind": "Workload", "metadata": {"name": "w", "namespace": "ns"}, "spec": {"queueName": "lq"}}


def store(*, local: dict[str, Any] | None = None, active: str | None = None) -> ObjectStore:
    """A cluster with a LocalQueue of this spec, and a ClusterQueue whose condition Active has this status."""
    made = ObjectStore(lambda: datetime(2026, 11, 20, tzinfo=UTC))
    if local is not None:
        made.apply({"kind": "LocalQueue", "metadata": {"name": "lq", "namespace": "ns"}, "spec": local})
    if active is not None:
        status = {"conditions": [{"type": "Active", "status": active}]}
        made.apply({"kind": "ClusterQueue", "metadata": {"name": "cq"}, "spec": {}, "status": status})
    return made


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (store(), "LocalQueue lq doesn't exist"),
        (store(local={"clusterQueue": "cq", "stopPolicy": "Hold"}, active="True"), "LocalQueue lq is inactive"),
        (store(local={"clusterQueue": "cq"}), "ClusterQueue cq doesn't exist"),
        (store(local={"clusterQueue": "cq"}, active="False"), "ClusterQueue cq is inactive"),
    ],
)
def test_the_first_queue_that_takes_nothing_is_named(given: ObjectStore, said: str) -> None:
    assert with_blocker(WORKLOAD, given, MOMENT)["status"]["conditions"] == [
        {
            "type": "QuotaReserved",
            "status": "False",
            "reason": "Inadmissible",
            "message": said,
            "lastTransitionTime": MOMENT,
        }
    ]


def test_nothing_is_said_when_the_queues_are_open() -> None:
    assert with_blocker(WORKLOAD, store(local={"clusterQueue": "cq"}, active="True"), MOMENT) is WORKLOAD


@pytest.mark.parametrize("condition", ["QuotaReserved", "Finished"])
def test_what_runs_or_is_done_is_left_alone(condition: str) -> None:
    workload = {**WORKLOAD, "status": {"conditions": [{"type": condition, "status": "True"}]}}
    assert with_blocker(workload, store(), MOMENT) is workload
