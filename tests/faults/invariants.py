"""What must hold after each cell, whatever the fault was. Each function returns sentences about what does not hold.

Nothing here asks the product: configurations are compared as the services were given them.
"""

from __future__ import annotations

from itertools import chain, combinations
from typing import TYPE_CHECKING, Any, Final

from tests.faults import steps
from tests.faults.scenario import EDITOR, TYPE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from tests.faults.evidence import Evidence, Record, Write

UNKNOWN: Final = "not known whether written"
"""What a record says of writes when their records could not be read; it names them."""
UNPUBLISHED: Final = "no answer says that it was published"
"""What the state machine says in the record of a run when publishing failed, or never answered."""
UNCOUNTED: Final = f"{UNPUBLISHED} (writes whose calls did not answer are not counted)"
"""What it says then of a run that had begun to write: it counts by the answers, and cannot read the table."""
MOST_OF_A_CALL: Final = 2
"""Writes of one call of the scenario's plan; calls before the last that answers nothing are tried until they answer."""
NOTHING_WRITTEN = frozenset(
    {"nothing-to-do", "planned", "needs-approval", "blocked", "rejected", "expired", "unreadable", "failed"}
)


def while_it_lasts(evidence: Evidence, wanted: Mapping[str, Any]) -> list[str]:
    """Check what must hold before the resync: the plan, the state before it, or a record that names what it wrote."""
    held = evidence.state()
    if held in (dict(evidence.before), dict(wanted)):
        return []
    return [
        f"{name} holds {_short(config)}: neither the plan nor the state before it, and no record names the write"
        for name, config in held.items()
        if config != evidence.before.get(name)
        and not any(_tells_of(record, name, config) for record in evidence.records)
    ]


def _tells_of(record: Record, name: str, config: Any) -> bool:
    kinds = (_names, _names_as_unknown, _counts_in_plan)
    return any(tells(record, name, config) for tells in kinds)


def _counts_in_plan(record: Record, name: str, config: Any) -> bool:
    """Say whether the state machine kept the record: it has the plan, and a count instead of the names."""
    if record.planned is None or not record.applied or UNPUBLISHED not in record.error:
        return False
    return any(_normal(after) == _normal(config) for subject, after in record.planned if subject == name)


def _names(record: Record, name: str, config: Any) -> bool:
    """Say whether a record names a resource among what its run wrote."""
    if config is not None and "ComputeQuotaResources" not in config:
        return "cluster policy" in record.written
    return any(subject.partition("/")[2] == name for subject in record.written)


def _names_as_unknown(record: Record, name: str, config: Any) -> bool:
    """Say whether a record says of a resource that its run may have written it."""
    is_policy = config is not None and "ComputeQuotaResources" not in config
    return ("cluster policy" if is_policy else name) in record.error.partition(UNKNOWN)[2]


def at_the_end(evidence: Evidence) -> list[str]:
    """Check what must hold after the fault is gone and the resync has come, whatever the state is to be."""
    return list(
        chain(
            _sum(evidence),
            _floors(evidence),
            steps.locks(evidence.locks),
            steps.notices(evidence.notices),
            leftovers(evidence),
            chain.from_iterable(_truth(evidence, record) for record in evidence.records),
            _unrecorded(evidence),
        )
    )


def converged(evidence: Evidence, wanted: Mapping[str, Any]) -> list[str]:
    """Check that every quota has settled, and holds what the plan of a clean run wants."""
    held = evidence.state()
    return [*evidence.unsettled] + [
        f"{name} holds {_short(held.get(name))} instead of {_short(wanted.get(name))}"
        for name in sorted(held.keys() | wanted.keys())
        if held.get(name) != wanted.get(name)
    ]


def refusal_stands(evidence: Evidence, later: Evidence) -> list[str]:
    """Check that while a refused write waits to be asked for again, a run says so and nothing else is written."""
    found = [f"{write.resource} was written while a refusal stood" for write in later.writes[len(evidence.writes) :]]
    says = {"unfinished", "stopped"}  # a run that was stopped has the refusal in the record that is closed for it
    if not any(record.outcome in says and "refused" in record.error for record in evidence.records):
        found.append("no run says that a write was refused")
    return found + leftovers(evidence)


def edit_kept(evidence: Evidence) -> list[str]:
    """Check that what a person wrote in between is still there: the policy keeps edits by hand."""
    edits = {write.resource: write.config for write in evidence.writes if not write.by_automation}
    held = evidence.state()
    return [f"the edit of {name} by {EDITOR} was overwritten" for name, config in edits.items() if held[name] != config]


def _sum(evidence: Evidence) -> Iterator[str]:
    """Check that the sum of quotas never rises above the greater of capacity and the sum before."""
    limit = max(evidence.capacity, _total(evidence.before))
    held = dict(evidence.before)
    for write in evidence.writes:
        held[write.resource] = write.config
        if _total(held) > limit:
            yield f"quotas add up to {_total(held)} of {limit} at {write.at:%H:%M:%S}, after {write.resource}"


def _floors(evidence: Evidence) -> Iterator[str]:
    held = dict(evidence.before)
    for write in evidence.writes:
        if write.by_automation:
            yield from steps.floors(write.resource, _count(held.get(write.resource)), _count(write.config))
        held[write.resource] = write.config


def counts(evidence: Evidence, preemptions: float, *, again: Collection[str] = (), elsewhere: int = 0) -> list[str]:
    """Check that each preemption and each change was counted once; of the runs that are named `again`, twice.

    Another function counted `elsewhere` preemptions, unless a later run came to count them.
    """
    found = []
    counted = evidence.counted.get("Preemptions", 0)
    here = {preemptions - some for some in range(elsewhere + 1)}
    if counted not in {*here, *(2 * preemptions for _ in again)}:
        found.append(f"{evidence.preempted} preemption(s) were counted as {counted:g} instead of {preemptions:g}")
    # Of a run whose publishing never answered it is not known whether it was counted; one that was stopped is not.
    ended = [record for record in evidence.records if not record.closed_by_another]
    applied, told = sum(record.applied for record in ended), evidence.counted.get("ChangesApplied", 0)
    unclear = [record.applied for record in ended if UNPUBLISHED in record.error]
    more = sum(record.applied for record in ended if record.run_id in again)
    if told not in {applied + more - sum(some) for some in _subsets(unclear)}:
        found.append(f"ChangesApplied counts {told:g} changes, and the records {applied}")
    return found


def _subsets(numbers: list[int]) -> Iterator[tuple[int, ...]]:
    return chain.from_iterable(combinations(numbers, size) for size in range(len(numbers) + 1))


def leftovers(evidence: Evidence) -> list[str]:
    """Check that no lock is held, nothing lies in the dead-letter queue, and nothing runs."""
    found = []
    if evidence.locked_until and evidence.locked_until > evidence.now:
        found.append(f"the lock is held until {evidence.locked_until:%H:%M:%S}")
    if evidence.dead_letters:
        found.append(f"{evidence.dead_letters} message(s) in the dead-letter queue")
    if evidence.running:
        found.append(f"{evidence.running} execution(s) still run")
    return found


def _truth(evidence: Evidence, record: Record) -> Iterator[str]:
    """Check that a record says how many quotas its run wrote, and that they hold what its outcome says.

    A quota that is written twice counts once, by one plan or by two. A run that could not be published has the count of
    the state machine, which counts a quota once for each of its plans, and says that it knows answers alone.
    """
    standing = _standing(evidence, record)
    published = UNPUBLISHED not in record.error
    most = max(len(standing), _written(evidence, record, distinct=published))
    held = evidence.state(record.place)
    certain = [name for name in standing if not _names_as_unknown(record, name, held.get(name))]
    least = len(certain) - (MOST_OF_A_CALL if UNCOUNTED in record.error else 0)
    if not least <= record.applied <= most:
        yield f"{record.run_id} ({record.outcome}) says {record.applied} applied; {len(standing)} stand: {standing}"
    if record.outcome in NOTHING_WRITTEN and standing:
        yield f"{record.run_id} says {record.outcome} and wrote {standing}"
    if record.planned is not None and record.outcome == "applied":
        yield from _holds(evidence, record, dict(record.planned))
    silent = [name for name in certain if not _names(record, name, held.get(name))]
    if published and silent:
        yield f"{record.run_id} ({record.outcome}) does not name {silent} among what it wrote: {sorted(record.written)}"


def _holds(evidence: Evidence, record: Record, planned: Mapping[str, Any]) -> Iterator[str]:
    """Check that all is as planned, but for what a person changed after its wave had been verified."""
    held = evidence.state(record.place)
    edited = {write.resource for write in _within(evidence, record) if not write.by_automation}
    for name, config in planned.items():
        if name not in edited and _normal(held.get(name)) != _normal(config):
            yield f"{record.run_id} says {record.outcome}, and {name} holds {_short(held.get(name))}"


def _standing(evidence: Evidence, record: Record) -> list[str]:
    """Return what the automation changed during a run and did not change back."""
    within = _within(evidence, record)
    before = evidence.state(min((write.place for write in within), default=record.place))
    after = evidence.state(record.place)
    written = {write.resource for write in within if write.by_automation} - {
        write.resource for write in within if not write.by_automation
    }
    return sorted(name for name in written if _normal(before.get(name)) != _normal(after.get(name)))


def _written(evidence: Evidence, record: Record, *, distinct: bool) -> int:
    mine = [write.resource for write in _within(evidence, record) if write.by_automation]
    return len(set(mine)) if distinct else len(mine)


def _within(evidence: Evidence, record: Record) -> list[Write]:
    """Return the writes during a run. Of two that overlap, one waited for the lock: the first to end is who wrote."""
    others = [other for other in evidence.records if other.place < record.place]
    return [
        write
        for write in evidence.writes
        if _during(write, record) and not any(_during(write, other) for other in others)
    ]


def _during(write: Write, record: Record) -> bool:
    return record.started <= write.at and write.place < record.place


def _unrecorded(evidence: Evidence) -> Iterator[str]:
    for write in evidence.writes:
        if write.by_automation and not any(_during(write, record) for record in evidence.records):
            yield f"no record tells of the write of {write.resource} at {write.at:%H:%M:%S}"


def _normal(config: Any) -> Any:
    """Return a configuration without what was not given: a plan writes that down as null."""
    if isinstance(config, dict):
        return {name: _normal(value) for name, value in config.items() if value is not None}
    return [_normal(value) for value in config] if isinstance(config, list) else config


def _total(held: Mapping[str, Any]) -> int:
    return sum(_count(config) for config in held.values())


def _count(config: Any) -> int:
    resources = (config or {}).get("ComputeQuotaResources", ())
    return sum(int(resource.get("Count", 0)) for resource in resources if resource["InstanceType"] == TYPE)


def _short(config: Any) -> str:
    """Write what a resource holds as records do."""
    if config is None:
        return "nothing"
    if "ComputeQuotaResources" in config:
        return f"{_count(config)} x {TYPE}"
    return ", ".join(
        f"{priority_class['Name']} {priority_class['Weight']}" for priority_class in config.get("PriorityClasses", ())
    )
