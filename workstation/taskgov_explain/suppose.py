"""What if the cluster were otherwise? A snapshot with nodes lost or added, quotas and weights set, work submitted."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from taskgov.hyperpod.hardware import stands_for
from taskgov.hyperpod.model import ComputeQuota, ComputeQuotaConfig, ComputeQuotaResource
from taskgov.policy.document import CapacityBasis, TeamPolicy
from taskgov.snapshot.health import node_fault
from taskgov.snapshot.model import KubernetesObject, Node, Snapshot
from taskgov_explain.find import UnknownNameError, nearest
from taskgov_explain.quota_settings import COUNT, QuotaSetting, broken_rules, rows_of


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """What is supposed to be different; nothing said is as it is."""

    lost_nodes: Mapping[str, int] = field(default_factory=dict)
    """Instance type -> how many of its healthy nodes are gone."""
    added_nodes: Mapping[str, int] = field(default_factory=dict)
    """Instance type -> how many healthy nodes there are more."""
    quotas: tuple[QuotaSetting, ...] = ()
    weights: Mapping[str, int] = field(default_factory=dict)
    """Team -> fair-share weight."""
    submitted: tuple[KubernetesObject, ...] = ()
    """Workloads that arrive at the moment of the snapshot."""


def suppose(snapshot: Snapshot, hypothesis: Hypothesis) -> Snapshot:
    """Return the snapshot as the hypothesis has it.

    Quotas and weights of teams in the policy document change the document; of others, the quota itself.
    Raises `UnknownNameError` for a team or an instance type that is not there, `ValueError` for more nodes lost than
    there are, and for settings of quotas that break rules: all of them, each with its rule.
    """
    if problems := [f"{setting}: {rule}" for setting, rule in setting_problems(snapshot, hypothesis.quotas)]:
        raise ValueError("; ".join(problems))
    changed = replace(snapshot, nodes=_nodes(snapshot.nodes, hypothesis))
    changed = _set_quotas(changed, hypothesis.quotas)
    for team, weight in sorted(hypothesis.weights.items()):
        changed = _set_weight(changed, team, weight)
    if not hypothesis.submitted:
        return changed  # with the very objects of the scheduler, whose model is then made and played once for both
    workloads = (*changed.kueue.workloads, *hypothesis.submitted)
    return replace(changed, kueue=replace(changed.kueue, workloads=workloads))


def setting_problems(snapshot: Snapshot, settings: Iterable[QuotaSetting]) -> Iterator[tuple[QuotaSetting, str]]:
    """Give every setting of a quota that breaks a rule in this cluster, with the rule."""
    settings = tuple(settings)
    yield from broken_rules(settings, teams_of(snapshot), snapshot.instance_types)
    for setting in settings:
        for family in _families_of(snapshot, setting.team):
            if stands_for(family, setting.instance_type):
                rule = f"the document guarantees it by family {family}: use another document (--policy)"
                yield setting, rule
    if snapshot.policy is not None and snapshot.policy.capacity.basis is CapacityBasis.ALLOCATABLE:
        rule = "must be set in parts where capacity.basis is allocatable"
        yield from ((setting, rule) for setting in settings if setting.part == COUNT)


# Nodes


def _nodes(nodes: tuple[Node, ...], hypothesis: Hypothesis) -> tuple[Node, ...]:
    if problems := list(node_problems(nodes, hypothesis.lost_nodes)):
        raise ValueError("; ".join(problems))
    left = list(nodes)
    for instance_type, count in sorted(hypothesis.lost_nodes.items()):
        healthy = _healthy(left, instance_type)
        gone = {node.name for node in healthy[-count:]} if count else set()
        left = [node for node in left if node.name not in gone]
    return (*left, *(new for name, count in sorted(hypothesis.added_nodes.items()) for new in _new(nodes, name, count)))


def node_problems(nodes: Iterable[Node], lost: Mapping[str, int]) -> Iterator[str]:
    """Give a sentence for each instance type of which more nodes would be lost than are healthy."""
    nodes = tuple(nodes)
    for instance_type, count in sorted(lost.items()):
        healthy = _healthy(nodes, instance_type)
        if not healthy:
            known = nearest(instance_type, (node.instance_type for node in nodes))
            yield f"there are no healthy {instance_type} nodes; {known}"
        elif count > len(healthy):
            yield f"{count} {instance_type} nodes cannot be lost: {len(healthy)} are healthy"


def _healthy(nodes: Iterable[Node], instance_type: str) -> list[Node]:
    return [node for node in nodes if node.instance_type == instance_type and node_fault(node) is None]


def _new(nodes: Iterable[Node], instance_type: str, count: int) -> Iterable[Node]:
    """Give nodes that count at once: like the healthy ones of their type, or with the type's own numbers."""
    like = next((node for node in nodes if node.instance_type == instance_type and node_fault(node) is None), None)
    offers = like.allocatable if like else {}
    for number in range(count):
        yield Node(f"what-if-{instance_type}-{number}", instance_type, found_healthy=True, allocatable=offers)


# Quotas and weights


def _set_quotas(snapshot: Snapshot, settings: Iterable[QuotaSetting]) -> Snapshot:
    together: dict[tuple[str, str], list[QuotaSetting]] = {}
    for setting in settings:
        together.setdefault((setting.team, setting.instance_type), []).append(setting)
    for (team, _), some in together.items():
        snapshot = _set_quota(snapshot, team, rows_of(some))
    return snapshot


def _set_quota(snapshot: Snapshot, team: str, rows: tuple[ComputeQuotaResource, ...]) -> Snapshot:
    instance_type = rows[0].instance_type

    def promised(team_policy: TeamPolicy) -> TeamPolicy:
        share = tuple(type_share for type_share in team_policy.share if type_share.instance_type != instance_type)
        return team_policy.model_copy(
            update={"share": share, "quota": _with_rows(team_policy.quota or ComputeQuotaConfig(), rows)}
        )

    def written(quota: ComputeQuota) -> ComputeQuota:
        return quota.model_copy(update={"compute_quota_config": _with_rows(quota.compute_quota_config, rows)})

    return _change_team(snapshot, team, promised, written)


def _set_weight(snapshot: Snapshot, team: str, weight: int) -> Snapshot:
    def promised(team_policy: TeamPolicy) -> TeamPolicy:
        return team_policy.model_copy(update={"fair_share_weight": weight})

    def written(quota: ComputeQuota) -> ComputeQuota:
        target = quota.compute_quota_target.model_copy(update={"fair_share_weight": weight})
        return quota.model_copy(update={"compute_quota_target": target})

    return _change_team(snapshot, team, promised, written)


def _change_team(
    snapshot: Snapshot,
    team: str,
    promised: Callable[[TeamPolicy], TeamPolicy],
    written: Callable[[ComputeQuota], ComputeQuota],
) -> Snapshot:
    """Change the document's promise where the team has one, else its quota."""
    policy, quotas = snapshot.policy, snapshot.quotas
    if policy is not None and any(team_policy.name == team for team_policy in policy.teams):
        teams = tuple(
            promised(team_policy) if team_policy.name == team else team_policy for team_policy in policy.teams
        )
        return replace(snapshot, policy=policy.model_copy(update={"teams": teams}))
    if team not in (known := teams_of(snapshot)):
        raise UnknownNameError(f"there is no team named {team}; {nearest(team, known)}")
    changed = (written(quota) if quota.compute_quota_target.team_name == team else quota for quota in quotas)
    return replace(snapshot, quotas=tuple(changed))


def _families_of(snapshot: Snapshot, team: str) -> list[str]:
    teams = () if snapshot.policy is None else snapshot.policy.teams
    return [promise.family for team_policy in teams if team_policy.name == team for promise in team_policy.families]


def teams_of(snapshot: Snapshot) -> set[str]:
    """Return the teams that the policy document names or that have a quota."""
    named = () if snapshot.policy is None else snapshot.policy.teams
    owners = {quota.compute_quota_target.team_name for quota in snapshot.quotas}
    return owners | {team_policy.name for team_policy in named}


def _with_rows(config: ComputeQuotaConfig, rows: tuple[ComputeQuotaResource, ...]) -> ComputeQuotaConfig:
    """Let these rows take the place of all rows of their type."""
    others = (row for row in config.compute_quota_resources if row.instance_type != rows[0].instance_type)
    in_order = tuple(sorted((*others, *rows), key=lambda row: row.instance_type))
    return config.model_copy(update={"compute_quota_resources": in_order})
