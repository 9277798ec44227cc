"""Does each role hold what its work needs, and nothing else? Asked of everything that the embedded stack has seen."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from taskgov_embedded.deployable import TEMPLATE
from taskgov_embedded.iam import evaluation, reference
from taskgov_embedded.walkthrough.model import all_files, load
from taskgov_embedded.walkthrough.runner import Runner
from taskgov_embedded.walkthrough.world import World
from tests.permissions.playing import Recorded, play_beside
from tests.support.golden import assert_section
from tests.support.once import once
from tests.support.played import REPRESENTATIVE, played_once

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from taskgov_embedded.iam.evaluation import Grant, Statement

pytestmark = pytest.mark.long

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
NOT_CALLED = "S3 answers 404 instead of 403 for a document that is not there; it is not a separate call"
OPTIONAL = "asked only when a summary lacks its optional members; the embedded stack gives all of them"
UNUSED = {
    ("ReadSnapshotRole", "s3:ListBucket"): NOT_CALLED,
    ("AuditClusterRole", "s3:ListBucket"): NOT_CALLED,
    ("EstimateStartsRole", "s3:ListBucket"): NOT_CALLED,
    ("ApplyChangeRole", "s3:ListBucket"): NOT_CALLED,
    ("VerifyPlanRole", "s3:ListBucket"): NOT_CALLED,
    ("ReadSnapshotRole", "sagemaker:DescribeComputeQuota"): OPTIONAL,
    ("PublishUsageRole", "sagemaker:DescribeComputeQuota"): OPTIONAL,
}
"""Permissions that nothing here uses, and why they are granted."""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    seen = _of_walkthroughs(tmp_path_factory, REPRESENTATIVE)
    seen.add(once(tmp_path_factory, "beside-the-walkthroughs", _beside))
    return seen


def _of_walkthroughs(factory: pytest.TempPathFactory, numbers: Collection[str]) -> Recorded:
    seen = Recorded()
    for file in all_files():
        if file.stem[:2] in numbers:
            seen.add(played_once(factory, file).recorded)
    return seen


def _beside() -> Recorded:
    seen = Recorded()
    play_beside(seen)
    return seen


def unused(recorded: Recorded) -> set[tuple[str, str]]:
    return {(recorded.role_name(one.role), one.action) for one in recorded.granted() if one not in recorded.used}


def test_no_permission_is_missing(recorded: Recorded) -> None:
    assert recorded.denied == []
    assert recorded.unknown_condition_keys == set()


def test_every_permission_is_used_or_has_its_reason(recorded: Recorded) -> None:
    assert unused(recorded) == set(UNUSED)


@dataclass(frozen=True, slots=True)
class Permission:
    """One action on one of the resources of one statement: the least that can be taken out of the template."""

    grant: Grant
    resource: str

    def taken_from(self, policy: tuple[Statement, ...]) -> tuple[Statement, ...]:
        """Return the policy without it."""
        return tuple(rest for one in policy for rest in (self._rests(one) if self._is_in(one) else (one,)))

    def _is_in(self, one: Statement) -> bool:
        return (one.sid, one.resources) == (self.grant.sid, self.grant.resources) and self.grant.action in one.actions

    def _rests(self, one: Statement) -> tuple[Statement, ...]:
        others = tuple(action for action in one.actions if action != self.grant.action)
        elsewhere = tuple(resource for resource in one.resources if resource != self.resource)
        return replace(one, actions=others), replace(one, actions=(self.grant.action,), resources=elsewhere)


def permissions(recorded: Recorded) -> list[Permission]:
    return [Permission(grant, one) for grant in recorded.granted() for one in grant.resources]


def refused(recorded: Recorded, permission: Permission) -> Iterator[str]:
    """Yield what would be refused without a permission, in the words in which a run fails."""
    role, policy = permission.grant.role, permission.taken_from(recorded.policies[permission.grant.role])
    for need in recorded.needs:
        if need.role == role and need.action == permission.grant.action and not need.allowed_by(policy):
            yield f"{role} may not {need.action} on {need.resources[0]}"


ASKED_OF_ALL = {"cloudwatch:DescribeAlarms": "CodeDeploy asks for all alarms of a deployment in one call"}
"""Actions that can be granted on a resource and are asked for on `*`."""


def test_every_action_was_asked_for_on_a_resource_that_the_reference_lists(recorded: Recorded) -> None:
    """So what the emulated account names as the resource of a call is checked against AWS's own list."""
    wrong = {
        f"{need.action} on {resource}"
        for need in recorded.needs
        for resource in need.resources
        if not _is_listed(need.action, resource)
    }
    assert wrong == set()


def _is_listed(action: str, resource: str) -> bool:
    forms = reference.resource_forms(action)
    if not forms or action in ASKED_OF_ALL:
        return forms is not None and resource == "*"
    return any(evaluation.matches(re.sub(r"\$\{[^}]+\}", "*", form), resource) for form in forms)


EITHER = {
    "lambda:GetAlias": "the reference names the function, Lambda's guide the alias",
    "lambda:UpdateAlias": "the reference names the function, Lambda's guide the alias",
}
"""Actions that are granted on two resources of which one is enough here: the other one alone may be taken away."""


def test_without_any_one_permission_something_is_refused_that_names_role_action_and_resource(
    recorded: Recorded,
) -> None:
    silent, checked = [], 0
    for permission in permissions(recorded):
        role, action = recorded.role_name(permission.grant.role), permission.grant.action
        if (role, action) in UNUSED or action in EITHER:
            continue
        sentence = next(refused(recorded, permission), "")
        named = permission.grant.role in sentence and action in sentence
        if not (named and evaluation.matches(permission.resource, sentence.rpartition(" on ")[2])):
            silent.append(f"{role} without {action} on {recorded.shown(permission.resource)}: {sentence or 'nothing'}")
        checked += 1
    assert silent == []
    assert checked > 120


def test_of_two_resources_that_do_for_one_action_one_is_needed(recorded: Recorded) -> None:
    for action in EITHER:
        without = tuple(replace(one, actions=tuple(set(one.actions) - {action})) for one in _all(recorded))
        needs = [need for need in recorded.needs if need.action == action]
        assert needs != []
        assert [need for need in needs if need.allowed_by(without)] == []


def _all(recorded: Recorded) -> tuple[Statement, ...]:
    return tuple(one for policy in recorded.policies.values() for one in policy)


def test_every_wildcard_and_every_exception_is_still_needed(recorded: Recorded) -> None:
    granted = {(recorded.role_name(one.role), one.action) for one in recorded.granted()}
    assert set(UNUSED) <= granted
    assert set(EITHER) <= {action for _, action in granted}


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


def test_no_walkthrough_needs_more_than_the_representative_ones(
    recorded: Recorded, tmp_path_factory: pytest.TempPathFactory
) -> None:
    everything = _of_walkthroughs(tmp_path_factory, [file.stem[:2] for file in all_files()])
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
            next(Runner(walkthrough, world).run())
            denied = [moment.what for moment in world.stack.timeline.of("denied")]
    finally:
        changed.unlink()
    assert any(f"taskgov-{role}-" in one and action in one and "arn:aws:" in one for one in denied)
