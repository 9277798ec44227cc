"""Whether the reasons of a plan add up: the sources of each row to the row, the leases among them to the document.

`row_sources` tells them. What it must come to is what the quotas hold at the end of the path, written or not.
"""

from collections.abc import Iterator, Mapping
from fractions import Fraction

from taskgov.allocation.sources import Cause, Trail
from taskgov.hyperpod.model import ComputeQuota
from tests.prove.account import Account
from tests.prove.amounts import GIB, Amounts, Numbers, is_accelerator, slices_of
from tests.prove.causes import Sources, cause_failures
from tests.prove.facts import Facts
from tests.prove.lent import Lent, brings, lent_now, place_of
from tests.prove.table import Given, RowKey, quotas_by_team, rows_of, table_failures

Resources = dict[str, Fraction]
"""What amounts come to: `accelerator` in sevenths, `cpu` in thousandths, `memory` in bytes."""


def reason_failures(facts: Facts, account: Account, sources: Sources) -> Iterator[str]:
    """Yield what does not add up, and what cannot be the reason."""
    written = {change.team for change in facts.plan.changes}
    held = quotas_by_team(account.quotas.values())
    for team in sorted({*sources, *held}):
        quotas = held.get(team, [])
        found = [
            [*_differences(facts, team, quota, sources.get(team, {}), exactly=team in written)] for quota in quotas
        ]
        if found and all(found):
            yield from min(found, key=len)
        if not quotas and any(any(trail.amounts.values()) for trail in sources.get(team, {}).values()):
            yield f"{team}: sources are told, and it has no quota"
    yield from _lease_failures(facts, sources)
    yield from cause_failures(facts, sources)
    yield from table_failures(facts, account)


def _differences(
    facts: Facts, team: str, quota: ComputeQuota, told: Mapping[RowKey, Trail], *, exactly: bool
) -> Iterator[str]:
    """Yield the rows whose sources come to something else.

    What a quota that is not written holds may be written in other words: HyperPod fills amounts in by ratio.
    """
    rows = rows_of(quota)
    for key in sorted({*rows, *told}):
        row = {unit: amount for unit, amount in rows.get(key, {}).items() if amount}
        total = {unit: amount for unit, amount in (told[key].amounts if key in told else {}).items() if amount}
        same = row == total
        if not same and not exactly:
            numbers = facts.known.get(key[0])
            same = numbers is not None and worth(row, numbers) == worth(total, numbers)
        if not same:
            place = " ".join(filter(None, (team, *key)))
            yield f"{place}: the sources come to {_said(total)}, the quota has {_said(row)}"


def worth(given: Mapping[str, Fraction], numbers: Numbers) -> Resources:
    """Return what amounts come to, completed by ratio and rounded as HyperPod does."""
    accelerators = numbers.gpu or numbers.neuron
    whole, parts = given.get("Count", Fraction(0)), [given.get("Count", Fraction(0))]
    sevenths = whole * accelerators * 7
    if "Accelerators" in given:
        sevenths = given["Accelerators"] * 7
    for unit, amount in given.items():
        if unit.startswith("mig-"):
            sevenths += amount * slices_of(f"nvidia.com/{unit}")
    if accelerators:
        parts.append(Fraction(sevenths) / (7 * accelerators))
    if "VCpu" in given:
        parts.append(given["VCpu"] / numbers.vcpu)
    if "MemoryInGiB" in given:
        parts.append(given["MemoryInGiB"] * GIB / numbers.memory)
    share = max(parts)
    cpu = given["VCpu"] * 1000 if "VCpu" in given else share * numbers.vcpu * 1000
    memory = given["MemoryInGiB"] * GIB if "MemoryInGiB" in given else share * numbers.memory
    return {"accelerator": Fraction(sevenths), "cpu": Fraction(int(cpu)), "memory": Fraction(int(memory))}


AROUND = frozenset({Cause.REFUSED, Cause.REFUSED_TO_ANOTHER})
"""Causes by which a row may be as it stood, in other units than it was promised in."""


def _lease_failures(facts: Facts, sources: Sources) -> Iterator[str]:
    """Yield leases that hold and are not among the sources of both teams, and sources that no lease is."""
    expected: dict[tuple[str, str], list[Lent]] = {}
    for lent in lent_now(facts.snapshot, facts.plan):
        for team in (lent.lease.to, lent.lease.from_):
            expected.setdefault((team, lent.lease.instance_type), []).append(lent)
    refused = {finding.subject for finding in facts.plan.findings if finding.code == "write-refused"}
    for team, rows in sources.items():
        for name in sorted({key[0] for key in rows}):
            mine = {key: trail for key, trail in rows.items() if key[0] == name}
            if AROUND & {source.cause for trail in mine.values() for source in trail.sources}:
                continue  # what is kept may be in other units, and so is what was leased of it
            if team in refused and not any(trail.sources for trail in mine.values()):
                continue  # a failed quota of nothing stays as it is: nothing is lent, and nothing has a source
            yield from _one_team(facts, team, name, mine, expected.get((team, name), []))


def _one_team(facts: Facts, team: str, name: str, rows: Mapping[RowKey, Trail], lent: list[Lent]) -> Iterator[str]:
    """Hold the lease sources of one team and type against the leases, unit by unit and all together."""
    told = [(key, source) for key, trail in rows.items() for source in trail.sources if source.cause is Cause.LEASE]
    numbers = facts.book.get(name)
    if numbers is None:
        if len(told) > len(lent):
            yield f"{team} {name}: {len(told)} sources are leases, {len(lent)} hold"
        return
    left = list(lent)
    for key, source in told:
        moved = _comparable(facts, source.amounts)
        # Whole vCPUs and GiB are made of fractions again where a limit changes the units of the row again.
        rounded = 1 + any(each.cause is Cause.LIMIT for each in rows[key].sources)
        found = next((each for each in left if _is_of(team, key, moved, each, numbers, rounded)), None)
        if found is None:
            yield f"{team} {name}: the source {source.because!r} moves {_said(source.amounts)}, which no lease does"
        else:
            left.remove(found)
    unwritten = any(source.cause is Cause.NOT_WRITTEN for trail in rows.values() for source in trail.sources)
    for each in left:
        if team != facts.pool and not unwritten:
            yield f"{team} {name}: the lease of {each.amount} at {place_of(each.lease)} is not among its sources"


def _comparable(facts: Facts, moved: Mapping[str, Fraction]) -> dict[str, Fraction]:
    """Leave out vCPUs and memory at basis `allocatable`: what machines offer differs."""
    policy = facts.snapshot.policy
    offered = policy is not None and policy.capacity.basis == "allocatable"
    return {unit: amount for unit, amount in moved.items() if not (offered and unit in {"VCpu", "MemoryInGiB"})}


def _is_of(team: str, key: RowKey, moved: Given, lent: Lent, numbers: Numbers, rounded: int) -> bool:
    """Say whether amounts of a row can be what a lease moves: each as the lease brings it, rounded to whole units."""
    sign = 1 if lent.lease.to == team else -1
    # At one thread per core vCPUs count as the machines run them, or as the type has them.
    readings = [brings(place_of(lent.lease), lent.amount, numbers, running=running) for running in (True, False)]
    return any(
        all(
            abs(sign * amount - _wanted(unit, key, lent, numbers, brought)) <= rounded * _rounding(unit)
            for unit, amount in moved.items()
        )
        for brought in readings
    )


def _rounding(unit: str) -> int:
    return 1 if unit in {"VCpu", "MemoryInGiB"} else 0


def _wanted(unit: str, key: RowKey, lent: Lent, numbers: Numbers, brought: Amounts) -> Fraction:
    """Return what a lease moves of a unit; a MIG profile only in its own row."""
    sevenths = sum(amount * slices_of(name) for name, amount in brought.items() if is_accelerator(name))
    match unit:
        case "Count" if lent.lease.unit == "instances":
            return Fraction(lent.amount)
        case "Count":
            return Fraction(sevenths, 7 * (numbers.gpu or numbers.neuron or 1))
        case "Accelerators":
            return Fraction(sevenths, 7)
        case "VCpu":
            return Fraction(brought["cpu"], 1000)
        case "MemoryInGiB":
            return Fraction(brought["memory"], GIB)
        case _:
            return Fraction(lent.amount if key[1] == lent.lease.accelerator_partition_type else 0)


def _said(amounts: Mapping[str, Fraction]) -> str:
    return " and ".join(f"{amount} {unit}" for unit, amount in amounts.items()) or "nothing"
