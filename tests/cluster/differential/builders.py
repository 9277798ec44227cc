"""Small sequences written by hand, in the words of the generator: one team or two, one GPU resource."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taskgov.hyperpod.names import cluster_queue_of, local_queue_of, namespace_of
from tests.cluster.differential.generate import COHORT
from tests.cluster.differential.pods import GPU
from tests.cluster.differential.sequence import LANE, Sequence, Step, Submit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.cluster.kube import Object

FLAVORS = (f"{LANE}-first", f"{LANE}-second")


def a_sequence(*steps: Step, fair_sharing: bool = True, **queues: Object) -> Sequence:
    """Return a sequence with two flavors and the given queues, by the letter of their team."""
    teams = [f"{LANE}-{letter}" for letter in queues]
    objects = [
        *({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace_of(team)}} for team in teams),
        *(_kueue("ResourceFlavor", {"name": name}, {}) for name in FLAVORS),
        *(
            _kueue("ClusterQueue", {"name": cluster_queue_of(team)}, spec)
            for team, spec in zip(teams, queues.values(), strict=True)
        ),
        *(
            _kueue(
                "LocalQueue",
                {"name": local_queue_of(team), "namespace": namespace_of(team)},
                {"clusterQueue": cluster_queue_of(team)},
            )
            for team in teams
        ),
    ]
    return Sequence(0, fair_sharing, (), tuple(objects), steps)


def a_queue(first: int, second: int = 0, **spec: Any) -> Object:
    """Return the spec of a queue with GPUs of both flavors; it may preempt as HyperPod's queues do."""
    quotas = [
        {"name": name, "resources": [{"name": GPU, "nominalQuota": str(amount)}]}
        for name, amount in zip(FLAVORS, (first, second), strict=True)
    ]
    return {
        "cohortName": COHORT,
        "namespaceSelector": {},
        "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
        "resourceGroups": [{"coveredResources": [GPU], "flavors": quotas}],
        **spec,
    }


def submit(letter: str, name: str, *gpus: int, priority: int = 0) -> Submit:
    """Let a team submit a workload with one pod set for each number of GPUs."""
    team = f"{LANE}-{letter}"
    spec = {
        "queueName": local_queue_of(team),
        "priority": priority,
        "podSets": [_pod_set(f"set-{place}", {GPU: str(number)}) for place, number in enumerate(gpus)],
    }
    return Submit(_kueue("Workload", {"name": name, "namespace": namespace_of(team)}, spec))


def _pod_set(name: str, requests: Mapping[str, str]) -> Object:
    container = {"name": "main", "image": "none", "resources": {"requests": requests}}
    return {"name": name, "count": 1, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}


def _kueue(kind: str, metadata: Object, spec: Object) -> Object:
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": metadata, "spec": spec}
