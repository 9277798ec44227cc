"""The least more quota that lets a workload run: enough as HyperPod would render it, and one unit less is not."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from taskgov.allocation.loaded import loaded_from
from taskgov.allocation.projection import Projection
from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.hyperpod.model import ComputeQuotaConfig
from taskgov.quantities import CPU, GIBIBYTE, GPU, MEMORY
from taskgov.scheduling import KueueModel
from taskgov.scheduling.assignment import FIT
from taskgov.snapshot.model import Snapshot
from taskgov_explain.find import find_workload
from taskgov_explain.raised import raised
from taskgov_explain.remedies import Remedy
from taskgov_explain.trial import Trial
from taskgov_explain.workload import explain_workload
from tests.support.lab import G5, P5, Lab

G6 = "ml.g6.12xlarge"
"""4 GPUs, 48 vCPU, 192 GiB, 1 EFA interface."""

UNITS: Mapping[str, int] = {GPU: 1, CPU: 1000, MEMORY: GIBIBYTE}
NO_BORROWING = {"ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 0}}
Added = Mapping[str, int]
"""Resource -> how much more, in base units."""


def quota_remedy(snapshot: Snapshot, name: str) -> Remedy | None:
    return next((each for each in explain_workload(snapshot, name).remedies if each.kind == "quota"), None)


def with_more(config: ComputeQuotaConfig, instance_type: str, added: Added) -> ComputeQuotaConfig:
    """Return the quota as a person would write it with so much more: its one row in parts, the given ones raised."""
    [row] = config.to_api()["ComputeQuotaResources"]
    of_one = InstanceTypeTable().require(instance_type)
    if (count := row.pop("Count", None)) is not None:
        row["Accelerators"] = count * of_one.gpu
    share = max(row["Accelerators"] / of_one.gpu, row.get("VCpu", 0) / of_one.vcpu)
    before = {CPU: row.get("VCpu", share * of_one.vcpu), MEMORY: row.get("MemoryInGiB", share * of_one.memory_gib)}
    row["Accelerators"] += added.get(GPU, 0)
    for resource, part in ((CPU, "VCpu"), (MEMORY, "MemoryInGiB")):
        if resource in added:
            row[part] = before[resource] + added[resource] // UNITS[resource]
    return ComputeQuotaConfig.model_validate(config.to_api() | {"ComputeQuotaResources": [row]})


def runs(snapshot: Snapshot, name: str, instance_type: str, added: Added) -> bool:
    """Say whether a workload would run in a cluster whose snapshot has the higher quota, loaded anew."""
    item = find_workload(snapshot.kueue.workloads, name).item
    team = item["metadata"]["namespace"].removeprefix("hyperpod-ns-")
    quotas = tuple(
        each.model_copy(update={"compute_quota_config": with_more(each.compute_quota_config, instance_type, added)})
        if each.compute_quota_target.team_name == team
        else each
        for each in snapshot.quotas
    )
    world = Projection.of(replace(snapshot, quotas=quotas), teams=[team]).model
    queue = f"hyperpod-ns-{team}-clusterqueue"
    asked = {**item, "kind": "Workload"}
    return world.assign(asked, queue).mode == FIT or bool(world.victims(asked, queue))


def a_world(seed: int) -> Lab:
    """Return a cluster whose teams share by percentages or absolute limits, and submit more than fits."""
    draw = Random(seed)  # noqa: S311
    kind = draw.choice([G5, P5, G6])
    gpus = InstanceTypeTable().require(kind).gpu
    lab = Lab(fair_share=draw.random() < 0.5, instance_type=kind)
    for name in ("team-a", "team-b", "team-c")[: draw.randint(1, 3)]:
        count = draw.randint(0, 4)
        row: dict[str, Any] = draw.choice(
            [{"Count": count}, {"Accelerators": count * gpus // 2 + draw.randint(0, gpus)}]
        )
        if draw.random() < 0.2:
            row = {"Accelerators": draw.randint(1, 6), "VCpu": float(draw.choice([8, 16, 96]))}
        lab.team(name, count, ComputeQuotaConfig=_config(draw, kind, row))
    lab.machines(draw.randint(2, 8))
    for number in range(draw.randint(3, 9)):
        team = draw.choice(lab.quotas).compute_quota_target.team_name
        pods, size = draw.randint(1, 5), draw.randint(1, gpus)
        priority = draw.choice(["training", "inference"])
        lab.submit(team, f"job-{number}", size, pods=pods, priority=priority, ago=100 - number)
    return lab


def _config(draw: Random, kind: str, row: dict[str, Any]) -> dict[str, Any]:
    sharing: dict[str, Any] = {"Strategy": draw.choice(["LendAndBorrow"] * 6 + ["Lend", "DontLend"])}
    if sharing["Strategy"] == "LendAndBorrow":
        sharing["BorrowLimit"] = draw.choice([0, 10, 25, 50, 100, 150, 200, 300])
        if draw.random() < 0.2:
            sharing["AbsoluteBorrowLimits"] = [{"InstanceType": kind, "Accelerators": draw.randint(0, 6)}]
    return {"ComputeQuotaResources": [{"InstanceType": kind, **row}], "ResourceSharingConfig": sharing}


def waiting(lab: Lab) -> list[str]:
    return [each.rpartition("/")[2] for each in lab.world.workloads() if lab.world.admission(each) is None]


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_the_least_more_quota_is_enough_and_one_unit_less_is_not(first: int) -> None:
    tried = 0
    for seed in range(first, first + 50):
        lab = a_world(seed)
        snapshot = lab.snapshot()
        for name in waiting(lab)[:2]:
            if (remedy := quota_remedy(snapshot, name)) is not None:
                added = {key.partition("/")[2]: amount for key, amount in remedy.amounts.items()}
                assert runs(snapshot, name, lab.instance_type, added), (seed, name, added)
                for less in one_unit_less(added):
                    assert not runs(snapshot, name, lab.instance_type, less), (seed, name, added, less)
                tried += 1
    assert tried > 60


def one_unit_less(added: Added) -> Iterator[Added]:
    for resource, amount in added.items():
        yield {key: one for key, one in {**added, resource: amount - UNITS[resource]}.items() if one}


def test_a_borrow_limit_in_percent_rises_with_the_quota() -> None:
    lab = Lab().team("team-a", 2, borrow=100).team("team-b", 4).machines(6)
    lab.submit("team-a", "waits", pods=6)
    [quota] = [each for each in explain_workload(lab.snapshot(), "waits").remedies if each.kind == "quota"]
    # 3 of its own and 3 borrowed; with the limit of today it would be 4 and 2.
    assert quota.because.startswith("the quota of team-a rises by 1 GPU of ml.g5.8xlarge")


def test_an_absolute_borrow_limit_stays() -> None:
    limits = [{"InstanceType": G5, "Accelerators": 2}]
    config = {
        "ComputeQuotaResources": [{"InstanceType": G5, "Count": 2}],
        "ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 100, "AbsoluteBorrowLimits": limits},
    }
    lab = Lab().team("team-a", 2, ComputeQuotaConfig=config).team("team-b", 4).machines(6)
    lab.submit("team-a", "waits", pods=6)
    remedy = quota_remedy(lab.snapshot(), "waits")
    assert remedy is not None
    assert remedy.amounts == {"ml.g5.8xlarge/nvidia.com/gpu": 2}


def test_what_ratio_does_not_bring_is_asked_for_too() -> None:
    row = {"InstanceType": G6, "Accelerators": 2, "VCpu": 8.0}
    lab = Lab(instance_type=G6).team("team-a", 1, ComputeQuotaConfig={"ComputeQuotaResources": [row]} | NO_BORROWING)
    lab.machines(2).submit("team-a", "waits", pods=3)  # 3 GPUs and 12 vCPU
    remedy = quota_remedy(lab.snapshot(), "waits")
    assert remedy is not None
    assert remedy.because.startswith("the quota of team-a rises by 1 GPU of ml.g6.12xlarge, 4 cpu of ml.g6.12xlarge")


def test_no_quota_is_named_where_today_s_would_do() -> None:
    lab = a_world(190)  # drawn: there is room for the job, and those before it take it
    told = explain_workload(lab.snapshot(), "job-1").because
    assert told == "There is room for it now, but the workloads before it preempt one another endlessly."
    assert quota_remedy(lab.snapshot(), "job-1") is None


@pytest.mark.parametrize("turned", [False, True])
def test_the_scheduler_has_its_queues_again_when_all_is_tried(turned: bool) -> None:
    kinds = set[str]()
    for seed in range(20):
        lab = a_world(seed)
        snapshot = lab.snapshot()
        if turned:  # in another order than HyperPod's rendering: the quota trees are built again
            queues = tuple(map(_turned, snapshot.kueue.cluster_queues))
            snapshot = replace(snapshot, kueue=replace(snapshot.kueue, cluster_queues=queues))
        world = loaded_from(snapshot, snapshot.instance_types).model
        before = _standing(world)
        for name in waiting(lab):
            kinds |= {remedy.kind for remedy in explain_workload(snapshot, name).remedies}
            assert _standing(world) == before, (seed, name)
    assert kinds == {"finish", "quota", "borrow-limit"}


def _turned(queue: Mapping[str, Any]) -> dict[str, Any]:
    groups = [
        {**group, "flavors": [{**each, "resources": each["resources"][::-1]} for each in group["flavors"]]}
        for group in queue["spec"]["resourceGroups"]
    ]
    return {**queue, "spec": {**queue["spec"], "resourceGroups": groups}}


def _standing(world: KueueModel) -> list[object]:
    """Return all that questions depend on, and what decisions do."""
    queues = [(world.queue_spec(name), world.quota(name), world.cluster_queue(name)) for name in world.cluster_queues()]
    cohorts = {spec.cohort for spec, _, _ in queues if spec.cohort}
    return [queues, [world.quota(name, cohort=True) for name in sorted(cohorts)], world.notified, world.signature()]


def test_the_scheduler_has_its_queues_again_when_a_trial_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = Lab().team("team-a", 2).machines(2).submit("team-a", "waits", pods=6).snapshot()
    world = loaded_from(snapshot, snapshot.instance_types).model
    before = _standing(world)

    def fails(trial: Trial) -> None:
        trial.with_quota({f"{G5}/{GPU}": 1})
        raise ValueError(trial)

    monkeypatch.setattr("taskgov_explain.remedies.least_more_quota", fails)
    with pytest.raises(ValueError, match="Trial"):
        explain_workload(snapshot, "waits")
    assert _standing(world) == before


def test_a_queue_without_a_compute_quota_keeps_its_limits() -> None:
    lab = Lab().team("team-a", 2, borrow=100).team("team-b", 4).machines(6)
    snapshot = replace(lab.submit("team-a", "waits", pods=6).snapshot(), quotas=())
    remedy = quota_remedy(snapshot, "waits")
    assert remedy is not None
    assert remedy.amounts["ml.g5.8xlarge/nvidia.com/gpu"] == 2


@pytest.mark.parametrize(
    ("row", "added", "want"),
    [
        ({"Count": 1}, {GPU: 8}, {"Count": 2}),
        ({"Count": 1}, {GPU: 2}, {"Accelerators": 10}),
        ({"Count": 1}, {CPU: 4000}, {"Accelerators": 8, "VCpu": 196.0}),
        ({"Accelerators": 2}, {GPU: 2}, {"Accelerators": 4}),
        ({"Accelerators": 2}, {GPU: 2, CPU: 1000}, {"Accelerators": 4}),  # ratio brings 48 vCPU more
        ({"Accelerators": 2, "VCpu": 10.0}, {GPU: 2, CPU: 1000}, {"Accelerators": 4, "VCpu": 11.0}),
        ({"Accelerators": 2}, {MEMORY: GIBIBYTE}, {"Accelerators": 2, "MemoryInGiB": 513.0}),
    ],
)
def test_a_row_rises_in_the_parts_in_which_it_is_written(
    row: dict[str, Any], added: Added, want: dict[str, Any]
) -> None:
    config = ComputeQuotaConfig.model_validate({"ComputeQuotaResources": [{"InstanceType": P5, **row}]})
    after = raised(config, {f"{P5}/{key}": amount for key, amount in added.items()}, InstanceTypeTable())
    assert after.to_api()["ComputeQuotaResources"] == [{"InstanceType": P5} | want]


def test_partitions_rise_in_the_row_of_their_profile() -> None:
    rows = [{"InstanceType": P5, "AcceleratorPartition": {"Type": "mig-1g.10gb", "Count": 3}}]
    config = ComputeQuotaConfig.model_validate({"ComputeQuotaResources": rows})
    added = {f"{P5}/nvidia.com/mig-1g.10gb": 2, f"{P5}/nvidia.com/mig-2g.20gb": 1, f"{P5}/{GPU}": 1}
    after = raised(config, added, InstanceTypeTable()).to_api()["ComputeQuotaResources"]
    assert after == [
        {"InstanceType": P5, "AcceleratorPartition": {"Type": "mig-1g.10gb", "Count": 5}},
        {"InstanceType": P5, "Accelerators": 1},
        {"InstanceType": P5, "AcceleratorPartition": {"Type": "mig-2g.20gb", "Count": 1}},
    ]
