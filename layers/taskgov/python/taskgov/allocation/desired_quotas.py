"""Build each team's planned quota from its claims, and explain each of its numbers.

Settings that the document leaves out (a strategy, a borrow limit, a weight) stay unchanged. Values that HyperPod
completed by ratio do not count as a difference.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from taskgov.allocation.allocate import TypeClaims
from taskgov.allocation.allocations import Allocation
from taskgov.allocation.capacity import TypeCapacity
from taskgov.allocation.claims import Claim
from taskgov.allocation.governed import LeftAlone
from taskgov.allocation.leases import Given, has_ended_since
from taskgov.allocation.parts import RowKey, accelerators_of, need, row_key
from taskgov.allocation.plan import Reason, TeamAllocation
from taskgov.allocation.pool import largest_rows
from taskgov.allocation.promises import Promise, today_rows
from taskgov.allocation.refusals import wanted_digest
from taskgov.allocation.set_aside import leased_net
from taskgov.allocation.sharing import sharing_after
from taskgov.allocation.sources import Cause, Tell
from taskgov.allocation.wording import amounts_of, given_amounts, said_number, value_in
from taskgov.hyperpod.model import (
    ComputeQuotaConfig,
    ComputeQuotaResource,
    ComputeQuotaTarget,
)
from taskgov.policy.measured import Lease

MAX_ROWS = 15
"""Instance types in one quota (API reference, ComputeQuotaConfig)."""

Capacities = Mapping[str, TypeCapacity]


class DesiredQuotas:
    """Builds the allocation of each promise from the claims of its team."""

    def __init__(
        self,
        claims_by_type: Iterable[TypeClaims],
        capacities: Capacities,
        leases: tuple[Lease, ...],
        now: datetime,
        *,
        no_borrowing: frozenset[str] = frozenset(),
    ) -> None:
        """Take what was allocated; teams in `no_borrowing` have used up their budget."""
        self._capacities, self._leases, self._now = capacities, leases, now
        self._no_borrowing = no_borrowing
        self._given: set[tuple[str, str]] = set()
        self._given_leases: list[Given] = []
        self._demand: dict[str, dict[str, int]] = {}
        self._claims: dict[str, dict[RowKey, Claim]] = {}
        for claims in claims_by_type:
            for claim in claims.claims:
                self._claims.setdefault(claim.team, {})[row_key(claim.row)] = claim
            for team, level in claims.demand.items():
                self._demand.setdefault(team, {})[claims.instance_type] = level
            self._given_leases += claims.given
            for lease in (given.lease for given in claims.given):
                self._given |= {(lease.to, lease.instance_type), (lease.from_, lease.instance_type)}

    def of(self, promise: Promise) -> Allocation:
        """Return the team's planned quota."""
        claims = self._claims.get(promise.team, {})
        today = today_rows(promise.holds)
        kept = [claim.row for claim in claims.values() if not _is_needless(claim.row, today)]
        rows = sorted(largest_rows(kept, MAX_ROWS), key=row_key)
        lost = {row_key(row) for row in kept} - {row_key(row) for row in rows}
        claims = {key: self._without_row(claim) if key in lost else claim for key, claim in claims.items()}
        standing = promise.quota or promise.failed
        before = ComputeQuotaConfig() if standing is None else standing.compute_quota_config
        in_budget = promise.team not in self._no_borrowing
        sharing = sharing_after(promise.sharing, promise.sharing_before, in_budget=in_budget)
        config = ComputeQuotaConfig(
            compute_quota_resources=tuple(rows),
            resource_sharing_config=sharing.config,
            preempt_team_tasks=promise.preempt or before.preempt_team_tasks,
        )
        target = ComputeQuotaTarget(team_name=promise.team, fair_share_weight=promise.weight)
        lines = (
            line
            for key in sorted({*today, *claims})
            for line in self._lines(promise, key, today.get(key), claims.get(key))
        )
        return Allocation(
            promise,
            config,
            target,
            tuple(lines),
            borrowing=sharing.borrowing,
            within_budget=sharing.within_budget,
            leased=leased_net(promise.team, self._given_leases),
            demand=self._demand.get(promise.team, {}),
            tells={key: claim.tell for key, claim in claims.items() if key not in lost},
            lost=tuple(sorted({row.instance_type for row in kept if row_key(row) in lost and _is_something(row)})),
        )

    def instead(
        self, allocation: Allocation, config: ComputeQuotaConfig, note: str, cause: Cause, because: str
    ) -> Allocation:
        """Return a quota with `config` instead of its planned value. `note` is the reason in the change."""
        rows = {row_key(row): row for row in config.compute_quota_resources}
        wished = self._wished(allocation)
        if cause is Cause.REFUSED_TO_ANOTHER:
            wished = {key: replace(claim, reason=Reason.REFUSAL) for key, claim in wished.items()}
        ended = self._ending_at(allocation, _nothing(wished) | rows, wished, cause, because)
        wanted = allocation.wanted or wanted_digest(allocation.config, allocation.target)
        notes = "; ".join(filter(None, (allocation.note, note)))
        return replace(ended, config=config, note=notes, wanted=wanted)

    def not_written(self, allocation: Allocation, cause: Cause, because: str) -> Allocation:
        """Return the numbers of a quota that is not written, unchanged, and the reason."""
        stands = today_rows(allocation.promise.holds)
        wished = {
            key: replace(claim, because=f"{claim.because}, {because}")
            for key, claim in self._wished(allocation).items()
        }
        return self._ending_at(allocation, _nothing(wished) | stands, wished, cause, because)

    def _wished(self, allocation: Allocation) -> Mapping[RowKey, Claim]:
        return self._claims.get(allocation.promise.team, {})

    def _ending_at(
        self,
        allocation: Allocation,
        now: Mapping[RowKey, ComputeQuotaResource],
        wished: Mapping[RowKey, Claim],
        cause: Cause,
        because: str,
    ) -> Allocation:
        """Return a quota that is to have the rows of `now`, whatever was wished, and the cause of the difference."""
        promise, today = allocation.promise, today_rows(allocation.promise.holds)
        lines: list[TeamAllocation] = []
        tells: dict[RowKey, Tell] = {}
        for key in sorted({*today, *now}):
            row = now.get(key) or ComputeQuotaResource(instance_type=key[0])
            told = wished.get(key)
            if told is None:
                told = Claim(promise.team, row, Reason.POLICY_CHANGED, "the document guarantees none")
            told = told.moved_to(row, cause, because, self._capacities[key[0]])
            tells[key] = told.tell
            lines += self._lines(promise, key, today.get(key), told)
        return replace(allocation, lines=tuple(lines), tells=tells)

    def lines_of_left_alone(self, left: LeftAlone) -> tuple[TeamAllocation, ...]:
        """Return the numbers of a quota that is left alone. Before and after are equal."""
        rows = today_rows(left.quota)
        return tuple(self._line(left.team, row, row, Reason.UNCHANGED, left.because) for _, row in sorted(rows.items()))

    def _without_row(self, claim: Claim) -> Claim:
        """Return a claim for which the quota has no row left: it becomes nothing."""
        because = f"a quota has at most {MAX_ROWS} rows"
        nothing = ComputeQuotaResource(instance_type=claim.row.instance_type)
        moved = claim.moved_to(nothing, Cause.NO_ROW, because, self._capacities[nothing.instance_type])
        return replace(moved, because=f"{claim.because}, {because}")

    def _lines(
        self, promise: Promise, key: RowKey, before: ComputeQuotaResource | None, claim: Claim | None
    ) -> Iterable[TeamAllocation]:
        name, profile = key
        zero = ComputeQuotaResource(instance_type=name)
        if claim is None:
            because = "the document guarantees none"
            yield self._line(promise.team, before or zero, zero, Reason.POLICY_CHANGED, because)
        elif (
            before is None
            or self._is_spelled_out(before, claim.row)
            or (ended := _ended_unit(before, claim.row)) is None
        ):
            reason = self._reason(promise, name, before, claim)
            # Nothing that stays nothing says no unit: its line is about the row of its profile, not about another one.
            unit = "" if before or given_amounts(claim.row) else profile
            yield self._line(promise.team, before or zero, claim.row, reason, claim.because, unit)
        else:
            # The unit changes: one number ends and another begins.
            reason = self._reason(promise, name, before, claim)
            yield self._line(promise.team, before, zero, reason, "the document states it in another unit", ended)
            line = self._line(promise.team, before, claim.row, reason, claim.because)
            yield replace(line, gpus_before=0)

    def _is_spelled_out(self, before: ComputeQuotaResource, row: ComputeQuotaResource) -> bool:
        """Return whether `before` holds what the row does, with more of it written out: the unit is the same."""
        capacity = self._capacities.get(row.instance_type)
        taken = [need(either, capacity.resources) for either in (before, row)] if capacity else [None]
        same = all(value_in(before, amount.unit) == amount.value for amount in given_amounts(row))
        return same and taken[0] is not None and taken[0] == taken[-1]

    def _line(
        self,
        team: str,
        before: ComputeQuotaResource,
        after: ComputeQuotaResource,
        reason: Reason,
        because: str,
        unit: str = "",
    ) -> TeamAllocation:
        unit = unit or _shown_unit(before, after)
        was, becomes = value_in(before, unit), value_in(after, unit)
        words = "" if unit == "Count" else f" {unit}"
        name = "" if before.instance_type in because else f" {before.instance_type}"
        return TeamAllocation(
            team=team,
            instance_type=before.instance_type,
            unit=unit,
            before=was,
            after=becomes,
            gpus_before=self._gpus(before),
            gpus_after=self._gpus(after),
            reason=Reason.UNCHANGED if was == becomes else reason,
            because=f"{team} {said_number(was)} -> {said_number(becomes)}{words}{name}: {because}",
        )

    def _reason(self, promise: Promise, name: str, before: ComputeQuotaResource | None, claim: Claim) -> Reason:
        """Return the one dominant reason for a number that changes."""
        if promise.put_right:
            return Reason.HAND_EDIT_PUT_RIGHT
        if promise.adopted is not None and claim.reason is Reason.PROMISE:
            return Reason.HAND_EDIT_ADOPTED
        if (promise.team, name) in self._given:
            return Reason.LEASE_STARTED
        applied = promise.applied
        if applied and has_ended_since(self._leases, promise.team, name, applied.at, self._now):
            return Reason.LEASE_ENDED
        kept_word = applied is not None and claim.reason in {Reason.PROMISE, Reason.SHARE}
        return self._reason_of_old_promise(promise, before, claim) if kept_word else claim.reason

    def _reason_of_old_promise(self, promise: Promise, before: ComputeQuotaResource | None, claim: Claim) -> Reason:
        """Distinguish a changed document from changed capacity: the promise was applied before."""
        if promise.applied is not None and promise.applied.promise not in {"", promise.digest}:
            return Reason.POLICY_CHANGED
        grows = before is None or self._gpus(claim.row) > self._gpus(before) or _more(claim.row, before)
        return Reason.CAPACITY_GREW if grows else Reason.CAPACITY_SHRANK

    def _gpus(self, row: ComputeQuotaResource) -> float:
        capacity = self._capacities.get(row.instance_type)
        return accelerators_of(need(row, capacity.resources) or {}) if capacity else 0


def _nothing(wished: Iterable[RowKey]) -> dict[RowKey, ComputeQuotaResource]:
    """Return an empty row for each planned row: the result if the quota has no row left."""
    return {key: ComputeQuotaResource(instance_type=key[0]) for key in wished}


def _is_needless(row: ComputeQuotaResource, today: Mapping[RowKey, ComputeQuotaResource]) -> bool:
    """Return whether an empty row would be added where there is none."""
    return row_key(row) not in today and not _is_something(row)


def _is_something(row: ComputeQuotaResource) -> bool:
    return any(amount.value for amount in amounts_of(row))


def _ended_unit(before: ComputeQuotaResource, after: ComputeQuotaResource) -> str | None:
    """Return the unit by which a row was shown, where the row that follows gives other units and not that one.

    What HyperPod may have filled in is never shown first, and does not count.
    """
    unit, given = amounts_of(before)[0].unit, {amount.unit for amount in given_amounts(after)}
    return unit if given and unit not in given else None


def _shown_unit(before: ComputeQuotaResource, after: ComputeQuotaResource) -> str:
    """Return the unit by which a row is shown: the first that changes, or else the first there is."""
    units = [amount.unit for amount in given_amounts(after) or amounts_of(before)]
    return next((unit for unit in units if value_in(before, unit) != value_in(after, unit)), units[0])


def _more(row: ComputeQuotaResource, before: ComputeQuotaResource) -> bool:
    """Return whether a row gives more than another row by the number that it is shown by; no, where units differ."""
    had, has = amounts_of(before)[0], amounts_of(row)[0]
    return has.unit == had.unit and has.value > had.value
