"""The quotas of a world as they stand: who has what, in which units, and the shared pool beside them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.worlds_cluster import PARTITIONED, UNKNOWN, Machines
from benchmarks.worlds_draw import Draw
from taskgov.hyperpod.instance_types import InstanceResources
from taskgov.hyperpod.model import (
    ClusterSchedulerConfig,
    ComputeQuota,
    ComputeQuotaConfig,
    ComputeQuotaResource,
    ComputeQuotaTarget,
    SchedulerConfig,
)
from taskgov.hyperpod.ratio import complete
from taskgov.quantities import CPU, EFA, GIBIBYTE, MEMORY

TEAMS: Final = ("ant", "bee", "cat", "dog", "elk")
STRANGER: Final = "yak"
"""A team that has a quota and is not in the document."""
POOL: Final = "shared-pool"
FRACTIONS: Final = (0.5, 1.333, 2.25, 5.25, 0.125, 33.3, 10.5)
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Standing:
    """What stands before the plan."""

    quotas: tuple[ComputeQuota, ...]
    scheduler: ClusterSchedulerConfig | None

    def rows(self, team: str) -> list[Row]:
        """Return the rows of a team's quota, as the API writes them."""
        for quota in self.quotas:
            if quota.compute_quota_target.team_name == team:
                return [row.to_api() for row in quota.compute_quota_config.compute_quota_resources]
        return []


def draw_quotas(draw: Draw, machines: Machines) -> Standing:
    """Draw quotas that share the machines, to the brim with a pool; sometimes more than there is."""
    teams = [*draw.some(TEAMS, 2, 4), *([STRANGER] if draw.chance(draw.mix.strangers) else [])]
    rows: dict[str, list[Row]] = {team: [] for team in (*teams, POOL)}
    with_pool = draw.chance(0.8)
    for instance_type in machines.types:
        room = _room(draw, machines, instance_type)
        for team in draw.shuffled(teams):
            for row in draw_rows(draw, machines, instance_type, room) if draw.chance(0.75) else ():
                room = _less(room, row, machines)
                rows[team].append(row)
        if with_pool:
            rows[POOL] += _remainder(instance_type, room, rows, machines)
    quotas = [_quota(draw, team, rows[team]) for team in teams if rows[team] or draw.chance(0.3)]
    if with_pool and draw.chance(0.9):
        quotas.append(_quota(draw, POOL, rows[POOL]))
    return Standing(tuple(sorted(quotas, key=lambda quota: quota.name)), _scheduler(draw))


def draw_rows(draw: Draw, machines: Machines, instance_type: str, room: Mapping[str, int]) -> list[Row]:
    """Return one row of a type, and at times a row of partitions beside it, that fit into the room (base units)."""
    numbers = machines.table.require(instance_type)
    whole = _instances(room, numbers)
    rows = []
    row = draw_row(draw, instance_type, numbers, whole)
    if fits(row, room, numbers):
        rows.append(row)
    if instance_type in PARTITIONED and draw.chance(draw.mix.mig):
        for profile in draw.some(numbers.mig_profiles, 1, 2):
            partition = {"Type": profile, "Count": draw.number(0, 7)}
            row = {"InstanceType": instance_type, "AcceleratorPartition": partition}
            if fits(row, _less(room, rows[0], machines) if rows else room, numbers):
                rows.append(row)
                break
    return rows


def draw_row(draw: Draw, instance_type: str, numbers: InstanceResources, instances: float) -> Row:
    """Draw a row of up to so many instances: whole ones, or any parts of them together."""
    row: Row = {"InstanceType": instance_type}
    if not draw.chance(draw.mix.parts) or (instance_type == UNKNOWN and draw.chance(0.5)):
        return {**row, "Count": draw.number(0, int(instances))}
    parts = ["VCpu", "MemoryInGiB"] if not numbers.accelerators or draw.chance(0.2) else ["Accelerators"]
    parts = draw.some(parts, 1, 2) if parts[0] == "VCpu" else parts
    if parts == ["Accelerators"]:
        parts += draw.some(["VCpu", "MemoryInGiB"], 0, 2)
    most = {
        "Accelerators": numbers.accelerators * instances,
        "VCpu": numbers.vcpu * instances,
        "MemoryInGiB": numbers.memory_gib * instances,
    }
    for part in parts:
        row[part] = draw.number(0, int(most[part]))
        if part != "Accelerators" and draw.chance(draw.mix.fractions):
            row[part] = draw.pick(FRACTIONS)
    return row


def fits(row: Row, room: Mapping[str, int], numbers: InstanceResources) -> bool:
    """Say whether a row fits into what is left, resource by resource; EFA is nobody's to give."""
    needed = complete(ComputeQuotaResource.model_validate(row), numbers)
    return all(amount <= room.get(name, 0) for name, amount in _in_sevenths(needed).items())


def _in_sevenths(amounts: Mapping[str, int]) -> dict[str, int]:
    """Return accelerators of every kind as one number, in sevenths, beside vCPU and memory."""
    total = {CPU: amounts.get(CPU, 0), MEMORY: amounts.get(MEMORY, 0), "accelerator": 0}
    for name, amount in amounts.items():
        if name not in {CPU, MEMORY, EFA}:
            slices = int(name.split("mig-")[1].split("g.")[0]) if "mig-" in name else 7
            total["accelerator"] += amount * slices
    return total


def room_of(machines: Machines, instance_type: str, instances: int) -> dict[str, int]:
    """Return what so many instances of a type offer."""
    numbers = machines.table.require(instance_type)
    return {name: amount * instances for name, amount in _in_sevenths(numbers.amounts()).items()}


def _room(draw: Draw, machines: Machines, instance_type: str) -> dict[str, int]:
    count = machines.healthy(instance_type)
    planned_ahead = count == 0 and draw.chance(0.8 * bool(draw.mix.no_nodes))
    more = draw.number(1, 2 + count) if planned_ahead or draw.chance(draw.mix.over_committed) else 0
    return room_of(machines, instance_type, count + more)


def _less(room: Mapping[str, int], row: Row, machines: Machines) -> dict[str, int]:
    numbers = machines.table.require(row["InstanceType"])
    taken = _in_sevenths(complete(ComputeQuotaResource.model_validate(row), numbers))
    return {name: max(amount - taken.get(name, 0), 0) for name, amount in room.items()}


def _instances(room: Mapping[str, int], numbers: InstanceResources) -> float:
    per_instance = _in_sevenths(numbers.amounts())
    return min(room[name] / amount for name, amount in per_instance.items() if amount)


def _remainder(
    instance_type: str, room: Mapping[str, int], rows: Mapping[str, list[Row]], machines: Machines
) -> list[Row]:
    """Return what the pool has of a type: whole instances where only those are promised, else every part."""
    others: Iterable[Row] = (row for held in rows.values() for row in held if row["InstanceType"] == instance_type)
    numbers = machines.table.require(instance_type)
    if all(set(row) <= {"InstanceType", "Count"} for row in others):
        return [{"InstanceType": instance_type, "Count": int(_instances(room, numbers))}]
    row: Row = {"InstanceType": instance_type, "VCpu": room[CPU] // 1000, "MemoryInGiB": room[MEMORY] // GIBIBYTE}
    if numbers.accelerators:
        row["Accelerators"] = room["accelerator"] // 7
    return [row]


def draw_sharing(draw: Draw, machines_types: Iterable[str]) -> dict[str, Any]:
    """Draw how a team shares: every strategy, limits in percent and absolute."""
    if draw.chance(draw.mix.borrowing):
        return {"Strategy": "LendAndBorrow", "BorrowLimit": draw.pick([100, 500, 10_000])}
    strategy = draw.pick(["LendAndBorrow", "LendAndBorrow", "Lend", "DontLend"])
    sharing: dict[str, Any] = {"Strategy": strategy}
    if strategy == "LendAndBorrow" and draw.chance(0.7):
        sharing["BorrowLimit"] = draw.pick([0, 10, 50, 100, 200, 10_000])
    if strategy == "LendAndBorrow" and draw.chance(0.2):
        limits = [{"InstanceType": name, "Count": draw.number(0, 3)} for name in machines_types]
        sharing["AbsoluteBorrowLimits"] = limits
    return sharing


def _quota(draw: Draw, team: str, rows: list[Row]) -> ComputeQuota:
    config: dict[str, Any] = {"ComputeQuotaResources": rows}
    if team == POOL:
        config["ResourceSharingConfig"] = {"Strategy": "Lend"}
    elif draw.chance(0.75):
        config["ResourceSharingConfig"] = draw_sharing(draw, sorted({row["InstanceType"] for row in rows}))
    if draw.chance(0.2):
        config["PreemptTeamTasks"] = draw.pick(["Never", "LowerPriority"])
    return ComputeQuota(
        compute_quota_id=f"{team.replace('-', '')}00000000"[:12],
        name=f"{team}-quota",
        compute_quota_version=draw.number(1, 5),
        status=draw.pick(["Created", "Updated"]),
        compute_quota_config=ComputeQuotaConfig.model_validate(config),
        compute_quota_target=ComputeQuotaTarget(
            team_name=team, fair_share_weight=None if team == POOL else draw.pick([None, 0, 5, 20, 50])
        ),
    )


def _scheduler(draw: Draw) -> ClusterSchedulerConfig | None:
    if draw.chance(0.3):
        return None
    config: dict[str, Any] = {"FairShare": draw.pick(["Enabled", "Disabled"])}
    if draw.chance(0.5):
        config["PriorityClasses"] = [{"Name": "training", "Weight": 50}, {"Name": "inference", "Weight": 90}]
    return ClusterSchedulerConfig(
        cluster_scheduler_config_id="scheduler001",
        name="ml-cluster-policy",
        cluster_scheduler_config_version=draw.number(1, 3),
        status="Created",
        scheduler_config=SchedulerConfig.model_validate(config),
    )
