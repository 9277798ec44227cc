"""A document that was reviewed with its plan: that plan is written, another one needs a person."""

from dataclasses import replace

import pytest

from taskgov.allocation.codec import changes_sha256
from taskgov.allocation.plan import Outcome
from taskgov.allocation.planner import plan_quotas
from taskgov.snapshot.codec import snapshot_from_json, snapshot_to_json
from taskgov.snapshot.model import Snapshot
from taskgov.snapshot.records import AppliedQuota
from tests.allocation.world import G5, NOW, applied, document, fixed, nodes, quota, row, snapshot

POLICY = document(fixed("team-a", row(G5, Count=1)), fixed("team-b", row(G5, Count=3)), pool=False)
WORLD = snapshot(POLICY, nodes(4), [quota("team-a", row(G5, Count=2)), quota("team-b", row(G5, Count=2))])
REVIEWED = changes_sha256(plan_quotas(WORLD, mode="apply"))


def recorded(world: Snapshot) -> Snapshot:
    """Return the world with the plan written, and on record as the functions keep it."""
    plan = plan_quotas(world, mode="apply")
    after = applied(world, plan)
    promises = {change.team: change.promise for change in plan.changes}
    records = tuple(
        AppliedQuota(
            compute_quota_id=standing.compute_quota_id,
            version=standing.compute_quota_version,
            config=standing.compute_quota_config,
            target=standing.compute_quota_target,
            plan_id=plan.plan_id,
            at=NOW,
            promise=promises[standing.compute_quota_target.team_name],
        )
        for standing in after.quotas
    )
    return replace(after, applied=records)


@pytest.mark.parametrize(
    ("reviewed", "outcome"), [("", Outcome.APPLY), (REVIEWED, Outcome.APPLY), ("0" * 64, Outcome.NEEDS_APPROVAL)]
)
def test_a_plan_that_was_not_reviewed_needs_an_approval(reviewed: str, outcome: Outcome) -> None:
    plan = plan_quotas(replace(WORLD, policy_reviewed=reviewed), mode="apply")
    assert plan.outcome is outcome
    verdicts = [verdict for verdict in plan.guardrails if "reviewed" in verdict.because]
    assert [verdict.passed for verdict in verdicts] == ([outcome is Outcome.APPLY] if reviewed else [])


def test_an_approval_of_the_other_plan_is_enough() -> None:
    world = replace(WORLD, policy_reviewed="0" * 64)
    assert plan_quotas(world, mode="apply", approved_changes=REVIEWED).outcome is Outcome.APPLY


def test_a_cluster_that_moved_before_the_document_was_in_force_asks_a_person() -> None:
    moved = replace(WORLD, nodes=nodes(3), policy_reviewed=REVIEWED)
    assert plan_quotas(moved, mode="apply").outcome is Outcome.NEEDS_APPROVAL


def test_once_the_document_is_written_later_plans_follow_the_cluster() -> None:
    written = replace(recorded(WORLD), policy_reviewed=REVIEWED)
    assert plan_quotas(written, mode="apply").outcome is Outcome.NOTHING_TO_DO
    later = plan_quotas(replace(written, nodes=nodes(3)), mode="apply")
    assert (later.outcome, len(later.changes) > 0) == (Outcome.APPLY, True)


def test_a_review_changes_no_digest_and_travels_with_the_snapshot() -> None:
    world = replace(WORLD, policy_reviewed="0" * 64)
    assert changes_sha256(plan_quotas(world, mode="apply")) == REVIEWED
    assert snapshot_from_json(snapshot_to_json(world)) == world
