"""Report machines that will leave: which training plan or Capacity Block ends when, and what each team loses.

Nothing else changes before the end. The loss is what the planner takes from each team on the same snapshot without
these machines. Machines of earlier ends are removed before those of later ones, so the losses of all ends add up.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import Final

from taskgov.allocation.deciding import Decided, decide, planned_lines
from taskgov.allocation.plan import TeamAllocation
from taskgov.allocation.snapshot_capacity import capacities_of
from taskgov.allocation.wording import said_number
from taskgov.findings import Finding
from taskgov.findings.of_plan import CAPACITY_END_UNKNOWN, CAPACITY_ENDS
from taskgov.policy.document import CapacityRules
from taskgov.snapshot.model import Node, Snapshot
from taskgov.snapshot.reservations import Reservation, name_of, taken_back_before

_UNITS: Final[Mapping[str, str]] = {
    "Count": "",
    "Accelerators": "accelerators of ",
    "VCpu": "vCPUs of ",
    "MemoryInGiB": "GiB of ",
}


def ends_found(snapshot: Snapshot, decided: Decided) -> Iterator[Finding]:
    """Report each reservation that ends within `capacity.noticeBeforeEndHours`, and each whose end is not known."""
    known = {reservation.id: reservation for reservation in snapshot.reservations}
    left, before = snapshot, None
    for (moment, its_id), nodes in sorted(_within_notice(snapshot).items()):
        # Made again only where something ends: a plan of many teams takes its time.
        before = planned_lines(decided) if before is None else before
        left = _without(left, its_id, moment)
        after = planned_lines(decide(left, capacities_of(left)))
        yield _ends(known.get(its_id), its_id, moment, nodes, _costs(before, after))
        before = after
    for reservation in snapshot.reservations:
        if reservation.silence:
            yield _unknown(reservation, snapshot.nodes)


def _within_notice(snapshot: Snapshot) -> dict[tuple[datetime, str], list[Node]]:
    rules = CapacityRules() if snapshot.policy is None else snapshot.policy.capacity
    now, found = snapshot.taken_at, dict[tuple[datetime, str], list[Node]]()
    for node in snapshot.nodes:
        moment = node.leaves_at
        if moment is not None and now < moment <= now + timedelta(hours=rules.notice_before_end_hours):
            found.setdefault((moment, node.reservation or ""), []).append(node)
    return found


def _without(snapshot: Snapshot, its_id: str, moment: datetime) -> Snapshot:
    """Return the snapshot without the machines of one more end."""
    return replace(
        snapshot,
        nodes=tuple(
            replace(node, leaves_at=snapshot.taken_at)
            if (node.leaves_at, node.reservation or "") == (moment, its_id)
            else node
            for node in snapshot.nodes
        ),
    )


@dataclass(frozen=True, slots=True)
class _Cost:
    """The loss of one team on one instance type, in the unit of its promise."""

    team: str
    said: str
    gpus: float


def _costs(before: Iterable[TeamAllocation], after: Iterable[TeamAllocation]) -> list[_Cost]:
    """Return the loss of each team after an end, by team and instance type, over all its quotas."""
    now, then = _held(before), _held(after)
    found = []
    for (team, instance_type, unit), (had, gpus_had) in sorted(now.items()):
        left, gpus_left = then.get((team, instance_type, unit), (0, 0))
        if left < had:
            of = _UNITS.get(unit, f"{unit} of ")
            said = f"{team} {said_number(had)} -> {said_number(left)} {of}{instance_type}"
            found.append(_Cost(team, said, gpus_had - gpus_left))
    return found


def _held(lines: Iterable[TeamAllocation]) -> dict[tuple[str, str, str], tuple[float, float]]:
    """Return amount and GPUs by team, instance type and unit; a second quota of a team has lines of its own."""
    held: dict[tuple[str, str, str], tuple[float, float]] = {}
    for line in lines:
        key = line.team, line.instance_type, line.unit
        amount, gpus = held.get(key, (0, 0))
        held[key] = amount + line.after, gpus + line.gpus_after
    return held


def _ends(
    reservation: Reservation | None, its_id: str, moment: datetime, nodes: Sequence[Node], costs: Sequence[_Cost]
) -> Finding:
    kind = "reservation" if reservation is None else reservation.kind
    leaves_at = moment.astimezone(UTC)
    ends_at = leaves_at + taken_back_before(nodes[0].instance_type)
    counts = sorted(Counter(node.instance_type for node in nodes).items())
    teams = list(dict.fromkeys(cost.team for cost in costs))
    evidence: dict[str, str | int] = {
        "kind": kind,
        "reservation": its_id,
        "instanceType": ", ".join(instance_type for instance_type, _ in counts),
        "nodes": len(nodes),
        "leavesAt": leaves_at.isoformat(),
        "endsAt": ends_at.isoformat(),
        "teams": ", ".join(teams),
        "costs": "; ".join(cost.said for cost in costs),
        "gpus": ceil(sum(cost.gpus for cost in costs)),
    }
    return CAPACITY_ENDS.about(
        name_of(its_id) or kind,
        evidence,
        kind=kind,
        name=name_of(its_id),
        ends_at=ends_at,
        leaves_at=leaves_at,
        nodes=", ".join(f"{count} {instance_type}" for instance_type, count in counts),
        costs=f"It costs {'; '.join(cost.said for cost in costs)}" if costs else "No team loses quota",
    )


def _unknown(reservation: Reservation, nodes: Iterable[Node]) -> Finding:
    is_known = bool(reservation.id)
    of_it = (node for node in nodes if node.reservation == reservation.id or (node.reservation and not is_known))
    ends = sorted({node.leaves_at.astimezone(UTC) for node in of_it if node.leaves_at is not None})
    moments = ", ".join(f"{end:%Y-%m-%d %H:%M} UTC" for end in ends)
    what = f"the {reservation.kind} {reservation.name}" if is_known else f"any {reservation.kind}"
    return CAPACITY_END_UNKNOWN.about(
        reservation.name or reservation.kind,
        {"kind": reservation.kind, "reservation": reservation.id},
        case=is_known,
        what=what,
        silence=reservation.silence,
        until=f"The end that was read earlier applies: nodes leave at {moments}"
        if ends
        else "Its nodes count until they are lost",
    )
