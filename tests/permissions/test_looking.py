"""People who look: what each command needs in IAM and in Kubernetes, that nothing is missing, and nothing in vain."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from taskgov_embedded.cluster.access import VIEWERS
from taskgov_embedded.cluster.manifests import job_manifest
from taskgov_embedded.iam import evaluation
from tests.support.golden import assert_section
from tests.support.members import LEADS, SCIENTISTS, become, let_in, team_cluster
from tests.support.operating import taskgov

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskgov_embedded.cluster.manifests import JobKind
    from taskgov_embedded.walkthrough.world import World

pytestmark = pytest.mark.long

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
LIVE = ("--cluster", "ml-cluster")
ALONE = (*LIVE, "--stack", "")
"""The cluster itself, without what a stack adds: its document, its memory and its estimates."""
COMMANDS = {
    "`taskgov status`": ("status", *ALONE, "--team", "team-a"),
    "`taskgov jobs`": ("jobs", *ALONE, "--team", "team-a"),
    "`taskgov jobs --mine -c CLUSTER`": ("jobs", *ALONE, "--team", "team-a", "--mine"),
    "`taskgov explain TEAM/JOB -c CLUSTER`": ("explain", "team-a/a-pytorchjob", *ALONE),
    "`taskgov explain --team`": ("explain", "--team", "team-a", *ALONE),
    "`taskgov report --team`": ("report", "ml-cluster", "--team", "team-a"),
    "`taskgov when TEAM/JOB -c CLUSTER --stack taskgov`": ("when", "team-a/a-pytorchjob", *LIVE, "--stack", "taskgov"),
}
KINDS: tuple[JobKind, ...] = ("PyTorchJob", "HyperPodPyTorchJob", "RayJob", "Job")
NOT_READ = {("list", "", "events"): "kubectl shows it"}
"""What members may read and no command of taskgov reads, and why."""
OPTIONAL = "sagemaker:DescribeComputeQuota"
"""Asked only when a summary lacks its optional members; the embedded stack gives all of them."""
Right = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Looker:
    """Somebody who looks: a role with a policy, a group, and its tags."""

    who: str
    role: str
    policy: str
    group: str
    tags: tuple[tuple[str, str], ...] = ()


MEMBER = Looker("a member", SCIENTISTS, "TeamMemberPolicy", "taskgov-team-a", (("team", "team-a"),))
LEAD = Looker("a lead", LEADS, "TeamLeadPolicy", VIEWERS)
lookers = pytest.mark.parametrize("looker", [MEMBER, LEAD], ids=lambda each: each.who)


@dataclass(frozen=True, slots=True)
class Used:
    """What one command of one person needed."""

    actions: frozenset[str]
    rights: frozenset[Right]


class Looking:
    """A cluster on which people look, and what was used of their rights."""

    def __init__(self, world: World) -> None:
        self.world = world

    def be(self, looker: Looker, monkeypatch: pytest.MonkeyPatch) -> None:
        become(self.world, monkeypatch, looker.role, looker.policy, looker.group, **dict(looker.tags))

    def run(self, command: str) -> Used:
        """Run a command, and return what of the caller's rights it used."""
        requests, server = self.world.stack.account.requests, self.world.api_server
        requests.grants_used.clear()
        server.allowed.clear()
        result = taskgov(*COMMANDS[command])
        assert result.exit_code == 0, result.output
        return Used(
            frozenset(grant.action for grant in requests.grants_used),
            frozenset((verb, group, resource) for _, verb, group, resource in server.allowed),
        )

    def policy(self, looker: Looker) -> tuple[evaluation.Statement, ...]:
        return self.world.stack.account.policies._by_role[self.arn(looker)]

    def arn(self, looker: Looker) -> str:
        return f"arn:aws:iam::{self.world.stack.place.account}:role/{looker.role}"

    def rights(self, looker: Looker) -> set[Right]:
        return {
            (verb, group, resource)
            for rule in self.world.rights[looker.group]
            for verb in rule.verbs
            for group in rule.api_groups
            for resource in rule.resources
        }


@pytest.fixture(scope="module")
def looking() -> Iterator[Looking]:
    with team_cluster() as world:
        world.stack.client("sagemaker").create_cluster_scheduler_config(
            Name="policy", ClusterArn=world.cluster_arn, SchedulerConfig={"FairShare": "Enabled"}
        )
        for kind in KINDS:
            world.cluster.submit(job_manifest("team-a", f"a-{kind.lower()}", {"nvidia.com/gpu": "1"}, kind=kind))
        world.cluster.submit(a_pod())
        _buy_plan(world)
        world.stack.run_until_quiet(120)
        let_in(world, "team-a")
        world.stack.fire("AuditAllSchedule")  # which writes the pages of the teams
        world.stack.run_until_quiet(300)
        yield Looking(world)


def _buy_plan(world: World) -> None:
    """Let the instances of the cluster be of a training plan, which a lead may read."""
    (group,) = world.cluster.groups()
    now = world.clock.now
    plan = world.stack.sagemaker.training_plans.buy(
        "spring", group.instance_type, group.target_count, now, now + timedelta(days=30)
    )
    world.cluster.set_target(replace(group, training_plan=plan.arn))


def a_pod() -> dict[str, Any]:
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"nvidia.com/gpu": "1"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "a-pod",
            "namespace": "hyperpod-ns-team-a",
            "labels": {"kueue.x-k8s.io/queue-name": "hyperpod-ns-team-a-localqueue"},
        },
        "spec": {"containers": [container]},
    }


@pytest.fixture(scope="module")
def used(looking: Looking) -> dict[tuple[str, str], Used]:
    """Everything that each person's commands used."""
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        for looker in (MEMBER, LEAD):
            looking.be(looker, patch)
            for command in COMMANDS:
                found[command, looker.who] = looking.run(command)
    return found


@lookers
def test_everything_that_is_granted_in_iam_is_used_and_nothing_else(
    looking: Looking, used: dict[tuple[str, str], Used], looker: Looker
) -> None:
    actions = {action for (_, who), one in used.items() if who == looker.who for action in one.actions}
    granted = {grant.action for grant in evaluation.grants_of(looking.policy(looker))}
    assert actions <= granted
    assert granted - actions <= {OPTIONAL}
    assert not any(action.partition(":")[2].startswith(("Put", "Create", "Update", "Delete")) for action in actions)


@lookers
def test_everything_that_is_granted_in_kubernetes_is_used_or_has_its_reason(
    looking: Looking, used: dict[tuple[str, str], Used], looker: Looker
) -> None:
    rights = {right for (_, who), one in used.items() if who == looker.who for right in one.rights}
    granted = looking.rights(looker)
    assert rights <= granted
    assert granted - rights <= {*NOT_READ, *SHARED_WITH_FUNCTIONS}
    assert {verb for verb, _, _ in granted} <= {"get", "list"}


SHARED_WITH_FUNCTIONS = {("list", "", "namespaces"), ("get", "kueue.x-k8s.io", "cohorts")}
"""Leads have the ClusterRole of the functions, which read these of clusters of the `kueue` backend."""


@lookers
def test_without_any_one_action_a_command_says_or_shows_that_it_is_missing(
    looking: Looking, used: dict[tuple[str, str], Used], looker: Looker, monkeypatch: pytest.MonkeyPatch
) -> None:
    looking.be(looker, monkeypatch)
    policies, arn = looking.world.stack.account.policies._by_role, looking.arn(looker)
    whole, answers = policies[arn], said_with_all_rights()
    try:
        for grant in (one for one in evaluation.grants_of(whole) if one.action != OPTIONAL):
            command = needing(used, looker, grant.action)
            policies[arn] = tuple(
                replace(one, actions=tuple(action for action in one.actions if action != grant.action)) for one in whole
            )
            result = taskgov(*COMMANDS[command])
            assert result.output != answers[command] or grant.action in UNNOTICED, grant.action
            assert "Traceback" not in result.output
            policies[arn] = whole
    finally:
        policies[arn] = whole


def test_without_any_one_right_in_kubernetes_a_command_says_or_shows_that_it_is_missing(
    looking: Looking, used: dict[tuple[str, str], Used], monkeypatch: pytest.MonkeyPatch
) -> None:
    looking.be(MEMBER, monkeypatch)
    whole, answers = looking.world.rights[MEMBER.group], said_with_all_rights()
    for verb, group, resource in looking.rights(MEMBER) - NOT_READ.keys():
        right = (verb, group, resource)
        commands = [name for (name, who), one in used.items() if who == MEMBER.who and right in one.rights]
        less = tuple(replace(rule, resources=rule.resources - {resource}) for rule in whole)
        monkeypatch.setitem(looking.world.rights, MEMBER.group, less)
        after = [taskgov(*COMMANDS[name]).output for name in commands]
        assert after != [answers[name] for name in commands], resource
        assert not any("Traceback" in each for each in after)


def said_with_all_rights() -> dict[str, str]:
    return {name: taskgov(*words).output for name, words in COMMANDS.items()}


def needing(used: dict[tuple[str, str], Used], looker: Looker, action: str) -> str:
    return next(name for (name, who), one in used.items() if who == looker.who and action in one.actions)


UNNOTICED = {
    "sagemaker:DescribeTrainingPlan",  # without it nodes count until they are lost, and this plan ends in a month
    "sagemaker:ListClusterNodes",  # it adds instances that did not join, of which there are none here
    "sagemaker:ListComputeQuotas",  # `status` does not need it; `explain` does
    "sagemaker:ListClusterSchedulerConfigs",
    "sagemaker:DescribeClusterSchedulerConfig",
}


def test_a_member_reads_the_page_of_the_own_team_and_no_other(
    looking: Looking, monkeypatch: pytest.MonkeyPatch
) -> None:
    looking.be(MEMBER, monkeypatch)
    result = taskgov("report", "ml-cluster", "--team", "team-b")
    assert result.exit_code == 1
    assert "you may not read the page of team-b" in result.output
    looking.be(replace(MEMBER, role="Untagged", tags=()), monkeypatch)
    assert taskgov("report", "ml-cluster", "--team", "team-a").exit_code == 1


def test_nobody_who_looks_reads_documents_the_table_or_whole_reports(
    looking: Looking, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = f"arn:aws:s3:::{looking.world.stack.physical('GovernanceBucket')}"
    tags = {"aws:PrincipalTag/team": "team-a"}
    for looker in (MEMBER, LEAD):
        looking.be(looker, monkeypatch)
        policy = looking.policy(looker)
        own = f"{bucket}/reports/ml-cluster/teams/team-a.html"
        assert evaluation.evaluate(policy, "s3:GetObject", own, tags).allowed
        for key in ("policies/ml-cluster.yaml", "reports/ml-cluster/2026-11-20T090000Z.html", "memory/x/use.json.gz"):
            assert not evaluation.evaluate(policy, "s3:GetObject", f"{bucket}/{key}", tags).allowed
        assert not evaluation.evaluate(policy, "dynamodb:GetItem", "*", tags).allowed


@pytest.mark.parametrize("value", ["*", "team-?"])
def test_a_tag_is_never_a_wildcard(looking: Looking, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    looking.be(MEMBER, monkeypatch)
    bucket = f"arn:aws:s3:::{looking.world.stack.physical('GovernanceBucket')}"
    page = f"{bucket}/reports/ml-cluster/teams/team-a.html"
    assert not evaluation.evaluate(
        looking.policy(MEMBER), "s3:GetObject", page, {"aws:PrincipalTag/team": value}
    ).allowed


def rows(used: dict[tuple[str, str], Used]) -> Iterator[str]:
    for command in COMMANDS:
        for looker in (MEMBER, LEAD):
            one = used[command, looker.who]
            actions = ", ".join(f"`{each}`" for each in sorted(one.actions))
            rights = ", ".join(
                f"`{verb} {resource}`" for verb, _, resource in sorted(one.rights, key=lambda r: r[::-1])
            )
            yield f"| {command} | {looker.who} | {actions} | {rights or 'nothing'} |"


def test_the_page_says_what_each_command_needs(used: dict[tuple[str, str], Used]) -> None:
    head = "| command | of | in IAM | in Kubernetes |\n| --- | --- | --- | --- |\n"
    assert_section(PAGE, "looking", head + "\n".join(rows(used)))


@pytest.mark.parametrize("command", ["plan", "what-if", "snapshot", "audit"])
def test_a_lead_who_may_not_read_the_stack_s_records_gets_the_answer_without_them(
    looking: Looking, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """The stack was not typed: that it may not be read is a note, and no reason to answer nothing."""
    looking.be(LEAD, monkeypatch)
    result = taskgov(command, *(LIVE if command != "snapshot" else LIVE[1:2]))
    assert result.exit_code in {0, 1}, result.output
    assert "you may not" in result.stderr
