"""Find queues whose nominal quota differs from their compute quota, and by how much.

After a failed update or an edit of the queue, the scheduler uses what the queue holds. The path of a plan
(`taskgov.allocation.writes`) must make room for the difference.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from taskgov.allocation.low_write import ResourcesOf, queue_amounts
from taskgov.allocation.parts import offered
from taskgov.allocation.waves import Amounts, Place
from taskgov.allocation.written import NEVER_IN_FORCE, UNREADABLE
from taskgov.hyperpod import names
from taskgov.quantities import EFA
from taskgov.scheduling.objects import split
from taskgov.scheduling.reading import read_cluster_queue
from taskgov.snapshot.model import KubernetesObject, Snapshot

_IN_QUEUES: Final = " in queues"


def drifts_of(snapshot: Snapshot, resources_of: ResourcesOf) -> dict[str, Amounts]:
    """Return what queues hold beyond their quotas (below zero: short of them), by the quota's id.

    In base units of each resource, EFA aside. Quotas whose queues are as they say are left out, as are those that share
    a team and so a queue, unknown types, and queues that cannot be read.
    """
    queues = {_name_of(queue): queue for queue in snapshot.kueue.cluster_queues}
    in_force = [quota for quota in snapshot.quotas if quota.status not in NEVER_IN_FORCE]
    teams = Counter(quota.compute_quota_target.team_name for quota in in_force)
    found: dict[str, Amounts] = {}
    for quota in in_force:
        team = quota.compute_quota_target.team_name
        queue = queues.get(names.cluster_queue_of(team))
        held = None if queue is None or teams[team] > 1 else _nominal(queue, resources_of)
        if held is None:
            continue
        says = queue_amounts(quota.compute_quota_config, resources_of)
        moves = {place: held.get(place, 0) - says.get(place, 0) for place in sorted({*held, *says})}
        drift = {place: move for place, move in moves.items() if move and resources_of(place[0]) is not None}
        if drift:
            found[quota.compute_quota_id] = drift
    return found


def as_sums(drift: Amounts) -> dict[Place, int]:
    """Return a drift in the units of sums of quotas: accelerators of all kinds in sevenths, vCPU and memory."""
    by_type: dict[str, dict[str, int]] = {}
    for (name, resource), amount in drift.items():
        by_type.setdefault(name, {})[resource] = amount
    return {(name, unit): amount for name, amounts in by_type.items() for unit, amount in offered(amounts).items()}


def beside(amounts: Amounts, drift: Amounts, types: Iterable[str], sign: int = 1) -> dict[Place, int]:
    """Return sums of quotas with the sums of their queues beside them, for the types on which any queue drifted."""
    drifted = frozenset(types)
    queues = {place: amount for place, amount in amounts.items() if place[0] in drifted}
    for place, amount in as_sums(drift).items():
        queues[place] = queues.get(place, 0) + sign * amount
    return {**amounts, **{(name, f"{unit}{_IN_QUEUES}"): amount for (name, unit), amount in queues.items() if amount}}


def _nominal(queue: KubernetesObject, resources_of: Callable[[str], object]) -> Mapping[Place, int] | None:
    try:
        quotas = read_cluster_queue(queue).quotas
    except UNREADABLE:
        return None
    held = {split(key): quota.nominal for key, quota in quotas.items()}
    known = {place: amount for place, amount in held.items() if amount and place[1] != EFA}
    return {place: amount for place, amount in known.items() if resources_of(place[0]) is not None}


def _name_of(queue: KubernetesObject) -> str:
    try:
        return str(queue["metadata"]["name"])
    except UNREADABLE:
        return ""
