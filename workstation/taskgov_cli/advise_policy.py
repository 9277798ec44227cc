"""How teams of a document stand on one instance type, and the document with other numbers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from taskgov.advice.today import Today, gpu_types, gpus_of, row_of, share_of, today_of
from taskgov.allocation.planner import plan_quotas
from taskgov.allocation.written import WrittenCluster
from taskgov.hyperpod.borrowing import flavor_quotas
from taskgov.policy.document import Guardrails
from taskgov.policy.measured import Unit
from taskgov.policy.parse import parse_policy
from taskgov.quantities import GPU
from taskgov.snapshot.model import ClusterFacts, Node, Snapshot
from taskgov_cli.replay_run import START
from taskgov_cli.yaml_edit import with_values

if TYPE_CHECKING:
    from taskgov.advice.candidates import Candidate, Terms
    from taskgov.hyperpod.model import ComputeQuota
    from taskgov.policy.document import PolicyDocument, TeamPolicy


@dataclass(frozen=True, slots=True)
class Ground:
    """A document on a number of instances of one type: what advice begins from."""

    text: str
    document: PolicyDocument
    instance_type: str
    per_instance: int
    instances: int

    @property
    def today(self) -> Today:
        """Current quotas, by the plan of the document."""
        quotas, table = planned_quotas(self, self.document), self.document.instance_type_table()
        return today_of(self.document, self.instance_type, self.per_instance, quotas, table)


def ground_of(body: bytes, instance_type: str | None, gpus: int | None) -> Ground:
    """Return the ground of a document. Raises ValueError for what it needs and the document does not say."""
    parsed = parse_policy(body)
    document = parsed.document
    if document is None:
        raise ValueError("it is not a valid policy document; see: taskgov validate")
    sizes = gpu_types(document)
    if instance_type is None and len(sizes) == 1:
        (instance_type,) = sizes
    if instance_type not in sizes:
        known = ", ".join(sizes) or "none"
        raise ValueError(
            f"--instance-type {instance_type or 'is missing'}: must be a type with GPUs in the document: {known}"
        )
    size = sizes[instance_type]
    instances = _promised(document, instance_type, size) if gpus is None else gpus // size
    if gpus is not None and gpus % size:
        raise ValueError(f"--gpus {gpus}: must be a multiple of {size}, the GPUs of an {instance_type}")
    return Ground(body.decode(), document, instance_type, size, instances)


def _promised(document: PolicyDocument, instance_type: str, per_instance: int) -> int:
    """Return the instances that fixed promises need. Raises ValueError where shares divide what there is."""
    if any(team.families or share_of(team, instance_type) for team in document.teams):
        raise ValueError(f"--gpus is missing: the document divides what the cluster has of {instance_type}")
    table = document.instance_type_table()
    quotas = [quota for team in document.teams if team.quota for quota in flavor_quotas(team.quota, table)]
    gpus = sum(quota.nominal.get(GPU, 0) for quota in quotas if quota.instance_type == instance_type)
    return -(-gpus // per_instance)


def planned(ground: Ground, document: PolicyDocument) -> dict[str, int]:
    """Return the GPUs of the type that a document's plan gives each team, and the shared pool."""
    table = document.instance_type_table()
    found = gpus_of(planned_quotas(ground, document), ground.instance_type, table)
    return dict.fromkeys((team.name for team in document.teams), 0) | found


def planned_quotas(ground: Ground, document: PolicyDocument) -> tuple[ComputeQuota, ...]:
    """Return the quotas that a document's plan writes on an empty cluster.

    Guardrails slow a plan down, and leases end: both are left out.
    """
    document = document.model_copy(update={"guardrails": Guardrails(), "leases": ()})
    facts = ClusterFacts(document.cluster.name, document.cluster.arn)
    nodes = tuple(Node(f"machine-{n:05}", ground.instance_type, found_healthy=True) for n in range(ground.instances))
    snapshot = Snapshot(facts, START, policy=document, policy_version="advise", nodes=nodes)
    cluster = WrittenCluster(snapshot)
    cluster.write(plan_quotas(snapshot, mode="plan").changes)
    return tuple(cluster.quotas.values())


def changed(ground: Ground, candidate: Candidate, terms: Terms) -> str:
    """Return the text of the document with the numbers of a candidate. Raises ValueError where it cannot be changed."""
    today = {team.team: team for team in ground.today.teams}
    wanted = dict(terms.teams)
    changes: dict[str | int, Any] = {}
    teams: dict[str | int, Any] = {}
    weighted = any(
        wanted[team.name].quota != today[team.name].quota
        for team in ground.document.teams
        if (share := share_of(team, ground.instance_type)) is not None and share.weight is not None
    )
    for place, team in enumerate(ground.document.teams):
        own, before = wanted[team.name], today[team.name]
        change: dict[str | int, Any] = {}
        if own.quota != before.quota or weighted:
            change |= _amount(ground, team, own.quota)
        settings: dict[str | int, Any] = {}
        if candidate.limit is not None and before.borrows and before.limit != candidate.limit:
            settings["ResourceSharingConfig"] = {"BorrowLimit": candidate.limit}
        if own.never != before.never:
            settings["PreemptTeamTasks"] = "Never" if own.never else "LowerPriority"
        if settings:
            change["quota"] = {**change.get("quota", {}), **settings}
        if change:
            teams[place] = change
    if teams:
        changes["teams"] = teams
    if candidate.fair != ground.today.fair:
        changes["schedulerConfig"] = {"FairShare": "Enabled" if candidate.fair else "Disabled"}
    return with_values(ground.text, changes) if changes else ground.text


def _amount(ground: Ground, team: TeamPolicy, gpus: int) -> dict[str | int, Any]:
    """Return the change of a team's promise, in the words that it is written in."""
    row, share = row_of(team, ground.instance_type), share_of(team, ground.instance_type)
    if row is not None:
        rows = team.quota.compute_quota_resources if team.quota else ()
        amount = {"Accelerators": gpus} if row.count is None else {"Count": gpus // ground.per_instance}
        return {"quota": {"ComputeQuotaResources": {rows.index(row): amount}}}
    if share is None:
        return {}
    size = ground.per_instance if share.unit is Unit.INSTANCES else 1
    if share.weight is not None:
        return {"share": {team.share.index(share): {"weight": max(1, gpus // size)}}}
    percent = float(round(Fraction(100 * gpus, ground.per_instance * ground.instances), 4))
    return {"share": {team.share.index(share): {"percent": percent}}}
