"""A setting and its jobs in numbers: trees, queues and kinds. Limits are derived as in `taskgov.scheduling.quota`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskgov.futures.asks import Search
from taskgov.futures.one_place import OnePlace
from taskgov.futures.queues import ENDLESS, NOBODY, Kind, Queue, Tree
from taskgov.scheduling.demand import demand_of, total
from taskgov.scheduling.eligibility import FlavorBook
from taskgov.scheduling.objects import NEVER, ClusterQueue, Cohort, flavor_resource, resource_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from taskgov.futures.asks import Amounts
    from taskgov.futures.jobs import Jobs, Shape
    from taskgov.futures.setting import Setting
    from taskgov.scheduling.objects import FlavorResource, PodSet, ResourceGroup


class Count:
    """Everything a replay changes, at its beginning: nobody has started but those that run already."""

    def __init__(self, setting: Setting, jobs: Jobs) -> None:
        self.fair = setting.config.fair_sharing
        self.book = FlavorBook()
        for flavor in setting.flavors:
            self.book.put(flavor)
        self.places: dict[FlavorResource, int] = {}
        """Flavor and resource -> place."""
        self.plain = True
        """Whether there is one place only, for which everybody asks."""
        by_name = {queue.name: queue for queue in setting.queues}
        # Who comes to a LocalQueue that is stopped joins no queue.
        doors = {
            (door.namespace, door.name): door.cluster_queue for door in setting.doors if door.stop_policy == "None"
        }
        self._place_all(jobs, by_name, doors)
        self.waits: list[Kind | None] = [None] * len(jobs)
        self.cohorts = {cohort.name: cohort for cohort in setting.cohorts}
        self.trees: dict[str, Tree] = {}
        self.queues: dict[str, Queue] = {}
        for number, name in enumerate(sorted(by_name)):
            self._put(by_name[name], number)
        self.nowhere = Queue(ClusterQueue(""), Tree(len(self.places)), NOBODY, len(self.places), self.waits)
        self.nowhere.open = False
        self._settle_limits()
        kinds = [self._kind(doors.get(door, ""), shape) for door, shape in jobs.origins]
        self.kind_of: list[Kind] = [kinds[origin] for origin in jobs.origin]
        """The kind of each job, by rank; of one that no queue takes, a kind of the queue `nowhere`."""

    def change(self, specs: Iterable[ClusterQueue]) -> None:
        """Take other quotas, limits, weights or rules of queues; trees in which anything is new are reconsidered."""
        for spec in specs:
            queue = self.queues[spec.name]
            if queue.spec != spec:
                if (queue.spec.quotas, queue.spec.cohort) != (spec.quotas, spec.cohort):
                    queue.generation += 1
                queue.spec = spec
                queue.open = self._is_open(spec)
                queue.tree.notified = True
                queue.tree.active = sum(member.active for member in queue.tree.queues if member.open)
        self._settle_limits()
        for queue in self.queues.values():
            for (pod_sets, _), kind in queue.kinds.items():
                self._judge(kind, pod_sets)

    def _is_open(self, spec: ClusterQueue) -> bool:
        return spec.stop_policy == "None" and all(self.book.has_all(group.flavors) for group in spec.groups)

    def _place_all(self, jobs: Jobs, queues: Mapping[str, ClusterQueue], doors: Mapping[tuple[str, str], str]) -> None:
        """Give a place to each flavor and resource that some job requests or holds."""
        for door, (pod_sets, _) in jobs.origins:
            spec = queues.get(doors.get(door, ""))
            groups = () if spec is None else spec.groups
            asked = {resource for pod_set in pod_sets for resource, _ in pod_set.requests}
            found = [
                flavor_resource(flavor, resource)
                for group in groups
                for flavor in group.flavors
                for resource in group.resources
                if resource in asked
            ]
            self.plain = self.plain and bool(found)
            for fr in found:
                self._place(fr)
        for job in jobs.jobs:
            for fr in () if job.held is None else job.held.usage():
                self._place(fr)
        self.plain = self.plain and len(self.places) == 1 and all(job.held is None for job in jobs.jobs)

    def _place(self, fr: FlavorResource) -> int:
        return self.places.setdefault(fr, len(self.places))

    def _put(self, spec: ClusterQueue, number: int) -> None:
        root = f"Cohort/{spec.cohort}" if spec.cohort else f"ClusterQueue/{spec.name}"
        tree = self.trees.setdefault(root, Tree(len(self.places)))
        form = OnePlace if self.plain else Queue
        queue = form(spec, tree, number, len(self.places), self.waits)
        queue.open = self._is_open(spec)
        tree.queues.append(queue)
        self.queues[spec.name] = queue

    def _settle_limits(self) -> None:
        """Derive what depends on quotas and limits, and the usage of cohorts."""
        for tree in self.trees.values():
            cohort = self.cohorts.get(tree.queues[0].spec.cohort or "", Cohort(""))
            self._settle_tree(tree, cohort)

    def _settle_tree(self, tree: Tree, cohort: Cohort) -> None:
        tree.subtree = self._amounts({fr: quota.nominal for fr, quota in cohort.quotas.items()})
        tree.used = [0] * len(self.places)
        in_all: dict[str, int] = {}
        for fr, quota in cohort.quotas.items():
            in_all[resource_of(fr)] = in_all.get(resource_of(fr), 0) + quota.nominal
        for queue in tree.queues:
            self._settle_queue(queue)
            for fr, quota in queue.spec.quotas.items():
                lent = quota.nominal if quota.lending_limit is None else min(quota.nominal, quota.lending_limit)
                in_all[resource_of(fr)] = in_all.get(resource_of(fr), 0) + lent
            for place, nominal in enumerate(queue.nominal):
                tree.subtree[place] += nominal - queue.local[place]
                tree.used[place] += max(0, queue.used[place] - queue.local[place])
        for fr, place in self.places.items():
            tree.lendable[place] = in_all.get(resource_of(fr), 0)
        for queue in tree.queues:
            queue.potential = [
                min(queue.nominal[place] + limit, queue.local[place] + tree.subtree[place])
                if not queue.alone
                else queue.nominal[place]
                for place, limit in enumerate(queue.limit)
            ]

    def _settle_queue(self, queue: Queue) -> None:
        quotas = queue.spec.quotas
        queue.nominal = self._amounts({fr: quota.nominal for fr, quota in quotas.items()})
        queue.local = self._amounts(
            {
                fr: max(0, quota.nominal - quota.lending_limit)
                for fr, quota in quotas.items()
                if quota.lending_limit is not None
            }
        )
        limits = {fr: quota.borrowing_limit for fr, quota in quotas.items() if quota.borrowing_limit is not None}
        queue.limit = [limits.get(fr, ENDLESS) for fr in self.places]
        queue.room = [queue.nominal[place] - queue.local[place] + limit for place, limit in enumerate(queue.limit)]
        by_resource: dict[str, list[int]] = {}
        for fr, place in self.places.items():
            if fr in quotas:
                by_resource.setdefault(resource_of(fr), []).append(place)
        queue.counted = tuple(map(tuple, by_resource.values()))

    def _amounts(self, of: Mapping[FlavorResource, int]) -> list[int]:
        return [of.get(fr, 0) for fr in self.places]

    def _kind(self, queue_name: str, shape: Shape) -> Kind:
        """Return the kind of jobs of a shape in a queue."""
        queue = self.queues.get(queue_name, self.nowhere)
        kind = queue.kinds.get(shape)
        if kind is None:
            kind = queue.kinds[shape] = Kind(queue, shape[1])
            self._judge(kind, shape[0])
        return kind

    def _judge(self, kind: Kind, pod_sets: tuple[PodSet, ...]) -> None:
        """Work out what jobs of a kind ask for, and what preemption could free for them, under the quotas as set."""
        queue, rules = kind.queue, kind.queue.spec.preemption
        borrow = rules.borrow_within_cohort
        kind.anyhow = (borrow is not None and borrow.policy != NEVER) or (
            self.fair and rules.reclaim_within_cohort != NEVER
        )
        kind.asks, kind.searches, kind.may_preempt = None, (), 0
        searches = self._searches(queue.spec, pod_sets)
        fails = next((s.pods for s in searches if all(option is None for option in s.options)), None)
        if fails == 0:
            return
        pods = {search.pods for search in searches}
        if fails or not all(map(_is_fixed, searches)) or (len(pods) > 1 and not self.fair):
            kind.searches = searches
            return
        asks: dict[int, int] = {}
        for search in searches:
            for place, amount in search.options[-1] or ():
                asks[place] = asks.get(place, 0) + amount
        if any(amount > queue.potential[place] for place, amount in asks.items()):
            return
        kind.asks = tuple(asks.items())
        for place, amount in kind.asks:
            if kind.anyhow or queue.nominal[place] >= amount:
                kind.may_preempt |= 1 << place

    def _searches(self, spec: ClusterQueue, pod_sets: tuple[PodSet, ...]) -> tuple[Search, ...]:
        """Return the walks over flavors that give pods what they ask for; the last has no flavor where one has none."""
        demand = demand_of(pod_sets, ())
        group_of: dict[str, ResourceGroup] = {r: group for group in reversed(spec.groups) for r in group.resources}
        searches: list[Search] = []
        for pods, indexes in enumerate(demand.groups):
            parts = [demand.pod_sets[index] for index in indexes]
            requests = total([part.requests for part in parts])
            done: list[ResourceGroup] = []
            for resource, amount in requests.items():
                group = group_of.get(resource)
                if group is None and amount:
                    return (*searches, Search(pods, ()))
                if group is not None and group not in done:
                    done.append(group)
                    options = self._options(group, requests, [part.pod_set for part in parts])
                    searches.append(Search(pods, options, resumes=resource in parts[0].requests))
        return tuple(searches)

    def _options(
        self, group: ResourceGroup, requests: Mapping[str, int], pod_sets: Sequence[PodSet]
    ) -> tuple[Amounts | None, ...]:
        """Return what is requested of each flavor of a group; `None` for one that the pods may not use."""
        return tuple(
            tuple(
                (self._place(flavor_resource(flavor, resource)), amount)
                for resource, amount in requests.items()
                if resource in group.resources
            )
            if rejection is None
            else None
            for flavor, rejection in zip(group.flavors, self.book.rejected(group.flavors, pod_sets), strict=True)
        )


def _is_fixed(search: Search) -> bool:
    """Return whether only the last flavor may be used: then the search goes to its end, without a choice."""
    return all(option is None for option in search.options[:-1])
