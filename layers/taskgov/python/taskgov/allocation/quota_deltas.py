"""How far the numbers of a quota fall or rise, without the amounts that leases move.

A number is one resource of one instance type, as in the quota's ClusterQueue: GPUs, Neuron devices, each MIG profile,
vCPU and memory. It is completed by ratio and summed over the rows of the type. EFA interfaces are left out, because
they cannot be written. For a type with unknown numbers, given numbers are used as they are: if its unit changes, the
old number falls to zero. All numbers are exact.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from taskgov.allocation.applied_record import known_since
from taskgov.allocation.capacity import TypeCapacity
from taskgov.allocation.goals import NOTHING, Goal
from taskgov.allocation.leases import Given
from taskgov.allocation.low_write import queue_amounts
from taskgov.allocation.set_aside import SettingAside, said_leases
from taskgov.allocation.wording import said_number
from taskgov.hyperpod.equality import is_same_config
from taskgov.hyperpod.instance_types import MIG_SLICES_PER_GPU, InstanceResources, mig_slices
from taskgov.hyperpod.model import ComputeQuotaConfig, ComputeQuotaResource
from taskgov.policy.document import Guardrails, PolicyDocument
from taskgov.quantities import CPU, GIBIBYTE, GPU, MEMORY, NEURON_DEVICE, is_mig
from taskgov.snapshot.model import Snapshot
from taskgov.snapshot.records import AppliedQuota

if TYPE_CHECKING:
    from taskgov.allocation.transfer import Net

Place = tuple[str, str]
"""Instance type and resource."""

COUNT: Final = "Count"
"""The resource of a type with unknown numbers, where whole instances are promised."""

THOUSANDTHS: Final = 1000
"""Parts of a unit: numbers of unknown types, and vCPUs, are counted in them."""

_UNITS: Final = {
    GPU: (1, "GPUs"),
    NEURON_DEVICE: (1, "Neuron devices"),
    CPU: (THOUSANDTHS, "vCPU"),
    MEMORY: (GIBIBYTE, "GiB"),
}


@dataclass(frozen=True, slots=True)
class QuotaDelta:
    """One number that moves, in base units; `before`, `after` and `farthest` are without leases, the words with them.

    It does not move by itself, but by leases alone, where `before` equals `after`.
    """

    quota: str
    """Its identity (`Goal.key`)."""
    team: str
    place: Place
    words: str
    before: Fraction
    after: Fraction
    instance: Fraction
    """What one whole instance has of it; 0 where that is not known."""
    farthest: Fraction | None
    """Within the guardrail's period the most it was if it falls, the least above nothing if it rises (0: never more).

    None when that cannot be read.
    """
    leaves_at: datetime | None
    """When `farthest` leaves the period; None where no period is limited."""
    shown: Fraction
    """How many base units make one of the words."""
    is_lower: bool
    """Whether the number that is written falls, leases and all."""
    set_aside: str = ""
    """The leases that were set aside, as words."""

    @property
    def falls(self) -> bool:
        """Whether it falls."""
        return self.after < self.before

    @property
    def rises(self) -> bool:
        """Whether it rises."""
        return self.after > self.before


def quota_deltas(
    snapshot: Snapshot,
    policy: PolicyDocument,
    goals: Iterable[Goal],
    given: Iterable[Given],
    capacities: Mapping[str, TypeCapacity],
) -> list[QuotaDelta]:
    """Return the numbers that move, of all quotas but the shared pool's; none where the document limits none.

    `given` are the leases that hold in the plan. A quota that is deleted falls to nothing, and what is created in its
    stead rises from what it held.
    """
    rules = policy.guardrails
    decreases = rules.max_decrease_percent is not None or rules.max_decrease_per_period is not None
    if not decreases and rules.max_increase_percent is None and rules.max_increase_per_period is None:
        return []  # not needed
    reckoning = Reckoning(snapshot, policy, given, capacities)
    return [delta for goal in goals for delta in reckoning.of(goal)]


class Reckoning:
    """Works out deltas: what is the same for all quotas of a plan."""

    def __init__(
        self,
        snapshot: Snapshot,
        policy: PolicyDocument,
        given: Iterable[Given],
        capacities: Mapping[str, TypeCapacity],
    ) -> None:
        """Take the snapshot's document, the leases that the plan gives, and what there is of each type."""
        self._now, self._guardrails, self._capacities = snapshot.taken_at, policy.guardrails, capacities
        self.leases = SettingAside(policy.leases, given, capacities)
        self._known: dict[tuple[ComputeQuotaResource, ...], Mapping[Place, int]] = {}

    def of(self, goal: Goal, only: str | None = None) -> Iterator[QuotaDelta]:
        """Yield the numbers of one quota that move, by type and resource; none of the shared pool's.

        `only` one instance type is considered where that is given.
        """
        if goal.is_pool:
            return
        if goal.is_deleted:
            yield from (delta for delta in self._between(goal, NOTHING, only) if delta.falls)
            yield from (delta for delta in self._between(goal, goal.after, only) if delta.rises)
        else:
            yield from self._between(goal, goal.after, only)

    def amounts(self, config: ComputeQuotaConfig, only: str | None = None) -> Mapping[Place, int]:
        """Return what a quota comes to, of `only` one instance type where that is given."""
        rows: dict[str, list[ComputeQuotaResource]] = {}
        for row in config.compute_quota_resources:
            if only is None or row.instance_type == only:
                rows.setdefault(row.instance_type, []).append(row)
        total: dict[Place, int] = {}
        for of_type in rows.values():
            total |= self._amounts_of_type(tuple(of_type))
        return total

    def _amounts_of_type(self, rows: tuple[ComputeQuotaResource, ...]) -> Mapping[Place, int]:
        if rows not in self._known:
            alone = NOTHING.model_copy(update={"compute_quota_resources": rows})
            self._known[rows] = queue_amounts(alone, self.resources_of)
        return self._known[rows]

    def resources_of(self, instance_type: str) -> InstanceResources | None:
        """Return the numbers of a type, None when they are unknown."""
        capacity = self._capacities.get(instance_type)
        return capacity.resources if capacity else None

    def _between(self, goal: Goal, end: ComputeQuotaConfig, only: str | None) -> Iterator[QuotaDelta]:
        stands, becomes = self.amounts(goal.stands, only), self.amounts(end, only)
        if stands == becomes:
            return
        leases = self.leases
        net_before, net_after = leases.net_before(goal), leases.net_after(goal) if end is goal.after else {}
        was = self.amounts(goal.before, only)
        before = self.amounts(leases.without(goal.before, net_before), only)
        after = self.amounts(leases.without(end, net_after), only)
        past = _Past(self, goal, before)
        for place in sorted({*stands, *was, *becomes}, key=_order):
            if stands.get(place, 0) == becomes.get(place, 0):
                continue  # nothing is written of it
            had, has = Fraction(before.get(place, 0)), Fraction(after.get(place, 0))
            whole = _is_whole(goal.before, place[0]) and _is_whole(end, place[0])
            shown, unit = self._shown(place, whole=whole)
            numbers = (said_number(Fraction(amounts.get(place, 0)) / shown) for amounts in (was, becomes))
            words = f"{goal.team} {place[0]} {' -> '.join(numbers)}{unit}"
            farthest, leaves_at = past.farthest(place, self._hours(falls=has < had), falls=has < had)
            yield QuotaDelta(
                quota=goal.key,
                team=goal.team,
                place=place,
                words=words,
                before=had,
                after=has,
                instance=self._instance(place),
                farthest=farthest,
                leaves_at=leaves_at,
                shown=shown,
                is_lower=becomes.get(place, 0) < stands.get(place, 0),
                set_aside=said_leases(goal.team, place[0], leases.given, net_before),
            )

    def past_amounts(self, goal: Goal, since: datetime) -> list[tuple[Mapping[Place, int], datetime]] | None:
        """Return what the quota was since a moment, without leases, and until when; None when that cannot be read."""
        applied, leases = goal.applied, self.leases
        if applied is None:
            return []
        if applied.history is None:
            return None
        known = known_since(applied.history)
        if known is not None and known > since:
            return None
        found: list[tuple[ComputeQuotaConfig, Net | None, datetime | None, datetime]] = []
        if not _is_on_its_way(goal, applied):
            found.append((applied.config, applied.leased, applied.at, self._now))
        written: datetime | None = None
        for past in applied.history:
            if past.until > since:
                found.append((past.config, past.leased, written, past.until))
            written = past.until
        return [
            (self.amounts(leases.without(config, leases.net_at(goal.team, net, at))), until)
            for config, net, at, until in found
        ]

    def since(self, hours: int) -> datetime:
        """Return when the period that ends now began."""
        return self._now - timedelta(hours=hours)

    def _hours(self, *, falls: bool) -> int:
        rules: Guardrails = self._guardrails
        period = rules.max_decrease_per_period if falls else rules.max_increase_per_period
        return period.hours if period else 0

    def _shown(self, place: Place, *, whole: bool) -> tuple[Fraction, str]:
        """Return how many base units make one of the words, and the unit's name."""
        name, resource = place
        if self.resources_of(name) is None:
            return Fraction(THOUSANDTHS), "" if resource == COUNT else f" {resource}"
        instance = self._instance(place)
        if whole and instance:
            return instance, ""
        amount, words = _UNITS.get(resource, (1, resource.removeprefix("nvidia.com/")))
        return Fraction(amount), f" {words}"

    def _instance(self, place: Place) -> Fraction:
        """Return what one whole instance has of a resource: of a MIG profile as many as its GPUs can be cut into."""
        name, resource = place
        resources = self.resources_of(name)
        if resources is None:
            return Fraction(THOUSANDTHS if resource == COUNT else 0)
        if is_mig(resource):
            slices = mig_slices(resource.removeprefix("nvidia.com/"))
            return Fraction(resources.gpu * (MIG_SLICES_PER_GPU // slices) if slices else 0)
        return Fraction(resources.amounts().get(resource, 0))


class _Past:
    """What the numbers of one quota were in a period, worked out once for all of them."""

    def __init__(self, reckoning: Reckoning, goal: Goal, before: Mapping[Place, int]) -> None:
        self._reckoning, self._goal, self._before = reckoning, goal, before
        self._known: dict[int, list[tuple[Mapping[Place, int], datetime]] | None] = {}

    def farthest(self, place: Place, hours: int, *, falls: bool) -> tuple[Fraction | None, datetime | None]:
        """Return the most (or the least above nothing) in the period, and when it leaves the period."""
        if not hours:
            return None, None
        if hours not in self._known:
            since = self._reckoning.since(hours)
            self._known[hours] = self._reckoning.past_amounts(self._goal, since)
        past = self._known[hours]
        if past is None:
            return None, None
        now = self._reckoning.since(0)
        values = [(amounts.get(place, 0), until) for amounts, until in (*past, (self._before, now))]
        if not falls:
            # Zero is not a measure: a team that had none for a moment is compared with its other numbers in the period.
            values = [(value, until) for value, until in values if value > 0] or [(0, now)]
        farthest = (max if falls else min)(value for value, _ in values)
        last = max(until for value, until in values if value == farthest)
        return Fraction(farthest), last + timedelta(hours=hours)


def _is_on_its_way(goal: Goal, applied: AppliedQuota) -> bool:
    """Return whether the last write was a low write, which does not count as an earlier value."""
    return applied.began_from is not None and is_same_config(goal.before, applied.began_from)


def _is_whole(config: ComputeQuotaConfig, instance_type: str) -> bool:
    """Return whether a quota has only whole instances of a type."""
    rows = [row for row in config.compute_quota_resources if row.instance_type == instance_type]
    parts: Sequence[object] = [
        part for row in rows for part in (row.accelerators, row.vcpu, row.memory_in_gib, row.accelerator_partition)
    ]
    return all(part is None for part in parts)


def _order(place: Place) -> tuple[str, bool, str]:
    """Sort accelerators first, because they matter most to readers."""
    return place[0], place[1] in {CPU, MEMORY}, place[1]
