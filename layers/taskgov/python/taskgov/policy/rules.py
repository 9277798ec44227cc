"""The rules between the parts of a policy document: what no single field can break.

Each function states one rule and yields every place that breaks it. `parse_policy` applies them all; what is allowed
and probably not meant is in `taskgov.policy.warnings`. Sources: the limits of the API, Kueue's and Kubernetes' names,
and the grammar in `docs/policy.md`.
"""

from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from fractions import Fraction
from heapq import nsmallest
from typing import Final, TypeVar

from taskgov.hyperpod.hardware import stands_for
from taskgov.hyperpod.model import ComputeQuotaResource, Switch
from taskgov.policy.cron import is_time_zone, parse_cron
from taskgov.policy.document import CapacityBasis
from taskgov.policy.draft import Broken, Draft
from taskgov.policy.measured import WHOLE_WITHIN, Unit
from taskgov.policy.rules_families import families_in_instances_need_the_instances_basis, families_of_a_team_are_apart
from taskgov.violations import Location

Key = TypeVar("Key", bound=Hashable)

MAX_INSTANCE_TYPES: Final = 15
"""Entries of ComputeQuotaResources (API)."""
NAMES_TOLD: Final = 20
"""Names of teams that one violation lists."""


def broken_rules(draft: Draft) -> Iterator[Broken]:
    """Yield everything that breaks a rule, rule by rule."""
    for rule in _RULES:
        yield from rule(draft)


def teams_are_named_once(draft: Draft) -> Iterator[Broken]:
    """Two guarantees for one team would contradict each other."""
    yield from _repeated([(("teams", index, "name"), team.name) for index, team in enumerate(draft.document.teams)])


def priority_classes_are_named_once(draft: Draft) -> Iterator[Broken]:
    """Each becomes one WorkloadPriorityClass."""
    scheduler = draft.document.scheduler_config
    classes = (scheduler.priority_classes if scheduler else None) or ()
    place = ("schedulerConfig", "PriorityClasses")
    yield from _repeated([((*place, index, "Name"), priority.name) for index, priority in enumerate(classes)])


def instance_types_are_promised_once_a_team(draft: Draft) -> Iterator[Broken]:
    """One entry for each instance type, and for each MIG profile of it."""
    for index, team in enumerate(draft.document.teams):
        given: list[tuple[Location, tuple[str, str]]] = [
            (
                ("teams", index, "quota", "ComputeQuotaResources", entry, "InstanceType"),
                (quota.instance_type, _profile(quota)),
            )
            for entry, quota in enumerate(team.quota.compute_quota_resources if team.quota else ())
        ]
        yield from _repeated(given, show=lambda key: " ".join(filter(None, key)))
        shares = [
            (("teams", index, "share", n, "instanceType"), (share.instance_type, ""))
            for n, share in enumerate(team.share)
        ]
        yield from _repeated(shares, show=lambda key: key[0])
        fixed = {key[0] for _, key in given}
        for place, (instance_type, _) in shares:
            if instance_type in fixed:
                yield Broken(place, instance_type, "has a fixed quota in this team too: keep one of them")


def promises_say_how_much(draft: Draft) -> Iterator[Broken]:
    """Refuse an entry that names only its instance type: it guarantees nothing."""
    for place, _, quota in draft.promises():
        amounts = (quota.count, quota.accelerators, quota.vcpu, quota.memory_in_gib, quota.accelerator_partition)
        if all(amount is None for amount in amounts):
            rule = "needs one of Count, Accelerators, VCpu, MemoryInGiB, AcceleratorPartition"
            yield Broken(place, quota.instance_type, rule, missing=True)


def whole_instances_need_the_instances_basis(draft: Draft) -> Iterator[Broken]:
    """Guarantees on the allocatable basis are written in parts: an instance's Count is its nominal size."""
    if draft.document.capacity.basis is CapacityBasis.ALLOCATABLE:
        for place, _, quota in draft.promises():
            if quota.count is not None:
                rule = "must be written as Accelerators, VCpu, MemoryInGiB where capacity.basis is allocatable"
                yield Broken((*place, "Count"), quota.count, rule)


def quotas_fit_the_api(draft: Draft) -> Iterator[Broken]:
    """Count fixed entries and shares of a team together: they become one ComputeQuotaResources list."""
    for index, team in enumerate(draft.document.teams):
        entries = len(team.quota.compute_quota_resources) if team.quota else 0
        total = entries + len(team.share)
        if team.share and total > MAX_INSTANCE_TYPES:
            yield Broken(
                ("teams", index, "share"), total, f"must leave at most {MAX_INSTANCE_TYPES} instance types a team"
            )


def shares_are_percentages_or_weights(draft: Draft) -> Iterator[Broken]:
    """Refuse a share that is both: a percentage is of the whole, a weight of what is left."""
    for index, team in enumerate(draft.document.teams):
        for entry, share in enumerate(team.share):
            if share.percent is not None and share.weight is not None:
                rule = "cannot stand beside percent: a share is one or the other"
                yield Broken(("teams", index, "share", entry, "weight"), share.weight, rule)


def partitions_have_a_profile(draft: Draft) -> Iterator[Broken]:
    """Ask for the MIG profile whose slices the unit `acceleratorPartition` counts; no other unit has one."""
    for place, measured in draft.measured():
        profile = measured.accelerator_partition_type
        if measured.unit is Unit.PARTITION and profile is None:
            rule = "needs acceleratorPartitionType beside it, such as mig-1g.5gb"
            yield Broken((*place, "unit"), measured.unit.value, rule)
        elif measured.unit is not Unit.PARTITION and profile is not None:
            rule = "is allowed only with unit: acceleratorPartition"
            yield Broken((*place, "acceleratorPartitionType"), profile, rule)


def shares_add_up_to_the_whole_at_most(draft: Draft) -> Iterator[Broken]:
    """Shares of one instance type are parts of the same capacity. A tenth of a percent more is the whole."""
    totals: dict[str, Fraction] = {}
    most = 100 + WHOLE_WITHIN
    types = draft.instance_types()
    for index, team in enumerate(draft.document.teams):
        parts: list[tuple[Location, float, Sequence[str]]] = [
            (("share", entry, "percent"), share.percent or 0, (share.instance_type,))
            for entry, share in enumerate(team.share)
        ]
        parts += [
            (("families", entry, "percent"), share.percent, [kind for kind in types if stands_for(share.family, kind)])
            for entry, share in enumerate(team.families)
            if share.percent is not None
        ]
        for place, percent, named in parts:
            over: str | None = None
            for name in named:
                before = totals.get(name, Fraction(0))
                totals[name] = before + Fraction(str(percent))
                over = over or (name if before <= most < totals[name] else None)
            if over is not None:
                rule = f"brings the shares of {over} to {float(totals[over]):g} percent; 100 is all"
                yield Broken(("teams", index, *place), percent, rule)


def floors_are_below_ceilings(draft: Draft) -> Iterator[Broken]:
    """Leave a share room between its bounds."""
    for index, team in enumerate(draft.document.teams):
        for entry, share in enumerate(team.share):
            if share.ceiling is not None and share.floor > share.ceiling:
                place = ("teams", index, "share", entry, "floor")
                yield Broken(place, share.floor, f"must not exceed the ceiling of {share.ceiling}")


def leases_are_between_two_teams(draft: Draft) -> Iterator[Broken]:
    """Both sides are named in the document, and are not the same."""
    receivers = draft.receivers()
    for index, lease in enumerate(draft.document.leases):
        for key, name in (("to", lease.to), ("from", lease.from_)):
            if name not in receivers:
                yield Broken(("leases", index, key), name, unknown_team(receivers))
        if lease.to == lease.from_:
            yield Broken(("leases", index, "to"), lease.to, "must not be the team from which it leases")


def leases_end_after_they_start(draft: Draft) -> Iterator[Broken]:
    """Let a lease last."""
    for index, lease in enumerate(draft.document.leases):
        if lease.end <= lease.start:
            yield Broken(("leases", index, "end"), lease.end.isoformat(), f"must be after {lease.start.isoformat()}")


def one_keeper_of_the_remainder(draft: Draft) -> Iterator[Broken]:
    """Either taskgov's shared pool or HyperPod's IdleResourceSharing keeps what no team was given, never both."""
    document, pool = draft.document, draft.document.shared_pool
    if pool is None:
        return
    scheduler = document.scheduler_config
    idle_sharing = scheduler is not None and scheduler.idle_resource_sharing is Switch.ENABLED
    if pool.native:
        for key in sorted({"team", "takes"} & pool.model_fields_set):
            yield Broken(("sharedPool", key), getattr(pool, key), "is not allowed with native: true")
        if not (backend := document.cluster.backend).is_of_hyperpod:
            yield Broken(("sharedPool", "native"), pool.native, f"needs HyperPod; the backend here is {backend}")
        return
    if idle_sharing:
        rule = "adds a pool to HyperPod's own: write {native: true}, or set IdleResourceSharing to Disabled"
        yield Broken(("sharedPool", "team"), pool.team, rule)
    if pool.team in draft.team_names:
        yield Broken(("sharedPool", "team"), pool.team, "must not be one of the teams: it takes what they leave")


def named_teams_exist(draft: Draft) -> Iterator[Broken]:
    """Refuse a guardrail or budget for an unknown team: it would silently guard nothing."""
    guardrails, receivers = draft.document.guardrails, draft.receivers()
    named: list[tuple[Location, str]] = [
        *((("guardrails", "freeze", index), name) for index, name in enumerate(guardrails.freeze)),
        *((("guardrails", "minimumQuota", name), name) for name in guardrails.minimum_quota),
        *((("budgets", index, "team"), budget.team) for index, budget in enumerate(draft.document.budgets)),
    ]
    for place, name in named:
        if name not in receivers:
            yield Broken(place, name, unknown_team(receivers))


def budgets_are_given_once(draft: Draft) -> Iterator[Broken]:
    """One budget a team and period."""
    given = [(("budgets", index), (budget.team, budget.period)) for index, budget in enumerate(draft.document.budgets)]
    yield from _repeated(given, show=lambda key: f"{key[0]} per {key[1]}")


def change_windows_can_open(draft: Draft) -> Iterator[Broken]:
    """Expressions of five fields, in a time zone of the IANA database."""
    for index, window in enumerate(draft.document.guardrails.change_windows):
        place = ("guardrails", "changeWindows", index)
        try:
            parse_cron(window.cron)
        except ValueError as error:
            yield Broken((*place, "cron"), window.cron, str(error))
        if not is_time_zone(window.time_zone):
            yield Broken((*place, "timeZone"), window.time_zone, "must be a time zone such as Europe/Berlin or UTC")


def instances_widen_a_percentage(draft: Draft) -> Iterator[Broken]:
    """Refuse whole instances without a percentage: nothing would be limited. 0 percent leaves the instances alone."""
    guardrails = draft.document.guardrails
    if guardrails.max_decrease_instances is not None and guardrails.max_decrease_percent is None:
        rule = "needs maxDecreasePercent too: the greater of the two is the limit"
        yield Broken(("guardrails", "maxDecreaseInstances"), guardrails.max_decrease_instances, rule)


def types_have_one_kind_of_accelerator(draft: Draft) -> Iterator[Broken]:
    """`Accelerators` counts one resource: GPUs or Neuron devices."""
    for name, numbers in draft.document.instance_types.items():
        if numbers.gpu and numbers.neuron_device:
            place = ("instanceTypes", name, "neuronDevice")
            yield Broken(place, numbers.neuron_device, "cannot stand beside gpu: a type has one kind of accelerator")


def severities_say_when(draft: Draft) -> Iterator[Broken]:
    """Refuse a number without what it is compared with, and the other way round: they say nothing alone."""
    for index, rule in enumerate(draft.document.audit.severities):
        place = ("audit", "severities", index)
        if rule.evidence is not None and rule.at_least is None:
            yield Broken((*place, "evidence"), rule.evidence, "needs atLeast too")
        if rule.at_least is not None and rule.evidence is None:
            yield Broken((*place, "atLeast"), rule.at_least, "needs evidence too: the number that is compared")


def mutes_leave_something(draft: Draft) -> Iterator[Broken]:
    """Refuse to mute everything: an audit without any notice is switched off in the stack."""
    for index, mute in enumerate(draft.document.audit.mute):
        if not mute.finding.strip("*") and not mute.about.strip("*"):
            yield Broken(("audit", "mute", index, "finding"), mute.finding, "would mute everything: name a finding")


_RULES: Final = (
    teams_are_named_once,
    priority_classes_are_named_once,
    instance_types_are_promised_once_a_team,
    promises_say_how_much,
    whole_instances_need_the_instances_basis,
    quotas_fit_the_api,
    shares_are_percentages_or_weights,
    partitions_have_a_profile,
    shares_add_up_to_the_whole_at_most,
    families_of_a_team_are_apart,
    families_in_instances_need_the_instances_basis,
    floors_are_below_ceilings,
    leases_are_between_two_teams,
    leases_end_after_they_start,
    one_keeper_of_the_remainder,
    named_teams_exist,
    budgets_are_given_once,
    change_windows_can_open,
    instances_widen_a_percentage,
    types_have_one_kind_of_accelerator,
    severities_say_when,
    mutes_leave_something,
)


def _repeated(given: Sequence[tuple[Location, Key]], show: Callable[[Key], str] = str) -> Iterator[Broken]:
    first: dict[Key, Location] = {}
    for place, key in given:
        if key in first:
            yield Broken(place, show(key), "is given twice", first[key])
        first.setdefault(key, place)


def _profile(resource: ComputeQuotaResource) -> str:
    return resource.accelerator_partition.type if resource.accelerator_partition else ""


def unknown_team(known: Collection[str]) -> str:
    """Return the rule that a name breaks which is not a team's."""
    first = nsmallest(NAMES_TOLD, known)
    more = f" and {len(known) - NAMES_TOLD:,} more" if len(known) > NAMES_TOLD else ""
    return f"must be a team of this document: {', '.join(first) or 'there is none'}{more}"
