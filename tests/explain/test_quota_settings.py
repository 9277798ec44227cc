"""Quotas supposed in parts: which rows they make, what follows by ratio, and which rules they break."""

from typing import Any

import pytest

from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.hyperpod.model import ComputeQuotaConfig
from taskgov.hyperpod.ratio import complete_all
from taskgov.policy.document import PolicyDocument
from taskgov.quantities import GIBIBYTE
from taskgov.scheduling.reading import read_cluster_queue
from taskgov.snapshot.model import Snapshot
from taskgov_explain.quota_settings import QuotaSetting, rows_of
from taskgov_explain.sides import as_supposed
from taskgov_explain.suppose import Hypothesis, setting_problems, suppose
from taskgov_explain.what_if import what_if
from tests.support.lab import P5, Lab
from tests.support.memory import CLUSTER_ARN

CPU_TYPE = "ml.m5.2xlarge"


def two_teams(*, governed: bool = False, **capacity: Any) -> Snapshot:
    lab = Lab(instance_type=P5).team("team-a", 1, borrow=50).team("team-b", 1).machines(4)
    if governed:
        quota = {"ComputeQuotaResources": [{"InstanceType": P5, "Count": 1}]}
        lab.policy = PolicyDocument.model_validate(
            {
                "apiVersion": "taskgov/v1",
                "cluster": {"name": "ml-cluster", "arn": CLUSTER_ARN},
                "teams": [{"name": "team-a", "quota": quota}, {"name": "team-b", "quota": quota}],
                "capacity": capacity,
            }
        )
    return lab.snapshot()


def setting(amount: float, part: str = "Count", team: str = "team-a", instance_type: str = P5) -> QuotaSetting:
    return QuotaSetting(team, instance_type, amount, part)


ROWS: dict[str, tuple[list[QuotaSetting], list[dict[str, Any]]]] = {
    "whole instances": ([setting(2)], [{"Count": 2}]),
    "accelerators": ([setting(2, "Accelerators")], [{"Accelerators": 2}]),
    "vcpu": ([setting(96.5, "VCpu")], [{"VCpu": 96.5}]),
    "memory": ([setting(512, "MemoryInGiB")], [{"MemoryInGiB": 512.0}]),
    "parts together are one row": (
        [setting(2, "Accelerators"), setting(96, "VCpu")],
        [{"Accelerators": 2, "VCpu": 96.0}],
    ),
    "a partition takes the rest with it": (
        [setting(3, "mig-1g.10gb"), setting(12, "VCpu")],
        [{"AcceleratorPartition": {"Type": "mig-1g.10gb", "Count": 3}, "VCpu": 12.0}],
    ),
    "a partition beside accelerators has a row of its own": (
        [setting(3, "mig-1g.10gb"), setting(2, "Accelerators"), setting(12, "VCpu")],
        [{"Accelerators": 2, "VCpu": 12.0}, {"AcceleratorPartition": {"Type": "mig-1g.10gb", "Count": 3}}],
    ),
    "two profiles have two rows": (
        [setting(1, "mig-2g.20gb"), setting(3, "mig-1g.10gb")],
        [
            {"AcceleratorPartition": {"Type": "mig-1g.10gb", "Count": 3}},
            {"AcceleratorPartition": {"Type": "mig-2g.20gb", "Count": 1}},
        ],
    ),
}


@pytest.mark.parametrize(("settings", "want"), ROWS.values(), ids=ROWS)
def test_settings_make_rows(settings: list[QuotaSetting], want: list[dict[str, Any]]) -> None:
    assert [each.to_api() for each in rows_of(settings)] == [{"InstanceType": P5, **each} for each in want]


@pytest.mark.parametrize(("settings", "want"), ROWS.values(), ids=ROWS)
def test_without_a_document_the_queue_is_rendered_from_the_rows_completed_by_ratio(
    settings: list[QuotaSetting], want: list[dict[str, Any]]
) -> None:
    snapshot = two_teams()
    supposed = as_supposed(snapshot, suppose(snapshot, Hypothesis(quotas=tuple(settings))))
    config = ComputeQuotaConfig.model_validate({"ComputeQuotaResources": [{"InstanceType": P5, **row} for row in want]})
    [queue] = [each for each in supposed.kueue.cluster_queues if "team-a" in each["metadata"]["name"]]
    nominal = {key: quota.nominal for key, quota in read_cluster_queue(queue).quotas.items()}
    completed = complete_all(config.compute_quota_resources, InstanceTypeTable())[P5]
    assert nominal == {f"{P5}/{resource}": amount for resource, amount in completed.items()}


@pytest.mark.parametrize(("settings", "want"), ROWS.values(), ids=ROWS)
def test_with_a_document_the_plan_writes_the_rows_in_place_of_those_of_the_type(
    settings: list[QuotaSetting], want: list[dict[str, Any]]
) -> None:
    snapshot = two_teams(governed=True)
    answer = what_if(snapshot, suppose(snapshot, Hypothesis(quotas=tuple(settings))))
    [change] = answer.plan.changes
    assert isinstance(change.after, ComputeQuotaConfig)
    assert change.after.to_api()["ComputeQuotaResources"] == [{"InstanceType": P5, **row} for row in want]


def test_what_is_not_set_follows_by_ratio() -> None:
    amounts = complete_all(rows_of([setting(2, "Accelerators")]), InstanceTypeTable())[P5]
    assert (amounts["cpu"], amounts["memory"]) == (48_000, 512 * GIBIBYTE)


BROKEN: dict[str, tuple[list[QuotaSetting], list[str]]] = {
    "unknown team": ([setting(1, team="team-c")], ["there is no team named team-c; did you mean team-"]),
    "unknown type": (
        [setting(1, instance_type="ml.p5.49xlarge")],
        ["there is no instance type named ml.p5.49xlarge; did you mean ml.p5."],
    ),
    "half an instance": ([setting(0.5)], ["must be a whole number"]),
    "half an accelerator": ([setting(1.5, "Accelerators")], ["must be a whole number"]),
    "half a partition": ([setting(1.5, "mig-1g.10gb")], ["must be a whole number"]),
    "negative": ([setting(-1)], ["must be from 0 to 10,000,000"]),
    "negative memory": ([setting(-0.5, "MemoryInGiB")], ["must be from 0 to 10,000,000"]),
    "too many": ([setting(10_000_001)], ["must be from 0 to 10,000,000"]),
    "no accelerators": ([setting(1, "Accelerators", instance_type=CPU_TYPE)], [f"{CPU_TYPE} has no accelerators"]),
    "no such profile": ([setting(1, "mig-1g.5gb")], ["ml.p5.48xlarge has no MIG profile mig-1g.10gb"]),
    "twice": ([setting(1), setting(2)], ["is set twice"]),
    "whole and parts": (
        [setting(1, "Accelerators"), setting(2)],
        ["whole instances and parts of one type cannot be set together"],
    ),
    "several at once": (
        [setting(-1, team="team-c"), setting(1.5, "Accelerators")],
        ["there is no team named team-c", "must be from 0", "must be a whole number"],
    ),
}


@pytest.mark.parametrize(("settings", "rules"), BROKEN.values(), ids=BROKEN)
def test_a_setting_that_breaks_a_rule_is_named_with_the_rule(settings: list[QuotaSetting], rules: list[str]) -> None:
    found = [said for _, said in setting_problems(two_teams(), settings)]
    assert len(found) == len(rules)
    for said, rule in zip(found, rules, strict=True):
        assert said.startswith(rule)
    with pytest.raises(ValueError, match=rules[-1].partition(";")[0]):
        suppose(two_teams(), Hypothesis(quotas=tuple(settings)))


def test_whole_instances_are_refused_where_capacity_is_what_nodes_allocate() -> None:
    snapshot = two_teams(governed=True, basis="allocatable")
    some = [setting(1), setting(1, "Accelerators", team="team-b")]
    assert [str(each) for each, _ in setting_problems(snapshot, some)] == [f"team-a.{P5}=1"]


def test_a_setting_reads_as_it_is_typed() -> None:
    parts = ("Count", "Accelerators", "VCpu", "MemoryInGiB", "mig-1g.10gb")
    assert [str(setting(2, part)).removeprefix(f"team-a.{P5}") for part in parts] == [
        "=2",
        ":accelerators=2",
        ":vcpu=2",
        ":memoryInGiB=2",
        ":mig-1g.10gb=2",
    ]
