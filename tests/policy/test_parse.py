import copy
import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from taskgov.hyperpod.model import SharingStrategy
from taskgov.policy.backends import Backend
from taskgov.policy.document import PolicyDocument
from taskgov.policy.parse import ParsedPolicy, parse_policy

DESIGN = Path(__file__).parents[3] / "shared" / "design.md"
ARN = "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdefghijkl"

GOOD: dict[str, Any] = {
    "apiVersion": "taskgov/v1",
    "cluster": {"name": "ml-cluster", "arn": ARN},
    "schedulerConfig": {
        "FairShare": "Enabled",
        "PriorityClasses": [{"Name": "inference", "Weight": 90}, {"Name": "training", "Weight": 70}],
    },
    "teams": [
        {
            "name": "team-a",
            "quota": {
                "ComputeQuotaResources": [
                    {"InstanceType": "ml.g5.8xlarge", "Count": 2},
                    {"InstanceType": "ml.p4d.24xlarge", "AcceleratorPartition": {"Type": "mig-1g.5gb", "Count": 7}},
                ],
                "ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 50},
                "PreemptTeamTasks": "LowerPriority",
                "FairShareWeight": 10,
            },
        },
        {
            "name": "team-b",
            "share": [{"instanceType": "ml.c5.xlarge", "percent": 50, "floor": 1, "ceiling": 8}],
            "fairShareWeight": 5,
            "tier": 2,
        },
    ],
    "sharedPool": {"team": "shared-pool", "takes": "remainder"},
    "capacity": {"basis": "instances", "headroomPercent": 2.5, "holdUnhealthyMinutes": 10, "growAfterMinutes": 5},
    "guardrails": {
        "maxDecreasePercent": 25,
        "maxDecreaseInstances": 1,
        "maxDecreasePerPeriod": {"percent": 50, "hours": 24},
        "maxIncreasePercent": 100,
        "maxIncreasePerPeriod": {"percent": 200, "hours": 24},
        "onLimit": "partial",
        "maxPreemptedGpus": 8,
        "minimumQuota": {"team-a": 1},
        "approveAbove": {"changedGpus": 16},
        "freeze": ["team-b"],
        "changeWindows": [{"cron": "0 9 * * mon-fri", "minutes": 480, "timeZone": "Europe/Berlin"}],
    },
    "leases": [
        {
            "to": "team-a",
            "from": "shared-pool",
            "instanceType": "ml.g5.8xlarge",
            "count": 1,
            "start": "2026-11-20T09:00Z",
            "end": "2026-11-27T18:00+01:00",
            "reason": "paper deadline",
        }
    ],
    "budgets": [{"team": "team-a", "gpuHours": 500.5, "warnPercent": [80, 100]}],
    "demand": {"enabled": True, "maxMovePercent": 50},
    "handEdits": "putRight",
    "instanceTypes": {"ml.x9.large": {"vcpu": 2, "memoryGiB": 7.5, "gpu": 1}},
}


def parsed(document: dict[str, Any]) -> ParsedPolicy:
    return parse_policy(yaml.safe_dump(document))


def changed(*path: str | int, to: Any) -> dict[str, Any]:
    """Return the good document with another value in one place."""
    document = copy.deepcopy(GOOD)
    inner: Any = document
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = to
    return document


def the_only(document: dict[str, Any]) -> tuple[str, str, str]:
    result = parsed(document)
    assert result.document is None
    [violation] = result.violations
    return violation.path, violation.value, violation.rule


def test_a_good_document_is_read_whole() -> None:
    result = parsed(GOOD)

    assert result.violations == ()
    assert result.warnings == ()
    document = result.document
    assert document is not None
    team_a, team_b = document.teams
    assert (team_a.fair_share_weight, team_b.fair_share_weight, team_b.tier) == (10, 5, 2)
    assert team_a.quota is not None
    assert team_a.quota.to_api() == {
        key: value for key, value in GOOD["teams"][0]["quota"].items() if key != "FairShareWeight"
    }
    assert document.leases[0].end.utcoffset() is not None
    assert document.instance_type_table().require("ml.x9.large").memory_gib == 7.5


def test_what_was_read_can_be_written_and_read_again() -> None:
    document = parsed(GOOD).document
    assert document is not None

    written = document.model_dump(mode="json", by_alias=True)

    assert PolicyDocument.model_validate(written) == document


def test_the_least_document_governs_nothing_with_safe_defaults() -> None:
    document = parsed({"apiVersion": "taskgov/v1", "cluster": {"name": "ml-cluster", "arn": ARN}}).document

    assert document is not None
    assert document.teams == ()
    assert (document.capacity.hold_unhealthy_minutes, document.capacity.grow_after_minutes) == (10, 5)
    assert document.demand.enabled is False
    assert document.cluster.backend is Backend.SAGEMAKER


def test_the_document_of_the_design_page_is_read() -> None:
    if not DESIGN.exists():
        pytest.skip(f"the design page is not beside this checkout: {DESIGN}")
    found = re.search(r"```yaml\n(.*?)```", DESIGN.read_text(), re.DOTALL)
    assert found is not None

    result = parse_policy(found[1])

    assert [str(one) for one in result.violations] == []
    assert result.document is not None
    quota = result.document.teams[0].quota
    assert quota is not None
    assert quota.resource_sharing_config is not None
    assert quota.resource_sharing_config.strategy is SharingStrategy.LEND_AND_BORROW
    assert result.document.teams[0].fair_share_weight == 0


def test_every_limit_of_the_api_is_named_in_the_spelling_of_the_document() -> None:
    resource = {"InstanceType": "g5.8xlarge", "Count": -1, "Accelerators": 1.5, "VCpu": "48", "MemoryInGiB": 10_000_001}
    sharing = {
        "Strategy": "Lending",
        "BorrowLimit": 10_001,
        "AbsoluteBorrowLimits": [{"InstanceType": "ml.g5.xlarge"}] * 16,
    }
    quota = {
        "ComputeQuotaResources": [resource],
        "ResourceSharingConfig": sharing,
        "PreemptTeamTasks": "Always",
        "FairShareWeight": 101,
    }

    result = parsed(changed("teams", 0, to={"name": "team-a", "quota": quota}))

    start = "teams[0].quota."
    assert {one.path.removeprefix(start): one.rule for one in result.violations} == {
        "ComputeQuotaResources[0].InstanceType": "must be an instance type such as ml.g5.8xlarge",
        "ComputeQuotaResources[0].Count": "must be from 0 to 10,000,000",
        "ComputeQuotaResources[0].Accelerators": "must be a whole number",
        "ComputeQuotaResources[0].VCpu": "must be a number",
        "ComputeQuotaResources[0].MemoryInGiB": "must be from 0 to 10,000,000",
        "ResourceSharingConfig.Strategy": "must be 'Lend', 'DontLend' or 'LendAndBorrow'",
        "ResourceSharingConfig.BorrowLimit": "must be from 0 to 10,000",
        "ResourceSharingConfig.AbsoluteBorrowLimits": "must have 0 to 15 entries; it has 16",
        "PreemptTeamTasks": "must be 'Never' or 'LowerPriority'",
        "FairShareWeight": "must be from 0 to 100",
    }


def test_ten_different_mistakes_get_ten_messages_at_once() -> None:
    document = copy.deepcopy(GOOD)
    document["apiVersion"] = "taskgov/v2"
    document["schedulerConfig"]["FairShare"] = "On"
    document["teams"][0]["quota"]["ComputeQuotaResources"][0] = {"InstanceType": "ml.g5.8xlarge"}
    document["teams"][1]["name"] = "team-a"
    document["teams"][1]["share"][0] |= {"floor": 9, "ceiling": 8}
    document["sharedPool"]["team"] = "team-a"
    document["leases"][0]["from"] = "team-a"
    document["guardrails"]["maxDecreasePercnt"] = 25
    document["guardrails"]["changeWindows"][0]["cron"] = "at nine"
    document["leases"][0]["to"] = "nobody"
    document["leases"].append({**document["leases"][0], "to": "team-a", "count": 0})
    document["guardrails"]["freeze"] = []

    result = parsed(document)

    assert result.document is None
    assert [one.path for one in result.violations] == [
        "guardrails.maxDecreasePercnt",
        "apiVersion",
        "schedulerConfig.FairShare",
        "leases[1].count",
        "teams[1].name",
        "teams[0].quota.ComputeQuotaResources[0]",
        "teams[1].share[0].floor",
        "leases[0].to",
        "sharedPool.team",
        "guardrails.changeWindows[0].cron",
    ]


@pytest.mark.parametrize(
    ("path", "value", "want"),
    [
        (("apiVersion",), "v1", ("apiVersion", '"v1"', "must be 'taskgov/v1'")),
        (("cluster", "backend"), "slurm", ("cluster.backend", '"slurm"', "must be 'sagemaker' or 'kueue'")),
        (("budgets",), {}, ("budgets", "{}", "must be a list")),
        (("budgets", 0), "team-b", ("budgets[0]", '"team-b"', "must be a mapping")),
        (
            ("capacity", "headroom_percent"),
            5,
            ("capacity.headroom_percent", "5", "is an unknown key; did you mean headroomPercent?"),
        ),
        (("teams", 1, "tier"), "high", ("teams[1].tier", '"high"', "must be a whole number")),
        (("teams", 1, "tier"), True, ("teams[1].tier", "true", "must be a whole number")),
        (
            ("capacity", "headroomPercent"),
            101,
            ("capacity.headroomPercent", "101", "must be less than or equal to 100"),
        ),
        (("demand", "enabled"), "yes", ("demand.enabled", '"yes"', "must be true or false")),
        (("leases", 0, "reason"), "", ("leases[0].reason", '""', "must not be empty")),
        (
            ("leases", 0, "start"),
            "2026-11-20T09:00",
            ("leases[0].start", '"2026-11-20T09:00"', "must say its time zone, as in 2026-11-20T09:00Z"),
        ),
        (
            ("leases", 0, "start"),
            "tomorrow",
            ("leases[0].start", '"tomorrow"', "must be a time such as 2026-11-20T09:00Z"),
        ),
        (
            ("instanceTypes", "ml.x9.large", "memoryGiB"),
            0,
            ('instanceTypes["ml.x9.large"].memoryGiB', "0", "must be greater than 0"),
        ),
        (
            ("instanceTypes", "ml.x9.large", "memoryGiB"),
            1e300,
            ('instanceTypes["ml.x9.large"].memoryGiB', "1e+300", "must be less than or equal to 1000000"),
        ),
        (
            ("guardrails", "minimumQuota", "team-a"),
            10**19,
            ("guardrails.minimumQuota.team-a", "10000000000000000000", "must be less than or equal to 10000000"),
        ),
        (
            ("leases", 0, "start"),
            "0001-01-01T00:00:00+14:00",
            ("leases[0].start", '"0001-01-01T00:00:00+14:00"', "must be in the years 2000 to 9999 of UTC"),
        ),
        (
            ("leases", 0, "end"),
            "9999-12-31T23:00:00-14:00",
            ("leases[0].end", '"9999-12-31T23:00:00-14:00"', "must be in the years 2000 to 9999 of UTC"),
        ),
        (
            ("instanceTypes",),
            {"x9": {"vcpu": 2, "memoryGiB": 4}},
            ("instanceTypes.x9", '"x9"', "must be an instance type such as ml.g5.8xlarge"),
        ),
        (
            ("teams", 1, "shares"),
            [],
            ("teams[1].shares", "[]", "is an unknown key; did you mean share?"),
        ),
        (
            ("teams", 0, "quota", "ResourceSharingConfig", "Zebra"),
            1,
            (
                "teams[0].quota.ResourceSharingConfig.Zebra",
                "1",
                "is an unknown key; known are Strategy, BorrowLimit, AbsoluteBorrowLimits",
            ),
        ),
        (
            ("teams", 0, "quota", "fairShareWeight"),
            1,
            ("teams[0].quota.fairShareWeight", "1", "is an unknown key; did you mean FairShareWeight?"),
        ),
        (
            ("leases", 0, "instance_type"),
            "ml.g5.xlarge",
            ("leases[0].instance_type", '"ml.g5.xlarge"', "is an unknown key; did you mean instanceType?"),
        ),
    ],
)
def test_one_mistake_gets_one_message(path: tuple[str | int, ...], value: Any, want: tuple[str, str, str]) -> None:
    assert the_only(changed(*path, to=value)) == want


def of_many_teams(count: int) -> dict[str, Any]:
    """Return a document whose teams have as many rows as the API takes."""
    types = [f"ml.{name}.{size}xlarge" for name in ("g5", "g6", "p5") for size in (2, 4, 8, 12, 16)]
    rows = [{"InstanceType": name, "Accelerators": 1, "VCpu": 4, "MemoryInGiB": 16} for name in types]
    teams = [{"name": f"team-{n:04}", "quota": {"ComputeQuotaResources": rows}} for n in range(count)]
    return {**GOOD, "teams": teams, "leases": [], "budgets": [], "guardrails": {}, "audit": {}}


def test_a_thousand_teams_with_fifteen_rows_fit() -> None:
    parsed = parse_policy(json.dumps(of_many_teams(1_000), indent=1))

    assert parsed.document is not None
    assert {len(team.quota.compute_quota_resources) for team in parsed.document.teams if team.quota} == {15}


@pytest.mark.parametrize(
    "mistaken",
    [
        {"teams": [1] * 20_000},
        {"teams": [{"name": "team-a", "x": 1}] * 5_000},
        {f"key{n}": 1 for n in range(5_000)},
        {**of_many_teams(100), "guardrails": {"freeze": ["nobody"] * 20_000}},
        {**GOOD, "teams": [{"name": "team-a"}] * 5_000},
    ],
    ids=["no teams", "unknown keys", "unknown sections", "unknown teams", "one team often"],
)
def test_a_document_of_many_mistakes_costs_little_and_reports_the_first_of_them(mistaken: dict[str, Any]) -> None:
    before = time.process_time()
    violations = parse_policy(json.dumps({**GOOD, **mistaken})).violations

    assert time.process_time() - before < 10
    assert len(violations) == 101
    assert violations[-1].value == "more than 100 mistakes"
    assert sum(len(str(violation)) for violation in violations) < 100_000


def test_what_is_missing_is_named() -> None:
    document = copy.deepcopy(GOOD)
    del document["cluster"]["arn"]

    assert the_only(document) == ("cluster.arn", "(missing)", "is required")


def test_a_long_value_is_cut() -> None:
    _, value, _ = the_only(changed("cluster", "backend", to="x" * 500))

    assert len(value) == 80


def test_places_are_those_of_the_document_although_broken_entries_are_left_out() -> None:
    document = copy.deepcopy(GOOD)
    document["teams"].insert(0, {"tier": 1})
    document["teams"][2]["share"].insert(0, {"instanceType": "ml.c5.large", "percent": "half"})
    document["teams"][2]["share"][1] |= {"floor": 9, "ceiling": 8}
    document["teams"].append({"name": "team-b", "share": [{"instanceType": "ml.c5.large", "percent": 1}]})

    assert [(one.path, one.rule) for one in parsed(document).violations] == [
        ("teams[0].name", "is required"),
        ("teams[2].share[0].percent", "must be a number"),
        ("teams[3].name", "is given twice: first in teams[2].name"),
        ("teams[2].share[1].floor", "must not exceed the ceiling of 8"),
    ]


def test_a_team_with_a_mistake_is_still_a_team() -> None:
    document = changed("teams", 0, "tier", to="low")
    document["teams"][0]["name"] = "Team_A"
    document["leases"][0]["to"] = "Team_A"
    document["guardrails"]["minimumQuota"] = {}
    document["budgets"] = []

    assert [one.path for one in parsed(document).violations] == ["teams[0].name", "teams[0].tier"]


def test_warnings_have_their_places_in_a_broken_document_too() -> None:
    document = changed("teams", 1, "share", 0, "instanceType", to="ml.new.large")
    document["teams"].insert(0, {"tier": 1})

    result = parsed(document)

    assert [one.path for one in result.violations] == ["teams[0].name"]
    assert [one.subject for one in result.warnings] == ["teams[2].share[0].instanceType"]


def test_a_mistake_of_syntax_ends_the_reading() -> None:
    result = parse_policy("apiVersion: [taskgov/v1\n")

    assert (result.document, len(result.violations), result.warnings) == (None, 1, ())


def test_a_key_given_twice_is_named_beside_all_other_mistakes() -> None:
    text = yaml.safe_dump(changed("teams", 1, "tier", to=0)) + "handEdits: adopt\n"

    assert [one.path for one in parse_policy(text).violations] == ["handEdits", "teams[1].tier"]


def test_two_weights_that_differ_are_refused_and_two_that_agree_are_not() -> None:
    assert parsed(changed("teams", 0, "fairShareWeight", to=10)).document is not None
    assert the_only(changed("teams", 0, "fairShareWeight", to=9)) == (
        "teams[0].fairShareWeight",
        "9",
        "differs from quota.FairShareWeight 10",
    )


def test_an_eks_clusters_arn_without_the_backend_is_one_mistake_with_the_way_out() -> None:
    document = changed("cluster", to={"name": "ml", "arn": "arn:aws:eks:us-east-1:111122223333:cluster/ml"})
    document["teams"][1]["share"][0]["instanceType"] = "c5.xlarge"

    path, _, rule = the_only(document)

    assert path == "cluster.arn"
    assert rule.startswith("is an EKS cluster's: without HyperPod say `backend: kueue`")


def test_a_misspelt_backend_beside_an_eks_clusters_arn_is_one_mistake() -> None:
    eks = "arn:aws:eks:us-east-1:111122223333:cluster/ml"

    assert the_only(changed("cluster", to={"name": "ml", "arn": eks, "backend": "kueu"})) == (
        "cluster.backend",
        '"kueu"',
        "must be 'sagemaker' or 'kueue'",
    )


@pytest.mark.parametrize("arn", ["arn:aws:eks:us-east-1:111122223333:nodegroup/ml", ARN[:-1], "ml-cluster"])
def test_the_api_takes_only_its_own_form_of_arn(arn: str) -> None:
    path, _, rule = the_only(changed("cluster", "arn", to=arn))

    assert path == "cluster.arn"
    assert rule.startswith("must be the ARN of a HyperPod cluster")


@pytest.mark.parametrize("name", ["ml_cluster", "ml-", "M" * 100])
def test_an_eks_cluster_without_hyperpod_has_a_name_of_eks(name: str) -> None:
    arn = f"arn:aws:eks:us-east-1:111122223333:cluster/{name}"
    assert parsed(changed("cluster", to={"name": name, "arn": arn, "backend": "kueue"})).violations == ()
    (violation,) = parsed(changed("cluster", to={"name": name, "arn": ARN})).violations
    assert (violation.path, violation.rule.partition(" (")[0]) == (
        "cluster.name",
        "must be letters, digits and hyphens, with no hyphen at either end",
    )


def test_a_cluster_of_plain_eks_has_its_own_arn_and_plain_instance_types() -> None:
    document = changed(
        "cluster", to={"name": "ml", "arn": "arn:aws:eks:us-east-1:111122223333:cluster/ml", "backend": "kueue"}
    )
    document["teams"][1]["share"][0]["instanceType"] = "c5.xlarge"

    result = parsed(document)

    assert result.violations == ()
    assert result.warnings == ()


def test_partitions_of_a_type_stay_known_when_its_numbers_are_bettered() -> None:
    document = parsed(
        changed("instanceTypes", to={"ml.p4d.24xlarge": {"vcpu": 96, "memoryGiB": 1152, "gpu": 8}})
    ).document

    assert document is not None
    assert "mig-1g.5gb" in document.instance_type_table().require("ml.p4d.24xlarge").mig_profiles


def places(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, inner in items for found in places(inner, (*path, key)))]


def put(holder: Any, path: tuple[str | int, ...], value: Any) -> None:
    """Put a value where the path still leads."""
    try:
        for step in path[:-1]:
            holder = holder[step]
        holder[path[-1]] = value
    except (KeyError, IndexError, TypeError):
        return


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(places(GOOD)[1:]), ANYTHING), min_size=1, max_size=4))
def test_whatever_stands_in_a_document_it_is_read_or_every_violation_has_a_place(
    changes: list[tuple[tuple[str | int, ...], Any]],
) -> None:
    document = copy.deepcopy(GOOD)
    for path, value in changes:
        put(document, path, value)

    result = parsed(document)

    assert (result.document is None) == bool(result.violations)
    assert all(one.path and one.rule for one in result.violations)
