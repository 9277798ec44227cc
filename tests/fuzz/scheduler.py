"""Valid and damaged objects for the scheduling model, and everything that may be asked of it."""

from __future__ import annotations

import copy
from functools import cache
from random import Random
from typing import TYPE_CHECKING, Any, Final

from taskgov.scheduling import Budget, KueueModel, ManagerConfig, settle
from tests.fuzz.mutation import mutated
from tests.scheduling.builders import (
    HYPERPOD_PREEMPTION,
    a_cohort,
    a_condition,
    a_door,
    a_flavor,
    a_group,
    a_job,
    a_queue,
    a_running_job,
)

if TYPE_CHECKING:
    from collections.abc import Callable

Object = dict[str, Any]
OBJECTS: Final = 5
"""So many are applied in one case."""
NOW: Final = "2026-11-20T09:00:00Z"
SPOT: Final = {"key": "spot"}
SIZES: Final = ("0", "1", "3", "500m", "1e3", "2Gi")


def a_class(name: str, value: int) -> Object:
    return {"kind": "WorkloadPriorityClass", "metadata": {"name": name}, "value": value}


def a_namespace(name: str) -> Object:
    return {"kind": "Namespace", "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}}}


def of_class(workload: Object, name: str) -> Object:
    workload["spec"]["priorityClassRef"] = {"kind": "WorkloadPriorityClass", "name": name}
    return workload


def evicted(workload: Object) -> Object:
    workload["status"]["conditions"].append(a_condition("Evicted", reason="Preempted"))
    workload["status"]["requeueState"] = {"count": 1, "requeueAt": "2026-11-20T09:05:00Z"}
    return workload


def reclaimed(workload: Object, count: int) -> Object:
    return {**workload, "status": {"reclaimablePods": [{"name": "main", "count": count}]}}


def base() -> list[Object]:
    """A small installation in which work runs, waits and may preempt."""
    fungible = {"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "TryNextFlavor"}
    many: dict[str, Object] = {"gpu": {"cpu": ("4", "4", "2"), "pods": "9"}, "spot": {"cpu": "2", "pods": "9"}}
    return [
        a_flavor(),
        a_flavor(
            "spot", nodeLabels={"kind": "spot", "rank": "3"}, nodeTaints=[{"key": "spot", "effect": "NoSchedule"}]
        ),
        a_cohort("root"),
        a_cohort("pool", "root", resourceGroups=[a_group({"gpu": {"cpu": "2", "pods": "9"}})]),
        a_queue("a", cohort="pool", flavors=many, preemption=HYPERPOD_PREEMPTION, flavorFungibility=fungible),
        a_queue("b", cohort="pool", flavors=many, preemption=HYPERPOD_PREEMPTION, fairSharing={"weight": "0"}),
        a_queue("c", cpu="3", queueingStrategy="StrictFIFO"),
        *(a_door(name) for name in "abc"),
        a_class("high", 10),
        a_namespace("default"),
        a_running_job("runs", "a", cpu="5"),
        a_job("waits", "b", cpu="3", second=5),
        a_job("more", "c", cpu="2", second=6),
    ]


def samples(draw: Random) -> list[Object]:
    """Valid objects, new ones and others for what is there."""
    size, name = draw.choice(SIZES), draw.choice(("new", "runs", "waits", "late"))
    queue, priority = draw.choice("abc"), draw.randint(-5, 5)
    toleration = {**SPOT, "operator": "Exists"}
    work = a_job(name, queue, cpu=size, count=draw.randint(1, 4), priority=priority, second=draw.randint(0, 59))
    wide = a_job(name, queue, cpu="1", count=4, minCount=1, topologyRequest={"podSetGroupName": "g"})
    expressions = [
        {"key": "kind", "operator": "In", "values": ["spot"]},
        {"key": "rank", "operator": draw.choice(("Gt", "Lt")), "values": ["2"]},
    ]
    wide["spec"]["podSets"][0]["template"]["spec"] |= {
        "tolerations": [toleration],
        "nodeSelector": {"kind": "spot"},
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": expressions}]
                }
            }
        },
        "overhead": {"cpu": "10m"},
        "initContainers": [{"name": "i", "restartPolicy": "Always", "resources": {"limits": {"cpu": size}}}],
    }
    flavors = {draw.choice(("gpu", "spot", "none")): {"cpu": (size, draw.choice(SIZES), None), "memory": "4Gi"}}
    return [
        work,
        wide,
        of_class(copy.deepcopy(work), "high"),
        reclaimed(wide, draw.randint(0, 5)),
        a_running_job(name, queue, cpu=size, priority=priority),
        evicted(a_running_job(name, queue, cpu=size)),
        a_queue(queue, cohort=draw.choice(("pool", "root", "other", None)), flavors=flavors),
        a_queue("d", cohort="pool", cpu=size, stopPolicy=draw.choice(("None", "Hold", "HoldAndDrain"))),
        a_cohort(draw.choice(("pool", "root", "other")), draw.choice(("root", "pool", "other", None))),
        a_queue(queue, cpu=size, namespaceSelector={"matchExpressions": expressions[:1]}),
        a_flavor(draw.choice(("gpu", "spot", "none")), tolerations=[toleration], nodeLabels={"rank": "x"}),
        {**a_door(queue), "spec": {"clusterQueue": draw.choice("abcd"), "stopPolicy": "Hold"}},
        a_class("high", draw.randint(-5, 50)),
        a_namespace(draw.choice(("default", "other"))),
        {"kind": "Topology", "metadata": {"name": "t"}, "spec": {"levels": [{"nodeLabel": "rack"}]}},
        {"kind": "AdmissionCheck", "metadata": {"name": "c"}, "spec": {"controllerName": "x"}},
    ]


@cache
def _filled(*, fair: bool) -> KueueModel:
    model = KueueModel(ManagerConfig(fair_sharing=fair))
    model.load(base())
    return model


def answers(model: KueueModel) -> Any:
    """Everything that the model says of itself."""
    queues = sorted(model.cluster_queues())
    return (
        model.signature(),
        model.not_modelled,
        [(key, model.workload(key)) for key in sorted(model.workloads())],
        [
            (name, model.cluster_queue(name), model.pending(name), model.quota(name), model.share(name))
            for name in queues
        ],
        model.trees,
        model.next_backoff,
    )


def play(seed: int) -> int:
    """Apply some objects and ask everything; return how many were refused."""
    draw = Random(seed)  # noqa: S311 - cases that can be played again
    model, refused = _filled(fair=draw.random() < 0.5).copy(), 0
    for _ in range(OBJECTS):
        sample = draw.choice(samples(draw))
        obj = mutated(sample, draw) if draw.random() < 0.7 else sample
        refused += is_refused(model, lambda obj=obj: model.apply(obj))  # type: ignore[misc]
        if draw.random() < 0.2:
            refused += is_refused(model, lambda obj=obj: model.load([{"items": [a_class("high", 3), obj]}]))  # type: ignore[misc]
        if sample["kind"] == "Workload":
            refused += is_refused(model, lambda obj=obj: model.assign(obj, "a"))  # type: ignore[misc]
            refused += is_refused(model, lambda obj=obj: model.victims(obj, "b"))  # type: ignore[misc]
        if draw.random() < 0.3:
            model.cycle(NOW)
    twin = model.copy()
    assert answers(twin) == answers(model)
    settle(twin, NOW, budget=Budget(60))
    answers(twin)
    delete(model, draw)
    settle(model, NOW, budget=Budget(60))
    answers(model)
    return refused


def is_refused(model: KueueModel, action: Callable[[], object]) -> bool:
    """Do something; where it is refused, it says why, and the model is as before."""
    before, refusal = answers(model), None
    try:
        action()
    except ValueError as error:
        refusal = error
    if refusal is None:
        return False
    assert type(refusal) is ValueError, f"{type(refusal).__name__}: {refusal}"
    assert ": " in str(refusal), f"unclear: {refusal}"
    assert answers(model) == before, f"changed by what it refused: {refusal}"
    return True


def delete(model: KueueModel, draw: Random) -> None:
    """Delete one object that is there."""
    kind, names = draw.choice(
        [
            ("ClusterQueue", sorted(model.cluster_queues())),
            ("Workload", sorted(model.workloads())),
            ("ResourceFlavor", ["gpu", "spot"]),
            ("Cohort", ["pool", "root"]),
            ("LocalQueue", ["default/a", "default/b"]),
            ("WorkloadPriorityClass", ["high"]),
            ("Namespace", ["default"]),
        ]
    )
    namespace, _, name = draw.choice(names).rpartition("/")
    model.delete(kind, name, namespace)
