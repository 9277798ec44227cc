"""Find instance types on which quotas promise more than the capacity.

Called by the planner for every plan, so that clusters that are only observed are covered, and by the audit.
"""

from collections.abc import Iterable, Mapping

from taskgov.allocation.capacity import TypeCapacity
from taskgov.allocation.parts import ACCELERATOR, Vector
from taskgov.allocation.wording import capacity_words, said_number
from taskgov.findings import Evidence, Finding
from taskgov.findings.of_plan import OVER_COMMITMENT
from taskgov.quantities import CPU, MEMORY

_NAMES: Mapping[str, str] = {ACCELERATOR: "accelerators", CPU: "vCPU", MEMORY: "memory"}


def overcommitment(sums: Mapping[str, Vector], capacities: Mapping[str, TypeCapacity]) -> Iterable[Finding]:
    """Return a finding for every type with nodes whose quotas exceed what is usable, or declared above it."""
    for name, capacity in capacities.items():
        taken = sums.get(name, {})
        over = {resource for resource, amount in taken.items() if amount > capacity.total.get(resource, 0)}
        if capacity.has_nodes and over:
            yield _finding(capacity, taken, over)


def _finding(capacity: TypeCapacity, taken: Vector, over: set[str]) -> Finding:
    """Say it in instances, by the resource that is exceeded most; which one matters only when they differ."""
    line, per_instance = capacity.line, capacity.per_instance
    worth = {resource: taken[resource] / per_instance[resource] for resource in over if per_instance.get(resource)}
    promised = max(worth.values(), default=0.0)
    resource = min((name for name in worth if worth[name] == promised), default="")
    percent = round(promised * 100 / line.usable) if line.usable else 0
    by = (
        f" by {_NAMES[resource]}"
        if resource in _NAMES and len({round(instances, 6) for instances in worth.values()}) > 1
        else ""
    )
    share = f" ({percent} %)" if line.usable else ""
    evidence: Evidence = {
        "instanceType": line.instance_type,
        "promised": promised,
        "usable": line.usable,
        "percent": percent,
        "resource": resource,
    }
    return OVER_COMMITMENT.about(
        line.instance_type,
        evidence,
        guaranteed=said_number(promised),
        instance_type=line.instance_type,
        by=by,
        usable=line.usable,
        share=share,
        capacity=capacity_words(line),
    )
