"""Play the waves of a plan through the scheduling model, in many orders, and see whom they preempt.

HyperPod renders the writes of a wave in an order that nobody knows, so a wave is played forward, backward, shuffled,
and at once. The queues settle after every write (or once, for a wave at once). Evictions that have begun end first, and
what the cluster does by itself before the first wave is not the plan's doing.
What somebody changed on a queue beside its numbers, HyperPod may leave or put back when it renders the quota: each
order is played in both ways.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from taskgov.allocation.plan import Change
from taskgov.hyperpod.model import ClusterSchedulerConfig, ComputeQuota, ComputeQuotaConfig, SchedulerConfig
from taskgov.scheduling import KueueModel, ManagerConfig, settle
from taskgov.snapshot.model import KueueObjects, Snapshot
from tests.prove.account import Account, is_policy
from tests.prove.amounts import Book
from tests.prove.facts import NEVER_IN_FORCE, Facts
from tests.prove.path import Wave
from tests.prove.rendering import Object, UnknownTypeError, is_fair, objects_of, priority_classes

Order = Callable[[Wave], list[Change]]


class RestlessError(Exception):
    """The queues did not settle, or workloads would preempt one another forever."""


@dataclass(slots=True)
class Played:
    """Who was preempted in which way of playing, and the cluster at the end (waves at once)."""

    preempted: dict[str, str] = field(default_factory=dict)
    """Workload (`namespace/name`) -> in which wave and order."""
    settled: bool = True
    kueue: KueueObjects | None = None


class Cluster:
    """The queues of a cluster with its work, and the objects that they were made from."""

    def __init__(self, scheduler: SchedulerConfig | None) -> None:
        self.world = KueueModel(ManagerConfig(fair_sharing=is_fair(scheduler)))
        self.objects: dict[tuple[str, str, str], Object] = {}
        self.leaves = False
        """Whether an update leaves what no quota says of a queue; what is created has a queue of its own."""

    @classmethod
    def of(cls, snapshot: Snapshot, book: Book) -> "Cluster":
        """Return the cluster of a snapshot; quotas whose queue is not in it yet are rendered."""
        cluster = cls(policy_in_force(snapshot.scheduler_config))
        kueue = snapshot.kueue
        lists = (
            ("ResourceFlavor", kueue.resource_flavors),
            ("Cohort", kueue.cohorts),
            ("WorkloadPriorityClass", kueue.priority_classes),
            ("ClusterQueue", kueue.cluster_queues),
            ("LocalQueue", kueue.local_queues),
            ("Workload", kueue.workloads),
        )
        for name in sorted({item["metadata"]["namespace"] for item in (*kueue.local_queues, *kueue.workloads)}):
            labels = {"kubernetes.io/metadata.name": name}
            cluster.apply({"kind": "Namespace", "metadata": {"name": name, "labels": labels}})
        for kind, items in lists:
            for item in items:
                cluster.apply({**item, "kind": kind})
        for quota in snapshot.quotas:
            queue = f"hyperpod-ns-{quota.compute_quota_target.team_name}-clusterqueue"
            if ("ClusterQueue", "", queue) not in cluster.objects and quota.status not in NEVER_IN_FORCE:
                cluster.render(quota, book)
        return cluster

    def copy(self) -> "Cluster":
        """Return a cluster of its own in the same state."""
        twin = Cluster(None)
        twin.world, twin.objects, twin.leaves = self.world.copy(), dict(self.objects), self.leaves
        return twin

    def apply(self, item: Object) -> None:
        """Add or change one object."""
        self.world.apply(item)
        if item["kind"] != "Workload":
            metadata = item["metadata"]
            self.objects[item["kind"], metadata.get("namespace", ""), metadata["name"]] = item

    @property
    def is_edited(self) -> bool:
        """Whether any queue is on hold."""
        return any((item.get("spec") or {}).get("stopPolicy", "None") != "None" for item in self.objects.values())

    def render(self, quota: ComputeQuota, book: Book, *, is_new: bool = False) -> None:
        """Make the objects of a quota, as the add-on does. Raises `UnknownTypeError`."""
        for rendered in objects_of(quota, book):
            item = rendered
            metadata = item["metadata"]
            there = self.objects.get((item["kind"], metadata.get("namespace", ""), metadata["name"]))
            if self.leaves and there is not None and not is_new:
                item = left_as_it_was(there, item)
            if item["kind"] == "Namespace":
                labels = {**item["metadata"]["labels"], "kubernetes.io/metadata.name": item["metadata"]["name"]}
                item["metadata"]["labels"] = labels
            self.apply(item)

    def set_policy(self, policy: SchedulerConfig | None) -> None:
        """Let the cluster policy be `policy`; Kueue's manager restarts when fair sharing is switched."""
        for item in priority_classes(policy):
            self.apply(item)
        if is_fair(policy) == self.world.config.fair_sharing:
            return
        fresh = KueueModel(ManagerConfig(fair_sharing=is_fair(policy)))
        work = [{**self.world.workload(key), "kind": "Workload"} for key in self.world.workloads()]
        fresh.load([*self.objects.values(), *work])
        self.world = fresh

    def end_evictions(self, now: object) -> None:
        """End the evictions that have begun: their pods go, whatever the plan does."""
        for key in list(self.world.workloads()):
            item = self.world.workload(key)
            conditions = {each["type"]: each["status"] for each in (item.get("status") or {}).get("conditions", ())}
            if conditions.get("Evicted") == "True" and self.world.admission(key) is not None:
                self.world.finish_eviction(key, now)  # type: ignore[arg-type]

    def settle(self, snapshot: Snapshot) -> Iterator[str]:
        """Let the queues settle and yield who is preempted. Raises `RestlessError`."""
        settlement = settle(self.world, snapshot.taken_at)
        if not settlement.settled:
            raise RestlessError
        for victim in settlement.preempted:
            yield victim.workload

    def kueue(self, before: KueueObjects) -> KueueObjects:
        """Return the objects as the API server would now show them."""

        def of(kind: str) -> Iterable[Object]:
            return (self.objects[key] for key in sorted(self.objects) if key[0] == kind)

        queues = tuple(
            {**item, "status": self.world.cluster_queue(item["metadata"]["name"])["status"]}
            for item in of("ClusterQueue")
        )
        return replace(
            before,
            resource_flavors=tuple(of("ResourceFlavor")),
            cluster_queues=queues,
            local_queues=tuple(of("LocalQueue")),
            priority_classes=tuple(of("WorkloadPriorityClass")),
            workloads=tuple(self.world.workload(key) for key in sorted(self.world.workloads())),
        )


def left_as_it_was(there: Object, rendered: Object) -> Object:
    """Return an object with the numbers that were rendered, and everything else as it was."""
    if rendered["kind"] == "LocalQueue":
        return {**rendered, "spec": there["spec"]}
    if rendered["kind"] != "ClusterQueue":
        return rendered
    spec = {name: value for name, value in there["spec"].items() if name not in {"cohort", "cohortName"}}
    numbers = {
        name: rendered["spec"][name]
        for name in ("cohort", "resourceGroups", "fairSharing", "preemption")
        if name in rendered["spec"]
    }
    return {**rendered, "spec": {**spec, **numbers}}


def policy_in_force(held: ClusterSchedulerConfig | None) -> SchedulerConfig | None:
    """Return the cluster policy that Kueue runs under; one whose creation failed is none."""
    return None if held is None or held.status in NEVER_IN_FORCE else held.scheduler_config


def play(facts: Facts, waves: Sequence[Wave], orders: int) -> Played | None:
    """Play the path; None where a queue cannot be rendered because nobody knows the numbers of its type.

    `orders` is how many shuffled orders are played beside forward, backward and at once.
    """
    snapshot, played = facts.snapshot, Played()
    try:
        start = Cluster.of(snapshot, facts.known)
        start.end_evictions(snapshot.taken_at)
        # Whom the cluster preempts by itself is not counted; who runs again elsewhere counts from then on.
        list(start.settle(snapshot))
        for leaves in (True, False) if start.is_edited else (False,):
            for name, order, at_once in _orders(orders):
                cluster = start.copy()
                cluster.leaves = leaves
                _play_one(facts, waves, cluster, played, (name, order, at_once))
                if at_once:
                    played.kueue = cluster.kueue(snapshot.kueue)
    except UnknownTypeError:
        return None
    except RestlessError:
        played.settled = False
    return played


def _orders(count: int) -> Iterator[tuple[str, Order, bool]]:
    yield "at once", list, True
    yield "forward", list, False
    yield "backward", lambda wave: list(reversed(wave)), False
    for seed in range(count):
        random = Random(seed)  # noqa: S311
        yield f"shuffled by {seed}", lambda wave, random=random: random.sample(wave, len(wave)), False  # type: ignore[misc]


def _play_one(
    facts: Facts, waves: Sequence[Wave], cluster: Cluster, played: Played, how: tuple[str, Order, bool]
) -> None:
    name, order, at_once = how
    account = Account.of(facts.snapshot, facts.plan.plan_id)
    for number, wave in enumerate(waves, start=1):
        for change in order(wave):
            _take_effect(account, cluster, change, facts.known)
            if not at_once:
                _note(played, cluster.settle(facts.snapshot), f"wave {number} {name}")
        _note(played, cluster.settle(facts.snapshot), f"wave {number} {name}")
        account.settle()


def _note(played: Played, victims: Iterable[str], when: str) -> None:
    for victim in victims:
        played.preempted.setdefault(victim, when)


def _take_effect(account: Account, cluster: Cluster, change: Change, book: Book) -> None:
    """Let one write reach the queues: a deleted quota leaves a queue without quota until its work is gone."""
    held = None if is_policy(change) else account.find(change)
    account.write(change)
    if is_policy(change):
        deleting = account.scheduler is None or account.scheduler.status == "Deleting"
        cluster.set_policy(None if deleting else policy_in_force(account.scheduler))
        return
    made = account.find(change)
    if made is not None and made.status != "Deleting":
        cluster.render(made, book, is_new=held is None)
    elif held is not None and held.status not in NEVER_IN_FORCE:
        cluster.render(held.model_copy(update={"compute_quota_config": ComputeQuotaConfig()}), book)


def _names_unknown_types(facts: Facts) -> bool:
    """Say whether a quota on the path is on a type whose numbers nobody knows: its queue can be read, not rendered."""
    teams = {change.team for change in facts.plan.changes}
    held = (
        quota.compute_quota_config for quota in facts.snapshot.quotas if quota.compute_quota_target.team_name in teams
    )
    configs = (*held, *(config for change in facts.plan.changes for config in (change.before, change.after)))
    rows = (
        row for config in configs if isinstance(config, ComputeQuotaConfig) for row in config.compute_quota_resources
    )
    return any(row.instance_type not in facts.known for row in rows)


def preemption_failures(facts: Facts, played: Played) -> Iterator[str]:
    """Yield who is preempted on the way and was not predicted."""
    prediction = facts.plan.prediction
    if not prediction.simulated:
        if played.settled and not _names_unknown_types(facts):
            yield f"nothing is predicted, though the queues settle: {'; '.join(prediction.not_modelled)}"
        return
    predicted = {f"{item.namespace}/{item.name}" for item in prediction.effects if item.effect == "preempted"}
    named = {key for change in facts.plan.changes for key in change.preempts}
    if any(change.wave for change in facts.plan.changes) and named != predicted:
        yield f"the changes name {sorted(named)} as preempted, the prediction {sorted(predicted)}"
    if not prediction.is_complete:
        return
    for key, when in sorted(played.preempted.items()):
        if key not in predicted:
            yield f"{key} is preempted in {when}, and nobody said so"
