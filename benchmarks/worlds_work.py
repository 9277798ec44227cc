"""The work of a world: jobs that run, wait, or were told to leave, as the scheduling model brings it about.

The jobs run on the queues of today's quotas, or came to run on the quotas of before, so that some borrow, or stand
beyond a quota that was lowered under them.
"""

from typing import Any, Final

from benchmarks.worlds_cluster import Machines
from benchmarks.worlds_draw import Draw
from benchmarks.worlds_odd import drifts, one_a_team, put_on_hold
from benchmarks.worlds_past import NEVER_IN_FORCE
from benchmarks.worlds_quotas import POOL, Standing
from taskgov.hyperpod.model import ComputeQuota
from taskgov.kueue.render import manager_configuration, render
from taskgov.quantities import is_mig
from taskgov.scheduling import KueueModel, ManagerConfig, settle
from taskgov.snapshot.model import KueueObjects

BEFORE: Final = "2026-11-20T10:00:00Z"
SHORTLY_BEFORE: Final = "2026-11-20T11:55:00Z"


def draw_work(draw: Draw, machines: Machines, standing: Standing) -> KueueObjects:
    """Return the queues and the work on them; nothing where the world has no jobs."""
    if not draw.chance(draw.mix.jobs):
        return KueueObjects()
    in_force = one_a_team([quota for quota in standing.quotas if quota.status not in NEVER_IN_FORCE])
    held = standing.scheduler
    policy = None if held is None or held.status in NEVER_IN_FORCE else held.scheduler_config
    rendered = render(in_force, policy, machines.table)
    world = KueueModel(ManagerConfig(fair_sharing=manager_configuration(policy).fair_sharing))
    world.load(rendered.in_order())
    earlier = [_earlier(draw, quota) for quota in in_force] if draw.chance(0.5) else []
    for queue in render(earlier, policy, machines.table).cluster_queues:
        world.apply(queue)
    for quota in in_force:
        team = quota.compute_quota_target.team_name
        if team != POOL:
            for number in range(draw.number(0, 5)):
                world.apply(_job(draw, machines, team, number))
    settle(world, BEFORE)
    held_now = [_earlier(draw, quota) if drifts(draw, quota) else quota for quota in in_force]
    cluster_queues = put_on_hold(draw, render(held_now, policy, machines.table).cluster_queues)
    local_queues = put_on_hold(draw, rendered.local_queues)
    for queue in (*cluster_queues, *local_queues) if earlier or draw.mix.drifted else ():
        world.apply(queue)
    _leavings(draw, machines, world, in_force)
    return KueueObjects(
        resource_flavors=rendered.resource_flavors,
        cluster_queues=tuple(
            {**queue, "status": world.cluster_queue(queue["metadata"]["name"])["status"]} for queue in cluster_queues
        ),
        local_queues=local_queues,
        priority_classes=rendered.priority_classes,
        workloads=tuple(world.workload(key) for key in sorted(world.workloads())),
    )


def _earlier(draw: Draw, quota: ComputeQuota) -> ComputeQuota:
    """Return the quota as it may have been before: more or less of everything."""
    rows = []
    for row in quota.compute_quota_config.compute_quota_resources:
        more = draw.number(-2, 3)
        update: dict[str, Any] = {}
        if row.count is not None:
            update["count"] = max(row.count + more, 0)
        if row.accelerators is not None:
            update["accelerators"] = max(row.accelerators + more, 0)
        rows.append(row.model_copy(update=update))
    config = quota.compute_quota_config.model_copy(update={"compute_quota_resources": tuple(rows)})
    return quota.model_copy(update={"compute_quota_config": config})


def _job(draw: Draw, machines: Machines, team: str, number: int) -> dict[str, Any]:
    """Return a job of one or two pod sets, on any type or on a certain one."""
    instance_type = draw.pick(machines.types)
    pod_sets = [
        _pod_set(draw, machines, instance_type, name)
        for name in (("main",) if draw.chance(0.8) else ("head", "workers"))
    ]
    if len(machines.types) > 1 and draw.chance(0.6):
        for pods in pod_sets:
            pods["template"]["spec"]["nodeSelector"] = {"node.kubernetes.io/instance-type": instance_type}
    name = f"{team}-{number}"
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": {
            "name": name,
            "namespace": f"hyperpod-ns-{team}",
            "uid": f"uid-{name}",
            "creationTimestamp": f"2026-11-20T0{draw.number(1, 9)}:{draw.number(10, 59)}:00Z",
        },
        "spec": {
            "queueName": f"hyperpod-ns-{team}-localqueue",
            "active": True,
            "priority": draw.pick([0, 0, 50, 100]),
            "podSets": pod_sets,
        },
    }


def _pod_set(draw: Draw, machines: Machines, instance_type: str, name: str) -> dict[str, Any]:
    """Return pods that take a part of an instance each: some accelerators, or a partition, with vCPU and memory."""
    numbers = machines.table.require(instance_type)
    accelerators = draw.pick([1, 1, 1, 2, 4]) if numbers.accelerators and draw.chance(0.9) else 0
    accelerators = min(accelerators, numbers.accelerators)
    share = accelerators / numbers.accelerators if accelerators else 0.125
    vcpu = max(1, int(numbers.vcpu * share * draw.pick([0.1, 0.25, 0.25, 0.5, 0.9])))
    requests = {"cpu": str(vcpu), "memory": f"{max(1, int(numbers.memory_gib * share / 4))}Gi"}
    if accelerators:
        requests[numbers.accelerator_resource] = str(accelerators)
    profiles = [profile for profile in numbers.mig_profiles if is_mig(f"nvidia.com/{profile}")]
    if profiles and draw.chance(draw.mix.mig):
        requests.pop(numbers.accelerator_resource, None)
        requests[f"nvidia.com/{draw.pick(profiles)}"] = str(draw.number(1, 3))
    template: dict[str, Any] = {"spec": {"containers": [{"name": "main", "resources": {"requests": requests}}]}}
    return {"name": name, "count": draw.number(1, 4), "template": template}


def _leavings(draw: Draw, machines: Machines, world: KueueModel, quotas: list[ComputeQuota]) -> None:
    """Send some work on its way out: told to leave by a person or a timeout, or just preempted by a newcomer."""
    running = [key for key in sorted(world.workloads()) if world.admission(key) is not None]
    if running and draw.chance(0.15):
        key = draw.pick(running)
        world.evict(key, SHORTLY_BEFORE, reason="PodsReadyTimeout", message="the pods did not become ready in time")
    teams = [quota.compute_quota_target.team_name for quota in quotas]
    if teams and draw.chance(0.25):
        job = _job(draw, machines, draw.pick(teams), 9)
        job["spec"]["priority"] = 100
        world.apply(job)
        world.cycle(SHORTLY_BEFORE)
