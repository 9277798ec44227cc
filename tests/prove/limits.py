"""The limits of the document, judged anew: for every quota of a path, every resource of every type, in fractions.

A limit is *surely* broken where every defensible reading says so, and *arguably* broken where one does. A plan that is
applied breaks no limit surely; a plan that is blocked breaks one at least arguably. Readings differ in
two places only: whether vCPUs that nobody wrote count as the type's or as the machines' (one thread per core), and
whether what leases move is set aside (it is, but which leases were in an old write is not always recorded).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from fractions import Fraction
from itertools import product

from taskgov.hyperpod.model import ComputeQuotaConfig
from taskgov.policy.document import Guardrails
from taskgov.snapshot.records import AppliedQuota
from tests.prove.amounts import CPU, GIB, MEMORY, MIG, Key, Vector, exact, resources_of, slices_of
from tests.prove.facts import Facts
from tests.prove.lent import Leased, brings, is_in_parts, lent_now, net_at, net_of
from tests.prove.path import QuotaPath, paths_of

SLACK = {CPU: 2, MEMORY: 2}
"""Base units by which completion may round: a limit that is missed by less is neither surely kept nor surely broken."""
WHOLE = {CPU: 1000, MEMORY: GIB}
"""What leases in parts may round: what they move out of whole instances is written in whole vCPUs and GiB."""


@dataclass(frozen=True, slots=True)
class Broken:
    """A limit that is broken, in words."""

    limit: str
    words: str
    surely: bool


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read a path: vCPUs as machines run them or not, the leases in what stood and in what is written."""

    running: bool
    leased_before: Leased
    leased_after: Leased


def change_limits(facts: Facts) -> Iterator[Broken]:
    """Yield the limits on decreases and increases that the plan breaks, per quota, type and resource."""
    policy = facts.snapshot.policy
    if policy is None:
        return
    applied = {item.compute_quota_id: item for item in facts.snapshot.applied}
    for path, made_again in _judged_paths(facts):
        record = applied.get(path.key)
        readings = list(_readings(facts, path, record))
        found = [dict(_judged(facts, path, record, reading, policy.guardrails)) for reading in readings]
        for name in sorted({name for verdicts in found for name in verdicts}):
            verdicts = [each.get(name, (False, False, "")) for each in found]
            words = next((words for _, maybe, words in verdicts if maybe), None)
            if words is not None:
                yield Broken(name[0], words, not made_again and all(surely for surely, _, _ in verdicts))


def _judged_paths(facts: Facts) -> Iterator[tuple[QuotaPath, bool]]:
    """Yield the paths that are limited, and a failed quota that is made again as one path, which may be judged so too.

    The shared pool is nobody's promise and is not limited.
    """
    paths = [path for path in paths_of(facts) if path.team != facts.pool]
    yield from ((path, False) for path in paths)
    for gone in (path for path in paths if path.deleted):
        for made in (path for path in paths if path.team == gone.team and not path.deleted):
            yield replace(gone, after=made.after, deleted=False), True


def _readings(facts: Facts, path: QuotaPath, record: AppliedQuota | None) -> Iterator[Reading]:
    policy = facts.snapshot.policy
    leases = () if policy is None else policy.leases
    after = net_of(lent_now(facts.snapshot, facts.plan), path.team)
    befores: list[Leased] = [{}]
    if record is not None:
        past = record.history[-1] if record.history and _is_judged_from_past(facts, record) else None
        recorded = record.leased if past is None else past.leased
        befores = [net_at(leases, path.team, record.at), {}] if recorded is None else [recorded]
    halves = any(numbers.running != numbers.vcpu for numbers in facts.book.values())
    moved = bool(after) or any(befores)
    pairs = [(before, after) for before in befores] + ([({}, {})] if moved else [])
    for running, (before, later) in product((False, True) if halves else (False,), pairs):
        yield Reading(running, before, later)


def _vector(facts: Facts, config: ComputeQuotaConfig | None, reading: Reading, leased: Leased) -> Vector:
    """Return what a config promises without what leases bring to it."""
    vector = resources_of(config, facts.book, running=reading.running)
    for place, count in leased.items():
        name = place.partition(" ")[0]
        numbers = facts.book.get(name)
        if numbers is not None and config is not None:
            moved = brings(place, abs(count), numbers, running=reading.running)
            sign = 1 if count > 0 else -1
            # What a team lends is put back also where nothing is left to it.
            held = {key[1] for key in vector if key[0] == name}
            for resource in moved.keys() if count < 0 else held & moved.keys():
                vector[name, resource] = vector.get((name, resource), 0) - sign * moved[resource]
    return vector


def _is_judged_from_past(facts: Facts, record: AppliedQuota) -> bool:
    """Say whether what a quota held before its last write is what limits judge from."""
    return record.began_from is None and _is_broken_off(facts, record)


def _is_broken_off(facts: Facts, record: AppliedQuota) -> bool:
    """Say whether the plan that wrote what stands was broken off, because a write of it was refused."""
    standing = (quota for quota in facts.snapshot.quotas if quota.compute_quota_id == record.compute_quota_id)
    is_last = any(quota.compute_quota_version == record.version for quota in standing)
    return is_last and record.plan_id in {refused.plan_id for refused in facts.snapshot.refusals}


def _judged(
    facts: Facts, path: QuotaPath, record: AppliedQuota | None, reading: Reading, rules: Guardrails
) -> Iterator[tuple[tuple[str, Key], tuple[bool, bool, str]]]:
    """Yield (limit, type and resource) -> surely, arguably, in words; by one reading."""
    stood = path.before
    if record is not None and record.began_from is not None:
        stood = record.began_from
    elif record is not None and record.history and _is_broken_off(facts, record):
        stood = record.history[-1].config  # the way back from a plan that was broken off is no increase
    before = _vector(facts, stood, reading, reading.leased_before)
    after = _vector(facts, path.after, reading, reading.leased_after)
    rounds = sum(map(is_in_parts, (*reading.leased_before, *reading.leased_after)))
    stands, written = (resources_of(each, facts.book, running=reading.running) for each in (path.before, path.after))
    for key in sorted({*before, *after}):
        if stands.get(key, 0) == written.get(key, 0):
            continue  # nothing is written of it: the write that stands was judged then
        was, becomes = before.get(key, 0), after.get(key, 0)
        slack = SLACK.get(key[1], 0) + rounds * WHOLE.get(key[1], 0)
        words = f"{path.team} {key[0]} {key[1]} {was} -> {becomes}"
        if becomes < was:
            falls = was - becomes
            if rules.max_decrease_percent is not None:
                allowed = exact(rules.max_decrease_percent) * was / 100
                most = max(allowed, _instances(facts, rules, key))
                least = allowed if key[1].startswith(MIG) else most
                yield ("max-decrease", key), (falls > most + slack, falls > least - slack, words)
            if rules.max_decrease_per_period is not None:
                period = rules.max_decrease_per_period
                past = _past(facts, record, reading, key, period.hours)
                yield (
                    ("max-decrease-per-period", key),
                    _fallen(past, (was, becomes), exact(period.percent), words, slack),
                )
        elif becomes > was:
            if rules.max_increase_percent is not None and was > 0:
                over = becomes - was - exact(rules.max_increase_percent) * was / 100
                yield ("max-increase", key), (over > slack, over > -slack, words)
            if rules.max_increase_per_period is not None:
                growth = rules.max_increase_per_period
                past = _past(facts, record, reading, key, growth.hours)
                yield (
                    ("max-increase-per-period", key),
                    _risen(past, (was, becomes), exact(growth.percent), words, slack),
                )


def _instances(facts: Facts, rules: Guardrails, key: Key) -> Fraction:
    """Return what `maxDecreaseInstances` lets a number fall by; a partition counts by the sevenths of its GPUs."""
    count = getattr(rules, "max_decrease_instances", None) or 0
    numbers = facts.book.get(key[0])
    if numbers is None:
        return Fraction(count if key[1] == "Count" else 0)
    if key[1].startswith(MIG):
        return Fraction(count * numbers.gpu * 7, slices_of(key[1]))
    return Fraction(count * numbers.whole().get(key[1], 0))


Past = tuple[list[int], list[int]] | None
"""Values that the number surely had in the period, and those that it may have had; None where that cannot be read."""


def _past(facts: Facts, record: AppliedQuota | None, reading: Reading, key: Key, hours: int) -> Past:
    if record is None:
        return [], []
    if record.history is None:
        return None
    began = facts.snapshot.taken_at - timedelta(hours=hours)
    policy = facts.snapshot.policy
    leases = () if policy is None else policy.leases
    surely: list[int] = []
    written: datetime | None = None
    for past in record.history:
        if past.until > began:
            net = {} if written is None else net_at(leases, record.target.team_name, written)
            set_aside = bool(reading.leased_before) or bool(reading.leased_after)
            vector = _vector(facts, past.config, reading, net if set_aside else {})
            surely.append(vector.get(key, 0))
        written = past.until
    now = _vector(facts, record.config, reading, reading.leased_before).get(key, 0)
    return surely, [*surely, now]


def _fallen(past: Past, numbers: tuple[int, int], percent: Fraction, words: str, slack: int) -> tuple[bool, bool, str]:
    if past is None:
        return True, True, f"{words}, and its past cannot be read"
    was, becomes = numbers
    surely, maybe = (max([was, *values]) for values in past)
    over = [most - becomes - percent * most / 100 for most in (surely, maybe)]
    return over[0] > slack, max(over) > -slack, f"{words}, the most was {surely}"


def _risen(past: Past, numbers: tuple[int, int], percent: Fraction, words: str, slack: int) -> tuple[bool, bool, str]:
    if past is None:
        return True, True, f"{words}, and its past cannot be read"
    was, becomes = numbers
    over = []
    for values in past:
        least = min((value for value in (was, *values) if value > 0), default=0)
        over.append(becomes - least - percent * least / 100 if least else Fraction(-1))
    return over[0] > slack, max(over) > -slack or max(over) == 0, f"{words}, within the period"
