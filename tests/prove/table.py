"""Whether what a plan says of its quotas is what it writes: the table of allocations, line by line.

The quotas are those at the end of the path: written ones as they were written, all others as they stand.
"""

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction

from taskgov.hyperpod.model import ComputeQuota, ComputeQuotaResource
from tests.prove.account import Account
from tests.prove.amounts import exact
from tests.prove.facts import Facts

RowKey = tuple[str, str]
"""Instance type and MIG profile; no profile for a row without partitions."""
Given = dict[str, Fraction]
"""Unit of a row -> amount, exactly as it was written."""


def given_by(row: ComputeQuotaResource) -> Given:
    """Return the amounts that a row gives, by the names of the API, a MIG profile by its own."""
    amounts = {
        "Count": row.count,
        "Accelerators": row.accelerators,
        "VCpu": row.vcpu,
        "MemoryInGiB": row.memory_in_gib,
    }
    if row.accelerator_partition is not None:
        amounts[row.accelerator_partition.type] = row.accelerator_partition.count
    return {unit: exact(amount) for unit, amount in amounts.items() if amount is not None}


def rows_of(quota: ComputeQuota) -> dict[RowKey, Given]:
    """Return the rows of a quota; rows of one type and profile are one."""
    rows: dict[RowKey, Given] = {}
    for row in quota.compute_quota_config.compute_quota_resources:
        key = row.instance_type, row.accelerator_partition.type if row.accelerator_partition else ""
        held = rows.setdefault(key, {})
        for unit, amount in given_by(row).items():
            held[unit] = held.get(unit, Fraction(0)) + amount
    return rows


def quotas_by_team(quotas: Iterable[ComputeQuota]) -> Mapping[str, list[ComputeQuota]]:
    """Return the quotas of each team that hold something or may."""
    found: dict[str, list[ComputeQuota]] = {}
    for quota in quotas:
        found.setdefault(quota.compute_quota_target.team_name, []).append(quota)
    return found


def table_failures(facts: Facts, account: Account) -> Iterator[str]:
    """Yield lines whose `after` no quota holds, and rows of quotas without a line."""
    held: dict[tuple[str, str], list[Given]] = {}
    for team, quotas in quotas_by_team(account.quotas.values()).items():
        for quota in quotas:
            for (instance_type, _), row in rows_of(quota).items():
                held.setdefault((team, instance_type), []).append(row)
    # A line may also be about a row that ends beside others, or about another quota of the team.
    single = {
        team
        for team, quotas in quotas_by_team(account.quotas.values()).items()
        if len(quotas) == 1 and not _ended(facts, team, rows_of(quotas[0]))
    }
    lines: dict[tuple[str, str], list[tuple[str, Fraction]]] = {}
    for line in facts.plan.allocations:
        after = line.unit, exact(line.after)
        lines.setdefault((line.team, line.instance_type), []).append(after)
        rows = held.get((line.team, line.instance_type), [])
        if not any(row.get(line.unit, 0) == after[1] for row in rows) and after[1]:
            has = ", ".join(sorted(_said(row) for row in rows)) or "nothing"
            yield f"{line.team} {line.instance_type}: the table says {float(after[1]):g} {line.unit}, it has {has}"
        elif not after[1] and rows and line.team in single and all(row.get(line.unit) for row in rows):
            yield f"{line.team} {line.instance_type}: the table says that no {line.unit} is left"
    for (team, instance_type), rows in held.items():
        told = lines.get((team, instance_type), [])
        for row in rows:
            if not any(row.get(unit, Fraction(0)) == after for unit, after in told):
                yield f"{team} {instance_type}: no line of the table is about {_said(row)}"


def _ended(facts: Facts, team: str, rows: Mapping[RowKey, Given]) -> set[RowKey]:
    """Return the rows that a team had and that it has no longer."""
    standing = quotas_by_team(facts.snapshot.quotas).get(team, [])
    return {key for quota in standing for key in rows_of(quota)} - rows.keys()


def _said(row: Given) -> str:
    return " and ".join(f"{float(amount):g} {unit}" for unit, amount in row.items()) or "nothing"
