"""What has become of a plan's changes, before any of them is taken back."""

from dataclasses import replace

import pytest

from taskgov.allocation.plan import Change
from taskgov_cli.change_states import ChangeState, change_states
from taskgov_cli.rollback import why_not
from tests.support.memory import CLUSTER_ARN, InMemoryHyperPod
from tests.support.plans import creation, instances, plan_of, policy, policy_change, target, update


@pytest.fixture
def hyperpod() -> InMemoryHyperPod:
    return InMemoryHyperPod()


def one(hyperpod: InMemoryHyperPod, change: Change) -> ChangeState:
    (found,) = change_states(hyperpod, plan_of(change))
    return found.state


def quota(hyperpod: InMemoryHyperPod, count: int, weight: int = 10) -> str:
    return hyperpod.create_quota(CLUSTER_ARN, "team-a", instances(count), target("team-a", weight)).resource_id


@pytest.mark.parametrize(
    ("count", "weight", "standing"),
    [
        (1, 10, ChangeState.STANDS),
        (2, 10, ChangeState.AS_BEFORE),
        (3, 10, ChangeState.CHANGED_SINCE),
        (1, 77, ChangeState.CHANGED_SINCE),
    ],
)
def test_an_update_stands_while_the_quota_holds_what_was_written(
    hyperpod: InMemoryHyperPod, count: int, weight: int, standing: ChangeState
) -> None:
    quota_id = quota(hyperpod, count, weight)
    assert one(hyperpod, update(0, "team-a", quota_id, 2, 1)) is standing


def test_a_change_of_the_weight_alone_can_be_taken_back(hyperpod: InMemoryHyperPod) -> None:
    change = update(0, "team-a", quota(hyperpod, 2, 90), 2, 2)
    assert one(hyperpod, replace(change, target_after=target("team-a", 90))) is ChangeState.STANDS


def test_a_quota_that_is_gone_cannot_be_restored(hyperpod: InMemoryHyperPod) -> None:
    assert one(hyperpod, update(0, "team-a", "gone00000000", 2, 1)) is ChangeState.CHANGED_SINCE


def test_a_creation_stands_until_somebody_deletes_or_updates_it(hyperpod: InMemoryHyperPod) -> None:
    assert one(hyperpod, creation(0, "team-a", 2)) is ChangeState.AS_BEFORE
    quota_id = quota(hyperpod, 2)
    assert one(hyperpod, creation(0, "team-a", 2)) is ChangeState.STANDS
    hyperpod.update_quota(quota_id, 1, instances(3), target("team-a"))
    hyperpod.update_quota(quota_id, 2, instances(2), target("team-a"))
    assert one(hyperpod, creation(0, "team-a", 2)) is ChangeState.CHANGED_SINCE


def test_the_cluster_policy_is_looked_at_too(hyperpod: InMemoryHyperPod) -> None:
    written = hyperpod.create_scheduler_config(CLUSTER_ARN, "cluster-policy", policy(training=70))
    change = policy_change(0, policy(training=50), policy(training=70), 1)
    assert one(hyperpod, change) is ChangeState.STANDS
    hyperpod.update_scheduler_config(written.resource_id, 1, policy(training=50))
    assert one(hyperpod, change) is ChangeState.AS_BEFORE


def test_the_last_change_is_restored_first(hyperpod: InMemoryHyperPod) -> None:
    quota(hyperpod, 1)
    hyperpod.create_quota(CLUSTER_ARN, "team-b", instances(3), target("team-b"))
    (a, b) = (each.compute_quota_id for each in hyperpod.quotas(CLUSTER_ARN))
    plan = plan_of(update(0, "team-a", a, 2, 1), update(1, "team-b", b, 2, 3))
    found = change_states(hyperpod, plan)
    assert why_not(plan, found) is None
    assert [each.change.index for each in found] == [1, 0]


def test_nothing_is_restored_when_a_part_was_changed_since(hyperpod: InMemoryHyperPod) -> None:
    quota(hyperpod, 1)
    hyperpod.create_quota(CLUSTER_ARN, "team-b", instances(9), target("team-b"))
    (a, b) = (each.compute_quota_id for each in hyperpod.quotas(CLUSTER_ARN))
    plan = plan_of(update(0, "team-a", a, 2, 1), update(1, "team-b", b, 2, 3))
    said = why_not(plan, change_states(hyperpod, plan))
    assert said is not None
    assert "team-b of plan plan-1 changed since" in said
