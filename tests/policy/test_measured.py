"""Shares and leases in the document: percentages and weights, units, and what is probably not meant."""

from typing import Any

import pytest
import yaml

from taskgov.policy.parse import parse_policy

CLUSTER = {"name": "ml-cluster", "arn": "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdefghijkl"}
G5, P5, C5 = "ml.g5.8xlarge", "ml.p5.48xlarge", "ml.c5.2xlarge"


def parsed(*teams: dict[str, Any], **parts: Any) -> tuple[list[tuple[str, str, str]], list[tuple[str, str, str]]]:
    document = {"apiVersion": "taskgov/v1", "cluster": CLUSTER, "teams": list(teams), **parts}
    found = parse_policy(yaml.safe_dump(document))
    return (
        [(each.path, each.value, each.rule) for each in found.violations],
        [(each.code, each.subject, each.because) for each in found.warnings],
    )


def team(name: str, *shares: dict[str, Any], count: int | None = None, instance_type: str = G5) -> dict[str, Any]:
    told: dict[str, Any] = {"name": name, "share": [{"instanceType": instance_type, **each} for each in shares]}
    if count is not None:
        told["quota"] = {"ComputeQuotaResources": [{"InstanceType": instance_type, "Count": count}]}
    return told


def lease(**changes: Any) -> dict[str, Any]:
    when = {"start": "2026-11-20T09:00Z", "end": "2026-11-21T09:00Z", "reason": "paper"}
    return {"to": "a", "from": "b", "instanceType": P5, "count": 1, **when, **changes}


VIOLATIONS: dict[str, tuple[dict[str, Any], tuple[str, str, str]]] = {
    "neither percent nor weight": ({"floor": 1}, ("teams[0].share[0]", "", "needs percent or weight")),
    "both": (
        {"percent": 10, "weight": 1},
        ("teams[0].share[0].weight", "1", "cannot stand beside percent: a share is one or the other"),
    ),
    "a weight of nothing": ({"weight": 0}, ("teams[0].share[0].weight", "0", "must be greater than or equal to 1")),
    "a weight in words": ({"weight": "high"}, ("teams[0].share[0].weight", '"high"', "must be a whole number")),
    "a unit that nobody knows": (
        {"percent": 10, "unit": "gpus"},
        (
            "teams[0].share[0].unit",
            '"gpus"',
            "must be 'instances', 'accelerators', 'acceleratorPartition', 'vcpu' or 'memoryInGiB'",
        ),
    ),
    "slices without a profile": (
        {"percent": 10, "unit": "acceleratorPartition"},
        (
            "teams[0].share[0].unit",
            '"acceleratorPartition"',
            "needs acceleratorPartitionType beside it, such as mig-1g.5gb",
        ),
    ),
    "a profile without slices": (
        {"percent": 10, "acceleratorPartitionType": "mig-1g.5gb"},
        (
            "teams[0].share[0].acceleratorPartitionType",
            '"mig-1g.5gb"',
            "is allowed only with unit: acceleratorPartition",
        ),
    ),
}


@pytest.mark.parametrize(("share", "want"), VIOLATIONS.values(), ids=VIOLATIONS.keys())
def test_a_share_breaks_a_rule(share: dict[str, Any], want: tuple[str, str, str]) -> None:
    [(path, value, rule)] = parsed(team("a", share))[0]
    assert (path, value if want[1] else "", rule) == want


def test_all_that_is_wrong_is_said_at_once() -> None:
    shares = {"weight": -1}, {"percent": 10, "unit": "gpus"}
    broken = parsed(team("a", shares[0]), team("b", shares[1]), leases=[lease(unit="acceleratorPartition", count=0)])[0]
    assert {path for path, _, _ in broken} >= {"teams[0].share[0].weight", "teams[1].share[0].unit", "leases[0].count"}


def test_a_lease_of_slices_needs_a_profile() -> None:
    [(path, _, rule)] = parsed(team("a", count=1), team("b", count=1), leases=[lease(unit="acceleratorPartition")])[0]
    assert (path, rule) == ("leases[0].unit", "needs acceleratorPartitionType beside it, such as mig-1g.5gb")


def test_percentages_may_exceed_the_whole_by_a_tenth_that_rounding_makes() -> None:
    assert parsed(*(team(f"t{n}", {"percent": 33.34}) for n in range(3)))[0] == []
    [(_, _, rule)] = parsed(*(team(f"t{n}", {"percent": 33.4}) for n in range(3)))[0]
    assert rule == "brings the shares of ml.g5.8xlarge to 100.2 percent; 100 is all"


def test_a_fixed_quota_or_a_weight_beside_the_whole_is_a_warning() -> None:
    thirds = [team(f"t{n}", {"percent": 33.33}) for n in range(3)]
    told = parsed(*thirds, team("fixed", count=2), team("weighed", {"weight": 3}))[1]
    assert told == [
        (
            "quota-beside-the-whole",
            "teams[4].share[0].weight",
            "Percentages divide all of ml.g5.8xlarge, and a weight of 3 stands beside them: together they never fit.",
        ),
        (
            "quota-beside-the-whole",
            "teams[3].quota.ComputeQuotaResources[0]",
            "Percentages divide all of ml.g5.8xlarge, and a fixed quota stands beside them: together they never fit.",
        ),
    ]
    assert parsed(*thirds[:2], team("fixed", count=2))[1] == []


@pytest.mark.parametrize(
    ("share", "warns"),
    [
        ({"percent": 25}, True),
        ({"percent": 49.9}, True),
        ({"percent": 50}, False),
        ({"percent": 25, "floor": 1}, False),
        ({"percent": 25, "unit": "accelerators"}, False),
        ({"weight": 1}, False),
        ({"percent": 0}, False),
    ],
)
def test_a_small_share_of_large_machines_may_be_nothing(share: dict[str, Any], warns: bool) -> None:
    told = parsed(team("a", share, instance_type=P5))[1]
    assert [code for code, _, _ in told] == (["share-may-be-nothing"] if warns else [])


def test_a_small_share_of_machines_with_one_accelerator_is_as_fine_as_it_gets() -> None:
    assert parsed(team("a", {"percent": 25}))[1] == []


def test_units_that_a_type_does_not_have_are_warnings() -> None:
    slices = {"percent": 10, "unit": "acceleratorPartition", "acceleratorPartitionType": "mig-1g.5gb"}
    told = parsed(team("a", {"percent": 10, "unit": "accelerators"}, instance_type=C5), team("b", slices))[1]
    assert [(code, subject) for code, subject, _ in told] == [
        ("no-accelerators", "teams[0].share[0].unit"),
        ("unsupported-partition", "teams[1].share[0].acceleratorPartitionType"),
    ]
