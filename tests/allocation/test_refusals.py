"""What is recorded of a write that was refused."""

from dataclasses import replace

from taskgov.allocation.refusals import refused_write, wanted_digest, wanted_of
from taskgov.hyperpod.model import ComputeQuotaConfig, ComputeQuotaResource, ResourceSharingConfig
from taskgov.snapshot.records import RefusalError
from tests.allocation.world import NOW
from tests.support.plans import (
    creation,
    deletion,
    instances,
    low_write,
    plan_of,
    policy,
    policy_change,
    second_write,
    target,
    update,
)


def test_a_refused_write_says_what_was_asked_for_and_by_which_plan() -> None:
    change = update(0, "team-a", "quota0000001", before=2, after=5, version=3)
    plan = plan_of(change)
    refused = refused_write(plan, change, error=RefusalError.LIMIT_REACHED, because="the limit is 5", at=NOW)
    assert (refused.subject, refused.name, refused.team) == ("team-a/team-a", "team-a", "team-a")
    assert (refused.kind, refused.resource_id, refused.version) == ("update-quota", "quota0000001", 3)
    assert (refused.error, refused.because, refused.plan_id, refused.at) == (
        RefusalError.LIMIT_REACHED,
        "the limit is 5",
        "plan-1",
        NOW,
    )
    assert refused.wanted == wanted_digest(instances(5), target("team-a"))


def test_the_first_of_two_writes_stands_for_the_second() -> None:
    low, second = low_write(0, "team-a", "q1", 4, 2), second_write(2, "team-a", "q1", 2, 3)
    other = update(1, "team-b", "q2", 1, 2)
    assert wanted_of(low, (low, other, second)) == wanted_of(second, (low, other, second))
    assert wanted_of(low, (low, other, second)) == wanted_digest(instances(3), target("team-a"))


def test_the_deletion_of_a_failed_quota_stands_for_its_creation() -> None:
    gone, again = deletion(0, "team-a", "q1", 2), creation(1, "team-a", 3)
    assert wanted_of(gone, (gone, again)) == wanted_digest(instances(3), target("team-a"))


def test_what_is_wanted_differs_by_amount_weight_and_settings() -> None:
    borrower = instances(2).model_copy(update={"resource_sharing_config": ResourceSharingConfig(borrow_limit=20)})
    wants = [
        (instances(2), target("team-a")),
        (instances(3), target("team-a")),
        (instances(2), target("team-a", weight=11)),
        (borrower, target("team-a")),
    ]
    assert len({wanted_digest(*each) for each in wants}) == len(wants)


def test_what_is_wanted_is_the_same_in_any_order_with_or_without_defaults() -> None:
    rows = tuple(ComputeQuotaResource(instance_type=name, count=2) for name in ("ml.g5.8xlarge", "ml.p5.48xlarge"))
    one = ComputeQuotaConfig(compute_quota_resources=rows)
    other = ComputeQuotaConfig(
        compute_quota_resources=rows[::-1], resource_sharing_config=ResourceSharingConfig(borrow_limit=50)
    )
    assert wanted_digest(one, target("team-a")) == wanted_digest(other, target("team-a"))
    classes = [wanted_digest(policy(**weights), None) for weights in ({"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 2})]
    assert classes[0] == classes[1] != classes[2]


def test_the_cluster_policy_has_no_target() -> None:
    change = replace(policy_change(0, policy(a=1), policy(a=2), version=4), wave=1)
    refused = refused_write(plan_of(change), change, error=RefusalError.VALIDATION, because="no", at=NOW)
    assert (refused.subject, refused.team) == ("cluster policy", "")
    assert refused.wanted == wanted_digest(policy(a=2), None)
