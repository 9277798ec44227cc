from typing import Any

import pytest
import yaml

from taskgov.policy.parse import parse_policy

CLUSTER = {"name": "ml-cluster", "arn": "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdefghijkl"}


def violations(**parts: Any) -> list[tuple[str, str, str]]:
    document = {"apiVersion": "taskgov/v1", "cluster": CLUSTER, **parts}
    return [(one.path, one.value, one.rule) for one in parse_policy(yaml.safe_dump(document)).violations]


def a_team(name: str, *resources: dict[str, Any], share: Any = (), **quota: Any) -> dict[str, Any]:
    team: dict[str, Any] = {"name": name, "share": list(share)}
    if resources or quota:
        team["quota"] = {"ComputeQuotaResources": list(resources), **quota}
    return team


def gpus(instance_type: str = "ml.g5.8xlarge", **amount: Any) -> dict[str, Any]:
    return {"InstanceType": instance_type, **(amount or {"Count": 1})}


def share(instance_type: str = "ml.g5.8xlarge", percent: float = 10, **bounds: int) -> dict[str, Any]:
    return {"instanceType": instance_type, "percent": percent, **bounds}


def a_lease(**changes: Any) -> dict[str, Any]:
    lease = {"to": "a", "from": "b", "instanceType": "ml.g5.8xlarge", "count": 1, "reason": "paper"}
    return {**lease, "start": "2026-11-20T09:00Z", "end": "2026-11-21T09:00Z", **changes}


TWO_TEAMS = [a_team("a", gpus()), a_team("b", gpus())]


def test_a_team_is_named_once() -> None:
    assert violations(teams=[*TWO_TEAMS, a_team("a", gpus())]) == [
        ("teams[2].name", '"a"', "is given twice: first in teams[0].name")
    ]


def test_a_team_name_must_fit_the_name_of_its_namespace() -> None:
    assert violations(teams=[a_team("a" * 51, gpus())]) == []
    assert violations(teams=[a_team("a" * 52, gpus())]) == [
        ("teams[0].name", f'"{"a" * 52}"', "must have 1 to 51 characters; it has 52")
    ]


def test_a_priority_class_is_named_once() -> None:
    classes = [{"Name": "training", "Weight": 70}, {"Name": "training", "Weight": 60}]

    assert violations(schedulerConfig={"PriorityClasses": classes}) == [
        (
            "schedulerConfig.PriorityClasses[1].Name",
            '"training"',
            "is given twice: first in schedulerConfig.PriorityClasses[0].Name",
        )
    ]


def test_an_instance_type_is_promised_once_a_team() -> None:
    assert violations(teams=[a_team("a", gpus(Count=1), gpus(Accelerators=2))]) == [
        (
            "teams[0].quota.ComputeQuotaResources[1].InstanceType",
            '"ml.g5.8xlarge"',
            "is given twice: first in teams[0].quota.ComputeQuotaResources[0].InstanceType",
        )
    ]


def test_each_partition_of_an_instance_type_is_a_promise_of_its_own() -> None:
    small, large = ({"Type": f"mig-{size}", "Count": 2} for size in ("1g.5gb", "3g.20gb"))
    p4d = [gpus("ml.p4d.24xlarge", AcceleratorPartition=one) for one in (small, large)]

    assert violations(teams=[a_team("a", gpus("ml.p4d.24xlarge", Count=1), *p4d)]) == []
    [(path, value, _)] = violations(teams=[a_team("a", *p4d, p4d[0])])
    assert (path, value) == ("teams[0].quota.ComputeQuotaResources[2].InstanceType", '"ml.p4d.24xlarge mig-1g.5gb"')


def test_a_type_is_shared_once_a_team_and_not_beside_a_fixed_quota() -> None:
    assert violations(teams=[a_team("a", share=[share(), share()])]) == [
        ("teams[0].share[1].instanceType", '"ml.g5.8xlarge"', "is given twice: first in teams[0].share[0].instanceType")
    ]
    assert violations(teams=[a_team("a", gpus(), share=[share("ml.c5.large"), share()])]) == [
        (
            "teams[0].share[1].instanceType",
            '"ml.g5.8xlarge"',
            "has a fixed quota in this team too: keep one of them",
        )
    ]


def test_a_promise_says_how_much_and_nought_is_an_amount() -> None:
    assert violations(teams=[a_team("a", gpus(Count=0), gpus("ml.c5.large", VCpu=0.5))]) == []
    assert violations(teams=[a_team("a", {"InstanceType": "ml.g5.8xlarge"})]) == [
        (
            "teams[0].quota.ComputeQuotaResources[0]",
            '"ml.g5.8xlarge"',
            "needs one of Count, Accelerators, VCpu, MemoryInGiB, AcceleratorPartition",
        )
    ]


@pytest.mark.parametrize(
    "wrong", [{"Count": -2}, {"Count": "two"}, {"Accelerators": 1.5}, {"AcceleratorPartition": {}}]
)
def test_an_amount_that_is_refused_is_one_mistake_and_not_a_missing_amount_too(wrong: dict[str, Any]) -> None:
    found = violations(teams=[a_team("a", gpus(**wrong))])
    assert found
    assert [rule for _, _, rule in found if rule.startswith("needs one of")] == []


def test_a_share_that_is_refused_is_not_warned_of_as_a_missing_promise() -> None:
    def warned(*teams: dict[str, Any]) -> list[tuple[str, str]]:
        document = {"apiVersion": "taskgov/v1", "cluster": CLUSTER, "teams": list(teams)}
        return [(found.code, found.subject) for found in parse_policy(yaml.safe_dump(document)).warnings]

    assert warned({"name": "a", "share": [share(percent=500)]}, {"name": "b"}) == [("team-without-quota", "teams[1]")]
    assert warned({"name": 3}) == []


def test_count_may_stand_beside_amounts_since_the_api_does_not_refuse_it() -> None:
    assert violations(teams=[a_team("a", gpus(Count=1, Accelerators=2, VCpu=8, MemoryInGiB=16))]) == []


def test_whole_instances_are_no_promise_on_the_allocatable_basis() -> None:
    allocatable = {"basis": "allocatable"}

    assert violations(capacity=allocatable, teams=[a_team("a", gpus(Accelerators=1))]) == []
    assert violations(capacity=allocatable, teams=[a_team("a", gpus(Count=2))]) == [
        (
            "teams[0].quota.ComputeQuotaResources[0].Count",
            "2",
            "must be written as Accelerators, VCpu, MemoryInGiB where capacity.basis is allocatable",
        )
    ]


def test_fixed_entries_and_shares_together_fit_into_one_quota() -> None:
    sizes = ("large", "xlarge", "2xlarge", "4xlarge", "8xlarge", "12xlarge", "16xlarge", "24xlarge")
    shares = [share(f"ml.{family}.{size}") for family in ("m5", "m6i") for size in sizes]

    assert violations(teams=[a_team("a", share=shares[:15])]) == []
    assert violations(teams=[a_team("a", gpus(), share=shares[:15])]) == [
        ("teams[0].share", "16", "must leave at most 15 instance types a team")
    ]


def test_shares_of_a_type_add_up_to_the_whole_at_most() -> None:
    def with_percents(*percents: float) -> list[tuple[str, str, str]]:
        return violations(teams=[a_team(f"t{n}", share=[share(percent=each)]) for n, each in enumerate(percents)])

    assert with_percents(33.3, 33.3, 33.4) == []
    assert with_percents(60, 40.5, 10) == [
        ("teams[1].share[0].percent", "40.5", "brings the shares of ml.g5.8xlarge to 100.5 percent; 100 is all")
    ]
    assert (
        violations(teams=[a_team("a", share=[share(percent=80)]), a_team("b", share=[share("ml.c5.large", 80)])]) == []
    )


def test_a_tenth_ten_times_is_the_whole() -> None:
    tenths = [a_team(f"t{n}", share=[share(percent=0.1)]) for n in range(3)]
    rest = a_team("rest", share=[share(percent=99.7)])

    assert violations(teams=[*tenths, rest]) == []


def test_a_floor_is_not_above_its_ceiling() -> None:
    assert violations(teams=[a_team("a", share=[share(floor=2, ceiling=2)])]) == []
    assert violations(teams=[a_team("a", share=[share(floor=3, ceiling=2)])]) == [
        ("teams[0].share[0].floor", "3", "must not exceed the ceiling of 2")
    ]


def test_a_lease_is_between_two_teams_of_the_document() -> None:
    assert violations(teams=TWO_TEAMS, leases=[a_lease()]) == []
    assert violations(teams=TWO_TEAMS, leases=[a_lease(to="x", **{"from": "y"})]) == [
        ("leases[0].to", '"x"', "must be a team of this document: a, b"),
        ("leases[0].from", '"y"', "must be a team of this document: a, b"),
    ]
    assert violations(teams=TWO_TEAMS, leases=[a_lease(to="b")]) == [
        ("leases[0].to", '"b"', "must not be the team from which it leases")
    ]


def test_a_shared_pool_of_our_own_leases_and_a_native_one_does_not() -> None:
    lease = a_lease(**{"from": "shared-pool"})

    assert violations(teams=TWO_TEAMS, sharedPool={"team": "shared-pool"}, leases=[lease]) == []
    assert [path for path, _, _ in violations(teams=TWO_TEAMS, sharedPool={"native": True}, leases=[lease])] == [
        "leases[0].from"
    ]


def test_a_lease_ends_after_it_starts_whatever_the_zones() -> None:
    assert violations(teams=TWO_TEAMS, leases=[a_lease(end="2026-11-20T10:00+02:00")]) == [
        ("leases[0].end", '"2026-11-20T10:00:00+02:00"', "must be after 2026-11-20T09:00:00+00:00")
    ]


@pytest.mark.parametrize(
    ("pool", "scheduler", "want"),
    [
        ({"team": "pool"}, {"IdleResourceSharing": "Disabled"}, []),
        ({"team": "pool"}, {}, []),
        ({"native": True}, {"IdleResourceSharing": "Enabled"}, []),
        (
            {"team": "pool"},
            {"IdleResourceSharing": "Enabled"},
            [
                (
                    "sharedPool.team",
                    '"pool"',
                    "adds a pool to HyperPod's own: write {native: true}, or set IdleResourceSharing to Disabled",
                )
            ],
        ),
        (
            {"native": True, "team": "pool", "takes": "remainder"},
            {"IdleResourceSharing": "Enabled"},
            [
                ("sharedPool.takes", '"remainder"', "is not allowed with native: true"),
                ("sharedPool.team", '"pool"', "is not allowed with native: true"),
            ],
        ),
        ({"team": "a"}, {}, [("sharedPool.team", '"a"', "must not be one of the teams: it takes what they leave")]),
    ],
    ids=["ours", "ours by default", "native", "both", "native with ours", "a team"],
)
def test_one_pool_takes_what_no_team_was_given(
    pool: dict[str, Any], scheduler: dict[str, Any], want: list[tuple[str, str, str]]
) -> None:
    assert violations(teams=TWO_TEAMS, sharedPool=pool, schedulerConfig=scheduler) == want


def test_only_hyperpod_has_a_native_pool() -> None:
    cluster = {"name": "ml", "arn": "arn:aws:eks:us-east-1:111122223333:cluster/ml", "backend": "kueue"}

    assert violations(cluster=cluster, sharedPool={"native": True}) == [
        ("sharedPool.native", "true", "needs HyperPod; the backend here is kueue")
    ]


def test_guardrails_and_budgets_are_for_teams_of_the_document() -> None:
    known = "must be a team of this document: a, b"

    assert violations(
        teams=TWO_TEAMS,
        guardrails={"freeze": ["a", "x"], "minimumQuota": {"y": 1}},
        budgets=[{"team": "z", "gpuHours": 1}],
    ) == [
        ("guardrails.freeze[1]", '"x"', known),
        ("guardrails.minimumQuota.y", '"y"', known),
        ("budgets[0].team", '"z"', known),
    ]


def test_a_team_has_one_budget_a_period() -> None:
    monthly = {"team": "a", "gpuHours": 100}

    assert violations(teams=TWO_TEAMS, budgets=[monthly, {**monthly, "period": "day"}]) == []
    assert violations(teams=TWO_TEAMS, budgets=[monthly, {**monthly, "period": "month"}]) == [
        ("budgets[1]", '"a per month"', "is given twice: first in budgets[0]")
    ]


def test_a_change_window_has_five_fields_and_a_zone() -> None:
    window = {"cron": "0 25 * * *", "minutes": 60, "timeZone": "Europa/Berlin"}

    assert violations(guardrails={"changeWindows": [window]}) == [
        ("guardrails.changeWindows[0].cron", '"0 25 * * *"', "hour: '25' is not from 0 to 23"),
        (
            "guardrails.changeWindows[0].timeZone",
            '"Europa/Berlin"',
            "must be a time zone such as Europe/Berlin or UTC",
        ),
    ]


def test_instances_widen_a_percentage_and_are_no_limit_alone() -> None:
    assert violations(guardrails={"maxDecreaseInstances": 1, "maxDecreasePercent": 0}) == []
    assert violations(guardrails={"maxDecreaseInstances": 1}) == [
        (
            "guardrails.maxDecreaseInstances",
            "1",
            "needs maxDecreasePercent too: the greater of the two is the limit",
        )
    ]


def test_a_limit_blocks_or_cuts_back() -> None:
    assert violations(guardrails={"onLimit": "partial"}) == []
    assert violations(guardrails={"onLimit": "half"}) == [
        ("guardrails.onLimit", '"half"', "must be 'block' or 'partial'")
    ]


def test_a_type_has_gpus_or_neuron_devices() -> None:
    numbers = {"vcpu": 4, "memoryGiB": 16, "gpu": 1, "neuronDevice": 1}

    assert violations(instanceTypes={"ml.x1.large": numbers}) == [
        (
            'instanceTypes["ml.x1.large"].neuronDevice',
            "1",
            "cannot stand beside gpu: a type has one kind of accelerator",
        )
    ]
