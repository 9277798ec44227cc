"""Answer for EKS: where a cluster's API server is, which add-ons it runs, and who has an access entry.

Updates of a cluster or an add-on are done at once. `groups_of` is how the cluster's API server finds a caller's groups.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from moto.core.utils import get_service_model

from taskgov_embedded.aws_api import model_checks
from taskgov_embedded.aws_api.wire import AwsError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from taskgov_embedded.account import Account
    from taskgov_embedded.aws_api.aws_requests import Call

TASK_GOVERNANCE_ADDON = "amazon-sagemaker-hyperpod-taskgovernance"
NEWEST_ADDON: Final = "v1.6.0-eksbuild.1"
ADMINISTRATORS: Final = frozenset({"system:masters"})


@dataclass(slots=True)
class AddOnState:
    """One add-on of a cluster; `issues` is what EKS says of its health (code, message)."""

    version: str = NEWEST_ADDON
    status: str = "ACTIVE"
    issues: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class EksCluster:
    """One EKS cluster: `endpoint` and `certificate_authority` (base64 of PEM) are those of the API server."""

    name: str
    endpoint: str
    certificate_authority: str
    created: datetime
    version: str = "1.33"
    authentication_mode: str = "API"
    addons: dict[str, AddOnState] = field(default_factory=lambda: {TASK_GOVERNANCE_ADDON: AddOnState()})
    entries: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Access entries: principal's ARN -> Kubernetes groups."""
    tags: dict[str, str] = field(default_factory=dict)


class Eks:
    """The EKS clusters of the account."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._clusters: dict[str, EksCluster] = {}
        self._hooks: list[Callable[[str, str], None]] = []
        answers: dict[str, Callable[[Call], Mapping[str, Any]]] = {
            "ListClusters": self._list,
            "DescribeCluster": self._describe,
            "TagResource": self._tag,
            "UntagResource": self._untag,
            "UpdateClusterVersion": self._update_version,
            "UpdateClusterConfig": self._update_config,
            "DescribeAddon": self._describe_addon,
            "DescribeAddonVersions": self._describe_addon_versions,
            "CreateAddon": self._create_addon,
            "UpdateAddon": self._update_addon,
            "DescribeAccessEntry": self._describe_entry,
            "CreateAccessEntry": self._create_entry,
            "UpdateAccessEntry": self._update_entry,
            "DeleteAccessEntry": self._delete_entry,
        }
        for operation, handler in answers.items():
            account.requests.answer("eks", operation, _checking(operation, handler))

    def register_cluster(self, name: str, endpoint: str, certificate_authority: str, **about: Any) -> EksCluster:
        """Make an EKS cluster known; a second call says where it is now, and keeps who has access."""
        created = self._account.clock.now
        if name in self._clusters:
            about.setdefault("entries", self._clusters[name].entries)
            about.setdefault("tags", self._clusters[name].tags)
        self._clusters[name] = EksCluster(name, endpoint, certificate_authority, created, **about)
        return self._clusters[name]

    def cluster(self, name: str) -> EksCluster:
        """Return a cluster that was registered, to read it or to change it."""
        return self._clusters[name]

    def on_addon_created(self, hook: Callable[[str, str], None]) -> None:
        """Call `hook` with the names of cluster and add-on whenever an add-on is created."""
        self._hooks.append(hook)

    def groups_of(self, name: str, access_key: str) -> frozenset[str] | None:
        """Return the Kubernetes groups of a caller, None for one without an access entry; people administer."""
        role = self._account.identities.principal(access_key).role_arn
        if role is None:
            return ADMINISTRATORS
        groups = self._clusters[name].entries.get(role)
        return None if groups is None else frozenset(groups)

    def username_of(self, access_key: str) -> str:
        """Return the name of a caller in Kubernetes: the ARN, where the access entry names no other."""
        return self._account.identities.principal(access_key).arn

    # Clusters

    def _list(self, _: Call) -> Mapping[str, Any]:
        return {"clusters": sorted(self._clusters)}

    def _describe(self, call: Call) -> Mapping[str, Any]:
        cluster = self._find(call.params["name"])
        return {
            "cluster": {
                "name": cluster.name,
                "arn": self._account.place.arn("eks", f"cluster/{cluster.name}"),
                "createdAt": cluster.created,
                "version": cluster.version,
                "endpoint": cluster.endpoint,
                "certificateAuthority": {"data": cluster.certificate_authority},
                "status": "ACTIVE",
                "accessConfig": {"authenticationMode": cluster.authentication_mode},
                **({"tags": dict(cluster.tags)} if cluster.tags else {}),
            }
        }

    def _tag(self, call: Call) -> Mapping[str, Any]:
        """Tag a cluster; other resources of EKS have no tags here."""
        self._find(call.params["resourceArn"].rpartition("/")[2]).tags.update(call.params["tags"])
        return {}

    def _untag(self, call: Call) -> Mapping[str, Any]:
        tags = self._find(call.params["resourceArn"].rpartition("/")[2]).tags
        for key in call.params["tagKeys"]:
            tags.pop(key, None)
        return {}

    def _update_version(self, call: Call) -> Mapping[str, Any]:
        """Upgrade by one minor version: EKS refuses to leave one out."""
        cluster, wanted = self._find(call.params["name"]), call.params["version"]
        if int(wanted.partition(".")[2]) != int(cluster.version.partition(".")[2]) + 1:
            raise AwsError("InvalidParameterException", f"Unsupported Kubernetes minor version update to {wanted}")
        cluster.version = wanted
        return _update("VersionUpdate", cluster.created)

    def _update_config(self, call: Call) -> Mapping[str, Any]:
        cluster = self._find(call.params["name"])
        cluster.authentication_mode = call.params["accessConfig"]["authenticationMode"]
        return _update("AccessConfigUpdate", cluster.created)

    # Add-ons

    def _describe_addon(self, call: Call) -> Mapping[str, Any]:
        cluster, name = self._find(call.params["clusterName"]), call.params["addonName"]
        return {"addon": self._addon(cluster, name)}

    def _describe_addon_versions(self, call: Call) -> Mapping[str, Any]:
        name, version = call.params["addonName"], call.params.get("kubernetesVersion", "1.33")
        known = {"clusterVersion": version, "platformVersions": ["*"], "defaultVersion": True}
        versions = [{"addonVersion": NEWEST_ADDON, "architecture": ["amd64"], "compatibilities": [known]}]
        return {"addons": [{"addonName": name, "addonVersions": versions}]}

    def _create_addon(self, call: Call) -> Mapping[str, Any]:
        cluster, name = self._find(call.params["clusterName"]), call.params["addonName"]
        if name in cluster.addons:
            raise AwsError("ResourceInUseException", f"Addon {name} already exists.")
        cluster.addons[name] = AddOnState(call.params.get("addonVersion", NEWEST_ADDON))
        for hook in self._hooks:
            hook(cluster.name, name)
        return {"addon": self._addon(cluster, name)}

    def _update_addon(self, call: Call) -> Mapping[str, Any]:
        cluster, name = self._find(call.params["clusterName"]), call.params["addonName"]
        before = self._installed(cluster, name)
        cluster.addons[name] = AddOnState(call.params.get("addonVersion", before.version))
        return _update("AddonUpdate", cluster.created)

    def _addon(self, cluster: EksCluster, name: str) -> Mapping[str, Any]:
        found = self._installed(cluster, name)
        return {
            "addonName": name,
            "clusterName": cluster.name,
            "status": found.status,
            "addonVersion": found.version,
            "health": {"issues": [{"code": code, "message": message} for code, message in found.issues]},
            "addonArn": self._account.place.arn("eks", f"addon/{cluster.name}/{name}/0"),
            "createdAt": cluster.created,
            "modifiedAt": cluster.created,
        }

    def _installed(self, cluster: EksCluster, name: str) -> AddOnState:
        if name not in cluster.addons:
            raise AwsError("ResourceNotFoundException", f"No addon: {name} found in cluster: {cluster.name}")
        return cluster.addons[name]

    # Access entries

    def _describe_entry(self, call: Call) -> Mapping[str, Any]:
        cluster = self._find(call.params["clusterName"])
        return {"accessEntry": self._entry(cluster, call.params["principalArn"])}

    def _create_entry(self, call: Call) -> Mapping[str, Any]:
        cluster, principal = self._find(call.params["clusterName"]), call.params["principalArn"]
        if cluster.authentication_mode == "CONFIG_MAP":
            raise AwsError(
                "InvalidRequestException",
                "The cluster's authentication mode must be set to one of [API, API_AND_CONFIG_MAP] to perform this "
                "operation.",
            )
        if principal in cluster.entries:
            raise AwsError("ResourceInUseException", "The specified access entry resource is already in use")
        cluster.entries[principal] = tuple(call.params.get("kubernetesGroups", ()))
        return {"accessEntry": self._entry(cluster, principal)}

    def _update_entry(self, call: Call) -> Mapping[str, Any]:
        cluster, principal = self._find(call.params["clusterName"]), call.params["principalArn"]
        self._entry(cluster, principal)
        cluster.entries[principal] = tuple(call.params.get("kubernetesGroups", ()))
        return {"accessEntry": self._entry(cluster, principal)}

    def _delete_entry(self, call: Call) -> Mapping[str, Any]:
        cluster, principal = self._find(call.params["clusterName"]), call.params["principalArn"]
        self._entry(cluster, principal)
        del cluster.entries[principal]
        return {}

    def _entry(self, cluster: EksCluster, principal: str) -> Mapping[str, Any]:
        if principal not in cluster.entries:
            raise AwsError(
                "ResourceNotFoundException",
                f"The specified principalArn could not be found. You can view your available access entries with "
                f"'list-access-entries' ({principal}).",
            )
        return {
            "clusterName": cluster.name,
            "principalArn": principal,
            "kubernetesGroups": list(cluster.entries[principal]),
            "accessEntryArn": self._account.place.arn("eks", f"access-entry/{cluster.name}/role/0"),
            "createdAt": cluster.created,
            "modifiedAt": cluster.created,
            "username": principal,
            "type": "STANDARD",
        }

    def _find(self, name: str) -> EksCluster:
        if name not in self._clusters:
            raise AwsError("ResourceNotFoundException", f"No cluster found for name: {name}.")
        return self._clusters[name]


def _update(kind: str, at: datetime) -> Mapping[str, Any]:
    known = {"id": "00000000-0000-4000-8000-000000000000", "status": "Successful", "createdAt": at}
    return {"update": {**known, "type": kind}}


def _checking(operation: str, handler: Callable[[Call], Mapping[str, Any]]) -> Callable[[Call], Mapping[str, Any]]:
    """Check each answer against the service's model."""

    def answer(call: Call) -> Mapping[str, Any]:
        given = handler(call)
        model_checks.check_answer(operation, get_service_model("eks").operation_model(operation).output_shape, given)
        return given

    return answer
