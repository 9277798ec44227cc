"""What quotas are once a plan has been written."""

import pytest

from taskgov.allocation.written import quota_after, quotas_after
from tests.support.memory import CLUSTER_ARN, InMemoryHyperPod
from tests.support.plans import creation, instances, policy, policy_change, target, update


def test_changed_quotas_are_changed_new_ones_are_there_and_the_others_stay() -> None:
    hyperpod = InMemoryHyperPod()
    ids = [hyperpod.create_quota(CLUSTER_ARN, team, instances(2), target(team)).resource_id for team in ("a", "b")]
    wanted = policy(training=70)
    changes = (update(0, "a", ids[0], 2, 1), creation(1, "c", 3), policy_change(2, None, wanted))
    after, scheduler = quotas_after(hyperpod.quotas(CLUSTER_ARN), changes)
    counts = {each.compute_quota_id: each.compute_quota_config.compute_quota_resources[0].count for each in after}
    assert counts == {ids[0]: 1, ids[1]: 2, "new-c": 3}
    assert scheduler == wanted


def test_a_change_of_the_cluster_policy_is_no_quota() -> None:
    with pytest.raises(TypeError, match="create-scheduler-config"):
        quota_after(policy_change(0, None, policy(training=70)), {})
