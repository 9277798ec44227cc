"""Teams, jobs and nodes for the tests on a real cluster: rendered as taskgov renders, submitted as a person does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from taskgov.hyperpod import names
from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.hyperpod.model import ComputeQuota, SchedulerConfig
from taskgov.kueue.foundation import admission_policy
from taskgov.kueue.render import RenderedObjects, render
from taskgov_embedded.cluster.jobs import JOB_UID_LABEL
from taskgov_embedded.cluster.manifests import job_manifest
from tests.cluster.kube import KUEUE, Kube, is_true, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tests.cluster.kube import Object

TABLE: Final = InstanceTypeTable()
_OURS: Final = ("LocalQueue", "ClusterQueue", "Cohort", "ResourceFlavor", "WorkloadPriorityClass")


def a_quota(
    team: str,
    resources: list[dict[str, Any]],
    *,
    strategy: str = "LendAndBorrow",
    borrow_limit: int | None = 50,
    weight: int = 0,
    preempt: str = "LowerPriority",
) -> ComputeQuota:
    """Return a compute quota of a team."""
    sharing = {"Strategy": strategy, **({} if borrow_limit is None else {"BorrowLimit": borrow_limit})}
    return ComputeQuota.model_validate(
        {
            "ComputeQuotaId": "abcdefghijkl",
            "Name": f"{team}-quota",
            "ComputeQuotaVersion": 1,
            "Status": "Created",
            "ComputeQuotaConfig": {
                "ComputeQuotaResources": resources,
                "ResourceSharingConfig": sharing,
                "PreemptTeamTasks": preempt,
            },
            "ComputeQuotaTarget": {"TeamName": team, "FairShareWeight": weight},
        }
    )


def a_policy(fair_share: str = "Enabled", **classes: int) -> SchedulerConfig:
    """Return a cluster policy with priority classes (underscores in their names are hyphens)."""
    ranks = [{"Name": name.replace("_", "-"), "Weight": weight} for name, weight in classes.items()]
    return SchedulerConfig.model_validate({"PriorityClasses": ranks, "FairShare": fair_share})


def govern(kube: Kube, quotas: Iterable[ComputeQuota], policy: SchedulerConfig) -> RenderedObjects:
    """Render quotas and policy, apply them in order, and wait until every queue is active."""
    rendered = render(quotas, policy, TABLE, "v1beta2")
    kube.apply(*rendered.in_order())
    wait_for(
        "every ClusterQueue is active", lambda: all(is_true(one, "Active") for one in kube.list(KUEUE, "ClusterQueue"))
    )
    return rendered


def submit(kube: Kube, team: str, name: str, requests: Mapping[str, str | int], *, pods: int, priority: str) -> str:
    """Submit a batch Job to the team's queue; return the name of its workload when Kueue has made it."""
    manifest = job_manifest(team, name, requests, kind="Job", pods=pods, priority=priority)
    pod = manifest["spec"]["template"]["spec"]
    pod["restartPolicy"] = "Never"
    for container in pod["containers"]:
        container["image"] = "none"
        extended = {key: value for key, value in container["resources"]["requests"].items() if "/" in key}
        container["resources"]["limits"] = extended  # the API server wants limits of extended resources
    uid = kube.create(manifest)["metadata"]["uid"]
    found: list[str] = []

    def has_workload() -> bool:
        found[:] = [
            one["metadata"]["name"]
            for one in kube.list(KUEUE, "Workload")
            if one["metadata"].get("labels", {}).get(JOB_UID_LABEL) == uid
        ]
        return bool(found)

    wait_for(f"job {name} has its workload", has_workload)
    return found[0]


def is_suspended(kube: Kube, team: str, name: str) -> bool:
    """Say whether a job is suspended."""
    return bool(kube.get("batch/v1", "Job", name, names.namespace_of(team))["spec"]["suspend"])


def complete(kube: Kube, team: str, name: str) -> None:
    """Let a running job be done."""
    succeed(kube, kube.get("batch/v1", "Job", name, names.namespace_of(team)))


def succeed(kube: Kube, job: Object) -> None:
    """Let a Job or a PyTorchJob that runs be done, as its controller would write it."""
    started = job.get("status", {}).get("startTime") or job["metadata"]["creationTimestamp"]
    if job["kind"] == "PyTorchJob":
        done = {"type": "Succeeded", "status": "True", "reason": "PyTorchJobSucceeded", "lastTransitionTime": started}
        kube.patch_status(job, {"completionTime": started, "conditions": [{**done, "message": "it is done"}]})
        return
    met = {"status": "True", "reason": "CompletionsReached", "lastTransitionTime": started, "lastProbeTime": started}
    kube.patch_status(
        job,
        {
            "startTime": started,
            "completionTime": started,
            "succeeded": job["spec"]["completions"],
            "conditions": [{"type": "SuccessCriteriaMet", **met}, {"type": "Complete", **met}],
        },
    )


def clear(kube: Kube) -> None:
    """Take away jobs, workloads, queues, flavors and classes; there is no garbage collector to do it."""
    kube.delete(kube.list("batch/v1", "Job"))
    if kube.has("kubeflow.org/v1", "PyTorchJob"):
        kube.delete(kube.list("kubeflow.org/v1", "PyTorchJob"))
    kube.delete(kube.list(KUEUE, "Workload"))
    wait_for("the workloads are gone", lambda: not kube.list(KUEUE, "Workload"))
    for kind in _OURS:
        kube.delete(kube.list(KUEUE, kind))
    kube.delete(reversed(admission_policy()))
    wait_for("queues and flavors are gone", lambda: not any(kube.list(KUEUE, kind) for kind in _OURS))


def a_node(name: str, instance_type: str) -> Object:
    """Return a Node of a type, as its kubelet would register it."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {names.INSTANCE_TYPE_LABEL: instance_type}},
    }
