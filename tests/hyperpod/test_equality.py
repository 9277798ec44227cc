from typing import Any

import pytest

from taskgov.hyperpod.equality import is_same_config, is_same_scheduler_config, is_same_target
from taskgov.hyperpod.model import ComputeQuotaConfig, ComputeQuotaTarget, SchedulerConfig

G5 = {"InstanceType": "ml.g5.8xlarge", "Count": 2}
C5 = {"InstanceType": "ml.c5.xlarge", "Count": 1}
SLICES = [
    {"InstanceType": "ml.p4d.24xlarge", "AcceleratorPartition": {"Type": f"mig-{size}", "Count": 1}}
    for size in ("1g.5gb", "3g.20gb")
]


def config(*resources: dict[str, Any], **rest: Any) -> ComputeQuotaConfig:
    return ComputeQuotaConfig.model_validate({"ComputeQuotaResources": list(resources), **rest})


def sharing(**given: Any) -> ComputeQuotaConfig:
    return config(G5, ResourceSharingConfig={"Strategy": "LendAndBorrow", **given})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (config(G5, C5), config(C5, G5)),
        (config(*SLICES), config(*reversed(SLICES))),
        (config(G5), sharing()),
        (config(G5), sharing(BorrowLimit=50)),
        (config(G5), config(G5, PreemptTeamTasks="LowerPriority")),
        (sharing(AbsoluteBorrowLimits=[]), sharing()),
        (sharing(AbsoluteBorrowLimits=[G5, C5]), sharing(AbsoluteBorrowLimits=[C5, G5], BorrowLimit=50)),
        (
            config(G5, ResourceSharingConfig={"Strategy": "Lend", "BorrowLimit": 10}),
            config(G5, ResourceSharingConfig={"Strategy": "Lend"}),
        ),
    ],
    ids=[
        "order of types",
        "order of partitions",
        "default strategy",
        "default limit",
        "default preemption",
        "no absolute limits",
        "order of absolute limits",
        "a limit that means nothing",
    ],
)
def test_configurations_that_mean_the_same_are_the_same(one: ComputeQuotaConfig, other: ComputeQuotaConfig) -> None:
    assert is_same_config(one, other)
    assert is_same_config(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (config(G5), config(C5)),
        (config(G5), config(G5 | {"Count": 3})),
        (config(G5), config(G5 | {"Accelerators": 2})),
        (sharing(BorrowLimit=50), sharing(BorrowLimit=60)),
        (sharing(AbsoluteBorrowLimits=[C5]), sharing(AbsoluteBorrowLimits=[C5], BorrowLimit=60)),
        (sharing(), config(G5, ResourceSharingConfig={"Strategy": "Lend"})),
        (config(G5), config(G5, PreemptTeamTasks="Never")),
    ],
    ids=["type", "count", "amount", "limit", "limit beside absolute ones", "strategy", "preemption"],
)
def test_configurations_that_differ_in_meaning_differ(one: ComputeQuotaConfig, other: ComputeQuotaConfig) -> None:
    assert not is_same_config(one, other)


def test_a_weight_that_is_not_given_is_nought() -> None:
    assert is_same_target(ComputeQuotaTarget(team_name="a"), ComputeQuotaTarget(team_name="a", fair_share_weight=0))
    assert not is_same_target(ComputeQuotaTarget(team_name="a"), ComputeQuotaTarget(team_name="a", fair_share_weight=1))


def test_cluster_policies_compare_by_meaning() -> None:
    classes = [{"Name": "a", "Weight": 1}, {"Name": "b", "Weight": 2}]
    spelled = {"FairShare": "Enabled", "IdleResourceSharing": "Disabled"}
    one = SchedulerConfig.model_validate({"PriorityClasses": classes})
    other = SchedulerConfig.model_validate({"PriorityClasses": classes[::-1], **spelled})

    assert is_same_scheduler_config(one, other)
    assert not is_same_scheduler_config(one, SchedulerConfig.model_validate({"PriorityClasses": classes[:1]}))
    assert not is_same_scheduler_config(one, other.model_copy(update={"fair_share": "Disabled"}))
