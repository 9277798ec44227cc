"""Whether the Kueue of an EKS cluster without HyperPod can keep its quotas, and whether its nodes are watched."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from taskgov.adapters.kubernetes.reader import GROUP
from taskgov_cli.doctor.backend_checks import BackendChecks
from taskgov_cli.doctor.checks_access import FOLLOWING_RIGHT, LISTED, MANAGER_RIGHTS, READERS, WRITERS
from taskgov_cli.doctor.checks_kueue import kueue_version
from taskgov_cli.doctor.diagnosis import Diagnosis, failed, ok, unknown, warning
from taskgov_cli.doctor.facts import Unknown
from taskgov_cli.doctor.permissions import LISTS, NEEDED

if TYPE_CHECKING:
    from taskgov_cli.doctor.facts import AddOn, DeployedStack, EksCluster, KueueDeployment, Kueues, Names, Read

OLDEST_KUEUE: Final = (0, 15)
"""`docs/kueue.md`."""
INSTALL: Final = (
    "kubectl apply --server-side -f https://github.com/kubernetes-sigs/kueue/releases/download/v0.19.2/manifests.yaml"
)
"""The version that is tested (`docs/test-cluster.md`)."""
EC2_RULE: Final = "InstanceStateRule"
"""What the template has with `WatchPlainEks=yes` only."""
KEPT_BY_SAGEMAKER: Final = frozenset({"cluster", "training-plan", "quota", "scheduler-config", "access-entry"})
ASKS_EC2: Final = ("ReadSnapshotRole", "PublishUsageRole", "AuditClusterRole")
"""Roles that ask about lost machines, with `WatchPlainEks=yes`."""
QUERIES: Final = (
    "ec2:DescribeInstances",
    "ec2:DescribeCapacityReservations",
    "autoscaling:DescribeAutoScalingInstances",
)
_WRITTEN: Final = {
    ("", "namespaces"): "get list create patch",
    (GROUP, "resourceflavors"): "get list create patch",
    (GROUP, "cohorts"): "get create patch",
    **{
        (GROUP, name): "get list create patch delete"
        for name in ("clusterqueues", "localqueues", "workloadpriorityclasses")
    },
    (GROUP, "workloads"): "list",
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"): "get create patch",
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"): "get create patch",
}
_RELEASE: Final = re.compile(r":v(\d+)\.(\d+)\.\d+")


def eks_cluster(eks: Read[EksCluster], names: Names) -> Diagnosis:
    """Check that the cluster is there and active."""
    check = "eks-cluster"
    if isinstance(eks, Unknown):
        return unknown(check, eks.reason, f"aws eks list-clusters --region {names.region}")
    if eks.status != "ACTIVE":
        look = f"aws eks describe-cluster --region {names.region} --name {eks.name}"
        return warning(check, f"{eks.name} is {eks.status}", look)
    return ok(check, f"{eks.name} is active, with Kubernetes {eks.version}")


def kueue(kueues: Read[Kueues], add_on: Read[AddOn | None]) -> Diagnosis:
    """Check that exactly one Kueue is there, that it is new enough, and that no add-on governs it."""
    check = "kueue"
    if isinstance(kueues, Unknown):
        return unknown(check, kueues.reason)
    if isinstance(add_on, Unknown):
        return unknown(check, add_on.reason)
    if add_on is not None:
        because = "HyperPod's task governance add-on is installed: SageMaker governs this cluster's Kueue"
        note = "Examine the HyperPod cluster by its own name; its document has no `backend: kueue`."
        return failed(check, because, "aws sagemaker list-clusters --query 'ClusterSummaries[].ClusterName'", note=note)
    if not kueues.deployments or not kueues.definitions:
        missing = "no Deployment of it" if not kueues.deployments else "none of its CRDs"
        return failed(check, f"Kueue is not installed: the cluster has {missing}", INSTALL)
    if len(kueues.deployments) > 1:
        found = "; ".join(map(_said, kueues.deployments))
        note = "Keep the one whose configuration you know; removing its CRDs would delete queues and workloads."
        extra = [
            f"kubectl delete deployment {other.name} --namespace {other.namespace}" for other in kueues.deployments[1:]
        ]
        return failed(check, f"several installations of Kueue would write the same queues: {found}", *extra, note=note)
    return _kueue_release(kueues.deployments[0])


def _kueue_release(kueue: KueueDeployment) -> Diagnosis:
    check, found = "kueue", _said(kueue)
    release = _RELEASE.search(kueue.image)
    if release is None:
        return warning(
            check, f"the image does not state the version of Kueue: {found}", note="It must be 0.15 or later."
        )
    if (int(release[1]), int(release[2])) < OLDEST_KUEUE:
        note = "Its release notes describe how to upgrade, one minor version at a time if they require it."
        return failed(check, f"Kueue must be 0.15 or later: {found}", INSTALL, note=note)
    return ok(check, f"{found}, at least 0.15")


def _said(kueue: KueueDeployment) -> str:
    return f"{kueue.name} in namespace {kueue.namespace} ({kueue.image})"


def node_events(stack: Read[DeployedStack], names: Names) -> Diagnosis:
    """Check that the stack gets EC2's events, and may query EC2 and Auto Scaling about its machines."""
    check = "node-events"
    if isinstance(stack, Unknown):
        return unknown(check, stack.reason)
    if EC2_RULE in stack.resources:
        return ok(check, "WatchPlainEks=yes: events of EC2 and Auto Scaling start runs")
    because = "WatchPlainEks=no: the stack gets no EC2 events, so lost nodes wait for the resync"
    note = (
        "Nor does it query EC2 about lost nodes and the ends of Capacity Blocks: a mass loss waits for a "
        "person (docs/kueue.md)."
    )
    deploy = f"sam deploy --stack-name {names.stack} --parameter-overrides WatchPlainEks=yes"
    return warning(check, because, "sam build", deploy, note=note)


def permissions(stack: DeployedStack) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return what roles need: nothing of SageMaker but which HyperPod clusters there are."""
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for role, resources in NEEDED.items():
        actions = {name: of for name, of in resources.items() if name not in KEPT_BY_SAGEMAKER}
        asked = tuple(action for action in actions.pop("*", ()) if action not in LISTS["*"])
        if EC2_RULE in stack.resources and role in ASKS_EC2:
            asked += QUERIES
        found[role] = actions | ({"*": asked} if asked else {})
    return found


CHECKS: Final = BackendChecks(
    cluster=lambda facts, names: [
        eks_cluster(facts.eks, names),
        kueue(facts.kueues, facts.add_on),
        kueue_version(facts.kueues, facts.add_on),
    ],
    events=lambda facts, names: [node_events(facts.stack, names)],
    rights=(
        *((READERS, "list", *listed) for listed in (("", "namespaces"), *LISTED)),
        *MANAGER_RIGHTS,
        FOLLOWING_RIGHT,
        *((WRITERS, verb, *of) for of, verbs in _WRITTEN.items() for verb in verbs.split()),
    ),
    permissions=permissions,
    groups={"VerifyPlanRole": READERS, "ApplyChangeRole": WRITERS},
)
