"""What sequences have beyond contention for quota: stopped queues, pods that are counted, jobs that grow and shrink.

It is drawn from a seed of its own, so that the same number of a sequence has the same contention with it or without.

| trait | what it adds |
| --- | --- |
| pods | `pods` as a resource that quotas cover |
| stops | queues and doors that are stopped, drained and started again, or name a flavor that is not there |
| partial | jobs that take fewer pods (`minCount`), and pods that are done and not needed again |
| slices | elastic jobs: a new slice that is to take the place of a running one |
| bounds | a LimitRange, and requests above limits |
"""

from __future__ import annotations

import copy
import random
from typing import TYPE_CHECKING, Final

from taskgov.hyperpod.names import local_queue_of, namespace_of
from tests.cluster.differential.sequence import LANE, Apply, Finish, Reclaim, Scale, Step, Submit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.cluster.kube import Object

EXTRAS: Final[Mapping[str, float]] = {"pods": 0.25, "stops": 0.3, "partial": 0.3, "slices": 0.3, "bounds": 0.15}
"""What may be added, and how often it is."""
PODS: Final = "pods"
_ABSENT: Final = f"{LANE}-absent"


class Extras:
    """Makes them for one sequence."""

    def __init__(self, seed: str) -> None:
        self._chance = random.Random(f"{seed} extras")  # noqa: S311 - reproducible, not secret
        self.traits = tuple(name for name, share in EXTRAS.items() if self._chance.random() < share)
        self._queues: dict[str, Object] = {}
        self._stopped: Object | None = None

    def adapt(self, queue: Object) -> None:
        """Add to a queue what its traits say, and remember how it is now."""
        if "pods" in self.traits:
            group = queue["spec"]["resourceGroups"][0]
            group["coveredResources"].append(PODS)
            for flavor in group["flavors"]:
                flavor["resources"].append({"name": PODS, "nominalQuota": str(self._chance.choice([1, 2, 4, 8]))})
        self._queues[queue["metadata"]["name"]] = queue

    def limit_range(self, team: str) -> list[Object]:
        """Return the bounds of a team's namespace, if it has any."""
        if "bounds" not in self.traits or self._chance.random() < 0.4:
            return []
        limits = self._chance.choice([{"max": {"cpu": "2"}}, {"min": {"memory": "2Gi"}}, {"default": {"cpu": "2"}}])
        return [
            {
                "apiVersion": "v1",
                "kind": "LimitRange",
                "metadata": {"name": f"{LANE}-bounds", "namespace": namespace_of(team)},
                "spec": {"limits": [{"type": "Container", **limits}]},
            }
        ]

    def instead(self, step: Step, teams: list[str]) -> Step:
        """Return what happens instead of a step, or the step with what its traits add."""
        chance = self._chance
        if "stops" in self.traits and (found := self._stop_or_start(teams)) is not None:
            return found
        if "partial" in self.traits and chance.random() < 0.12:
            return Reclaim(chance.randrange(100))
        if "slices" in self.traits and chance.random() < 0.2:
            return Scale(chance.randrange(100), chance.choice([-1, 1, 1, 2]))
        if isinstance(step, Submit):
            self.complete(step)
        return step

    def complete(self, step: Submit) -> None:
        """Let a workload take fewer pods, or have limits."""
        chance = self._chance
        pod_set = step.workload["spec"]["podSets"][-1]
        if "partial" in self.traits and chance.random() < 0.6:
            pod_set["count"] += chance.choice([0, 1, 2])
            if pod_set["count"] > 1:
                pod_set["minCount"] = chance.randint(1, pod_set["count"] - 1)
        if "bounds" in self.traits and chance.random() < 0.3:
            limits = {"cpu": chance.choice(["2", "8"])}
            pod_set["template"]["spec"]["containers"][0]["resources"]["limits"] = limits

    def _stop_or_start(self, teams: list[str]) -> Step | None:
        """Stop a queue or a door, or start the one that is stopped; while one is, more workloads are done."""
        chance = self._chance
        if self._stopped is None:
            return self._stop(chance.choice(teams)) if chance.random() < 0.2 else None
        drawn = chance.random()
        if drawn < 0.3:
            started, self._stopped = self._stopped, None
            return Apply(self._queues.get(started["metadata"]["name"], started))
        return Finish(chance.randrange(100)) if drawn < 0.45 else None

    def _stop(self, team: str) -> Step:
        chance = self._chance
        policy = chance.choice(["Hold", "HoldAndDrain"])
        if chance.random() < 0.4:
            self._stopped = _door(team)
            return Apply({**self._stopped, "spec": {**self._stopped["spec"], "stopPolicy": policy}})
        self._stopped = self._queues[f"hyperpod-ns-{team}-clusterqueue"]
        changed = copy.deepcopy(self._stopped)
        if chance.random() < 0.7:
            changed["spec"]["stopPolicy"] = policy
        else:
            flavors = changed["spec"]["resourceGroups"][0]["flavors"]
            flavors.append({**copy.deepcopy(flavors[0]), "name": _ABSENT})
        return Apply(changed)


def _door(team: str) -> Object:
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "LocalQueue",
        "metadata": {"name": local_queue_of(team), "namespace": namespace_of(team)},
        "spec": {"clusterQueue": f"hyperpod-ns-{team}-clusterqueue", "stopPolicy": "None"},
    }
