"""`taskgov init`: the first document says what is there, and changes nothing."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from taskgov.allocation.planner import plan_quotas
from taskgov.errors import InvalidRequestError
from taskgov.hyperpod.model import ClusterSchedulerConfig, SchedulerConfig
from taskgov.policy.parse import parse_policy
from taskgov.snapshot.codec import snapshot_to_json
from taskgov.snapshot.model import ClusterFacts, Snapshot
from taskgov_cli.onboarding.draft import draft_policy
from taskgov_cli.onboarding.text import document_text
from taskgov_embedded.walkthrough.world import World
from tests.allocation.world import C5, G5, NOW, P5, broken, document, fixed, nodes, quota, row, snapshot
from tests.support.operating import data, opened, played, taskgov

TEAMS = ("ant", "bee", "cat", "dog", "on", "123")
STRATEGIES = ("LendAndBorrow", "Lend", "DontLend")
STATUSES = ("Created", "Updated", "Updating", "UpdateFailed", "CreateFailed", "DeleteFailed", "Deleting")
UNKNOWN = "ml.p99.48xlarge"


@st.composite
def rows(draw: st.DrawFn) -> Mapping[str, Any]:
    instance_type = draw(st.sampled_from([G5, P5, C5, UNKNOWN]))
    if instance_type == P5 and draw(st.booleans()):
        return row(P5, AcceleratorPartition={"Type": "mig-1g.10gb", "Count": draw(st.integers(0, 40))})
    kinds = draw(st.sets(st.sampled_from(["Count", "Accelerators", "VCpu", "MemoryInGiB"]), max_size=2))
    return row(instance_type, **{kind: draw(st.integers(0, 60)) for kind in sorted(kinds)})


@st.composite
def settings_of_quotas(draw: st.DrawFn) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if draw(st.booleans()):
        found["ResourceSharingConfig"] = {"Strategy": draw(st.sampled_from(STRATEGIES))}
        if draw(st.booleans()):
            found["ResourceSharingConfig"]["BorrowLimit"] = draw(st.integers(0, 500))
        if draw(st.booleans()):
            found["ResourceSharingConfig"]["AbsoluteBorrowLimits"] = [row(G5, Count=draw(st.integers(0, 3)))]
    if draw(st.booleans()):
        found["PreemptTeamTasks"] = draw(st.sampled_from(["Never", "LowerPriority"]))
    return found


@st.composite
def clusters(draw: st.DrawFn) -> Snapshot:
    """Anything that an account may hold, also what no document could have made."""
    machines = nodes(draw(st.integers(0, 4)), G5) + nodes(draw(st.integers(0, 3)), P5) + nodes(1, C5)
    machines += broken(draw(st.integers(0, 2)), G5) + nodes(1, "m5.large")
    quotas = [
        quota(
            team,
            *draw(st.lists(rows(), max_size=3)),
            name=f"{team}-{number}",
            weight=draw(st.none() | st.integers(0, 100)),
            status=draw(st.sampled_from(STATUSES)),
            activation_state=draw(st.sampled_from(["Enabled", "Enabled", "Enabled", "Disabled"])),
            settings=draw(settings_of_quotas()),
        )
        for number, team in enumerate(draw(st.lists(st.sampled_from([*TEAMS, "x" * 55]), max_size=5)))
    ]
    scheduler = draw(st.none() | st.builds(policies, st.sampled_from(STATUSES), st.booleans(), st.booleans()))
    return snapshot(None, machines, quotas, scheduler_config=scheduler)


def policies(status: str, idle: bool, classes: bool) -> ClusterSchedulerConfig:
    given: dict[str, Any] = {"IdleResourceSharing": "Enabled"} if idle else {}
    if classes:
        given |= {"FairShare": "Disabled", "PriorityClasses": [{"Name": "no", "Weight": 7}]}
    return ClusterSchedulerConfig(
        cluster_scheduler_config_id="scheduler0001",
        name="policy",
        cluster_scheduler_config_version=3,
        status=status,
        scheduler_config=SchedulerConfig.model_validate(given),
    )


@given(clusters())
def test_the_first_document_of_any_cluster_is_valid_and_its_plan_is_empty(cluster: Snapshot) -> None:
    text = document_text(draft_policy(cluster), cluster)
    parsed = parse_policy(text)
    assert parsed.violations == ()
    for mode in ("plan", "apply"):
        plan = plan_quotas(replace(cluster, policy=parsed.document, policy_version="v1"), mode=mode)
        assert plan.changes == ()
        assert plan.outcome.value == "nothing-to-do"


@given(clusters())
def test_the_text_is_the_draft_and_every_quota_is_in_it_or_named_as_left_out(cluster: Snapshot) -> None:
    draft = draft_policy(cluster)
    text = document_text(draft, cluster)
    assert parse_policy(text).document == draft.parsed.document
    assert sorted([*(each.name for each in draft.quotas), *(each.quota.name for each in draft.left_out)]) == sorted(
        each.name for each in cluster.quotas
    )
    assert all(each.quota.name in text for each in draft.left_out)


def test_an_earlier_document_has_no_part_in_the_first_one() -> None:
    cluster = snapshot(document({"name": "ant"}), nodes(4), [quota("bee", row(Count=2))])
    assert [team["name"] for team in draft_policy(cluster).document["teams"]] == ["bee"]


def test_quotas_beyond_capacity_are_declared_and_not_cut() -> None:
    cluster = snapshot(None, nodes(3), [quota("ant", row(Count=2)), quota("bee", row(Count=2))])
    draft = draft_policy(cluster)
    assert draft.document["capacity"] == {"overcommitPercent": 34}  # int(3 x 1.33) would be 3
    assert draft.frozen == {}


STEPS = {"two may become one": (2, 1, True), "twelve may become nine": (12, 9, True), "twelve not six": (12, 6, False)}


@pytest.mark.parametrize(("stands", "wanted", "goes"), STEPS.values(), ids=STEPS.keys())
def test_a_first_document_lets_small_quotas_follow_and_stops_a_mass_loss(stands: int, wanted: int, goes: bool) -> None:
    cluster = snapshot(None, nodes(stands), [quota("ant", row(Count=stands))])
    draft = draft_policy(cluster).document
    limits = {key: draft["guardrails"][key] for key in ("maxDecreasePercent", "maxDecreaseInstances")}
    edited = document(fixed("ant", row(Count=wanted)), guardrails=limits, pool=False)
    plan = plan_quotas(replace(cluster, policy=edited, policy_version="v1"), mode="apply")
    assert (plan.outcome.value == "apply") == goes


def test_what_cannot_be_declared_is_frozen_with_the_reason() -> None:
    cluster = snapshot(None, nodes(1), [quota("ant", row(Count=40))])
    draft = draft_policy(cluster)
    assert draft.document["guardrails"]["freeze"] == ["ant"]
    assert "guaranteed 40" in draft.frozen["ant"]
    assert "ant is frozen" in document_text(draft, cluster)


def test_a_quota_whose_last_update_failed_is_frozen_and_a_policy_left_out_so_that_nothing_is_written_again() -> None:
    cluster = snapshot(
        None,
        nodes(4),
        [quota("ant", row(Count=2), status="UpdateFailed")],
        scheduler_config=policies("UpdateFailed", idle=False, classes=True),
    )
    draft = draft_policy(cluster)
    assert list(draft.frozen) == ["ant"]
    assert "schedulerConfig" not in draft.document
    assert draft.scheduler_left_out is not None


def test_a_cluster_that_no_document_can_name_is_refused_with_the_rule() -> None:
    cluster = replace(snapshot(), cluster=ClusterFacts(name="ml-cluster", arn="arn:sample"))
    with pytest.raises(InvalidRequestError, match="the ARN of a HyperPod cluster"):
        draft_policy(cluster)


def test_where_nobody_has_a_quota_the_document_shows_how_to_begin_and_the_example_is_valid_too() -> None:
    cluster = snapshot(None, nodes(3), [])
    text = document_text(draft_policy(cluster), cluster)
    lines = text.splitlines()
    start = lines.index("# teams:")
    example = [line.removeprefix("# ") for line in lines[start:] if line.startswith("# ")]
    end = next(n for n, line in enumerate(example) if "Capacity outside all quotas" in line)
    teams = yaml.safe_load("\n".join(example[:end]))
    base = yaml.safe_load(text)
    assert base["teams"] == []
    assert parse_policy(json.dumps(base | teams)).violations == ()
    counts = [team["quota"]["ComputeQuotaResources"][0]["Count"] for team in teams["teams"]]
    assert counts == [2, 1]


@pytest.fixture
def file_of_a_cluster(tmp_path: Path) -> Path:
    file = tmp_path / "snapshot.json"
    file.write_bytes(snapshot_to_json(snapshot(None, nodes(4), [quota("ant", row(Count=3), weight=10)])))
    return file


def test_a_file_that_is_there_is_not_replaced_unless_asked_to(file_of_a_cluster: Path, tmp_path: Path) -> None:
    out = tmp_path / "ml-cluster.yaml"
    out.write_text("mine")
    arguments = ("init", "--snapshot", str(file_of_a_cluster), "-o", str(out))
    refused = taskgov(*arguments)
    assert (refused.exit_code, out.read_text()) == (1, "mine")
    assert "--force" in refused.stderr
    assert taskgov(*arguments, "--force").exit_code == 0
    assert parse_policy(out.read_text()).document is not None


def test_a_place_that_cannot_be_written_is_named(file_of_a_cluster: Path, tmp_path: Path) -> None:
    result = taskgov("init", "-s", str(file_of_a_cluster), "-o", str(tmp_path / "nowhere" / "x.yaml"))
    assert (result.exit_code, "cannot be written" in result.stderr) == (1, True)


def test_the_answer_for_programs_has_what_was_found_and_what_to_decide(file_of_a_cluster: Path, tmp_path: Path) -> None:
    answer = data("init", "-s", str(file_of_a_cluster), "-o", str(tmp_path / "x.yaml"))
    (found,) = answer["instanceTypes"]
    assert (found["instanceType"], found["nodes"], found["usable"], found["promised"]) == (G5, 4, 4, 3)
    assert answer["changes"] == 0
    assert any("1 of 4 ml.g5.8xlarge are not guaranteed to any team" in each for each in answer["decide"])


@pytest.fixture
def live() -> Iterator[World]:
    """A cluster with quotas and a cluster policy that administrators made by hand, as AWS's own guide does."""
    teams = {"team-a": 2, "team-b": 2}
    quotas = [
        {
            "call": {
                "operation": "create_compute_quota",
                "arguments": {
                    "Name": f"{team}-quota-allocation",
                    "ClusterArn": "${clusterArn}",
                    "ComputeQuotaConfig": {
                        "ComputeQuotaResources": [{"InstanceType": G5, "Count": count}],
                        "ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 50},
                        "PreemptTeamTasks": "LowerPriority",
                    },
                    "ComputeQuotaTarget": {"TeamName": team, "FairShareWeight": 0},
                    "ActivationState": "Enabled",
                },
            }
        }
        for team, count in teams.items()
    ]
    policy = {
        "call": {
            "operation": "create_cluster_scheduler_config",
            "arguments": {
                "Name": "example-cluster-scheduler-config",
                "ClusterArn": "${clusterArn}",
                "SchedulerConfig": {
                    "PriorityClasses": [{"Name": "inference", "Weight": 90}, {"Name": "training", "Weight": 70}],
                    "FairShare": "Enabled",
                },
            },
        }
    }
    with opened(policy, *quotas) as world:
        yield played(world)


@pytest.mark.long
def test_a_live_cluster_is_detected_and_nothing_in_aws_is_changed(live: World, tmp_path: Path) -> None:
    before = len(live.stack.calls)
    out = tmp_path / "first.yaml"
    answer = data("init", "-o", str(out))
    actions = {call.action.split(":")[1] for call in live.stack.calls[before:]}
    assert all(action.startswith(("Describe", "List", "Get")) for action in actions), actions
    assert answer["cluster"]["name"] == "ml-cluster"
    assert [team["name"] for team in answer["document"]["teams"]] == ["team-a", "team-b"]
    assert taskgov("validate", str(out)).exit_code == 0


@pytest.mark.long
def test_the_document_in_the_bucket_makes_a_run_that_finds_nothing_to_do(live: World, tmp_path: Path) -> None:
    out = tmp_path / "first.yaml"
    taskgov("init", "ml-cluster", "-o", str(out))
    held = live.quotas()
    boto3.client("s3").put_object(
        Bucket=live.stack.outputs["BucketName"], Key="policies/ml-cluster.yaml", Body=out.read_bytes()
    )
    live.stack.run_until_quiet(300)
    assert data("history", "ml-cluster")[0]["outcome"] == "nothing-to-do"
    assert live.quotas() == held


@pytest.mark.long
def test_several_clusters_are_named_and_one_has_to_be_chosen(live: World, tmp_path: Path) -> None:
    live.stack.sagemaker.register_cluster("second", live.cluster, cluster_id="bbbbbbbbbbbb", eks_cluster_name="other")
    result = taskgov("init", "-o", str(tmp_path / "x.yaml"))
    assert result.exit_code == 1
    assert "taskgov init ml-cluster | second" in result.stderr


def test_the_moment_of_the_finding_is_in_the_document() -> None:
    cluster = snapshot(None, nodes(1), [])
    assert f"{NOW:%Y-%m-%d %H:%M} UTC" in document_text(draft_policy(cluster), cluster)
