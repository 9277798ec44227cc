"""Random pods: what they request, which taints they put up with, which instance types they want."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from taskgov.hyperpod.names import INSTANCE_TYPE_LABEL

if TYPE_CHECKING:
    import random

    from tests.cluster.kube import Object

GPU: Final = "nvidia.com/gpu"
EFA: Final = "vpc.amazonaws.com/efa"


class PodSets:
    """Makes pod sets with the traits of a sequence."""

    def __init__(self, chance: random.Random, traits: tuple[str, ...], types: list[str]) -> None:
        self._chance = chance
        self._traits = traits
        self._types = types

    def pod_set(self, name: str, count: int, gpus: int) -> Object:
        """Return a pod set of so many pods of so many GPUs each."""
        chance = self._chance
        requests: Object = {"cpu": chance.choice(["1", "4", "500m"]), "memory": chance.choice(["1Gi", "4Gi"])}
        if gpus:
            requests[GPU] = str(gpus)
        if "groups" in self._traits and chance.random() < 0.5:
            requests[EFA] = "1"
        pod: Object = {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "none", "resources": {"requests": requests}}],
        }
        if "taints" in self._traits:
            pod["tolerations"] = self._tolerations()
        if "affinity" in self._traits and chance.random() < 0.25:
            pod.update(self._placement())
        return {"name": name, "count": count, "template": {"spec": pod}}

    def _tolerations(self) -> list[Object]:
        every: list[Object] = [
            {"key": "dedicated", "operator": "Equal", "value": "research", "effect": "NoSchedule"},
            {"key": "dedicated", "operator": "Equal", "value": "other"},
            {"key": "spot", "operator": "Exists"},
            {"operator": "Exists"},
        ]
        return self._chance.sample(every, self._chance.choice([0, 1, 2, 3, 3]))

    def _placement(self) -> Object:
        """Want one instance type, or not one, or something that flavors do not say."""
        chance = self._chance
        wanted = chance.choice(self._types)
        if chance.random() < 0.3:
            return {"nodeSelector": {INSTANCE_TYPE_LABEL: wanted}}
        operator = chance.choice(["In", "NotIn", "Exists", "DoesNotExist"])
        expression: Object = {"key": INSTANCE_TYPE_LABEL, "operator": operator}
        if operator in {"In", "NotIn"}:
            expression["values"] = [wanted]
        terms: list[Object] = [{"matchExpressions": [expression]}]
        if chance.random() < 0.3:
            terms.append({"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]})
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        return {"affinity": {"nodeAffinity": required}}
