"""Which waiting workloads have a pod that fits no node of the cluster? What explanations and the audit say of them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from taskgov.findings import Finding
from taskgov.findings.of_audit import REQUEST_NEVER_FITS
from taskgov.hyperpod.names import INSTANCE_TYPE_LABEL
from taskgov.kueue.named import Named, named
from taskgov.quantities import CPU, GIBIBYTE, MEMORY
from taskgov.scheduling.objects import Workload
from taskgov.scheduling.reading import read_workload
from taskgov.scheduling.status_reading import read_conditions
from taskgov.snapshot.model import KubernetesObject, Snapshot


@dataclass(frozen=True, slots=True)
class _Pods:
    """One kind of pods of a waiting workload: what each requests, and the types it may run on (empty: all)."""

    requests: Mapping[str, int]
    instance_types: frozenset[str]


def never_fits(snapshot: Snapshot) -> Iterable[Finding]:
    """Report waiting workloads with a pod that requests more than any node of the cluster offers."""
    return (_too_big(named(item), pods, fitting) for item, pods, fitting in _too_big_pods(snapshot))


def keys_that_never_fit(snapshot: Snapshot) -> Iterable[str]:
    """Return Kueue's keys of these workloads."""
    return (named(item).key for item, _, _ in _too_big_pods(snapshot))


def _too_big_pods(snapshot: Snapshot) -> Iterator[tuple[KubernetesObject, _Pods, list[Mapping[str, int]]]]:
    """Yield each of these workloads, its pods that do not fit, and what the nodes offer that they may run on."""
    offers: dict[str, dict[str, int]] = {}
    for node in snapshot.nodes:
        most = offers.setdefault(node.instance_type, {})
        for resource, amount in node.allocatable.items():
            most[resource] = max(most.get(resource, 0), amount)
    offers = {instance_type: most for instance_type, most in offers.items() if most}
    for item in snapshot.kueue.workloads if offers else ():
        conditions = read_conditions(item.get("status") or {})
        if any(name in conditions and conditions[name].status for name in ("Finished", "QuotaReserved")):
            continue
        workload = read_workload(item, {})
        for pods in _pod_kinds(item, workload):
            fitting: list[Mapping[str, int]] = [
                most for name, most in offers.items() if not pods.instance_types or name in pods.instance_types
            ]
            if fitting and not any(_fits(pods.requests, most) for most in fitting):
                yield item, pods, fitting
                break


def _pod_kinds(item: KubernetesObject, workload: Workload) -> Iterable[_Pods]:
    for pod_set, raw in zip(workload.pod_sets, item["spec"].get("podSets", ()), strict=True):
        selector: Mapping[str, Any] = raw.get("template", {}).get("spec", {}).get("nodeSelector") or {}
        chosen = selector.get(INSTANCE_TYPE_LABEL)
        yield _Pods(dict(pod_set.requests), frozenset([chosen] if chosen else []))


def _fits(requests: Mapping[str, int], offer: Mapping[str, int]) -> bool:
    return all(amount <= offer.get(resource, 0) for resource, amount in requests.items() if amount)


def _too_big(its: Named, pods: _Pods, offers: Iterable[Mapping[str, int]]) -> Finding:
    """Say what is too much on the node that lacks the least kinds of resources."""
    nearest = min(offers, key=lambda offer: sum(n > offer.get(r, 0) for r, n in pods.requests.items()))
    lacking = [r for r, n in sorted(pods.requests.items()) if n > nearest.get(r, 0)]
    words = ", ".join(f"{_amount(r, pods.requests[r])} {r} of {_amount(r, nearest.get(r, 0))}" for r in lacking)
    evidence = {
        "team": its.team,
        "asks": _amount(lacking[0], pods.requests[lacking[0]]),
        "offered": _amount(lacking[0], nearest.get(lacking[0], 0)),
        "resource": lacking[0],
    }
    return REQUEST_NEVER_FITS.about(its.shown, evidence, workload=its.shown, lacking=words)


def _amount(resource: str, amount: int) -> str:
    scale = {CPU: 1000, MEMORY: GIBIBYTE}.get(resource, 1)
    return f"{amount / scale:.6g}"
