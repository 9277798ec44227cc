"""Whether task governance can govern the cluster: EKS, its version, the add-on, and one Kueue only."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from taskgov.hyperpod.names import ADD_ON, KUEUE_NAMESPACE
from taskgov_cli.doctor.backend_checks import BackendChecks
from taskgov_cli.doctor.checks_access import FOLLOWING_RIGHT, LISTED, MANAGER_RIGHTS, READERS
from taskgov_cli.doctor.checks_account import cloud_trail
from taskgov_cli.doctor.checks_kueue import kueue_version
from taskgov_cli.doctor.diagnosis import Diagnosis, failed, ok, unknown, warning
from taskgov_cli.doctor.facts import Unknown
from taskgov_cli.doctor.permissions import NEEDED

if TYPE_CHECKING:
    from taskgov_cli.doctor.facts import (
        AddOn,
        Cluster,
        EksCluster,
        KueueDefinition,
        KueueDeployment,
        Kueues,
        Names,
        Read,
    )

OLDEST_KUBERNETES: Final = (1, 30)
"""What the add-on needs (workshop and developer guide: "Kubernetes version 1.30 or greater")."""
EKS_MANAGERS: Final = frozenset({"eks"})
"""Field managers of what EKS installs (EKS user guide; for this add-on inferred)."""
SETTLED: Final = frozenset({"ACTIVE", "DEGRADED", "CREATE_FAILED", "UPDATE_FAILED", "DELETE_FAILED"})
KUEUE_018: Final = (1, 5)
"""Add-on version since which Kueue is 0.18 or newer; upgrades from before fail on storedVersions of its CRDs."""


def hyperpod_cluster(cluster: Read[Cluster], names: Names) -> Diagnosis:
    """Check that the cluster is there, in service, and orchestrated by EKS."""
    check = "hyperpod-cluster"
    if isinstance(cluster, Unknown):
        return unknown(check, cluster.reason, "aws sagemaker list-clusters --query 'ClusterSummaries[].ClusterName'")
    if cluster.eks_arn is None:
        return failed(
            check,
            f"{cluster.name} is not orchestrated by EKS, but task governance needs Kueue",
            note="The orchestrator of a cluster cannot be changed: create one with Orchestrator.Eks.",
        )
    if cluster.status != "InService":
        look = f"aws sagemaker describe-cluster --region {names.region} --cluster-name {cluster.name}"
        return warning(check, f"{cluster.name} is {cluster.status}", look)
    return ok(check, f"{cluster.name} is in service, on EKS cluster {names.eks}")


def kubernetes_version(eks: Read[EksCluster], names: Names) -> Diagnosis:
    """Check that Kubernetes is new enough for the add-on. EKS upgrades one minor version at a time."""
    check = "kubernetes-version"
    if isinstance(eks, Unknown):
        return unknown(check, eks.reason)
    major, minor = (int(part) for part in eks.version.split(".")[:2])
    if (major, minor) >= OLDEST_KUBERNETES:
        return ok(check, f"Kubernetes {eks.version}, at least 1.30")
    steps = [
        f"aws eks update-cluster-version --region {names.region} --name {eks.name} --kubernetes-version 1.{step}"
        for step in range(minor + 1, OLDEST_KUBERNETES[1] + 1)
    ]
    note = "Each update takes some minutes; wait for the cluster to be ACTIVE in between."
    return failed(check, f"Kubernetes {eks.version}, but the add-on needs 1.30 or newer", *steps, note=note)


def add_on(found: Read[AddOn | None], names: Names) -> Diagnosis:
    """Check that the task governance add-on is installed and well."""
    check = "add-on"
    at = f"--region {names.region} --cluster-name {names.eks} --addon-name {ADD_ON}"
    if isinstance(found, Unknown):
        return unknown(check, found.reason)
    if found is None:
        note = "Remove any other installation of Kueue first (see one-kueue)."
        return failed(check, f"the add-on {ADD_ON} is not installed", f"aws eks create-addon {at}", note=note)
    if found.status != "ACTIVE":
        issues = f": {'; '.join(found.issues)}" if found.issues else ""
        because = f"the add-on {found.version} is {found.status}{issues}"
        if found.status not in SETTLED:
            return warning(check, because, f"aws eks describe-addon {at}")
        return failed(
            check, because, f"aws eks update-addon {at} --addon-version {found.version} --resolve-conflicts OVERWRITE"
        )
    if isinstance(found.newest, Unknown) or found.newest == found.version:
        return ok(check, f"the add-on {found.version} is active")
    old = _version(found.version) < KUEUE_018
    return warning(
        check,
        f"the add-on {found.version} is active; EKS offers {found.newest}",
        f"aws eks update-addon {at} --addon-version {found.newest}",
        note="An upgrade from a version before 1.5 is known to fail on storedVersions of Kueue's CRDs." if old else "",
    )


def one_kueue(kueues: Read[Kueues], found: Read[AddOn | None], names: Names) -> Diagnosis:
    """Check that no other Kueue is there: two controllers would fight over the same queues."""
    check = "one-kueue"
    if isinstance(kueues, Unknown):
        return unknown(check, kueues.reason)
    installed = found is not None
    foreign = [
        deployment for deployment in kueues.deployments if not installed or deployment.namespace != KUEUE_NAMESPACE
    ]
    strange = [definition for definition in kueues.definitions if _is_foreign(definition, installed=installed)]
    if not foreign and not strange:
        what = "the add-on's Kueue is the only one" if installed else "there is no Kueue yet"
        return ok(check, what)
    said = [f"{deployment.name} in namespace {deployment.namespace} ({deployment.image})" for deployment in foreign]
    said += [f"{len(strange)} CRDs owned by {', '.join(_owners(strange))}"] if strange else []
    fix = [
        *(_removal(deployment, installed=installed) for deployment in foreign),
        *_definitions_fixed(strange, foreign, names),
    ]
    return failed(
        check,
        f"a Kueue beside the add-on's: {'; '.join(said)}" if installed else f"a Kueue of its own: {'; '.join(said)}",
        *dict.fromkeys(fix),
        note="Removing a Kueue's CRDs deletes its queues and workloads; suspend what runs in them first.",
    )


def _is_foreign(definition: KueueDefinition, *, installed: bool) -> bool:
    if definition.helm_release is not None:
        return definition.helm_namespace != KUEUE_NAMESPACE or not EKS_MANAGERS & set(definition.owners)
    return bool(set(definition.owners) - EKS_MANAGERS) or not installed


def _owners(definitions: list[KueueDefinition]) -> list[str]:
    helm = {f"Helm release {definition.helm_release}" for definition in definitions if definition.helm_release}
    plain = {
        owner
        for definition in definitions
        if not definition.helm_release
        for owner in definition.owners
        if owner not in EKS_MANAGERS
    }
    return sorted(helm | plain) or ["a manager that is not installed"]


def _removal(deployment: KueueDeployment, *, installed: bool) -> str:
    """Return how to remove a Kueue: as it was installed, without the CRDs where the add-on uses them too."""
    if deployment.helm_release is not None:
        return f"helm uninstall {deployment.helm_release} --namespace {deployment.namespace}"
    release = re.search(r":(v\d+\.\d+\.\d+)$", deployment.image)
    if release and not installed and deployment.namespace == KUEUE_NAMESPACE:
        at = "https://github.com/kubernetes-sigs/kueue/releases/download"
        return f"kubectl delete -f {at}/{release[1]}/manifests.yaml"
    return f"kubectl delete deployment {deployment.name} --namespace {deployment.namespace}"


def _definitions_fixed(strange: list[KueueDefinition], foreign: list[KueueDeployment], names: Names) -> tuple[str, ...]:
    """Return how the CRDs come into one hand, once what installed them is gone."""
    if not strange or (foreign and any(deployment.helm_release for deployment in foreign)):
        return ()
    releases = sorted(
        {(definition.helm_release, definition.helm_namespace) for definition in strange if definition.helm_release}
    )
    if releases:
        return tuple(f"helm uninstall {name} --namespace {namespace}" for name, namespace in releases)
    at = f"--region {names.region} --cluster-name {names.eks} --addon-name {ADD_ON}"
    return (f"aws eks update-addon {at} --resolve-conflicts OVERWRITE",)


def _version(text: str) -> tuple[int, ...]:
    """Read `v1.6.0-eksbuild.1`.

    >>> _version("v1.6.0-eksbuild.1")
    (1, 6)
    """
    found = re.match(r"v?(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else ()


CHECKS: Final = BackendChecks(
    cluster=lambda facts, names: [
        hyperpod_cluster(facts.cluster, names),
        kubernetes_version(facts.eks, names),
        one_kueue(facts.kueues, facts.add_on, names),
        add_on(facts.add_on, names),
        kueue_version(facts.kueues, facts.add_on),
    ],
    events=lambda facts, names: [cloud_trail(facts.trails, facts.cluster, names)],
    rights=(*((READERS, "list", *listed) for listed in LISTED), *MANAGER_RIGHTS, FOLLOWING_RIGHT),
    permissions=lambda _: NEEDED,
)
