"""What a policy document may say and probably does not mean, as findings with their remedy."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from math import ceil
from typing import Final

from taskgov.findings import Evidence, Finding
from taskgov.findings.of_document import (
    BORROW_LIMIT_ABOVE_500,
    BORROW_LIMIT_IGNORED,
    DEMAND_WILL_NEVER_MOVE,
    NO_ACCELERATORS,
    NO_ACCELERATORS_TO_COUNT,
    NO_TEAMS,
    NOBODY_KEEPS_REMAINDER,
    PROMISE_BESIDE_THE_WHOLE,
    SHARE_MAY_BE_NOTHING,
    TEAM_WITHOUT_PROMISE,
    UNKNOWN_FAMILY,
    UNSUPPORTED_PARTITION,
)
from taskgov.hyperpod.borrowing import borrow_limit_findings, borrow_percent, sharing_of
from taskgov.hyperpod.hardware import stands_for
from taskgov.hyperpod.instance_types import InstanceTypeTable, unknown_type_finding
from taskgov.hyperpod.model import SharingStrategy, Switch
from taskgov.policy.document import PolicyDocument
from taskgov.policy.draft import Draft
from taskgov.policy.measured import WHOLE_WITHIN, Unit
from taskgov.policy.moves import most_moved, smallest_percent
from taskgov.policy.warnings_leases import leases_beyond_their_donors
from taskgov.violations import Location

Place = Callable[[Location], str]
"""How a location in what could be read is written as a path of the document."""

GUIDES_BORROW_LIMIT: Final = 500
"""Percent that a team may borrow, as HyperPod's guide ("Policies") and the API reference's text have it."""


def policy_warnings(draft: Draft, place: Place) -> tuple[Finding, ...]:
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
        *_no_teams(draft),
        *_teams_without_promise(draft.document, place),
        *_nobody_keeps_the_remainder(draft.document),
        *_promises_that_demand_never_moves(draft, place),
        *leases_beyond_their_donors(draft.document, place),
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
                where, evidence = place(("teams", index, "families", entry, "family")), {"family": promise.family}
                yield UNKNOWN_FAMILY.about(where, evidence, family=promise.words, team=team.name)


def _named_types(draft: Draft) -> Iterator[tuple[Location, str]]:
    for location, _, promise in draft.promises():
        yield (*location, "InstanceType"), promise.instance_type
    for index, team in enumerate(draft.document.teams):
        for entry, share in enumerate(team.share):
            yield ("teams", index, "share", entry, "instanceType"), share.instance_type
    for index, lease in enumerate(draft.document.leases):
        yield ("leases", index, "instanceType"), lease.instance_type


def _promises_a_type_cannot_keep(draft: Draft, table: InstanceTypeTable, place: Place) -> Iterator[Finding]:
    """Accelerators of a type that has none; partitions that its GPUs do not have."""
    for location, _, promise in draft.promises():
        resources = table.resources_of(promise.instance_type)
        if resources is None:
            continue
        if promise.accelerators and not resources.accelerators:
            where, name, promised = place((*location, "Accelerators")), promise.instance_type, promise.accelerators
            evidence: Evidence = {"instanceType": name, "promised": promised}
            yield NO_ACCELERATORS.about(where, evidence, instance_type=name, count=promised)
        partition = promise.accelerator_partition
        if partition and partition.type not in resources.mig_profiles:
            profiles = ", ".join(resources.mig_profiles) or "none"
            yield UNSUPPORTED_PARTITION.about(
                place((*location, "AcceleratorPartition", "Type")),
                {"instanceType": promise.instance_type, "profile": partition.type, "profiles": profiles},
                instance_type=promise.instance_type,
                profile=partition.type,
                profiles=profiles,
            )


def _units_a_type_does_not_have(draft: Draft, table: InstanceTypeTable, place: Place) -> Iterator[Finding]:
    """Shares and leases of accelerators of a type that has none, or of slices that its GPUs do not have."""
    for location, measured in draft.measured():
        resources = table.resources_of(measured.instance_type)
        if resources is None:
            continue
        name, profile = measured.instance_type, measured.accelerator_partition_type
        evidence: Evidence = {"instanceType": name, "unit": measured.unit.value}
        if measured.unit is Unit.ACCELERATORS and not resources.accelerators:
            yield NO_ACCELERATORS_TO_COUNT.about(place((*location, "unit")), evidence, instance_type=name)
        elif measured.unit is Unit.PARTITION and profile not in resources.mig_profiles:
            where = place((*location, "acceleratorPartitionType"))
            profiles = ", ".join(resources.mig_profiles) or "none"
            yield UNSUPPORTED_PARTITION.about(where, evidence, instance_type=name, profile=profile, profiles=profiles)


def _shares_of_less_than_an_instance(draft: Draft, table: InstanceTypeTable, place: Place) -> Iterator[Finding]:
    """Warn of small shares in whole instances of large machines: few machines leave them nothing."""
    for index, team in enumerate(draft.document.teams):
        for entry, share in enumerate(team.share):
            resources = table.resources_of(share.instance_type)
            if share.unit is not Unit.INSTANCES or share.floor or not share.percent:
                continue
            if resources is None or resources.accelerators < 2 or (least := ceil(100 / share.percent)) <= 2:
                continue
            yield SHARE_MAY_BE_NOTHING.about(
                place(("teams", index, "share", entry, "percent")),
                {"team": team.name, "instanceType": share.instance_type, "instances": least},
                percent=share.percent,
                instance_type=share.instance_type,
                instances=least,
                team=team.name,
            )


def _promises_beside_the_whole(draft: Draft, place: Place) -> Iterator[Finding]:
    """Warn where percentages divide all of a type, and another guarantee exists on it."""
    percents: dict[str, Fraction] = {}
    besides: dict[str, list[tuple[Location, str]]] = {}
    for index, team in enumerate(draft.document.teams):
        for entry, share in enumerate(team.share):
            percents[share.instance_type] = percents.get(share.instance_type, 0) + Fraction(str(share.percent or 0))
            if share.weight is not None:
                where: Location = ("teams", index, "share", entry, "weight")
                besides.setdefault(share.instance_type, []).append((where, f"a weight of {share.weight}"))
    for location, _, promise in draft.promises():
        besides.setdefault(promise.instance_type, []).append((location, "a fixed quota"))
    for name, whole in percents.items():
        for location, what in besides.get(name, ()) if abs(whole - 100) <= WHOLE_WITHIN else ():
            yield PROMISE_BESIDE_THE_WHOLE.about(place(location), {"instanceType": name}, instance_type=name, what=what)


def _limits_without_borrowing(document: PolicyDocument, place: Place) -> Iterator[Finding]:
    """Warn of a borrow limit of a team that does not borrow: it means nothing."""
    for index, team in enumerate(document.teams):
        sharing = sharing_of(team.quota) if team.quota else None
        if sharing is None or sharing.strategy is SharingStrategy.LEND_AND_BORROW:
            continue
        if sharing.borrow_limit or sharing.absolute_borrow_limits:
            where = place(("teams", index, "quota", "ResourceSharingConfig", "BorrowLimit"))
            evidence = {"team": team.name, "strategy": sharing.strategy.value}
            yield BORROW_LIMIT_IGNORED.about(where, evidence, team=team.name, strategy=sharing.strategy)


def _limits_above_the_guides(document: PolicyDocument, place: Place) -> Iterator[Finding]:
    """Warn of a limit that the API's model takes and the guide's text does not."""
    for index, team in enumerate(document.teams):
        percent = borrow_percent(sharing_of(team.quota)) if team.quota else 0
        if percent > GUIDES_BORROW_LIMIT:
            where = place(("teams", index, "quota", "ResourceSharingConfig", "BorrowLimit"))
            evidence: Evidence = {"team": team.name, "percent": percent}
            yield BORROW_LIMIT_ABOVE_500.about(where, evidence, team=team.name, percent=percent)


def _limits_that_round_to_nothing(document: PolicyDocument, table: InstanceTypeTable) -> Iterator[Finding]:
    for team in document.teams:
        if team.quota:
            yield from borrow_limit_findings(team.name, team.quota, table)


def _teams_without_promise(document: PolicyDocument, place: Place) -> Iterator[Finding]:
    """Warn of a team with neither quota nor share: it has only what it leases and borrows."""
    for index, team in enumerate(document.teams):
        if not team.share and not team.families and not (team.quota and team.quota.compute_quota_resources):
            yield TEAM_WITHOUT_PROMISE.about(place(("teams", index)), {"team": team.name}, team=team.name)


def _no_teams(draft: Draft) -> Iterator[Finding]:
    """Warn of a document without teams; a team that could not be read has its violation instead."""
    if not draft.team_names:
        yield NO_TEAMS.about("teams", {"teams": 0})


def _nobody_keeps_the_remainder(document: PolicyDocument) -> Iterator[Finding]:
    """HyperPod keeps no pool while IdleResourceSharing is not Enabled."""
    pool, scheduler = document.shared_pool, document.scheduler_config
    if pool and pool.native and scheduler and scheduler.idle_resource_sharing is not Switch.ENABLED:
        evidence = {"IdleResourceSharing": str(scheduler.idle_resource_sharing or "not set")}
        yield NOBODY_KEEPS_REMAINDER.about("sharedPool.native", evidence)


def _promises_that_demand_never_moves(draft: Draft, place: Place) -> Iterator[Finding]:
    """Warn of fixed guarantees of which `maxMovePercent` is less than one instance: demand leaves them as they are.

    A team always keeps one instance, so that a guarantee of one has nothing to move.
    """
    rules = draft.document.demand
    percent = rules.max_move_percent
    for location, _, promised in draft.promises() if rules.enabled and percent else ():
        count = promised.count or 0
        if count > 1 and not most_moved(count, percent):
            yield DEMAND_WILL_NEVER_MOVE.about(
                place((*location, "Count")),
                {"instanceType": promised.instance_type, "promised": count},
                count=count,
                instance_type=promised.instance_type,
                percent=percent,
                smallest_percent=smallest_percent(count),
            )
