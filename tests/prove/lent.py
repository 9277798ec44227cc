"""What leases move, by the document and the clock: who gives how much to whom, and what that is of each resource.

A place is an instance type, and the unit where that is not whole instances: `ml.p5.48xlarge accelerators`,
`ml.p5.48xlarge mig-1g.10gb`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from taskgov.allocation.plan import Plan
from taskgov.findings import Finding
from taskgov.hyperpod.model import AcceleratorPartition, ComputeQuotaResource
from taskgov.policy.measured import Lease
from taskgov.snapshot.model import Snapshot
from tests.prove.amounts import CPU, Amounts, Numbers, completed

Leased = Mapping[str, int]
"""Place -> whole units that leases bring; below zero: take."""


@dataclass(frozen=True, slots=True)
class Lent:
    """An active lease, and how much of it the donor gives according to the plan's findings."""

    lease: Lease
    amount: int


def place_of(lease: Lease) -> str:
    """Return where a lease moves something: its type and unit, as records keep it."""
    unit = {"instances": "", "acceleratorPartition": lease.accelerator_partition_type}.get(lease.unit, str(lease.unit))
    return f"{lease.instance_type} {unit or ''}".strip()


def lent_now(snapshot: Snapshot, plan: Plan) -> list[Lent]:
    """Return the leases that hold now and were not refused; one that is given in part says so in a finding."""
    leases = () if snapshot.policy is None else snapshot.policy.leases
    told = [finding for finding in plan.findings if finding.code in {"lease-refused", "lease-partial"}]
    lent = []
    # Of equal leases those that come later in the document are refused first.
    for lease in reversed([lease for lease in leases if lease.start <= snapshot.taken_at < lease.end]):
        mine = (item for item in told if item.subject == _subject(lease) and _is_about(item, lease))
        finding = next(mine, None)
        if finding is None:
            lent.append(Lent(lease, lease.count))
            continue
        told.remove(finding)
        if finding.code == "lease-partial":
            lent.append(Lent(lease, int(finding.evidence["given"])))
    return lent


def _subject(lease: Lease) -> str:
    return f"{lease.from_} -> {lease.to}"


def _is_about(finding: Finding, lease: Lease) -> bool:
    names = {"vcpu": "vCPUs", "memoryInGiB": "GiB", "acceleratorPartition": lease.accelerator_partition_type or ""}
    unit = {} if lease.unit == "instances" else {"unit": names.get(lease.unit, str(lease.unit))}
    moments = {"start": lease.start.isoformat(), "end": lease.end.isoformat()}
    wanted = {"instanceType": lease.instance_type, "count": lease.count, **unit, **moments, "reason": lease.reason}
    return {name: value for name, value in finding.evidence.items() if name != "given"} == wanted


def net_at(leases: Iterable[Lease], team: str, at: datetime) -> dict[str, int]:
    """Return what the leases that hold at a moment bring a team in full; places without are left out."""
    return net_of([Lent(lease, lease.count) for lease in leases if lease.start <= at < lease.end], team)


def net_of(lent: Iterable[Lent], team: str) -> dict[str, int]:
    """Return what leases bring a team, by place; places without are left out."""
    net: dict[str, int] = {}
    for each in lent:
        if team in {each.lease.to, each.lease.from_}:
            place = place_of(each.lease)
            net[place] = net.get(place, 0) + each.amount * (1 if each.lease.to == team else -1)
    return {place: count for place, count in net.items() if count}


def is_in_parts(place: str) -> bool:
    """Say whether a place counts parts of instances."""
    return " " in place


def row_at(place: str, count: int) -> ComputeQuotaResource:
    """Return the row that gives so many units at a place."""
    instance_type, _, unit = place.partition(" ")
    row = ComputeQuotaResource(instance_type=instance_type)
    if unit.startswith("mig-"):
        return row.model_copy(update={"accelerator_partition": AcceleratorPartition(type=unit, count=count)})
    fields = {"": "count", "accelerators": "accelerators", "vcpu": "vcpu", "memoryInGiB": "memory_in_gib"}
    amount = count if fields[unit] in {"count", "accelerators"} else float(count)
    return row.model_copy(update={fields[unit]: amount})


def brings(place: str, count: int, numbers: Numbers, *, running: bool = False) -> Amounts:
    """Return what so many units at a place are of each Kueue resource."""
    amounts = completed(row_at(place, count), numbers)
    if running and not place.endswith(" vcpu"):
        amounts[CPU] = amounts[CPU] * numbers.running // numbers.vcpu
    return amounts
