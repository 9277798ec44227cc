from typing import Any

import pytest

from taskgov.hyperpod.borrowing import FlavorQuota, borrow_limit_findings, flavor_quotas
from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.hyperpod.model import ComputeQuotaConfig

TABLE = InstanceTypeTable()


def config(resources: list[dict[str, Any]], **sharing: Any) -> ComputeQuotaConfig:
    return ComputeQuotaConfig.model_validate(
        {"ComputeQuotaResources": resources, **({"ResourceSharingConfig": sharing} if sharing else {})}
    )


def only_quota(resource: dict[str, Any], **sharing: Any) -> FlavorQuota:
    [quota] = flavor_quotas(config([resource], **sharing), TABLE)
    return quota


def test_each_resource_has_its_own_limit_rounded_down() -> None:
    quota = only_quota({"InstanceType": "ml.m5.xlarge", "Count": 4}, Strategy="LendAndBorrow", BorrowLimit=50)

    assert quota.borrowing is not None
    assert (quota.borrowing["cpu"], quota.borrowing["memory"]) == (8_000, 32 * 2**30)


def test_nothing_said_is_lend_and_borrow_half() -> None:
    quota = only_quota({"InstanceType": "ml.g5.8xlarge", "Count": 3})

    assert quota.borrowing is not None
    assert quota.borrowing["nvidia.com/gpu"] == 1


def test_five_hundred_percent_is_five_times_the_quota() -> None:
    quota = only_quota({"InstanceType": "ml.g5.8xlarge", "Count": 2}, Strategy="LendAndBorrow", BorrowLimit=500)

    assert quota.borrowing is not None
    assert quota.borrowing["nvidia.com/gpu"] == 10


def test_a_team_that_only_lends_borrows_nothing() -> None:
    quota = only_quota({"InstanceType": "ml.g5.8xlarge", "Count": 2}, Strategy="Lend", BorrowLimit=50)

    assert quota.borrowing is not None
    assert set(quota.borrowing.values()) == {0}


def test_a_team_that_does_not_lend_is_outside_the_cohort() -> None:
    assert only_quota({"InstanceType": "ml.g5.8xlarge", "Count": 2}, Strategy="DontLend").borrowing is None


def test_absolute_limits_win_where_they_are_given() -> None:
    quotas = flavor_quotas(
        config(
            [{"InstanceType": "ml.g5.8xlarge", "Count": 2}, {"InstanceType": "ml.c5.xlarge", "Count": 2}],
            Strategy="LendAndBorrow",
            BorrowLimit=100,
            AbsoluteBorrowLimits=[
                {"InstanceType": "ml.g5.8xlarge", "Accelerators": 1},
                {"InstanceType": "ml.p5.48xlarge", "Accelerators": 4},
            ],
        ),
        TABLE,
    )

    gpus = {q.instance_type: (q.nominal["nvidia.com/gpu"], (q.borrowing or {})["nvidia.com/gpu"]) for q in quotas}
    assert gpus == {"ml.g5.8xlarge": (2, 1), "ml.c5.xlarge": (0, 0), "ml.p5.48xlarge": (0, 4)}
    assert (quotas[1].borrowing or {})["cpu"] == 8_000


def test_absolute_limits_mean_nothing_to_a_team_that_does_not_borrow() -> None:
    quota = only_quota(
        {"InstanceType": "ml.g5.8xlarge", "Count": 2},
        Strategy="Lend",
        AbsoluteBorrowLimits=[{"InstanceType": "ml.g5.8xlarge", "Accelerators": 1}],
    )

    assert quota.borrowing is not None
    assert set(quota.borrowing.values()) == {0}


def test_a_limit_that_rounds_to_nothing_is_found_with_the_least_that_works() -> None:
    [finding] = borrow_limit_findings(
        "onlygputeam2",
        config([{"InstanceType": "ml.g6.12xlarge", "Accelerators": 2}], Strategy="LendAndBorrow", BorrowLimit=10),
        TABLE,
    )

    assert finding.code == "borrow-limit-rounds-to-zero"
    assert "10 % of 2 nvidia.com/gpu" in finding.because
    assert "BorrowLimit to 50" in finding.remedy


@pytest.mark.parametrize(
    "sharing",
    [
        {"Strategy": "LendAndBorrow", "BorrowLimit": 50},
        {"Strategy": "LendAndBorrow", "BorrowLimit": 0},
        {"Strategy": "Lend"},
        {"Strategy": "DontLend", "BorrowLimit": 10},
        {
            "Strategy": "LendAndBorrow",
            "BorrowLimit": 10,
            "AbsoluteBorrowLimits": [{"InstanceType": "ml.g6.12xlarge", "Accelerators": 1}],
        },
    ],
    ids=["enough", "borrowing switched off", "only lends", "shares nothing", "absolute limit"],
)
def test_a_limit_that_is_meant_or_enough_is_no_finding(sharing: dict[str, Any]) -> None:
    assert not borrow_limit_findings(
        "a", config([{"InstanceType": "ml.g6.12xlarge", "Accelerators": 2}], **sharing), TABLE
    )


def test_an_unknown_type_has_no_borrow_limit_finding() -> None:
    assert not borrow_limit_findings(
        "a", config([{"InstanceType": "ml.x1.huge", "Count": 1}], Strategy="LendAndBorrow", BorrowLimit=10), TABLE
    )
