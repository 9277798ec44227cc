"""Does each role hold what its work needs, and nothing else? Asked of everything that the embedded stack has seen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from taskgov_embedded.deployable import TEMPLATE
from taskgov_embedded.walkthrough.model import all_files, load
from taskgov_embedded.walkthrough.player import Player
from taskgov_embedded.walkthrough.world import World
from tests.permissions.playing import Need, Recorded, play, play_beside
from tests.support.golden import assert_section

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskgov_embedded.iam import Grant, Statement

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
REPRESENTATIVE = ["07", "14", "21", "25", "26"]
"""Walkthroughs that together with `play_beside` use every permission that any of them uses."""

NOT_CALLED = "S3 answers 404 instead of 403 for a document that is not there; it is no call of its own"
OPTIONAL = "asked only when a summary lacks its optional members; the embedded stack gives all of them"
UNUSED = {
    ("ReadSnapshotRole", "s3:ListBucket"): NOT_CALLED,
    ("AuditClusterRole", "s3:ListBucket"): NOT_CALLED,
    ("ApplyChangeRole", "s3:ListBucket"): NOT_CALLED,
    ("VerifyPlanRole", "s3:ListBucket"): NOT_CALLED,
    ("ReadSnapshotRole", "sagemaker:DescribeComputeQuota"): OPTIONAL,
    ("PublishUsageRole", "sagemaker:DescribeComputeQuota"): OPTIONAL,
    ("AuditClusterRole", "sagemaker:DescribeComputeQuota"): OPTIONAL,
    ("VerifyPlanRole", "sagemaker:DescribeComputeQuota"): OPTIONAL,
}
"""Permissions that nothing here uses, and why they are granted."""


@pytest.fixture(scope="module")
def recorded() -> Recorded:
    seen = Recorded()
    play(seen, REPRESENTATIVE)
    play_beside(seen)
    return seen


def unused(recorded: Recorded) -> set[tuple[str, str]]:
    return {(recorded.role_name(one.role), one.action) for one in recorded.granted() if one not in recorded.used}


def test_no_permission_is_missing(recorded: Recorded) -> None:
    assert recorded.denied == []
    assert recorded.unknown_condition_keys == set()


def test_every_permission_is_used_or_has_its_reason(recorded: Recorded) -> None:
    assert unused(recorded) == set(UNUSED)


def without(policy: tuple[Statement, ...], grant: Grant) -> tuple[Statement, ...]:
    """Return the policy with one action less in one statement."""
    return tuple(
        replace(one, actions=tuple(action for action in one.actions if action != grant.action))
        if (one.sid, one.resources) == (grant.sid, grant.resources)
        else one
        for one in policy
    )


def missed(recorded: Recorded, grant: Grant) -> Iterator[Need]:
    """Yield what could not be done any more without a permission."""
    policy = without(recorded.policies[grant.role], grant)
    for need in recorded.needs:
        if need.role == grant.role and need.action == grant.action and not need.allowed_by(policy):
            yield need


def test_without_any_one_permission_something_is_refused_to_its_role(recorded: Recorded) -> None:
    survived = [
        f"{recorded.role_name(grant.role)} without {grant.action} of {grant.sid}"
        for grant in recorded.used
        if next(missed(recorded, grant), None) is None
    ]
    assert survived == []


def test_what_was_allowed_is_allowed_by_the_policies_that_were_recorded(recorded: Recorded) -> None:
    refused = [need for need in recorded.needs if not need.allowed_by(recorded.policies[need.role])]
    assert refused == []
    assert len({need.role for need in recorded.needs}) == len(recorded.policies)


def rows(recorded: Recorded) -> Iterator[str]:
    for grant in sorted(recorded.granted(), key=lambda one: (recorded.role_name(one.role), one.sid, one.action)):
        role = recorded.role_name(grant.role)
        on = ", ".join(sorted({f"`{recorded.shown(one)}`" for one in grant.resources}))
        where = recorded.used.get(grant) or f"*{UNUSED[role, grant.action]}*"
        yield f"| `{role}` | `{grant.action}` | {on} | {where} |"


def test_the_page_lists_every_permission_and_where_it_is_used(recorded: Recorded) -> None:
    head = "| role | may | on | used in |\n| --- | --- | --- | --- |\n"
    assert_section(PAGE, "permissions", head + "\n".join(rows(recorded)))


@pytest.mark.slow
def test_no_walkthrough_needs_more_than_the_representative_ones(recorded: Recorded) -> None:
    everything = Recorded()
    play(everything, [])
    assert everything.denied == []
    assert {one for one in everything.used if one not in recorded.used} == set()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("role", "action"),
    [
        ("PlanQuotasRole", "s3:PutObject"),
        ("ApplyChangeRole", "sagemaker:CreateComputeQuota"),
        ("ReceiveEventRole", "states:StartExecution"),
        ("PublishUsageRole", "events:PutEvents"),
        ("ReconcileRole", "lambda:InvokeFunction"),
    ],
)
def test_a_template_without_a_permission_fails_and_names_role_action_and_resource(role: str, action: str) -> None:
    lines = TEMPLATE.read_text().splitlines(keepends=True)
    begin = lines.index(f"  {role}:\n")
    place = next(number for number in range(begin, len(lines)) if action in lines[number])
    lines[place] = lines[place].replace(action, "s3:GetBucketLogging")
    changed = TEMPLATE.with_name(f".mutated-{role}.yaml")  # beside the code that it names
    changed.write_text("".join(lines))
    try:
        walkthrough = load(all_files()[13])
        with World(walkthrough, changed) as world:
            next(Player(walkthrough, world).play())
            denied = [moment.what for moment in world.stack.timeline.of("denied")]
    finally:
        changed.unlink()
    assert any(f"taskgov-{role}-" in one and action in one and "arn:aws:" in one for one in denied)
