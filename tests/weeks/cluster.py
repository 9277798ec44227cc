"""A cluster that lives for weeks: its machines, quotas, queues and jobs, its document, and what is kept between runs.

What a service keeps between two runs is kept here by the product's own pure functions (`remember_nodes`,
`remember_use`, `remember`). The SageMaker API is the emulation of `tests.prove.account`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

from taskgov.allocation.applied_record import remember
from taskgov.allocation.mass_loss import settled
from taskgov.allocation.plan import DELETIONS, Change, MassLoss, Plan
from taskgov.allocation.use import use_now
from taskgov.hyperpod.model import ClusterSchedulerConfig, ComputeQuota, ComputeQuotaConfig, SchedulerConfig
from taskgov.policy.parse import ParsedPolicy
from taskgov.services.use_history import with_use
from taskgov.snapshot.memory import NodeMemory, remember_nodes
from taskgov.snapshot.model import ClusterFacts, InstanceGroup, KueueObjects, Node, Snapshot
from taskgov.snapshot.records import AnnouncedWrite, AppliedPolicy, AppliedQuota, QuotaEdit
from taskgov.snapshot.use_memory import UseMemory, remember_use
from tests.prove.account import Account, is_policy
from tests.prove.amounts import Book, Numbers, numbers_of
from tests.prove.facts import NEVER_IN_FORCE
from tests.prove.play import Cluster, RestlessError, policy_in_force
from tests.weeks.machines import NAME, TYPES, UNKNOWN_TYPE, arn_of, document_of

LOOK: Final = timedelta(minutes=15)
"""How far apart two measurements may be without a gap."""


def _book() -> dict[str, Numbers]:
    book = {name: numbers for name in TYPES if (numbers := numbers_of(name, None)) is not None}
    return {**book, UNKNOWN_TYPE: Numbers(16, 64 * 2**30, gpu=2, running=16)}


BOOK: Final[Book] = _book()
"""The numbers of all types, also of the one that nobody but HyperPod knows."""


@dataclass
class Ledger(Account):
    """The account of one run; of its writes it keeps what the product keeps."""

    losses: tuple[MassLoss, ...] = ()
    """The mass losses that were approved with the plan."""

    def _remember(self, change: Change, quota: ComputeQuota, before: ComputeQuotaConfig | None) -> None:
        key = quota.compute_quota_id
        self.applied[key] = remember(
            change,
            self.applied.get(key),
            quota_id=key,
            version=quota.compute_quota_version,
            plan_id=self.plan_id,
            now=self.now,
            path_before=change.began_from,
        )
        if self.losses:  # a person approved them with the plan
            accepted = {loss.instance_type: loss.until for loss in self.losses}
            self.applied[key] = replace(self.applied[key], accepted_losses=accepted)


@dataclass
class LivingCluster:
    """Everything that is there at a moment. `look` makes a snapshot of it, `take` what a run left."""

    now: datetime
    nodes: dict[str, Node] = field(default_factory=dict)
    quotas: dict[str, ComputeQuota] = field(default_factory=dict)
    scheduler: ClusterSchedulerConfig | None = None
    told: dict[str, Any] = field(default_factory=dict)
    """The policy document as it is written; empty where there is none."""
    mistaken: bool = False
    """The document has a mistake, and cannot be used."""
    written: int = 0
    """How often the document was written."""
    jobs: dict[str, Any] = field(default_factory=dict)
    """Workloads by `namespace/name`."""
    edits: dict[str, QuotaEdit] = field(default_factory=dict)
    applied: dict[str, AppliedQuota] = field(default_factory=dict)
    applied_policy: AppliedPolicy | None = None
    groups: tuple[InstanceGroup, ...] = ()
    stopped: bool = False
    memory: NodeMemory = field(default_factory=NodeMemory)
    use: UseMemory = field(default_factory=UseMemory)
    kueue: KueueObjects = field(default_factory=KueueObjects)

    def look(self) -> Snapshot:
        """Return the snapshot of this moment, and remember the nodes as a run does."""
        self.memory, nodes = remember_nodes(self.memory, self.nodes.values(), self.now)
        parsed = self.document()
        snapshot = Snapshot(
            cluster=ClusterFacts(name=NAME, arn=arn_of(self.told), instance_groups=self.groups),
            taken_at=self.now,
            nodes=nodes,
            gone=self.memory.gone,
            quotas=tuple(sorted(self.quotas.values(), key=lambda quota: (quota.name, quota.compute_quota_id))),
            scheduler_config=self.scheduler,
            kueue=self.kueue,
            policy=parsed.document,
            policy_version=f"v{self.written}" if self.told else None,
            policy_violations=parsed.violations,
            policy_findings=parsed.warnings,
            applied=tuple(self.applied[key] for key in sorted(self.applied)),
            edits=tuple(self.edits[key] for key in sorted(self.edits)),
            stopped=self.stopped,
            applied_policy=self.applied_policy,
        )
        self.memory = self.memory.without(settled(snapshot))
        return with_use(replace(snapshot, gone=self.memory.gone), self.use)

    def document(self) -> ParsedPolicy:
        """Return the document as a run reads it."""
        told = {**self.told, "teams": "none"} if self.mistaken else self.told
        return document_of(told)

    def ledger(self, plan: Plan) -> Ledger:
        """Return the account to which a run writes."""
        return Ledger(dict(self.quotas), self.scheduler, dict(self.applied), self.now, plan.plan_id, losses=plan.losses)

    def take(self, account: Account, plan: Plan, changes: Iterable[Change]) -> None:
        """Let the quotas be what a run left, and keep what is kept of its writes."""
        self.quotas, self.applied = dict(account.quotas), dict(account.applied)
        self.scheduler = account.scheduler
        for change in changes:
            if is_policy(change) and change.kind not in DELETIONS and self.scheduler is not None:
                self._keep_policy(plan, change, self.scheduler)

    def lose_record(self, change: Change, before: Mapping[str, AppliedQuota]) -> None:
        """Let the record of the last write be lost: it was announced, and made, and what was on record before stands.

        A quota that had no record has none now: it is nobody's edit.
        """
        key = change.resource_id or ""
        made, previous = self.applied.get(key), before.get(key)
        if made is None or previous is None or change.target_version is None:
            return
        announced = AnnouncedWrite(made.version, made.config, made.target, made.began_from)
        self.applied[key] = replace(previous, announced=announced)

    def _keep_policy(self, plan: Plan, change: Change, held: ClusterSchedulerConfig) -> None:
        if isinstance(change.after, SchedulerConfig):
            key, version = held.cluster_scheduler_config_id, held.cluster_scheduler_config_version
            self.applied_policy = AppliedPolicy(key, version, change.after, plan.plan_id, self.now)

    def pass_time(self, time: timedelta) -> None:
        """Let time pass in which nothing happens but looks at what is used; deletions come to their end."""
        snapshot, until = self.look(), self.now + time
        use = use_now(snapshot)
        for moment in _looks(self.now, until):
            self.use = remember_use(self.use, use, moment)
        self.now = until
        self.quotas = {key: quota for key, quota in self.quotas.items() if quota.status != "Deleting"}

    def settle_queues(self) -> None:
        """Make the queues of the quotas anew, as HyperPod does, and let the work on them come to rest.

        Work of teams that have no queue goes with its namespace. Work that comes to no rest is taken away.
        """
        in_force = [quota for quota in self.quotas.values() if quota.status not in NEVER_IN_FORCE]
        teams = {f"hyperpod-ns-{quota.compute_quota_target.team_name}" for quota in in_force}
        self.jobs = {key: job for key, job in self.jobs.items() if key.split("/")[0] in teams}
        moment = Snapshot(ClusterFacts(NAME, arn_of(self.told)), self.now)
        cluster = Cluster(policy_in_force(self.scheduler))
        cluster.set_policy(policy_in_force(self.scheduler))
        for quota in in_force:
            cluster.render(quota, BOOK)
        for job in self.jobs.values():
            cluster.apply({**job, "kind": "Workload"})
        try:
            list(cluster.settle(moment))
            cluster.end_evictions(self.now)
            list(cluster.settle(moment))
        except RestlessError:
            self.jobs = {}
            self.settle_queues()
            return
        self.kueue = cluster.kueue(KueueObjects())
        self.jobs = {f"{job['metadata']['namespace']}/{job['metadata']['name']}": job for job in self.kueue.workloads}


def _looks(start: datetime, end: datetime) -> Iterator[datetime]:
    moment = start
    while moment < end:
        yield moment
        moment += LOOK
    yield end
