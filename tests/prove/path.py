"""The form of a plan's path: numbered waves, at most two writes of a quota, what a low write may be.

Plans of before have wave 0 everywhere: each of their changes is a wave of its own, in order.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from taskgov.allocation.plan import DELETIONS, Change, ChangeKind, Plan
from taskgov.hyperpod.model import ComputeQuotaConfig
from tests.prove.account import is_policy
from tests.prove.amounts import CPU, GIB, MEMORY, Vector, resources_of
from tests.prove.facts import NEVER_IN_FORCE, Facts
from tests.prove.sameness import config_key, target_key

Wave = tuple[Change, ...]
MOST_WAVES = 12


@dataclass(frozen=True, slots=True)
class QuotaPath:
    """One quota on the path of a plan: what stood first, and what the last write leaves (None: nothing)."""

    team: str
    key: str
    before: ComputeQuotaConfig | None
    after: ComputeQuotaConfig | None
    deleted: bool


def waves_of(plan: Plan) -> list[Wave]:
    """Return the changes wave by wave."""
    if all(change.wave == 0 for change in plan.changes):
        return [(change,) for change in plan.changes]
    return [tuple(group) for _, group in groupby(plan.changes, key=lambda change: change.wave)]


def paths_of(facts: Facts) -> list[QuotaPath]:
    """Return each quota that the plan writes once, from its first `before` to its last write."""
    statuses = {quota.compute_quota_id: quota.status for quota in facts.snapshot.quotas}
    found: dict[str, list[Change]] = {}
    for change in facts.plan.changes:
        if not is_policy(change):
            found.setdefault(change.resource_id or f"new {change.name}", []).append(change)
    paths = []
    for key, changes in found.items():
        first, last = changes[0], changes[-1]
        before = first.before if isinstance(first.before, ComputeQuotaConfig) else None
        if statuses.get(key) in NEVER_IN_FORCE:
            before = None
        deleted = last.kind is ChangeKind.DELETE_QUOTA
        after = last.after if isinstance(last.after, ComputeQuotaConfig) and not deleted else None
        paths.append(QuotaPath(first.team, key, before, after, deleted))
    return paths


def form_failures(facts: Facts) -> Iterator[str]:
    """Yield what is wrong with the numbering, the count of writes, and the low writes."""
    changes = facts.plan.changes
    if [change.index for change in changes] != list(range(len(changes))):
        yield "the changes are not numbered by their positions"
    numbers = sorted({change.wave for change in changes})
    if numbers not in ([0], list(range(1, len(numbers) + 1))):
        yield f"the waves are numbered {numbers}"
    if [change.wave for change in changes] != sorted(change.wave for change in changes):
        yield "the changes are not in the order of their waves"
    if len(numbers) > MOST_WAVES:
        yield f"the plan has {len(numbers)} waves, {MOST_WAVES} is the most"
    yield from _deletions_first(changes)
    by_quota: dict[str, list[Change]] = {}
    for change in changes:
        if change.resource_id is not None and not is_policy(change):
            by_quota.setdefault(change.resource_id, []).append(change)
    for writes in by_quota.values():
        yield from _writes_failures(writes, facts)


def _deletions_first(changes: Sequence[Change]) -> Iterator[str]:
    for change in changes:
        if change.kind in DELETIONS and change.wave > 1:
            yield f"{change.name} is deleted in wave {change.wave}: deletions for recovery come first"


def _writes_failures(writes: Sequence[Change], facts: Facts) -> Iterator[str]:
    first, last = writes[0], writes[-1]
    if len(writes) > 2:
        yield f"{first.name} is written {len(writes)} times"
    if len(writes) == 1:
        if first.is_low:
            yield f"{first.name}: the low write has no second one"
        return
    if not first.is_low or last.is_low or last.wave <= first.wave:
        yield f"{first.name} is written twice, but not low first and in a later wave then"
    if last.target_version is not None:
        yield f"{first.name}: the second write names version {last.target_version}, which nobody knows yet"
    if target_key(first.target_after) != target_key(first.target_before):
        yield f"{first.name}: the low write changes the target"
    before, low, after = first.before, first.after, last.after
    if not (
        isinstance(before, ComputeQuotaConfig)
        and isinstance(low, ComputeQuotaConfig)
        and isinstance(after, ComputeQuotaConfig)
    ):
        yield f"{first.name}: a low write is made of something else than quotas"
        return
    if not isinstance(last.before, ComputeQuotaConfig) or config_key(last.before) != config_key(low):
        yield f"{first.name}: the second write does not begin from the low one"
    yield from _low_failures(first.name, before, low, after, facts)


def _low_failures(
    name: str, before: ComputeQuotaConfig, low: ComputeQuotaConfig, after: ComputeQuotaConfig, facts: Facts
) -> Iterator[str]:
    rows = [
        sorted((row.instance_type, str(row.accelerator_partition and row.accelerator_partition.type)) for row in each)
        for each in (before.compute_quota_resources, low.compute_quota_resources)
    ]
    if rows[0] != rows[1]:
        yield f"{name}: the low write has other rows than what stands"
    from_, to, goal = (resources_of(config, facts.book) for config in (before, low, after))
    # At one thread per core a vCPU that nobody wrote counts as half of one that is written out: the sums demand it.
    running, wanted = (resources_of(config, facts.book, running=True) for config in (before, after))
    for key in sorted({*from_, *to, *goal}):
        least = min(from_.get(key, 0), goal.get(key, 0), running.get(key, 0), wanted.get(key, 0))
        amount = to.get(key, 0)
        if amount > from_.get(key, 0):
            yield f"{name}: the low write takes {key[1]} of {key[0]}: {from_.get(key, 0)} -> {amount}"
        elif amount < least - _rounding(key[1], least):
            yield f"{name}: the low write gives too much {key[1]} of {key[0]}: {amount}, {least} would do"


def _rounding(resource: str, amount: int) -> int:
    """Return how far rounding down to what survives a 32-bit float may go: an eighth, and one for large numbers."""
    unit = {CPU: 1000, MEMORY: GIB}.get(resource, 0)
    return unit if amount > 100_000 * unit else unit // 8


def greater(one: Vector, other: Vector) -> Vector:
    """Return the greater of two vectors, resource by resource."""
    return {key: max(one.get(key, 0), other.get(key, 0)) for key in {*one, *other}}
