"""The embedded account with a real cluster behind it: real events, state machines and functions on the real Kueue.

The functions find the cluster as they do on EKS: DescribeCluster gives endpoint and certificate, a presigned STS call
is the token, access entries put each function's role into its group, and `docs/rbac.yaml` says what the groups may do.
"""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

import yaml

from taskgov.backends.plain_eks.quotas import KueueQuotas
from taskgov.errors import ConflictError, GovernanceError
from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.hyperpod.model import ComputeQuotaConfig, ComputeQuotaTarget, SchedulerConfig
from taskgov.kueue.render import ManagerConfiguration
from taskgov_cli.kubeconfig import KubeconfigContext
from taskgov_embedded.cluster.access import TokenVerifier
from taskgov_embedded.cluster.api_server import VERBS, Call
from taskgov_embedded.deployable import RBAC
from taskgov_embedded.sagemaker.cluster_port import GroupFact
from taskgov_embedded.walkthrough.actions import Actor
from taskgov_embedded.walkthrough.model import Walkthrough
from taskgov_embedded.walkthrough.world import World
from tests.cluster.kube import really_wait
from tests.cluster.real_cluster import RealCluster
from tests.cluster.workbench import clear

if TYPE_CHECKING:
    from contextlib import ExitStack

    from taskgov.hyperpod.model import ComputeQuota
    from taskgov_embedded.walkthrough.model import Action, Job
    from taskgov_embedded.walkthrough.model import Call as SageMakerCall
    from taskgov_embedded.walkthrough.step_result import StepResult
    from tests.cluster.conftest import OwnCluster

METHODS = {verb: method for method, verb in VERBS.items()}
READERS = ("ReadSnapshotRole", "PublishUsageRole", "AuditClusterRole", "VerifyPlanRole")


class RealWorld(World):
    """A walkthrough's world whose cluster is the real one. Walkthroughs of HyperPod clusters are played without it."""

    def __init__(self, walkthrough: Walkthrough, own: OwnCluster) -> None:
        plain = walkthrough.cluster.model_copy(update={"backend": "kueue"})
        # Kubernetes and Kueue write real time: the account's clock begins a little ahead of it, and stays ahead.
        starts = datetime.now(UTC) + timedelta(minutes=5)
        # Pods that are jobs of their own are played as batch Jobs, and so are the names of their workloads.
        text = walkthrough.model_copy(update={"cluster": plain, "starts": starts}).model_dump_json(exclude_unset=True)
        super().__init__(Walkthrough.model_validate_json(text.replace('"name":"pod-', '"name":"job-')))
        self._own = own
        self._fair_sharing = False
        self.quotas_by_hand = KueueQuotas(
            KubeconfigContext(own.kube.context, str(own.kube.kubeconfig)), lambda _arn: InstanceTypeTable()
        )

    def _build(self, undo: ExitStack) -> None:
        kube = self._own.kube
        undo.callback(clear, kube)
        undo.callback(lambda: kube.delete(kube.list("v1", "Node")))
        kube.apply(*yaml.safe_load_all(Path(RBAC).read_text()), force=True)
        self.real = RealCluster(self.cluster_name, kube, lambda: self.clock.now, self._run_kueue)
        undo.callback(self.real.close)
        self.cluster = self.real  # type: ignore[assignment]
        self.audit = AuditLog(self._own.plane.audit_log)
        self.api_server = self.audit  # type: ignore[assignment]
        for group in self._groups:
            self.real.set_target(GroupFact(group.name, group.instance_type, group.count))
        endpoint, authority = self._own.plane.endpoint
        verifier = TokenVerifier(self.cluster_name, lambda: self.clock.now)
        self._own.plane.authenticator.entries(verifier, self._entry_of)
        self.stack.eks.register_cluster(self.cluster_name, endpoint, base64.b64encode(authority).decode())
        if not self._own.runs_kueue:
            self._run_kueue(fair_sharing=False)
        for name in self.walkthrough.team_topics:
            self.stack.client("sns").create_topic(Name=name)
        self._make_known()
        self.come_to_rest()

    def _make_known(self) -> None:
        """Write the document by which such a cluster is known; it promises nothing yet."""
        cluster = {"name": self.cluster_name, "arn": self.cluster_arn, "backend": "kueue"}
        self.stack.client("s3").put_object(
            Bucket=self.stack.physical("GovernanceBucket"),
            Key=f"policies/{self.cluster_name}.yaml",
            Body=yaml.safe_dump({"apiVersion": "taskgov/v1", "cluster": cluster}).encode(),
        )

    def _run_kueue(self, fair_sharing: bool) -> None:
        self._own.run_kueue(ManagerConfiguration(fair_sharing=fair_sharing).to_manifest())

    def follow_fair_share(self, config: SchedulerConfig | None) -> None:
        """Let Kueue's manager run as the cluster policy says: an administrator's part on such a cluster.

        It takes some seconds, and so waits for the first job: before there is one, nothing is shared.
        """
        self._fair_sharing = config is not None and config.fair_share != "Disabled"
        if self.real.store.list("workloads"):
            self.run_kueue_as_told()

    def run_kueue_as_told(self) -> None:
        """Let Kueue's manager run as the cluster policy said last."""
        self._run_kueue(self._fair_sharing)

    def _entry_of(self, access_key: str) -> tuple[str, tuple[str, ...]]:
        """Return user name and groups of a caller, as the access entries of `docs/rbac.yaml` have them."""
        principal = self.stack.account.identities.principal(access_key)
        name = principal.name
        if name == self.stack.physical("ApplyChangeRole"):
            return name, ("taskgov-writers",)
        readers = {self.stack.physical(role) for role in READERS}
        return name, ("taskgov-readers",) if name in readers else ()

    def come_to_rest(self) -> None:
        """Let cluster and account come to rest in turn: what one writes may concern the other."""
        at_rest = self.real.settle()
        self.stack.run_until_quiet(90)
        if self.real.state() != at_rest:
            self.real.settle()

    def _kept_quotas(self) -> tuple[ComputeQuota, ...]:
        return self.quotas_by_hand.quotas(self.cluster_arn)

    def quota_named(self, name: str) -> dict[str, Any]:
        """Return id and version of a quota."""
        for quota in self._kept_quotas():
            if name in {quota.name, quota.compute_quota_target.team_name}:
                return {"ComputeQuotaId": quota.compute_quota_id, "ComputeQuotaVersion": quota.compute_quota_version}
        raise LookupError(f"no quota is named {name}")

    def scheduler_config(self) -> dict[str, Any]:
        """Return id and version of the cluster policy."""
        found = self.quotas_by_hand.scheduler_config(self.cluster_arn)
        if found is None:
            raise LookupError("the cluster has no cluster policy")
        return {
            "ClusterSchedulerConfigId": found.cluster_scheduler_config_id,
            "ClusterSchedulerConfigVersion": found.cluster_scheduler_config_version,
        }


class RealActor(Actor):
    """Does what walkthroughs say on the real cluster: calls of SageMaker become writes of the `kueue` backend."""

    def __init__(self, world: RealWorld) -> None:
        super().__init__(world)
        self._real = world

    def do(self, action: Action, result: StepResult) -> None:
        """Do one action, and let the real cluster come to rest too."""
        super().do(action, result)
        self._real.come_to_rest()

    def _call(self, call: SageMakerCall, result: StepResult) -> None:
        try:
            self._written(call.operation, self._resolved(call.arguments))
        except GovernanceError as error:
            if call.refused is None or not isinstance(error, ConflictError):
                raise
            result.refusals.append(str(error))
        self._reconcile(True)  # CloudTrail has no event for queues: after a change, a run is requested

    def _written(self, operation: str, said: dict[str, Any]) -> None:
        quotas, arn = self._real.quotas_by_hand, self._real.cluster_arn
        config = ComputeQuotaConfig.model_validate(said.get("ComputeQuotaConfig", {}))
        match operation:
            case "create_compute_quota":
                quotas.create_quota(
                    arn, said["Name"], config, ComputeQuotaTarget.model_validate(said["ComputeQuotaTarget"])
                )
            case "update_compute_quota":
                quota = quotas.quota(said["ComputeQuotaId"])
                target = ComputeQuotaTarget.model_validate(
                    said.get("ComputeQuotaTarget", quota.compute_quota_target.to_api())
                )
                kept = quota.compute_quota_config if "ComputeQuotaConfig" not in said else config
                quotas.update_quota(quota.compute_quota_id, said["TargetVersion"], kept, target)
            case "create_cluster_scheduler_config":
                policy = SchedulerConfig.model_validate(said["SchedulerConfig"])
                quotas.create_scheduler_config(arn, said["Name"], policy)
                self._real.follow_fair_share(policy)
            case "update_cluster_scheduler_config":
                policy = SchedulerConfig.model_validate(said["SchedulerConfig"])
                quotas.update_scheduler_config(said["ClusterSchedulerConfigId"], said["TargetVersion"], policy)
                self._real.follow_fair_share(policy)
            case _:
                raise NotImplementedError(operation)

    def _submit(self, job: Job) -> None:
        self._real.run_kueue_as_told()
        kinds = {"HyperPodPyTorchJob": "PyTorchJob", "Pod": "Job"}
        super()._submit(job.model_copy(update={"kind": kinds.get(job.kind, job.kind)}))

    def _policy(self, document: dict[str, Any]) -> None:
        cluster = {"name": self._real.cluster_name, "arn": "${clusterArn}", "backend": "kueue"}
        policy = document.get("schedulerConfig")
        self._real.follow_fair_share(None if policy is None else SchedulerConfig.model_validate(policy))
        super()._policy({**document, "cluster": cluster})

    def _wait_minutes(self, minutes: float) -> None:
        super()._wait_minutes(minutes)
        really_wait(0.2)


class AuditLog:
    """What taskgov asked of the real API server from now on, as that wrote it down.

    It stands for the simulated server's list of calls, which is each world's own too.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._begin = path.stat().st_size if path.exists() else 0

    @property
    def calls(self) -> list[Call]:
        """Every request of the functions so far."""
        return [
            Call(METHODS.get(one["verb"], "GET"), url.path, dict(parse_qsl(url.query)), one["code"], one["user"])
            for one in self.requests()
            for url in [urlsplit(one["uri"])]
        ]

    def requests(self) -> list[dict[str, Any]]:
        """Return verb, API group, resource, URI, status and user of every request."""
        lines = self._path.read_bytes()[self._begin :].decode().splitlines() if self._path.exists() else []
        return [
            {
                "verb": entry["verb"],
                "group": entry.get("objectRef", {}).get("apiGroup", ""),
                "resource": entry.get("objectRef", {}).get("resource", ""),
                "uri": entry["requestURI"],
                "code": entry["responseStatus"]["code"],
                "user": entry["user"]["username"],
                "groups": entry["user"]["groups"],
            }
            for entry in map(json.loads, lines)
            if entry["stage"] == "ResponseComplete"
        ]
