"""A plan in the bucket that somebody damaged: each function that is given a pointer says which, and no content."""

from collections.abc import Callable

import pytest

from taskgov.contracts.steps import ApplyChangeRequest, Pointer, PublishUsageRequest, VerifyPlanRequest
from taskgov.errors import InvalidRequestError
from taskgov.services.apply_change import ApplyChange
from taskgov.services.verify_plan import VerifyPlan
from tests.support.clusters import GovernedCluster
from tests.support.memory import CLUSTER_ARN, NOON

CORRUPT = [b"", b"{", b"null", b'{"secret": "hidden"}', "{}".encode("utf-16"), b"\xff", b"[" * 100_000]


def write(cluster: GovernedCluster, plan: Pointer) -> None:
    cluster.state.lock[CLUSTER_ARN] = ("run-1", 1, 2e9)
    writes = ApplyChange(cluster.hyperpod, cluster.documents, cluster.state, cluster.clock)
    writes(ApplyChangeRequest(cluster_arn=CLUSTER_ARN, plan=plan, index=0, lock_owner="run-1", fencing_token=1))


def restore(cluster: GovernedCluster, plan: Pointer) -> None:
    cluster.state.lock[CLUSTER_ARN] = ("run-1", 1, 2e9)
    writes = ApplyChange(cluster.hyperpod, cluster.documents, cluster.state, cluster.clock)
    request = ApplyChangeRequest(cluster_arn=CLUSTER_ARN, plan=plan, index=0, lock_owner="run-1", fencing_token=1)
    writes.restore(request)


def verify(cluster: GovernedCluster, plan: Pointer) -> None:
    request = VerifyPlanRequest(cluster_arn=CLUSTER_ARN, plan=plan)
    VerifyPlan(cluster.hyperpod, cluster.documents, cluster.state, cluster.clock)(request)


def publish(cluster: GovernedCluster, plan: Pointer) -> None:
    request = PublishUsageRequest(
        cluster_arn=CLUSTER_ARN, run_id="run-1", outcome="applied", plan=plan, started_at=NOON
    )
    cluster.publish_usage()(request)


@pytest.mark.parametrize("reads", [write, restore, verify, publish])
def test_a_plan_that_cannot_be_read_is_an_error_that_names_it_and_quotes_nothing(
    reads: Callable[[GovernedCluster, Pointer], None],
) -> None:
    for body in CORRUPT:
        cluster = GovernedCluster()
        pointer = cluster.documents.put("plans/ml-cluster/x.json", body, "application/json")
        with pytest.raises(InvalidRequestError) as caught:
            reads(cluster, pointer)
        assert str(caught.value) == "plans/ml-cluster/x.json is not a plan that this version can read"
