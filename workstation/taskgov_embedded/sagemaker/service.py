"""SageMaker as the stack's users see it: register clusters, inject failures, observe what settles, make its events."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from moto.core.utils import get_service_model

from taskgov.hyperpod.inferred import HEALTHY
from taskgov_embedded.aws_api import model_checks
from taskgov_embedded.aws_api.wire import AwsError
from taskgov_embedded.sagemaker.clusters import Clusters, HyperPodCluster
from taskgov_embedded.sagemaker.governance import Governance
from taskgov_embedded.sagemaker.governed import COMPUTE_QUOTA, SCHEDULER_CONFIG
from taskgov_embedded.sagemaker.trail import Trail
from taskgov_embedded.sagemaker.training_plans import TrainingPlans

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from taskgov_embedded.account import Account
    from taskgov_embedded.aws_api.aws_requests import Call
    from taskgov_embedded.eventbridge.bus import Bus
    from taskgov_embedded.sagemaker.cluster_port import ClusterPort


class SageMaker:
    """The HyperPod part of SageMaker."""

    def __init__(self, account: Account, bus: Bus) -> None:
        self._account = account
        self._bus = bus
        self.clusters = Clusters(account)
        self.governance = Governance(account, self.clusters.by_arn)
        self.training_plans = TrainingPlans(account)
        self.trail = Trail(account, bus)
        operations = self.clusters.operations() | self.governance.operations() | self.training_plans.operations()
        for operation, handler in operations.items():
            account.requests.answer("sagemaker", operation, _checked(operation, handler))

    def register_cluster(
        self,
        name: str,
        port: ClusterPort,
        *,
        cluster_id: str | None = None,
        eks_cluster_name: str | None = None,
        **about: Any,
    ) -> HyperPodCluster:
        """Make a HyperPod cluster known; `about` sets other fields of `HyperPodCluster`."""
        place = self._account.place
        one_id = cluster_id or hashlib.sha256(name.encode()).hexdigest()[:12]
        cluster = HyperPodCluster(
            name=name,
            arn=place.arn("sagemaker", f"cluster/{one_id}"),
            eks_cluster_arn=place.arn("eks", f"cluster/{eks_cluster_name or name}"),
            port=port,
            created=self._account.clock.now,
            **about,
        )
        self.clusters.register(cluster)
        return cluster

    def on_quota_settled(self, hook: Callable[[Mapping[str, Any]], None]) -> None:
        """Call `hook` with a quota's Describe answer when its status settles; `Deleted` when it is gone."""
        self.governance.on_settled(COMPUTE_QUOTA, hook)

    def on_scheduler_config_settled(self, hook: Callable[[Mapping[str, Any]], None]) -> None:
        """Call `hook` with a scheduler config's Describe answer when its status settles."""
        self.governance.on_settled(SCHEDULER_CONFIG, hook)

    def quotas(self, cluster_arn: str) -> list[dict[str, Any]]:
        """Return the quotas of a cluster as Describe shows them, by name."""
        return self.governance.present(COMPUTE_QUOTA, cluster_arn)

    def scheduler_config(self, cluster_arn: str) -> dict[str, Any] | None:
        """Return the scheduler config of a cluster as Describe shows it."""
        return next(iter(self.governance.present(SCHEDULER_CONFIG, cluster_arn)), None)

    def emit_cluster_state_change(self, cluster: HyperPodCluster) -> str:
        """Put a "SageMaker HyperPod Cluster State Change" on the bus, made from the cluster as it is."""
        described = cluster.describe()
        detail = {key: value for key, value in described.items() if key != "NodeProvisioningMode"}
        detail["CreationTime"] = int(cluster.created.timestamp() * 1000)
        return self._bus.publish("aws.sagemaker", "SageMaker HyperPod Cluster State Change", detail, [cluster.arn])

    def emit_node_health(self, cluster: HyperPodCluster, instance_id: str, *, healthy: bool, reason: str = "") -> str:
        """Put a "SageMaker HyperPod Cluster Node Health Event" on the bus."""
        detail = {
            "ClusterName": cluster.name,
            "ClusterArn": cluster.arn,
            "InstanceId": instance_id,
            "Tags": {},
            "HealthSummary": {
                "HealthStatus": HEALTHY if healthy else "Unhealthy",
                "HealthStatusReason": reason,
                "RepairAction": "None",
                "Recommendation": "" if healthy else "Please Replace the Faulty Node.",
            },
        }
        name = "SageMaker HyperPod Cluster Node Health Event"
        return self._bus.publish("aws.sagemaker", name, detail, [cluster.arn])

    def emit_cluster_event(self, cluster: HyperPodCluster, event_id: str, details: Mapping[str, Any]) -> str:
        """Put a "SageMaker HyperPod Cluster Event" on the bus; `details` completes its EventDetails."""
        event_details = {
            "EventId": event_id,
            "ClusterArn": cluster.arn,
            "ClusterName": cluster.name,
            "EventTime": int(self._account.clock.now.timestamp() * 1000),
            **details,
        }
        name = "SageMaker HyperPod Cluster Event"
        return self._bus.publish("aws.sagemaker", name, {"EventDetails": event_details}, [cluster.arn])


def _checked(operation: str, handler: Callable[[Call], Mapping[str, Any]]) -> Callable[[Call], Mapping[str, Any]]:
    """Refuse requests that break the model's limits, and make sure that the answer fits it."""
    model = get_service_model("sagemaker").operation_model(operation)

    def answer(call: Call) -> Mapping[str, Any]:
        found = model_checks.violations(model.input_shape, call.params)
        if found:
            count = f"{len(found)} validation error{'s' if len(found) > 1 else ''} detected"
            raise AwsError("ValidationException", f"{count}: {'; '.join(found)}")
        result = handler(call)
        model_checks.check_answer(operation, model.output_shape, result)
        return result

    return answer
