"""What a policy document may say and probably does not mean, as findings with their remedy."""

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from math import ceil
from typing import Final

from taskgov.findings import Finding, Severity
from taskgov.hyperpod.borrowing import borrow_limit_findings, borrow_percent, sharing_of
from taskgov.hyperpod.hardware import stands_for
from taskgov.hyperpod.instance_types import InstanceTypeTable, unknown_type_finding
from taskgov.hyperpod.model import SharingStrategy, Switch
from taskgov.policy.document import PolicyDocument
from taskgov.policy.draft import Draft
from taskgov.policy.measured import WHOLE_WITHIN, Unit
from taskgov.policy.moves import most_moved, smallest_percent
from taskgov.violations import Location, path_of

Evidence = Mapping[str, str | int]
Place = Callable[[Location], str]
"""How a location in what could be read is written as a path of the document."""

GUIDES_BORROW_LIMIT: Final = 500
"""Percent that a team may borrow, as HyperPod's guide ("Policies") and the API reference's text have it."""


def policy_warnings(draft: Draft, place: Place = path_of) -> tuple[Finding, ...]:
    """Return every warning, kind by kind."""
    table = draft.document.instance_type_table()
    return (
        *_unknown_types(draft, table, place),
        *_unknown_families(draft, place),
        *_promises_a_type_cannot_keep(draft, table, place),
        *_units_a_type_does_not_have(draft, table, place),
        *_shares_of_less_than_an_instance(draft, table, place),
        *_promises_beside_the_whole(draft, place),
        *_limits_without_borrowing(draft.document, place),
        *_limits_above_the_guides(draft.document, place),
        *_limits_that_round_to_nothing(draft.document, table),
        *_teams_without_promise(draft.document, place),
        *_nobody_keeps_the_remainder(draft.document),
        *_promises_that_demand_never_moves(draft, place),
    )


def _unknown_types(draft: Draft, table: InstanceTypeTable, place: Place) -> Iterator[Finding]:
    """One warning a type, at its first place."""
    first: dict[str, Location] = {}
    for location, name in _named_types(draft):
        if name not in table:
            first.setdefault(name, location)
    for name, location in first.items():
        yield unknown_type_finding(name, place(location))


def _unknown_families(draft: Draft, place: Place) -> Iterator[Finding]:
    """Warn of a family without known types: it may be new, or misspelt."""
    types = draft.instance_types()
    for index, team in enumerate(draft.document.teams):
        for entry, promise in enumerate(team.families):
            if not any(stands_for(promise.family, name) for name in types):
                because = f"No known instance type is of {promise.words}: {team.name} has nothing until a node is."
                where, evidence = place(("teams", index, "families", entry, "family")), {"family": promise.family}
                yield _warning("unknown-family", where, because, "Correct it, unless the family is new.", evidence)


def _named_types(draft: Draft) -> Iterator[tuple[Location, str]]:
    for location, _, one in draft.promises():
        yield (*location, "InstanceType"), one.instance_type
    for index, team in enumerate(draft.document.teams):
        for entry, share in enumerate(team.share):
            yield ("teams", index, "share", entry, "instanceType"), share.instance_type
    for index, lease in enumerate(draft.document.leases):
        yield ("leases", index, "instanceType"), lease.instance_type


def _promises_a_type_cannot_keep(draft: Draft, table: InstanceTypeTable, place: Place) -> Iterator[Finding]:
    """Accelerators of a type that has none; partitions that its GPUs do not have."""
    for location, _, one in draft.promises():
        resources = table.resources_of(one.instance_type)
        if resources is None:
            continue
        if one.accelerators and not resources.accelerators:
            because = f"{one.instance_type} has no accelerators, and {one.accelerators} are promised."
            where, promised = place((*location, "Accelerators")), one.accelerators
            evidence: Evidence = {"instanceType": one.instance_type, "promised": promised}
            yield _warning("no-accelerators", where, because, "Promise VCpu or MemoryInGiB.", evidence)
        partition = one.accelerator_partition
        if partition and partition.type not in resources.mig_profiles:
            profiles = ", ".join(resources.mig_profiles) or "none"
            because = f"{one.instance_type} has no partitions of {partition.type} (it has: {profiles})."
            place_of_type = place((*location, "AcceleratorPartition", "Type"))
            evidence = {"instanceType": one.instance_type, "profile": partition.type, "profiles": profiles}
            yield _warning("unsupported-partition", place_of_type, because, "Choose a profile of the type.", evidence)


def _units_a_type_does_not_have(draft: Draft, table: InstanceTypeTable, place: Place) -> Iterator[Finding]:
    """Shares and leases of accelerators of a type that has none, or of slices that its GPUs do not have."""
    for location, measured in draft.measured():
        resources = table.resources_of(measured.instance_type)
        if resources is None:
            continue
        name, profile = measured.instance_type, measured.accelerator_partition_type
        evidence: Evidence = {"instanceType": name, "unit": measured.unit.value}
        if measured.unit is Unit.ACCELERATORS and not resources.accelerators:
            where, because = place((*location, "unit")), f"{name} has no accelerators to count in."
            yield _warning("no-accelerators", where, because, "Count in vcpu, memoryInGiB or instances.", evidence)
        elif measured.unit is Unit.PARTITION and profile not in resources.mig_profiles:
            where = place((*location, "acceleratorPartitionType"))
            because = f"{name} has no partitions of {profile} (it has: {', '.join(resources.mig_profiles) or 'none'})."
            yield _warning("unsupported-partition", where, because, "Choose a profile of the type.", evidence)


def _shares_of_less_than_an_instance(draft: Draft, table: InstanceTypeTable, place: Place) -> Iterator[Finding]:
    """Warn of small shares in whole instances of large machines: few machines leave them nothing."""
    for index, team in enumerate(draft.document.teams):
        for entry, share in enumerate(team.share):
            resources = table.resources_of(share.instance_type)
            if share.unit is not Unit.INSTANCES or share.floor or not share.percent:
                continue
            if resources is None or resources.accelerators < 2 or (least := ceil(100 / share.percent)) <= 2:
                continue
            where = place(("teams", index, "share", entry, "percent"))
            because = (
                f"{share.percent:g} % of {share.instance_type} is less than one instance while fewer than {least} are "
                f"usable: {team.name} can be left with nothing."
            )
            remedy = "Count it in parts (unit: accelerators), or give it a floor."
            evidence: Evidence = {"team": team.name, "instanceType": share.instance_type, "instances": least}
            yield _warning("share-may-be-nothing", where, because, remedy, evidence)


def _promises_beside_the_whole(draft: Draft, place: Place) -> Iterator[Finding]:
    """Warn where percentages divide all of a type, and somebody is promised some of it besides."""
    percents: dict[str, Fraction] = {}
    besides: dict[str, list[tuple[Location, str]]] = {}
    for index, team in enumerate(draft.document.teams):
        for entry, share in enumerate(team.share):
            percents[share.instance_type] = percents.get(share.instance_type, 0) + Fraction(str(share.percent or 0))
            if share.weight is not None:
                where: Location = ("teams", index, "share", entry, "weight")
                besides.setdefault(share.instance_type, []).append((where, f"a weight of {share.weight}"))
    for location, _, one in draft.promises():
        besides.setdefault(one.instance_type, []).append((location, "a fixed quota"))
    for name, whole in percents.items():
        for location, what in besides.get(name, ()) if abs(whole - 100) <= WHOLE_WITHIN else ():
            because = f"Percentages divide all of {name}, and {what} stands beside them: together they never fit."
            remedy = (
                "Write weight instead of percent (weights divide what fixed quotas leave), or lower the percentages."
            )
            yield _warning("promise-beside-the-whole", place(location), because, remedy, {"instanceType": name})


def _limits_without_borrowing(document: PolicyDocument, place: Place) -> Iterator[Finding]:
    """Warn of a borrow limit of a team that does not borrow: it means nothing."""
    for index, team in enumerate(document.teams):
        sharing = sharing_of(team.quota) if team.quota else None
        if sharing is None or sharing.strategy is SharingStrategy.LEND_AND_BORROW:
            continue
        if sharing.borrow_limit or sharing.absolute_borrow_limits:
            because = f"{team.name} has a borrow limit, and with Strategy {sharing.strategy} it never borrows."
            where = place(("teams", index, "quota", "ResourceSharingConfig", "BorrowLimit"))
            remedy = "Leave the limit out, or choose LendAndBorrow."
            evidence: Evidence = {"team": team.name, "strategy": sharing.strategy.value}
            yield _warning("borrow-limit-ignored", where, because, remedy, evidence)


def _limits_above_the_guides(document: PolicyDocument, place: Place) -> Iterator[Finding]:
    """Warn of a limit that the API's model takes and the guide's text does not."""
    for index, team in enumerate(document.teams):
        percent = borrow_percent(sharing_of(team.quota)) if team.quota else 0
        if percent > GUIDES_BORROW_LIMIT:
            because = f"{team.name} may borrow {percent:,} %: the API's model takes up to 10,000, its guide up to 500."
            remedy = "Set BorrowLimit to 500 or less unless the API of your Region is known to take more."
            where = place(("teams", index, "quota", "ResourceSharingConfig", "BorrowLimit"))
            yield _warning("borrow-limit-above-500", where, because, remedy, {"team": team.name, "percent": percent})


def _limits_that_round_to_nothing(document: PolicyDocument, table: InstanceTypeTable) -> Iterator[Finding]:
    for team in document.teams:
        if team.quota:
            yield from borrow_limit_findings(team.name, team.quota, table)


def _teams_without_promise(document: PolicyDocument, place: Place) -> Iterator[Finding]:
    """Warn of a team with neither quota nor share: it lives on what it leases and borrows."""
    for index, team in enumerate(document.teams):
        if not team.share and not team.families and not (team.quota and team.quota.compute_quota_resources):
            because = f"{team.name} has neither a quota nor a share, so it is guaranteed nothing."
            where, evidence = place(("teams", index)), {"team": team.name}
            yield _warning("team-without-promise", where, because, "Give it a quota or a share.", evidence)


def _nobody_keeps_the_remainder(document: PolicyDocument) -> Iterator[Finding]:
    """HyperPod keeps no pool while IdleResourceSharing is not Enabled."""
    pool, scheduler = document.shared_pool, document.scheduler_config
    if pool and pool.native and scheduler and scheduler.idle_resource_sharing is not Switch.ENABLED:
        because = "sharedPool is native, and IdleResourceSharing is not Enabled: nobody can borrow what no team has."
        remedy = "Set schedulerConfig.IdleResourceSharing to Enabled, or name a team of your own as the pool."
        evidence = {"IdleResourceSharing": str(scheduler.idle_resource_sharing or "not set")}
        yield _warning("nobody-keeps-remainder", "sharedPool.native", because, remedy, evidence)


def _promises_that_demand_never_moves(draft: Draft, place: Place) -> Iterator[Finding]:
    """Warn of fixed promises of which `maxMovePercent` is less than one instance: demand leaves them as they are.

    A team always keeps one instance, so that a promise of one has nothing to move.
    """
    rules = draft.document.demand
    percent = rules.max_move_percent
    for location, _, promised in draft.promises() if rules.enabled and percent else ():
        count = promised.count or 0
        if count > 1 and not most_moved(count, percent):
            because = f"Demand never moves any of {count} {promised.instance_type}: {percent:g} % is less than one."
            evidence: Evidence = {"instanceType": promised.instance_type, "promised": count}
            remedy = f"Set demand.maxMovePercent to {smallest_percent(count):g} or more."
            yield _warning("demand-never-moves", place((*location, "Count")), because, remedy, evidence)


def _warning(code: str, subject: str, because: str, remedy: str, evidence: Evidence) -> Finding:
    return Finding(code, Severity.WARNING, subject, because, remedy, evidence)
