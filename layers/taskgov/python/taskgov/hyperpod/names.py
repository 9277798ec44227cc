"""What things are called in a governed cluster: namespaces, queues, classes, labels, taints.

Rendering, reading and explaining agree here. Source: the objects that the task governance add-on makes (names,
labels and cohort as its documentation prints them) and the node labels of the HyperPod resilience documentation.
"""

from typing import Final

COHORT: Final = "shared-pool"
KUEUE_NAMESPACE: Final = "kueue-system"
MANAGER_CONFIG_MAP: Final = "kueue-manager-config"
MANAGER_CONFIG_KEY: Final = "controller_manager_config.yaml"
ADMISSION_POLICY: Final = "hyperpod-task-governance-admission-policy"
ADD_ON: Final = "amazon-sagemaker-hyperpod-taskgovernance"

MANAGED_QUEUE_LABEL: Final = "sagemaker.amazonaws.com/sagemaker-managed-queue"
QUOTA_ALLOCATION_LABEL: Final = "sagemaker.amazonaws.com/quota-allocation-id"
ACTIVATE_QUOTA_LABEL: Final = "sagemaker.amazonaws.com/activate-quota"

QUEUE_NAME_LABEL: Final = "kueue.x-k8s.io/queue-name"
PRIORITY_CLASS_LABEL: Final = "kueue.x-k8s.io/priority-class"
NAMESPACE_NAME_LABEL: Final = "kubernetes.io/metadata.name"

INSTANCE_TYPE_LABEL: Final = "node.kubernetes.io/instance-type"
NODE_HEALTH: Final = "sagemaker.amazonaws.com/node-health-status"
"""Label of a node's health, and key of the taint `Unschedulable:NoSchedule`."""
DEEP_HEALTH_CHECK_LABEL: Final = "sagemaker.amazonaws.com/deep-health-check-status"
CLUSTER_NAME_LABEL: Final = "sagemaker.amazonaws.com/cluster-name"
MIG_STATE_LABEL: Final = "nvidia.com/mig.config.state"

_NAMESPACE_PREFIX: Final = "hyperpod-ns-"
_CLUSTER_QUEUE_SUFFIX: Final = "-clusterqueue"
_LOCAL_QUEUE_SUFFIX: Final = "-localqueue"


def namespace_of(team: str) -> str:
    """Return the namespace in which `team` submits.

    >>> namespace_of("team-a")
    'hyperpod-ns-team-a'
    """
    return f"{_NAMESPACE_PREFIX}{team}"


def cluster_queue_of(team: str) -> str:
    """Return the name of the ClusterQueue that holds the team's quota.

    >>> cluster_queue_of("team-a")
    'hyperpod-ns-team-a-clusterqueue'
    """
    return f"{namespace_of(team)}{_CLUSTER_QUEUE_SUFFIX}"


def local_queue_of(team: str) -> str:
    """Return the name of the LocalQueue to which the team submits.

    >>> local_queue_of("team-a")
    'hyperpod-ns-team-a-localqueue'
    """
    return f"{namespace_of(team)}{_LOCAL_QUEUE_SUFFIX}"


def priority_class_of(name: str) -> str:
    """Return the WorkloadPriorityClass of a HyperPod priority class.

    >>> priority_class_of("training")
    'training-priority'
    """
    return f"{name}-priority"


def team_of_cluster_queue(name: str) -> str | None:
    """Return the team whose ClusterQueue this is, or None when the name is not of HyperPod's form.

    >>> team_of_cluster_queue("hyperpod-ns-team-a-clusterqueue"), team_of_cluster_queue("default")
    ('team-a', None)
    """
    if not (name.startswith(_NAMESPACE_PREFIX) and name.endswith(_CLUSTER_QUEUE_SUFFIX)):
        return None
    return name.removeprefix(_NAMESPACE_PREFIX).removesuffix(_CLUSTER_QUEUE_SUFFIX) or None


def team_of_namespace(name: str) -> str | None:
    """Return the team that submits in this namespace, or None if it belongs to no team.

    >>> team_of_namespace("hyperpod-ns-team-a"), team_of_namespace("default")
    ('team-a', None)
    """
    return (name.removeprefix(_NAMESPACE_PREFIX) or None) if name.startswith(_NAMESPACE_PREFIX) else None


def kubernetes_node_of(instance_id: str) -> str:
    """Return the Kubernetes name of a HyperPod instance.

    >>> kubernetes_node_of("i-0123456789abcdef0")
    'hyperpod-i-0123456789abcdef0'
    """
    return f"hyperpod-{instance_id}"


def namespace_of_local_queue(queue: str) -> str | None:
    """Return the namespace of a team's LocalQueue, or None when the name is not of HyperPod's form.

    >>> namespace_of_local_queue("hyperpod-ns-team-a-localqueue"), namespace_of_local_queue("batch")
    ('hyperpod-ns-team-a', None)
    """
    namespace = queue.removesuffix(_LOCAL_QUEUE_SUFFIX)
    return namespace if namespace != queue and team_of_namespace(namespace) else None
