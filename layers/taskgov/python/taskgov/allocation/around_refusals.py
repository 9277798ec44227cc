"""Plan around refused writes: those quotas stay unchanged, and no other quota is lowered for them.

`taskgov.allocation.deciding` calls it after the planned quotas are known, and before limits cut them back. On each
instance type whose sum a refused write would have moved:

1. A refused quota at its low write gets back its earlier value, if there is room for it.
2. Quotas that should rise do so as far as there is room. A refused quota that should fall still takes its room. The
   shared pool comes last.
3. Quotas that should fall keep their present value, and get back what the interrupted plan took. The sum is limited by
   the room, and by what the refused quotas would have taken.
4. The shared pool holds the rest of what they would have taken.

`taskgov.allocation.type_around_refusals` computes each type. The result is a fixed point: each quota has at least the
smaller of its planned and its present value, and nothing more fits. The next plan is therefore empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskgov.allocation.cutting import rows_of_type, with_rows
from taskgov.allocation.desired_quotas import MAX_ROWS
from taskgov.allocation.parts import row_key
from taskgov.allocation.type_around_refusals import Quota, TypeAroundRefusals

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from taskgov.allocation.capacity import TypeCapacity
    from taskgov.allocation.row_numbers import Rows
    from taskgov.hyperpod.model import ComputeQuotaConfig


def around_refusals(
    refused: Iterable[Quota],
    others: Iterable[Quota],
    left_alone: Rows,
    capacities: Mapping[str, TypeCapacity],
    *,
    overcommit: bool,
) -> dict[str, ComputeQuotaConfig]:
    """Return what quotas are to become instead of what is wanted, by team; no entry where that is as it was.

    `left_alone` are the rows of all quotas that the plan does not govern. A refused quota has an entry only where it
    gets back what stood before its low write. With `overcommit`, sums on types without nodes have no bound.
    """
    stay, move = sorted(refused, key=_team), sorted(others, key=_team)
    touched = (name for name in _touched(stay) if name in capacities)
    bound = (name for name in touched if capacities[name].has_nodes or not overcommit)
    types = {name: TypeAroundRefusals(name, capacities[name], stay, move, left_alone) for name in bound}
    back = {quota.team: quota.earlier for quota in stay if quota.earlier is not None and _give_back(quota, types)}
    found: dict[str, dict[str, Rows]] = {}
    for name, of_type in types.items():
        for team, rows in of_type.run().items():
            found.setdefault(team, {})[name] = rows
    made = {quota.team: _with(quota, found[quota.team]) for quota in move if quota.team in found}
    return back | {quota.team: made[quota.team] for quota in move if made.get(quota.team, quota.wanted) != quota.wanted}


def _team(quota: Quota) -> str:
    return quota.team


def _touched(refused: Iterable[Quota]) -> list[str]:
    """Return the instance types on which a refused write would have moved something."""
    found = set[str]()
    for quota in refused:
        configs = [config for config in (quota.wanted, quota.stands, quota.earlier) if config is not None]
        for name in {row.instance_type for config in configs for row in config.compute_quota_resources}:
            if len({rows_of_type(config, name) for config in configs}) > 1:
                found.add(name)
    return sorted(found)


def _give_back(quota: Quota, types: Mapping[str, TypeAroundRefusals]) -> bool:
    """Give a refused quota back what stood before its low write, on all types or on none."""
    if quota.earlier is None or not all(of_type.can_give_back(quota) for of_type in types.values()):
        return False
    for of_type in types.values():
        of_type.give_back(quota)
    return True


def _with(quota: Quota, by_type: Mapping[str, Rows]) -> ComputeQuotaConfig:
    """Return the quota with these rows; without what it would keep, where it then had too many."""
    for kept in (by_type, {name: rows for name, rows in by_type.items() if rows_of_type(quota.wanted, name)}):
        own = [row for row in quota.wanted.compute_quota_resources if row.instance_type not in kept]
        rows = sorted((*own, *(row for rows in kept.values() for row in rows)), key=row_key)
        if len(rows) <= MAX_ROWS:
            return with_rows(quota.wanted, tuple(rows))
    return quota.wanted
