"""Random clusters as HyperPod makes them, with what Kueue allows beyond that, and crowds that contend for them.

Everything comes from a seed. Quotas are rendered by the product itself; traits add to them what recorded decision
tables leave out.

| trait | what it adds |
| --- | --- |
| taints | flavors with taints, pods that tolerate them or do not, flavors that bring tolerations |
| affinity | pods that want some instance types and not others |
| groups | a second resource group (EFA) with flavors of its own |
| lending | lending limits |
| policies | other preemption and fungibility policies than HyperPod's, StrictFIFO |

`extras` adds more, to any of them.
"""

from __future__ import annotations

import copy
import random
from typing import TYPE_CHECKING, Any, Final

from taskgov.hyperpod.names import INSTANCE_TYPE_LABEL, local_queue_of, namespace_of
from taskgov.kueue.render import render
from tests.cluster.differential.extras import Extras
from tests.cluster.differential.pods import EFA, GPU, PodSets
from tests.cluster.differential.sequence import LANE, Apply, Delete, Finish, Release, Sequence, Step, Submit
from tests.cluster.workbench import TABLE, a_policy, a_quota

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.cluster.kube import Object

TYPES: Final = ("ml.g5.8xlarge", "ml.g5.12xlarge", "ml.g5.48xlarge", "ml.p4d.24xlarge")
CLASSES: Final[Mapping[str, int]] = {"inference": 90, "training": 70, "batch": 10}
COHORT: Final = f"pool-{LANE}"
TRAITS: Final[Mapping[str, float]] = {"taints": 0.35, "affinity": 0.3, "groups": 0.3, "lending": 0.25, "policies": 0.25}
"""What may be added, and how often it is."""
STEPS: Final = 28
FILLING_STEPS: Final = 8
_DEDICATED: Final = {"key": "dedicated", "value": "research", "effect": "NoSchedule"}
_SPOT: Final = {"key": "spot", "value": "", "effect": "NoExecute"}
_PREFERRED: Final = {"key": "old", "value": "", "effect": "PreferNoSchedule"}


def generate(seed: int, *, fair_sharing: bool) -> Sequence:
    """Return the sequence of a seed."""
    return _Generator(seed, fair_sharing=fair_sharing).sequence()


class _Generator:
    def __init__(self, seed: int, *, fair_sharing: bool) -> None:
        self._seed = seed
        self._fair_sharing = fair_sharing
        self._chance = random.Random(f"{seed} {fair_sharing}")  # noqa: S311 - reproducible, not secret
        self._traits = tuple(name for name, share in TRAITS.items() if self._chance.random() < share)
        self._types = self._chance.sample(TYPES, self._chance.choice([1, 1, 2, 2, 3]))
        self._teams = [f"{LANE}-{letter}" for letter in "abcd"[: self._chance.choice([2, 2, 3, 3, 4])]]
        self._policies = {team: self._other_policies() for team in self._teams}
        self._counts: dict[str, dict[str, int]] = {}
        self._early = self._teams[: self._chance.choice([1, 1, 1, 2])]
        self._late = [team for team in self._teams if team not in self._early]
        self._pods = PodSets(self._chance, self._traits, self._types)
        self._number = 0
        self._extras = Extras(f"{seed} {fair_sharing}")

    def sequence(self) -> Sequence:
        """Build the beginning, then the steps."""
        rendered = render([self._quota(team) for team in self._teams], a_policy(), TABLE, "v1beta2")
        queues = [self._adapted(queue) for queue in rendered.cluster_queues]
        flavors = [*(self._flavor(name) for name in self._types), *self._fabric_flavors()]
        classes = [
            {
                "apiVersion": "kueue.x-k8s.io/v1beta2",
                "kind": "WorkloadPriorityClass",
                "metadata": {"name": _class_name(name)},
                "value": value,
            }
            for name, value in CLASSES.items()
        ]
        bounds = [found for team in self._teams for found in self._extras.limit_range(team)]
        objects = (*rendered.namespaces, *bounds, *flavors, *classes, *queues, *rendered.local_queues)
        steps = tuple(self._step(number) for number in range(STEPS))
        traits = (*self._traits, *self._extras.traits)
        return Sequence(self._seed, self._fair_sharing, traits, objects, steps)

    # The cluster

    def _quota(self, team: str) -> Any:
        chance = self._chance
        named = self._types if chance.random() < 0.8 else self._types[:1]
        early = team in self._early
        strategy = chance.choices(["LendAndBorrow", "Lend", "DontLend"], [16, 0 if early else 1, 0 if early else 1])[0]
        limits = [100, 200, 500, 500] if early else [0, 50, 100, 200, 500]
        counts = self._counts[team] = {name: chance.choice([0, 1, 1, 1, 2]) for name in named}
        return a_quota(
            team,
            [{"InstanceType": name, "Count": count} for name, count in counts.items()],
            strategy=strategy,
            borrow_limit=chance.choice(limits) if strategy == "LendAndBorrow" else None,
            weight=chance.choice([0, 1, 10, 10, 50, 100]),
            preempt=chance.choice(["LowerPriority", "LowerPriority", "LowerPriority", "Never"]),
        )

    def _adapted(self, queue: Object) -> Object:
        """Name the queue's cohort and flavors for this sequence, and add what its traits say."""
        adapted = copy.deepcopy(queue)
        spec = adapted["spec"]
        has_cohort = "cohortName" in spec
        if has_cohort:
            spec["cohortName"] = COHORT
        for group in spec["resourceGroups"]:
            for flavor in group["flavors"]:
                flavor["name"] = _flavor_name(flavor["name"])
        if "groups" in self._traits:
            self._split_off_efa(spec, has_cohort=has_cohort)
        if "lending" in self._traits and has_cohort:
            self._limit_lending(spec)
        team = adapted["metadata"]["name"].removeprefix("hyperpod-ns-").removesuffix("-clusterqueue")
        for name, value in self._policies[team].items():
            spec[name] = {**spec[name], **value} if isinstance(value, dict) else value
        self._extras.adapt(adapted)
        return adapted

    def _split_off_efa(self, spec: Object, *, has_cohort: bool) -> None:
        """Let EFA come from flavors of its own instead of from the instance type."""
        [group] = spec["resourceGroups"]
        group["coveredResources"].remove(EFA)
        for flavor in group["flavors"]:
            flavor["resources"] = [one for one in flavor["resources"] if one["name"] != EFA]
        fabrics = []
        for name in ("fabric-1", "fabric-2"):
            resource = {"name": EFA, "nominalQuota": str(self._chance.choice([0, 1, 2, 4]))}
            if has_cohort and self._chance.random() < 0.5:
                resource["borrowingLimit"] = str(self._chance.choice([0, 2, 4]))
            fabrics.append({"name": _flavor_name(name), "resources": [resource]})
        spec["resourceGroups"].append({"coveredResources": [EFA], "flavors": fabrics})

    def _limit_lending(self, spec: Object) -> None:
        for group in spec["resourceGroups"]:
            for flavor in group["flavors"]:
                for resource in flavor["resources"]:
                    if resource["name"] in {GPU, EFA} and self._chance.random() < 0.5:
                        nominal = int(resource["nominalQuota"])
                        resource["lendingLimit"] = str(self._chance.randint(0, nominal))

    def _other_policies(self) -> Object:
        """Return what a team's queue says otherwise than HyperPod's; usually nothing.

        Not a StrictFIFO queue whose search may stop early: its head alternates between flavors, without end.
        """
        chance = self._chance
        if "policies" not in self._traits:
            return {}
        reclaim = chance.choice(["Never", "LowerPriority", "Any"])
        borrow = chance.choice(
            [{"policy": "Never"}, {"policy": "LowerPriority"}, {"policy": "LowerPriority", "maxPriorityThreshold": 70}]
        )
        strict = chance.random() < 0.3
        searches = ["TryNextFlavor"] if strict else ["MayStopSearch", "TryNextFlavor"]
        return {
            "queueingStrategy": "StrictFIFO" if strict else "BestEffortFIFO",
            "preemption": {
                "withinClusterQueue": chance.choice(["Never", "LowerPriority", "LowerOrNewerEqualPriority"]),
                "reclaimWithinCohort": reclaim,
                "borrowWithinCohort": {"policy": "Never"} if reclaim == "Never" else borrow,
            },
            "flavorFungibility": {
                "whenCanBorrow": chance.choice(searches),
                "whenCanPreempt": chance.choice(searches),
            },
        }

    def _flavor(self, instance_type: str) -> Object:
        spec: Object = {"nodeLabels": {INSTANCE_TYPE_LABEL: instance_type}}
        if "taints" in self._traits and self._chance.random() < 0.7:
            count = self._chance.choice([1, 1, 2])
            spec["nodeTaints"] = self._chance.sample([_DEDICATED, _SPOT, _PREFERRED], count)
            if self._chance.random() < 0.2:
                spec["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
        return _kueue("ResourceFlavor", _flavor_name(instance_type), spec)

    def _fabric_flavors(self) -> list[Object]:
        if "groups" not in self._traits:
            return []
        return [_kueue("ResourceFlavor", _flavor_name(name), {}) for name in ("fabric-1", "fabric-2")]

    # What happens

    def _step(self, number: int) -> Step:
        """Let some teams fill the cluster first, beyond their own, then the others come; then jobs come and go."""
        if number < FILLING_STEPS:
            first = self._submit(self._early, [*CLASSES][1:])
        elif number < FILLING_STEPS + len(self._late):
            first = self._submit([self._late[number - FILLING_STEPS]], [*CLASSES])
        else:
            return self._extras.instead(self._contend(), self._teams)
        self._extras.complete(first)
        return first

    def _contend(self) -> Step:
        """Let somebody come or go, or change a quota."""
        chance = self._chance
        what = chance.choices(["submit", "apply", "release", "finish", "delete"], [48, 9, 30, 9, 4])[0]
        if what == "submit":
            return self._submit([*self._teams, *self._late, *self._late], [*CLASSES])
        if what == "apply":
            return self._change()
        kinds: dict[str, Callable[[int], Step]] = {"release": Release, "finish": Finish, "delete": Delete}
        return kinds[what](chance.randrange(100))

    def _change(self) -> Step:
        """Give a team another quota, or a flavor other taints."""
        if "taints" in self._traits and self._chance.random() < 0.2:
            return Apply(self._flavor(self._chance.choice(self._types)))
        team = self._chance.choice(self._teams)
        [queue] = render([self._quota(team)], a_policy(), TABLE, "v1beta2").cluster_queues
        return Apply(self._adapted(queue))

    def _submit(self, teams: list[str], classes: list[str]) -> Submit:
        """Ask for whole instances or for parts of them, in one pod set or in two, now and then for no GPU at all."""
        chance = self._chance
        self._number += 1
        team = chance.choice(teams)
        count, gpus = self._size(team)
        sets = [self._pods.pod_set("workers", count, gpus)]
        if chance.random() < 0.3:
            sets.insert(0, self._pods.pod_set("launcher", 1, chance.choice([0, 0, 1])))
        rank = chance.choice(classes)
        owned = self._owner() if chance.random() < 0.5 else {}
        return Submit(
            {
                "apiVersion": "kueue.x-k8s.io/v1beta2",
                "kind": "Workload",
                "metadata": {"name": f"job-{self._number:02}", "namespace": namespace_of(team), **owned},
                "spec": {
                    "queueName": local_queue_of(team),
                    "priority": CLASSES[rank],
                    "priorityClassRef": {
                        "group": "kueue.x-k8s.io",
                        "kind": "WorkloadPriorityClass",
                        "name": _class_name(rank),
                    },
                    "podSets": sets,
                },
            }
        )

    def _size(self, team: str) -> tuple[int, int]:
        """Return how many pods of how many GPUs: mostly what the team has of a type, so that it can be reclaimed."""
        chance = self._chance
        own = [name for name, count in self._counts[team].items() if count]
        name = chance.choice(own if own and chance.random() < 0.85 else self._types)
        resources = TABLE.resources_of(name)
        assert resources is not None
        whole = resources.gpu
        pods = max(1, self._counts[team].get(name, 0)) if chance.random() < 0.75 else chance.choice([1, 2, 3])
        return pods, chance.choice([whole] * 6 + [max(1, whole // 2)] * 2 + [1, 0])

    def _owner(self) -> Object:
        """Name a job of a kind that Kueue does not know: it finishes workloads that name a job and have no owner."""
        uid = f"job-{self._seed}-{self._number}"
        owner = {"apiVersion": "example.com/v1", "kind": "Training", "name": uid, "uid": uid, "controller": True}
        return {"labels": {"kueue.x-k8s.io/job-uid": uid}, "ownerReferences": [owner]}


def _flavor_name(name: str) -> str:
    return f"{LANE}-{name}"


def _class_name(name: str) -> str:
    return f"{LANE}-{name}-priority"


def _kueue(kind: str, name: str, spec: Object) -> Object:
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name}, "spec": spec}
