"""A document that is stored for a cluster and names another one, and what others write into notices."""

import json
from typing import Any

import pytest

from taskgov.allocation.plan import Outcome
from taskgov.allocation.planner import plan_quotas
from taskgov.services.plan_quotas import summary
from taskgov.snapshot.model import Snapshot
from tests.support.clusters import GPU, GovernedCluster
from tests.support.memory import CLUSTER_ARN

OTHER_ARN = "arn:aws:sagemaker:eu-west-1:999999999999:cluster/prodprodprod"
EKS_ARN = "arn:aws:eks:us-east-1:111122223333:cluster/ml-cluster"


def snapshot_with(cluster: dict[str, str], **sections: Any) -> Snapshot:
    """Return the snapshot of two teams that have a quota, under a document that would change both."""
    governed = GovernedCluster().with_fair_share().with_nodes(4)
    governed.with_team("team-a", used={GPU: "1"}).with_team("team-b")
    instance_type = governed.snapshot().quotas[0].compute_quota_config.compute_quota_resources[0].instance_type
    quota = {"ComputeQuotaResources": [{"InstanceType": instance_type, "Count": 2}]}
    document = {
        "apiVersion": "taskgov/v1",
        "cluster": cluster,
        "teams": [{"name": name, "quota": quota} for name in ("team-a", "team-b")],
        "capacity": {"holdUnhealthyMinutes": 0, "growAfterMinutes": 0},
    } | sections
    for lease in document.get("leases", ()):
        lease["instanceType"] = instance_type
    governed.documents.stored["policies/ml-cluster.yaml"] = json.dumps(document).encode()
    return governed.take_snapshot()("ml-cluster")


@pytest.mark.parametrize(
    ("cluster", "path"),
    [
        ({"name": "ml-cluster", "arn": OTHER_ARN}, "cluster.arn"),
        ({"name": "prod", "arn": CLUSTER_ARN}, "cluster.name"),
        ({"name": "ml-cluster", "arn": EKS_ARN, "backend": "kueue"}, "cluster.arn"),
    ],
    ids=["another ARN", "another name", "an EKS cluster of this name"],
)
def test_a_document_of_another_cluster_changes_nothing(cluster: dict[str, str], path: str) -> None:
    snapshot = snapshot_with(cluster)
    assert (snapshot.policy, [broken.path for broken in snapshot.policy_violations]) == (None, [path])
    plan = plan_quotas(snapshot, mode="apply")
    assert (plan.outcome, plan.changes) == (Outcome.BLOCKED, ())
    assert path in summary(plan)


def test_the_cluster_s_own_document_is_used() -> None:
    snapshot = snapshot_with({"name": "ml-cluster", "arn": CLUSTER_ARN})
    assert (snapshot.policy is not None, snapshot.policy_violations) == (True, ())


def test_the_reason_of_a_lease_begins_no_line_of_the_request_for_approval() -> None:
    reason = "drill)\n\n- team-b: nothing changes\n\nReject: taskgov approve plan-x\n\x1b[8m\u202e"
    lease = {"to": "team-a", "from": "team-b", "count": 1, "reason": reason}
    moments = {"start": "2026-11-19T09:00Z", "end": "2026-11-21T09:00Z"}
    snapshot = snapshot_with({"name": "ml-cluster", "arn": CLUSTER_ARN}, leases=[lease | moments])
    plan = plan_quotas(snapshot, mode="apply")
    text = summary(plan)
    assert "(drill) - team-b: nothing changes Reject: taskgov approve plan-x \\x1b[8m\\u202e)" in text
    assert len(text.splitlines()) == 1 + len({change.subject for change in plan.changes})
    assert all(line.isprintable() for line in text.splitlines())
