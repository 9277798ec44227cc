"""`taskgov init` on a cluster without quotas: teams, instance types and a style become a document that validates."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from taskgov.allocation.planner import plan_quotas
from taskgov.errors import InvalidRequestError
from taskgov.hyperpod.model import ClusterSchedulerConfig, SchedulerConfig, Switch
from taskgov.policy.parse import parse_policy
from taskgov.snapshot.codec import snapshot_to_json
from taskgov_cli.main import app
from taskgov_cli.onboarding.draft import draft_policy
from taskgov_cli.onboarding.first_teams import FirstTeams, Style, TeamWish
from taskgov_cli.onboarding.text import document_text
from tests.allocation.world import C5, G5, P5, applied, nodes, quota, row, snapshot
from tests.support.operating import data, opened, played, taskgov

if TYPE_CHECKING:
    from pathlib import Path

    from taskgov.snapshot.model import Snapshot
    from taskgov_embedded.walkthrough.world import World

TRN1 = "ml.trn1.32xlarge"
POLICIES = st.sampled_from([None, Switch.DISABLED, Switch.ENABLED])
WISHES = st.lists(
    st.builds(TeamWish, st.sampled_from(["ant", "bee", "cat", "dog"]), st.integers(1, 9)),
    min_size=1,
    max_size=4,
    unique_by=lambda each: each.name,
)


def a_cluster(counts: dict[str, int], idle: Switch | None) -> Snapshot:
    machines = tuple(node for kind, count in counts.items() for node in nodes(count, kind))
    if idle is None:
        return snapshot(None, machines, [])
    config = SchedulerConfig(fair_share=Switch.ENABLED, idle_resource_sharing=idle)
    scheduler = ClusterSchedulerConfig(
        cluster_scheduler_config_id="abcdefghijkl",
        name="policy",
        cluster_scheduler_config_version=1,
        status="Created",
        scheduler_config=config,
    )
    return snapshot(None, machines, [], scheduler_config=scheduler)


@settings(max_examples=25, deadline=None)
@given(
    counts=st.dictionaries(st.sampled_from([G5, P5, C5, TRN1]), st.integers(1, 9), min_size=1),
    idle=POLICIES,
    teams=WISHES,
    style=st.sampled_from(list(Style)),
)
def test_any_first_teams_make_a_valid_document_whose_plan_gives_them_all_that_is_divided(
    counts: dict[str, int], idle: Switch | None, teams: list[TeamWish], style: Style
) -> None:
    cluster = a_cluster(counts, idle)
    try:
        draft = draft_policy(cluster, FirstTeams(tuple(teams), (), style))
    except InvalidRequestError as error:
        assert all("has too little for" in each.rule for each in error.violations)  # noqa: PT017
        assert any(count < len(teams) for count in counts.values())
        return
    text = document_text(draft, cluster)
    parsed = parse_policy(text)
    assert (parsed.document, parsed.violations) == (draft.parsed.document, ())
    assert [each for each in parsed.warnings if each.code != "borrow-limit-rounds-to-nothing"] == []
    assert [team["name"] for team in draft.document["teams"]] == [each.name for each in teams]
    world = replace(cluster, policy=parsed.document, policy_version="draft")
    plan = plan_quotas(world, mode="plan")
    assert plan.findings == ()
    after = plan_quotas(applied(world, plan), mode="plan")
    assert (after.changes, after.findings) == ((), ())
    if style is not Style.SHARED_POOL:
        for name, count in counts.items():
            rows = [r for t in draft.document["teams"] for r in t["quota"]["ComputeQuotaResources"]]
            whole = [r["Count"] for r in rows if r["InstanceType"] == name and "Count" in r]
            assert not whole or sum(whole) == count


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    file = tmp_path / "snapshot.json"
    file.write_bytes(snapshot_to_json(snapshot(None, nodes(4) + nodes(1, P5), [])))
    return file


def said(text: str) -> str:
    return " ".join(text.replace("│", " ").split())


def test_options_make_a_document(empty: Path, tmp_path: Path) -> None:
    out = tmp_path / "new.yaml"
    arguments = ("init", "-s", str(empty), "-o", str(out), "--team", "research:3", "--team", "serving")
    result = taskgov(*arguments, "--style", "shared-pool")
    assert result.exit_code == 0, result.output
    assert "a plan with it makes 4 changes" in said(result.output)  # the cluster policy, two teams and the pool
    document = yaml.safe_load(out.read_text())
    rows = {team["name"]: team["quota"]["ComputeQuotaResources"] for team in document["teams"]}
    assert rows == {
        "research": [{"InstanceType": G5, "Count": 1}, {"InstanceType": P5, "Accelerators": 3}],
        "serving": [{"InstanceType": G5, "Count": 1}, {"InstanceType": P5, "Accelerators": 1}],
    }
    assert document["sharedPool"] == {"team": "shared-pool", "takes": "remainder"}
    assert taskgov("validate", str(out)).exit_code == 0
    out.write_text("mine")
    refused = taskgov(*arguments)
    assert (refused.exit_code, out.read_text(), "--force" in refused.stderr) == (1, "mine", True)


def test_the_answer_for_programs_says_what_a_plan_makes(empty: Path, tmp_path: Path) -> None:
    out = tmp_path / "x.yaml"
    answer = data("init", "-s", str(empty), "-o", str(out), "--team", "a", "--instance-type", G5, "--style", "strict")
    (team,) = answer["document"]["teams"]
    assert team["quota"]["ComputeQuotaResources"] == [{"InstanceType": G5, "Count": 4}]
    assert team["quota"]["ResourceSharingConfig"] == {"Strategy": "DontLend"}
    assert answer["changes"] == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--team", "a:0", "--team", ":2"], "'a:0' is not a team such as research"),
        (["--team", "A_b"], 'teams[0].name: "A_b"'),
        (["--team", "a", "--team", "a"], "is given twice"),
        (["--team", "a", "--instance-type", "ml.p4d.24xlarge"], "these have: ml.g5.8xlarge, ml.p5.48xlarge"),
        ([f"--team=t{n}" for n in range(9)], "ml.g5.8xlarge - has too little for 9 teams"),
        (["--style", "strict"], "name them with --team"),
        (["--instance-type", G5], "name them with --team"),
    ],
)
def test_what_cannot_be_divided_is_refused(empty: Path, tmp_path: Path, options: list[str], words: str) -> None:
    result = taskgov("init", "-s", str(empty), "-o", str(tmp_path / "x.yaml"), *options)
    assert result.exit_code != 0
    assert words in said(result.output + result.stderr)
    assert not (tmp_path / "x.yaml").exists()


def test_a_cluster_with_quotas_keeps_them(tmp_path: Path) -> None:
    file = tmp_path / "snapshot.json"
    file.write_bytes(snapshot_to_json(snapshot(None, nodes(4), [quota("ant", row(Count=3))])))
    result = taskgov("init", "-s", str(file), "-o", str(tmp_path / "x.yaml"), "--team", "bee")
    assert (result.exit_code, "has quotas (ant)" in said(result.output + result.stderr)) == (1, True)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    monkeypatch.setattr("taskgov_cli.onboarding.init.at_a_terminal", lambda: True)
    return CliRunner()


def test_on_a_terminal_it_asks_again_until_the_answers_make_sense(
    terminal: CliRunner, empty: Path, tmp_path: Path
) -> None:
    out = tmp_path / "x.yaml"
    typed = f"a:x\nresearch:2, serving\nml.x\n{G5}\nloose\nstrict\n"
    result = terminal.invoke(app, ["init", "-s", str(empty), "-o", str(out)], input=typed)
    assert result.exit_code == 0, result.output
    document = yaml.safe_load(out.read_text())
    counts = {team["name"]: team["quota"]["ComputeQuotaResources"] for team in document["teams"]}
    assert counts == {
        "research": [{"InstanceType": G5, "Count": 3}],
        "serving": [{"InstanceType": G5, "Count": 1}],
    }


TERRAFORM = "APN/1.0 HashiCorp/1.0 Terraform/1.9.5 (+https://www.terraform.io) terraform-provider-aws/5.70.0"


def by_terraform(world: World) -> None:
    """Let Terraform give team A a quota."""
    world.stack.sagemaker.trail.user_agents["terraform"] = TERRAFORM
    world.stack.client("sagemaker", "terraform").create_compute_quota(
        Name="team-a",
        ClusterArn=world.cluster_arn,
        ComputeQuotaConfig={"ComputeQuotaResources": [{"InstanceType": G5, "Count": 2}]},
        ComputeQuotaTarget={"TeamName": "team-a"},
    )
    world.stack.run_until_quiet()


@pytest.mark.parametrize(("typed", "want"), [("\n", "keep"), ("govern\n", "govern")])
def test_who_keeps_a_quota_that_terraform_changed_last_is_asked_on_a_terminal(
    typed: str, want: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("taskgov_cli.onboarding.init.at_a_terminal", lambda: True)
    file = tmp_path / "new.yaml"
    with opened({"waitMinutes": 1}) as world:
        by_terraform(played(world))
        command = ["init", "ml-cluster", "--stack", "taskgov", "-o", str(file)]
        result = CliRunner().invoke(app, command, input=typed)
        assert result.exit_code == 0, result.output
        assert "team-a was last changed by Terraform." in result.output
        assert yaml.safe_load(file.read_text())["coOwned"] == want
        assert "Also managed by infrastructure as code: team-a (Terraform)." in file.read_text()
        plain = data("init", "ml-cluster", "--stack", "taskgov", "-o", str(tmp_path / "plain.yaml"))
        assert plain["document"]["coOwned"] == "keep"


def test_on_a_terminal_enter_writes_an_empty_document_and_programs_are_never_asked(
    terminal: CliRunner, empty: Path, tmp_path: Path
) -> None:
    for number, more in enumerate(([], ["--json"])):
        out = tmp_path / f"{number}.yaml"
        result = terminal.invoke(app, ["init", "-s", str(empty), "-o", str(out), *more], input="\n")
        assert (result.exit_code, yaml.safe_load(out.read_text())["teams"]) == (0, [])
        assert ("Name the first teams" in result.output) is not bool(more)


def test_nothing_is_asked_away_from_a_terminal(empty: Path, tmp_path: Path) -> None:
    result = taskgov("init", "-s", str(empty), "-o", str(tmp_path / "x.yaml"))
    assert (result.exit_code, "Name the first teams" in result.output) == (0, False)
