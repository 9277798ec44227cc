"""Whether each cause that a plan names for a number of a quota can be: by the document, the clock and what stands."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from taskgov.allocation.plan import DELETIONS
from taskgov.allocation.sources import Cause, Source, Trail
from taskgov.hyperpod.model import ComputeQuotaResource
from taskgov.policy.document import PolicyDocument
from taskgov.policy.measured import Share
from taskgov.snapshot.model import Snapshot
from tests.prove.facts import Facts
from tests.prove.lent import Lent, lent_now
from tests.prove.sameness import config_key, target_key
from tests.prove.table import RowKey, given_by

Sources = Mapping[str, Mapping[RowKey, Trail]]
"""Team -> row of its quota -> where it comes from."""
MOST_ROWS = 15
TAKING = frozenset({Cause.SHORTAGE, Cause.INCIDENT, Cause.CEILING, Cause.DEMAND, Cause.NO_ROW})
GIVING = frozenset({Cause.PROMISE, Cause.SHARE, Cause.FLOOR, Cause.EDIT_KEPT, Cause.EDIT_ADOPTED, Cause.LEFT_ALONE})


@dataclass(frozen=True, slots=True)
class World:
    """What the causes are held against."""

    facts: Facts
    policy: PolicyDocument | None
    shares: Mapping[tuple[str, str], Share]
    fixed: Mapping[tuple[str, RowKey], ComputeQuotaResource]
    lent: tuple[Lent, ...]
    edited: frozenset[str] = field(default_factory=frozenset)
    """Teams with a quota that a person changed since the automation wrote it."""
    without_nodes: frozenset[str] = field(default_factory=frozenset)
    """Types of which nothing is counted."""
    crowded: frozenset[str] = field(default_factory=frozenset)
    """Teams whose quotas have as many rows as there can be."""

    @classmethod
    def of(cls, facts: Facts) -> "World":
        """Gather what the causes are held against."""
        policy = facts.snapshot.policy
        teams = () if policy is None else policy.teams
        fixed = {
            (team.name, (row.instance_type, row.accelerator_partition.type if row.accelerator_partition else "")): row
            for team in teams
            for row in (team.quota.compute_quota_resources if team.quota else ())
        }
        promised = {line.team: 0 for line in facts.plan.allocations}
        for line in facts.plan.allocations:
            promised[line.team] += 1
        return cls(
            facts,
            policy,
            {(team.name, share.instance_type): share for team in teams for share in team.share},
            fixed,
            tuple(lent_now(facts.snapshot, facts.plan)),
            edited_teams(facts.snapshot),
            frozenset(line.instance_type for line in facts.plan.capacity if not line.nodes or not line.counted),
            frozenset(team for team, rows in promised.items() if rows > MOST_ROWS),
        )

    def bounded(self, instance_type: str) -> bool:
        """Say whether any share of the type has a floor or a ceiling."""
        here = (share for (_, name), share in self.shares.items() if name == instance_type)
        return any(share.floor or share.ceiling is not None for share in here)


def edited_teams(snapshot: Snapshot) -> frozenset[str]:
    """Return the teams with a quota that is newer than our last write of it, and says something else."""
    applied = {item.compute_quota_id: item for item in snapshot.applied}
    found = set()
    for quota in snapshot.quotas:
        record = applied.get(quota.compute_quota_id)
        if record is None or quota.compute_quota_version <= record.version:
            continue
        same = config_key(quota.compute_quota_config) == config_key(record.config)
        if not same or target_key(quota.compute_quota_target) != target_key(record.target):
            found.add(quota.compute_quota_target.team_name)
    return frozenset(found)


def cause_failures(facts: Facts, sources: Sources) -> Iterator[str]:
    """Yield the causes that cannot be, and those that go the wrong way."""
    world = World.of(facts)
    for team, rows in sources.items():
        for key, trail in rows.items():
            said = {source.cause for source in trail.sources}
            for source in trail.sources:
                place = f"{team} {' '.join(filter(None, key))}"
                why = _CHECKS[source.cause](world, team, key, said)
                if why:
                    yield f"{place}: {source.cause.value} is named, and {why}"
                yield from (f"{place}: {source.cause.value} {words}" for words in _wrong_way(source))
            yield from _exact_failures(world, team, key, trail, told_of_all(world, sources, key[0]))


def _wrong_way(source: Source) -> Iterator[str]:
    if source.cause in TAKING and any(amount > 0 for amount in source.amounts.values()):
        yield "gives"
    if source.cause in GIVING and any(amount < 0 for amount in source.amounts.values()):
        yield "takes"


def told_of_all(world: World, sources: Sources, instance_type: str) -> bool:
    """Say whether every share of a type has sources: shares of quotas that are left alone divide nothing."""
    holders = [team for (team, name), share in world.shares.items() if name == instance_type and share.percent]
    said = {
        team
        for team in holders
        for trail in sources.get(team, {}).values()
        if any(source.cause is Cause.SHARE for source in trail.sources)
    }
    return said == set(holders)


def _exact_failures(world: World, team: str, key: RowKey, trail: Trail, all_divide: bool) -> Iterator[str]:
    """Yield a promise or a share in instances that is not told as the document has it."""
    if world.facts.snapshot.refusals or any(source.cause in NEW_UNITS for source in trail.sources):
        return  # the units may have changed, and with them the numbers
    for source in trail.sources:
        row = world.fixed.get((team, key))
        if source.cause is Cause.PROMISE and row is not None and not _at_allocatable(world):
            said = {unit: amount for unit, amount in given_by(row).items() if amount}
            if said != dict(source.amounts):
                yield f"{team} {key[0]}: the promise is told as {dict(source.amounts)}, the document says {said}"
        share = world.shares.get((team, key[0]))
        if all_divide and source.cause is Cause.SHARE and share is not None and share.percent is not None:
            wanted = _percentage(world, share)
            if share.unit == "instances" and not _at_allocatable(world) and source.amounts != {"Count": wanted}:
                yield f"{team} {key[0]}: the share is told as {dict(source.amounts)}, it is {wanted}"


NEW_UNITS = frozenset({Cause.LEASE, Cause.LIMIT, Cause.NOT_WRITTEN, Cause.REFUSED, Cause.REFUSED_TO_ANOTHER})
"""Causes that may write a row in other units than it was promised in."""


def _at_allocatable(world: World) -> bool:
    return world.policy is not None and world.policy.capacity.basis == "allocatable"


def _percentage(world: World, share: Share) -> Fraction:
    here = [each for (_, name), each in world.shares.items() if name == share.instance_type]
    percents = sum((Fraction(str(each.percent or 0)) for each in here), Fraction(0))
    whole = percents if abs(percents - 100) <= Fraction(1, 10) else Fraction(100)
    usable = next(line.usable for line in world.facts.plan.capacity if line.instance_type == share.instance_type)
    return Fraction(str(share.percent)) * usable / whole


Check = Callable[[World, str, RowKey, set[Cause]], str]
"""World, team, row, all causes of the row -> why the cause cannot be; empty where it can."""


def _promise(world: World, team: str, key: RowKey, said: set[Cause]) -> str:
    is_count = _at_allocatable(world) and (team, key[0]) in world.shares
    return "" if (team, key) in world.fixed or is_count else "the document guarantees none"


def _share(world: World, team: str, key: RowKey, said: set[Cause]) -> str:
    return "" if (team, key[0]) in world.shares else "the team has no share"


def _floor(world: World, team: str, key: RowKey, said: set[Cause]) -> str:
    share = world.shares.get((team, key[0]))
    minima = world.policy.guardrails.minimum_quota if world.policy else {}
    return "" if (share and share.floor) or (team in minima and share is None) else "the team has no floor"


def _ceiling(world: World, team: str, key: RowKey, said: set[Cause]) -> str:
    share, numbers = world.shares.get((team, key[0])), world.facts.book.get(key[0])
    without = numbers is not None and not numbers.gpu and not numbers.neuron
    return "" if without or (share and share.ceiling is not None) else "the team has no ceiling"


def _bounds(world: World, team: str, key: RowKey, said: set[Cause]) -> str:
    in_shortage = _shortage(world, team, key, said) == ""
    return "" if in_shortage or world.bounded(key[0]) else "nobody has a floor or a ceiling"


def _rounding(world: World, team: str, key: RowKey, said: set[Cause]) -> str:
    if team == world.facts.pool:
        return ""
    divided = {Cause.SHARE, Cause.SHORTAGE, Cause.INCIDENT, Cause.POOL, Cause.FLOOR, Cause.BOUNDS_OF_OTHERS}
    is_share = (team, key[0]) in world.shares
    return "" if divided & said or is_share else "nothing is divided"


def _shortage(world: World, team: str, key: RowKey, said: set[Cause]) -> str:
    told = {finding.subject for finding in world.facts.plan.findings if finding.code in SHORT}
    return "" if key[0] in told else "no finding says that promises do not fit"


SHORT = frozenset({"capacity-shortage", "floors-exceed-capacity"})


def _incident(world: World, team: str, key: RowKey, said: set[Cause]) -> str:
    told = {item.subject for item in world.facts.plan.findings if item.code == "floors-exceed-capacity"}
    return "" if key[0] in told else "the floors fit"


def _demand(world: World, team: str, key: RowKey, said: set[Cause]) -> str:
    if world.policy is None or not world.policy.demand.enabled:
        return "demand is off"
    row = world.fixed.get((team, key))
    adopted = Cause.EDIT_ADOPTED in said
    return "" if adopted or (row is not None and row.count is not None) else "the team has no promise of instances"


def _lease(world: World, team: str, key: RowKey, said: set[Cause]) -> str:
    here = (lent.lease for lent in world.lent if lent.lease.instance_type == key[0])
    return "" if any(team in {lease.to, lease.from_} for lease in here) else "no lease of the team holds"


def _edit(world: World, team: str, rule: str) -> str:
    if world.policy is None or world.policy.hand_edits != rule:
        return "edits are not treated so"
    kept = {item.compute_quota_id for item in world.facts.snapshot.applied if item.adopted}
    teams = {q.compute_quota_target.team_name for q in world.facts.snapshot.quotas if q.compute_quota_id in kept}
    return "" if team in world.edited | (teams if rule == "adopt" else set()) else "nobody edited the quota"


def _kept(world: World, team: str, key: RowKey, said: set[Cause]) -> str:
    return _edit(world, team, "keep")


def _adopted(world: World, team: str, key: RowKey, said: set[Cause]) -> str:
    return _edit(world, team, "adopt")


def _left_alone(world: World, team: str, key: RowKey, said: set[Cause]) -> str:
    mine = [change for change in world.facts.plan.changes if change.team == team]
    deleted = {change.resource_id for change in mine if change.kind in DELETIONS}
    quotas = (q for q in world.facts.snapshot.quotas if q.compute_quota_target.team_name == team)
    # A second quota of the team, which failed, may be deleted beside the one that is left alone.
    stays = any(quota.compute_quota_id not in deleted for quota in quotas)
    written = any(change.kind not in DELETIONS for change in mine)
    return "the plan writes it" if written or (deleted and not stays) else ""


def _no_nodes(world: World, team: str, key: RowKey, said: set[Cause]) -> str:
    return "" if key[0] in world.without_nodes else "the type has nodes"


def _unknown(world: World, team: str, key: RowKey, said: set[Cause]) -> str:
    return "the numbers of the type are known" if key[0] in world.facts.book else ""


def _pool(world: World, team: str, key: RowKey, said: set[Cause]) -> str:
    return "" if team == world.facts.pool else "the team is not the shared pool"


def _limit(world: World, team: str, key: RowKey, said: set[Cause]) -> str:
    partial = world.policy is not None and world.policy.guardrails.on_limit == "partial"
    return "" if partial else "onLimit is not partial"


def _not_written(world: World, team: str, key: RowKey, said: set[Cause]) -> str:
    told = {item.subject for item in world.facts.plan.findings if "quota" in item.evidence and item.code in LEFT_OUT}
    return "" if team in told else "no finding says that the quota cannot be written"


LEFT_OUT = frozenset({"no-room", "unknown-instance-type"})


def _refused(world: World, team: str, key: RowKey, said: set[Cause]) -> str:
    told = {refused.team for refused in world.facts.snapshot.refusals}
    return "" if team in told else "no write of the team was refused"


def _refused_to_another(world: World, team: str, key: RowKey, said: set[Cause]) -> str:
    told = {refused.team for refused in world.facts.snapshot.refusals}
    return "" if told - {team} else "no write of another team was refused"


def _no_row(world: World, team: str, key: RowKey, said: set[Cause]) -> str:
    return "" if team in world.crowded else "the quota has rows left"


_CHECKS: Mapping[Cause, Check] = {
    Cause.PROMISE: _promise,
    Cause.SHARE: _share,
    Cause.FLOOR: _floor,
    Cause.CEILING: _ceiling,
    Cause.BOUNDS_OF_OTHERS: _bounds,
    Cause.ROUNDING: _rounding,
    Cause.SHORTAGE: _shortage,
    Cause.INCIDENT: _incident,
    Cause.DEMAND: _demand,
    Cause.LEASE: _lease,
    Cause.EDIT_KEPT: _kept,
    Cause.EDIT_ADOPTED: _adopted,
    Cause.LEFT_ALONE: _left_alone,
    Cause.NO_NODES: _no_nodes,
    Cause.UNKNOWN_TYPE: _unknown,
    Cause.POOL: _pool,
    Cause.LIMIT: _limit,
    Cause.NOT_WRITTEN: _not_written,
    Cause.REFUSED: _refused,
    Cause.REFUSED_TO_ANOTHER: _refused_to_another,
    Cause.NO_ROW: _no_row,
}
