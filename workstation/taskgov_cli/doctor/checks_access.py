"""Whether the functions may do their work: access entries, Kubernetes permissions, IAM permissions."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from taskgov.adapters.kubernetes.reader import GROUP
from taskgov.hyperpod.names import MANAGER_CONFIG_MAP
from taskgov.snapshot.kueue_manager import MANAGER
from taskgov_cli.doctor.diagnosis import Diagnosis, failed, ok, unknown
from taskgov_cli.doctor.facts import Unknown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from taskgov_cli.doctor.facts import Access, AccessEntry, EksCluster, Names, Permission, Read

READERS: Final = "taskgov-readers"
WRITERS: Final = "taskgov-writers"
"""The groups of `docs/rbac.yaml`."""
LISTED: Final = (
    ("", "nodes"),
    *((GROUP, name) for name in ("resourceflavors", "clusterqueues", "localqueues", "workloads", "cohorts")),
    (GROUP, "workloadpriorityclasses"),
    ("", "limitranges"),
    ("node.k8s.io", "runtimeclasses"),
)
"""What the functions list in every cluster: API group and resource (`docs/rbac.yaml`)."""
MANAGER_OBJECTS: Final = {("apps", "deployments"): MANAGER, ("", "configmaps"): MANAGER_CONFIG_MAP}
"""What the functions read of Kueue's manager, each one object only: API group and resource -> name."""
MANAGER_RIGHTS: Final = tuple((READERS, "get", *listed) for listed in MANAGER_OBJECTS)
"""The rights to do so: group, verb, API group and resource."""
FOLLOWING_RIGHT: Final = (READERS, "watch", GROUP, "workloads")
"""What the minute's publishing follows the workloads with."""


def authentication_mode(eks: Read[EksCluster], names: Names) -> Diagnosis:
    """Check that the cluster takes access entries at all."""
    check = "authentication-mode"
    if isinstance(eks, Unknown):
        return unknown(check, eks.reason)
    if eks.authentication_mode != "CONFIG_MAP":
        return ok(check, f"{eks.name} accepts access entries ({eks.authentication_mode})")
    change = (
        f"aws eks update-cluster-config --region {names.region} --name {eks.name} "
        "--access-config authenticationMode=API_AND_CONFIG_MAP"
    )
    note = "Entries of the ConfigMap stay in force; the mode cannot be changed back."
    return failed(check, f"{eks.name} does not accept access entries (CONFIG_MAP)", change, note=note)


def access_entries(entries: Read[tuple[AccessEntry, ...]], names: Names) -> Diagnosis:
    """Check that each role that reads or writes Kubernetes has an access entry in the group that may."""
    check = "access-entries"
    if isinstance(entries, Unknown):
        return unknown(check, entries.reason)
    fix: list[str] = []
    said: list[str] = []
    for entry in entries:
        role = entry.role_arn.rpartition("/")[2]
        at = f"--region {names.region} --cluster-name {names.eks} --principal-arn {entry.role_arn}"
        if isinstance(entry.groups, Unknown):
            return unknown(check, f"{role}: {entry.groups.reason}")
        if entry.groups is None:
            said.append(f"{role} has no access entry")
            fix.append(f"aws eks create-access-entry {at} --kubernetes-groups {entry.wanted}")
        elif entry.wanted not in entry.groups:
            said.append(f"{role} is not in group {entry.wanted}")
            groups = " ".join((*entry.groups, entry.wanted))
            fix.append(f"aws eks update-access-entry {at} --kubernetes-groups {groups}")
    counted = Counter(entry.wanted for entry in entries)
    if said:
        use = "read and write Kubernetes" if WRITERS in counted else "read Kubernetes"
        return failed(check, f"the functions cannot {use}: {'; '.join(said)}", *fix)
    roles = (f"{count} {'roles are' if count > 1 else 'role is'} in group {group}" for group, count in counted.items())
    return ok(check, ", ".join(roles))


def kubernetes_rights(rbac: Read[tuple[Access, ...]]) -> Diagnosis:
    """Check that the groups may do what the functions do."""
    check = "kubernetes-rights"
    if isinstance(rbac, Unknown):
        return unknown(check, rbac.reason)
    missing: dict[str, list[str]] = {}
    for access in rbac:
        if not access.allowed:
            missing.setdefault(access.kubernetes_group, []).append(f"{access.verb} {access.resource}")
    if missing:
        because = "; ".join(f"group {group} may not {', '.join(rights)}" for group, rights in missing.items())
        return failed(check, because, "kubectl apply -f docs/rbac.yaml")
    writes = any(access.kubernetes_group == WRITERS for access in rbac)
    also = f", and group {WRITERS} write what quotas are kept on" if writes else ""
    return ok(check, f"group {READERS} may read nodes and Kueue's objects{also}")


def iam_permissions(found: Read[tuple[Permission, ...]], names: Names) -> Diagnosis:
    """Check that IAM lets each function's role do what the function does."""
    check = "iam-permissions"
    if isinstance(found, Unknown):
        return unknown(check, found.reason)
    denied = [permission for permission in found if permission.decision != "allowed"]
    if not denied:
        return ok(
            check, f"{len(found)} permissions of {len({permission.role for permission in found})} roles are granted"
        )
    said = "; ".join(
        f"{permission.role} may not {permission.action} on {permission.resource}{_by(permission)}"
        for permission in denied
    )
    plain = [permission for permission in denied if permission.decision == "implicitDeny" and not _by(permission)]
    fix = [_grant(role, list(group)) for role, group in groupby(sorted(plain, key=_role), key=_role)]
    outside = [permission for permission in denied if permission not in plain]
    if outside:
        fix.append(f"aws cloudformation describe-stacks --stack-name {names.stack} --query Stacks[0].Parameters")
    note = "A permission that is denied outside the role has to be granted there." if outside else ""
    return failed(check, said, *fix, note=note)


def _by(permission: Permission) -> str:
    if permission.stopped_by_boundary:
        return " (its permissions boundary)"
    if permission.stopped_by_organization:
        return " (a policy of the organization)"
    return " (an explicit deny)" if permission.decision == "explicitDeny" else ""


_role = attrgetter("role_name")


def _grant(role_name: str, missing: Iterable[Permission]) -> str:
    """Return the command that gives a role exactly what it lacks."""
    statements = [
        {"Effect": "Allow", "Action": sorted({permission.action for permission in group}), "Resource": resource}
        for resource, group in groupby(sorted(missing, key=attrgetter("resource")), key=attrgetter("resource"))
    ]
    document = json.dumps({"Version": "2012-10-17", "Statement": statements})
    name = f"--role-name {role_name} --policy-name taskgov-doctor"
    return f"aws iam put-role-policy {name} --policy-document {shlex.quote(document)}"
