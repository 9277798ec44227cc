"""On which node does a pod start? What a simple kube-scheduler decides.

Pods are taken in the order in which they were made, each gets the first node by name that is ready, not
cordoned, tolerated, selected, and has room in its allocatable. Pods that fit nowhere stay Pending with the reason.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, Final

from taskgov.quantities import PODS, parse
from taskgov.scheduling.demand import pod_requests
from taskgov.scheduling.matching import meets, tolerates
from taskgov.scheduling.objects import Requirement, Taint, Toleration
from taskgov_embedded.cluster.objects import KubeObject, key_of
from taskgov_embedded.cluster.states import condition_status

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from taskgov_embedded.cluster.objects import Key

KEEPS_AWAY: Final = ("NoSchedule", "NoExecute")


class Room:
    """What is still free on each node."""

    def __init__(self, nodes: Iterable[KubeObject], pods: Iterable[KubeObject]) -> None:
        self._nodes: list[KubeObject] = sorted(nodes, key=key_of)
        self._used: dict[str, Counter[str]] = defaultdict(Counter)
        for pod in pods:
            if on := pod["spec"].get("nodeName"):
                self._used[on].update(requests_of(pod))

    def place(self, pod: KubeObject) -> tuple[str | None, str]:
        """Return the node that a pod gets, and take the room there; or None and kube-scheduler's sentence why."""
        refusals: Counter[str] = Counter()
        requests = requests_of(pod)
        for node in self._nodes:
            name: str = node["metadata"]["name"]
            reasons = _unfit(pod["spec"], node) or self._too_small(requests, node)
            if not reasons:
                self._used[name].update(requests)
                return name, ""
            refusals.update(reasons)
        return None, _sentence(len(self._nodes), refusals)

    def _too_small(self, requests: Mapping[str, int], node: KubeObject) -> list[str]:
        """Name each resource that the node has too little of (kube-scheduler: NodeResourcesFit)."""
        allocatable = node["status"]["allocatable"]
        used = self._used[node["metadata"]["name"]]
        short = (
            resource
            for resource, amount in requests.items()
            if amount and amount > parse(resource, allocatable.get(resource, "0")) - used[resource]
        )
        return ["Too many pods" if resource == PODS else f"Insufficient {resource}" for resource in sorted(short)]


def place_all(pods: Sequence[KubeObject], nodes: Iterable[KubeObject]) -> dict[Key, tuple[str | None, str]]:
    """Place every pod that has no node yet (and no gate), oldest first, then by name."""
    room = Room(nodes, pods)
    waiting = [pod for pod in pods if not pod["spec"].get("nodeName") and not pod["spec"].get("schedulingGates")]
    waiting.sort(key=lambda pod: (pod["metadata"]["creationTimestamp"], pod["metadata"]["uid"]))
    return {key_of(pod): room.place(pod) for pod in waiting}


def requests_of(pod: KubeObject) -> Counter[str]:
    """Return what a pod requests, in base units, and one of `pods`."""
    return Counter({**pod_requests(pod["spec"]), PODS: 1})


def _unfit(spec: Mapping[str, Any], node: KubeObject) -> list[str]:
    """Say why a pod may not go to a node at all, in kube-scheduler's words (its first failing filter)."""
    if node["spec"].get("unschedulable"):
        return ["node(s) were unschedulable"]
    if not _is_ready(node):
        return ["node(s) were not ready"]
    untolerated = [taint for taint in node["spec"].get("taints", ()) if not _is_tolerated(taint, spec)]
    if untolerated:
        taint = untolerated[0]
        return [f"node(s) had untolerated taint {{{taint['key']}: {taint.get('value', '')}}}"]
    if not _is_selected(spec, node["metadata"].get("labels", {})):
        return ["node(s) didn't match Pod's node affinity/selector"]
    return []


def _is_ready(node: KubeObject) -> bool:
    return condition_status(node, "Ready") == "True"


def _is_tolerated(taint: Mapping[str, str], spec: Mapping[str, Any]) -> bool:
    here = Taint(taint["key"], taint.get("value", ""), taint["effect"])
    return here.effect not in KEEPS_AWAY or any(
        tolerates(
            Toleration(
                toleration.get("key", ""),
                toleration.get("operator", "Equal"),
                toleration.get("value", ""),
                toleration.get("effect", ""),
            ),
            here,
        )
        for toleration in spec.get("tolerations", ())
    )


def _is_selected(spec: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Match `nodeSelector` and required node affinity (terms are alternatives, expressions of a term all hold)."""
    if any(labels.get(name) != value for name, value in spec.get("nodeSelector", {}).items()):
        return False
    affinity = spec.get("affinity", {}).get("nodeAffinity", {})
    terms = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms")
    return not terms or any(
        all(_holds(expression, labels) for expression in term.get("matchExpressions", ())) for term in terms
    )


def _holds(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    values = tuple(expression.get("values", ()))
    return meets(Requirement(expression["key"], expression["operator"], values), labels)


def _sentence(nodes: int, refusals: Counter[str]) -> str:
    counted = ", ".join(sorted(f"{count} {reason}" for reason, count in refusals.items()))
    return f"0/{nodes} nodes are available: {counted}." if counted else "no nodes available to schedule pods"
