"""Answer the two calls of EKS that lead to a cluster: where its API server is, and which add-on it runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from moto.core.utils import get_service_model

from taskgov_embedded import shapes
from taskgov_embedded.gateway import AwsError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from taskgov_embedded.account import Account
    from taskgov_embedded.gateway import Call

TASK_GOVERNANCE_ADDON = "amazon-sagemaker-hyperpod-taskgovernance"


@dataclass(slots=True)
class EksCluster:
    """One EKS cluster: `endpoint` and `certificate_authority` (base64 of PEM) are those of the API server."""

    name: str
    endpoint: str
    certificate_authority: str
    created: datetime
    version: str = "1.33"
    addons: dict[str, str] = field(default_factory=lambda: {TASK_GOVERNANCE_ADDON: "v1.6.0-eksbuild.1"})


class Eks:
    """The EKS clusters of the account."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._clusters: dict[str, EksCluster] = {}
        for operation, handler in (("DescribeCluster", self._describe), ("DescribeAddon", self._describe_addon)):
            account.gateway.answer("eks", operation, handler)

    def register_cluster(self, name: str, endpoint: str, certificate_authority: str, **about: Any) -> EksCluster:
        """Make an EKS cluster known (again: a second call replaces the first)."""
        created = self._account.clock.now
        self._clusters[name] = EksCluster(name, endpoint, certificate_authority, created, **about)
        return self._clusters[name]

    def _describe(self, call: Call) -> Mapping[str, Any]:
        cluster = self._find(call.params["name"])
        answer = {
            "cluster": {
                "name": cluster.name,
                "arn": self._account.place.arn("eks", f"cluster/{cluster.name}"),
                "createdAt": cluster.created,
                "version": cluster.version,
                "endpoint": cluster.endpoint,
                "certificateAuthority": {"data": cluster.certificate_authority},
                "status": "ACTIVE",
                "accessConfig": {"authenticationMode": "API"},
            }
        }
        return _checked("DescribeCluster", answer)

    def _describe_addon(self, call: Call) -> Mapping[str, Any]:
        cluster, name = self._find(call.params["clusterName"]), call.params["addonName"]
        if name not in cluster.addons:
            raise AwsError("ResourceNotFoundException", f"No addon: {name} found in cluster: {cluster.name}")
        answer = {
            "addon": {
                "addonName": name,
                "clusterName": cluster.name,
                "status": "ACTIVE",
                "addonVersion": cluster.addons[name],
                "addonArn": self._account.place.arn("eks", f"addon/{cluster.name}/{name}/0"),
                "createdAt": cluster.created,
                "modifiedAt": cluster.created,
            }
        }
        return _checked("DescribeAddon", answer)

    def _find(self, name: str) -> EksCluster:
        if name not in self._clusters:
            raise AwsError("ResourceNotFoundException", f"No cluster found for name: {name}.")
        return self._clusters[name]


def _checked(operation: str, answer: Mapping[str, Any]) -> Mapping[str, Any]:
    shapes.check_answer(operation, get_service_model("eks").operation_model(operation).output_shape, answer)
    return answer
