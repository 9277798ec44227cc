"""The pods of KubeRay's kinds: head, worker groups, and who submits a RayJob.

Source: Kueue 0.19 `raycluster/common.go` and `rayjob_controller.go`, which count the containers that KubeRay adds.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from taskgov_manifests.fields import NO_TEMPLATE, Field

Pods = Iterator[tuple[str, int, Mapping[str, Any]]]

_SUBMITTER: Final = {
    "limits": {"cpu": "1", "memory": "1Gi"},
    "requests": {"cpu": "500m", "memory": "200Mi"},
}
_AUTOSCALER: Final = {"limits": {"cpu": "500m", "memory": "512Mi"}, "requests": {"cpu": "500m", "memory": "512Mi"}}


def cluster_pods(spec: Field, *beside_head: Mapping[str, Any]) -> Pods:
    """Give the head, with the containers that are added to it, and the worker groups of a Ray cluster."""
    head = spec.at("headGroupSpec", "template").template()
    added = [*beside_head]
    if spec.at("enableInTreeAutoscaling").value is True:
        resources = spec.at("autoscalerOptions", "resources").value or _AUTOSCALER
        added = [{"name": "autoscaler", "resources": resources}, *added]
    yield "head", 1, _with_containers(head, added)
    for group in spec.at("workerGroupSpecs").entries(required=False):
        count = group.at("replicas").count() * max(1, group.at("numOfHosts").count())
        yield group.at("groupName").text(), count, group.at("template").template()


def job_pods(spec: Field) -> Pods:
    """Give a Ray cluster and what submits to it: a pod of its own, a container of the head, or a person."""
    mode = spec.at("submissionMode").value or "K8sJobMode"
    if spec.at("rayClusterSpec").value is None:
        spec.at("rayClusterSpec").refuse("is required: a job on a running cluster is not queued")
        return
    cluster = spec.at("rayClusterSpec")
    submitter = {"name": "ray-job-submitter", "resources": _SUBMITTER}
    yield from cluster_pods(cluster, *((submitter,) if mode == "SidecarMode" else ()))
    if mode != "K8sJobMode":
        return
    own = spec.at("submitterPodTemplate")
    if own.value is not None:
        yield "submitter", 1, own.template()
        return
    image = _first_image(cluster)
    yield "submitter", 1, {"spec": {"containers": [{**submitter, "image": image}], "restartPolicy": "Never"}}


def _first_image(cluster: Field) -> str:
    """Return the image of the head's first container, which the submitter shares."""
    template = cluster.at("headGroupSpec", "template").value
    try:
        return str(template["spec"]["containers"][0].get("image", ""))
    except (KeyError, IndexError, TypeError, AttributeError):
        return ""


def _with_containers(template: Mapping[str, Any], added: list[Mapping[str, Any]]) -> Mapping[str, Any]:
    if not added or template is NO_TEMPLATE:
        return template
    return {**template, "spec": {**template["spec"], "containers": [*template["spec"]["containers"], *added]}}
