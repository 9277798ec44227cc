"""What pods does a job have? The pod sets that Kueue's integrations make of each kind of job that it queues.

The submission of `taskgov what-if` and the simulated cluster both read jobs here. Source: Kueue 0.19
`pkg/controller/jobs`. HyperPodPyTorchJob and InferenceEndpointConfig are those of HyperPod's operators.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from taskgov_manifests.fields import Field
from taskgov_manifests.ray import cluster_pods, job_pods

Manifest = Mapping[str, Any]


class ManifestError(ValueError):
    """A manifest that cannot be read: every mistake in it, by lines."""


@dataclass(frozen=True, slots=True)
class PodSet:
    """So many pods of one template."""

    name: str
    count: int
    template: Mapping[str, Any]


Pods = Iterable[tuple[str, int, Mapping[str, Any]]]


def pod_sets_of(job: Manifest, beside: Iterable[Manifest] = ()) -> tuple[PodSet, ...]:
    """Return the pod sets of a job. Deployments and LeaderWorkerSets: those of one replica, each queued by itself.

    `beside` are manifests that the job may refer to: the runtime of a TrainJob. Raises `ManifestError` for a kind that
    queues do not govern, and for everything that is wrong with the fields that are read.

    Example:
        >>> template = {"spec": {"containers": [{"name": "main"}]}}
        >>> job = {"kind": "Job", "spec": {"parallelism": 4, "completions": 3, "template": template}}
        >>> [(one.name, one.count) for one in pod_sets_of(job)]
        [('main', 3)]

    """
    whole = Field(job)
    found = tuple(PodSet(*parts) for parts in _pods(whole, tuple(beside)))
    if not whole.problems and not found:
        whole.at("spec").refuse("has no pods")
    if whole.problems:
        raise ManifestError("\n".join(str(problem) for problem in whole.problems))
    return found


def replicas_of(job: Manifest) -> int:
    """Return how many workloads Kueue makes of a job: one, or one of each replica. Raises `ManifestError`."""
    whole = Field(job)
    replicas = whole.at("spec", "replicas").count() if job.get("kind") in QUEUED_BY_REPLICA else 1
    if whole.problems:
        raise ManifestError("\n".join(str(problem) for problem in whole.problems))
    return replicas


def _pods(job: Field, beside: tuple[Manifest, ...]) -> Pods:
    kind = job.value.get("kind")
    if kind == "TrainJob":
        return _train_pods(job, beside)
    if kind == "AppWrapper":
        return _wrapped_pods(job, beside)
    read = _KINDS.get(kind)
    if read is None:
        why = _NOT_QUEUED.get(str(kind), f"queues govern {', '.join(KINDS)}")
        raise ManifestError(f"{kind} is not a kind of job that can be queued here: {why}")
    return read(job)


# Kubernetes' own kinds


def _batch_pods(job: Field) -> Pods:
    spec = job.at("spec")
    parallelism = spec.at("parallelism").count()
    yield "main", min(parallelism, spec.at("completions").count(parallelism)), spec.at("template").template()


def _single_pod(pod: Field) -> Pods:
    spec = pod.at("spec")
    if spec.unsound():
        return
    ungated = {name: value for name, value in spec.value.items() if name not in {"schedulingGates", "nodeName"}}
    labels = (pod.value.get("metadata") or {}).get("labels") or {}
    yield "main", 1, {"metadata": {"labels": dict(labels)}, "spec": ungated}


def _one_replica(job: Field) -> Pods:
    yield "main", 1, job.at("spec", "template").template()


def _all_replicas(job: Field) -> Pods:
    yield "main", job.at("spec", "replicas").count(), job.at("spec", "template").template()


def _group_of_a_leader(job: Field) -> Pods:
    """Read one group: its size counts the leader, which has a template of its own or is a worker like the others."""
    template = job.at("spec", "leaderWorkerTemplate")
    size = template.at("size").count(least=1)
    leader = template.at("leaderTemplate")
    if leader.value is not None:
        yield "leader", 1, leader.template()
        yield "worker", size - 1, template.at("workerTemplate").template()
    else:
        yield "main", size, template.at("workerTemplate").template()


def _given(workload: Field) -> Pods:
    for pod_set in workload.at("spec", "podSets").entries():
        yield pod_set.at("name").text(), pod_set.at("count").count(None), pod_set.at("template").template()


# Training


def _replica_types(field: str, *order: str) -> Callable[[Field], Pods]:
    """Read one of Kubeflow's jobs: replica types by name, in the order in which Kueue takes them."""

    def read(job: Field) -> Iterator[tuple[str, int, Mapping[str, Any]]]:
        specs = job.at("spec", field)
        if not isinstance(specs.value, Mapping) or not specs.value:
            specs.refuse(f"must name one of {', '.join(order)}")
            return
        for name in specs.value:
            if name not in order:
                specs.at(name).refuse(f"is not one of {', '.join(order)}")
        for name in order:
            if name in specs.value:
                replica_spec = specs.at(name)
                yield name.lower(), replica_spec.at("replicas").count(), replica_spec.at("template").template()

    return read


def _hyperpod_pods(job: Field) -> Pods:
    for replica_spec in job.at("spec", "replicaSpecs").entries():
        yield (
            replica_spec.at("name").text(),
            replica_spec.at("replicas").count(),
            replica_spec.at("template").template(),
        )


def _job_set_pods(job: Field) -> Pods:
    for replicated_job in job.at("spec", "replicatedJobs").entries():
        spec = replicated_job.at("template", "spec")
        parallelism = spec.at("parallelism").count()
        pods = min(parallelism, spec.at("completions").count(parallelism))
        yield (
            replicated_job.at("name").text(),
            replicated_job.at("replicas").count() * pods,
            spec.at("template").template(),
        )


def _train_pods(job: Field, beside: tuple[Manifest, ...]) -> Pods:
    """Read the jobs of the runtime, with as many trainers, of such a size, as the TrainJob says."""
    reference = job.at("spec", "runtimeRef")
    kind, name = str(reference.mapping().get("kind") or "ClusterTrainingRuntime"), reference.at("name").text()
    runtime = next((manifest for manifest in beside if (manifest.get("kind"), _name(manifest)) == (kind, name)), None)
    if runtime is None:
        rule = f"names its pods: give its manifest beside the job (kubectl get {kind.lower()}s {name} -o yaml)"
        reference.at("name").refuse(rule)
        return
    inner = Field(runtime, ("runtime", name), job.problems).at("spec", "template")
    trainer = job.at("spec", "trainer")
    nodes = trainer.at("numNodes")
    for role, count, template in _job_set_pods(inner):
        is_trainer = role == _TRAINER
        resources = trainer.at("resourcesPerNode").value
        yield (
            role,
            nodes.count() if is_trainer and nodes.value is not None else count,
            _with_resources(template, resources) if is_trainer and isinstance(resources, Mapping) else template,
        )


_TRAINER: Final = "node"
"""The runtime's replicated job that trains (Kubeflow Trainer `constants.Node`), and its container."""


def _with_resources(template: Mapping[str, Any], resources: Mapping[str, Any]) -> Mapping[str, Any]:
    containers = [
        {**container, "resources": resources} if container.get("name") == _TRAINER else container
        for container in template["spec"]["containers"]
    ]
    return {**template, "spec": {**template["spec"], "containers": containers}}


def _wrapped_pods(job: Field, beside: tuple[Manifest, ...]) -> Pods:
    """Read the pods of every component, as declared or as its own kind has them; Kueue numbers them."""
    number = 0
    for component in job.at("spec", "components").entries():
        for count, template in _component_pods(component, beside):
            yield f"{_name(job.value)}-{number}", count, template
            number += 1


def _component_pods(component: Field, beside: tuple[Manifest, ...]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    declared = component.at("podSets").entries(required=False)
    for pod_set in declared:
        path = pod_set.at("path").text()
        yield pod_set.at("replicas").count(), _follow(component, path).template()
    wrapped = component.at("template")
    if declared or not isinstance(wrapped.value, Mapping):
        if not declared:
            wrapped.refuse("must be a manifest")
    elif wrapped.value.get("kind") in KINDS or wrapped.value.get("kind") in _NOT_QUEUED:
        times = wrapped.at("spec", "replicas").count() if wrapped.value["kind"] in QUEUED_BY_REPLICA else 1
        for _, count, template in _pods(wrapped, beside):
            yield count * times, template


def _follow(component: Field, path: str) -> Field:
    """Return what a path such as `template.spec.template` or `template.spec.jobs[1].template` leads to."""
    found = component
    for step in path.replace("]", "").replace("[", ".").split(".") if path else ():
        if step.isdecimal() and isinstance(found.value, list):
            entry = found.value[int(step)] if int(step) < len(found.value) else None
            found = Field(entry, (*found.location, int(step)), found.problems)
        else:
            found = found.at(step)
    return found


def _name(manifest: Manifest) -> str:
    metadata = manifest.get("metadata")
    return str(metadata.get("name", "")) if isinstance(metadata, Mapping) else ""


# Inference


def _endpoint_pods(job: Field) -> Pods:
    """Read one replica of an endpoint of HyperPod's inference operator, which makes a Deployment of it."""
    spec = job.at("spec")
    worker = spec.at("worker")
    pod: dict[str, Any] = {
        "containers": [{"name": "model", "resources": worker.at("resources").value or {}}],
        "nodeSelector": {"node.kubernetes.io/instance-type": spec.at("instanceType").text()},
    }
    template = Field({"spec": pod}, worker.location, job.problems).template()
    if worker.at("resources").value is None:
        worker.at("resources").refuse("must state what a replica requests")
    yield "main", 1, template


_MASTER_WORKER: Final = ("Master", "Worker")
_KINDS: Final[Mapping[Any, Callable[[Field], Pods]]] = {
    "Job": _batch_pods,
    "Pod": _single_pod,
    "Deployment": _one_replica,
    "StatefulSet": _all_replicas,
    "LeaderWorkerSet": _group_of_a_leader,
    "JobSet": _job_set_pods,
    "PyTorchJob": _replica_types("pytorchReplicaSpecs", *_MASTER_WORKER),
    "TFJob": _replica_types("tfReplicaSpecs", "Chief", "Master", "PS", "Worker", "Evaluator"),
    "XGBoostJob": _replica_types("xgbReplicaSpecs", *_MASTER_WORKER),
    "PaddleJob": _replica_types("paddleReplicaSpecs", *_MASTER_WORKER),
    "JAXJob": _replica_types("jaxReplicaSpecs", "Worker"),
    "MPIJob": _replica_types("mpiReplicaSpecs", "Launcher", "Worker"),
    "HyperPodPyTorchJob": _hyperpod_pods,
    "RayJob": lambda job: job_pods(job.at("spec")),
    "RayCluster": lambda job: cluster_pods(job.at("spec")),
    "RayService": lambda job: cluster_pods(job.at("spec", "rayClusterConfig")),
    "InferenceEndpointConfig": _endpoint_pods,
    "Workload": _given,
}
KINDS: Final = (*_KINDS, "TrainJob", "AppWrapper")
"""Every kind whose pod sets are known."""
QUEUED_BY_REPLICA: Final = frozenset({"Deployment", "LeaderWorkerSet", "InferenceEndpointConfig"})
"""Kinds of which Kueue admits each replica by itself."""
_NOT_QUEUED: Final[Mapping[str, str]] = {
    "CronJob": "its Jobs are queued; submit a Job with its jobTemplate",
    "DaemonSet": "Kueue does not queue DaemonSets",
    "ReplicaSet": "submit its Deployment",
    "JumpStartModel": "it does not state the requests of its pods; submit an InferenceEndpointConfig that does",
    "SparkApplication": "Spark's memory overhead is not modelled; submit a Job that requests as much",
}
"""Kinds that people may take for jobs, each with what to do."""
