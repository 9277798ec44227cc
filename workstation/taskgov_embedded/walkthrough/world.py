"""The world of a walkthrough: the stack from `template.yaml`, and beside it the simulated cluster."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from taskgov import keys
from taskgov.adapters.dynamodb import APPLIED
from taskgov.allocation.codec import plan_from_json
from taskgov.allocation.lease_book import lease_book
from taskgov.contracts.steps import Pointer
from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.hyperpod.model import ClusterSchedulerConfig, ComputeQuota
from taskgov.kueue.policy_record import POLICY
from taskgov.kueue.record import Reading, quotas_of
from taskgov.quantities import parse
from taskgov.snapshot.codec import snapshot_from_json
from taskgov_embedded.cluster.access import READERS, VIEWERS, WRITERS, TokenVerifier, read_rules
from taskgov_embedded.cluster.api_server import ClusterApiServer
from taskgov_embedded.cluster.simulated import Pace, SimulatedCluster
from taskgov_embedded.deployable import RBAC, TEMPLATE
from taskgov_embedded.sagemaker.cluster_port import GroupFact
from taskgov_embedded.stack import Stack
from taskgov_embedded.virtual_time.clock import VirtualClock

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from taskgov.allocation.lease_book import LeaseEntry
    from taskgov.allocation.plan import Plan
    from taskgov.snapshot.records import AppliedQuota
    from taskgov_embedded.cluster.access import PolicyRule
    from taskgov_embedded.walkthrough.model import Group, Walkthrough
    from taskgov_embedded.walkthrough.step_result import QuotaRows

EKS_NAME = "ml-eks"
MACHINES = {"reconcile": "ReconcileStateMachine", "audit": "AuditStateMachine"}
"""What walkthroughs call the state machines, and their logical ids."""


class World:
    """Open it with `with`; the process is on its clock from then on."""

    def __init__(
        self, walkthrough: Walkthrough, template: Path = TEMPLATE, *, more: Mapping[str, str] | None = None
    ) -> None:
        """Take a walkthrough; `more` are parameters of the template beside those that it names."""
        self.walkthrough = walkthrough
        self.is_plain_eks = walkthrough.cluster.backend == "kueue"
        self.clock = VirtualClock(walkthrough.starts)
        unit = "minute" if walkthrough.publish_minutes == 1 else "minutes"
        parameters = {
            "ApplyMode": walkthrough.mode,
            "PublishSchedule": f"rate({walkthrough.publish_minutes} {unit})",
            "WatchPlainEks": "yes" if self.is_plain_eks else "no",
            "ClustersWithoutDocument": "*",  # it is read before it has a document, too
            **(more or {}),
        }
        self.stack = Stack(template, parameters, self.clock)
        self.cluster_name = walkthrough.cluster.name
        self._groups = walkthrough.cluster.groups
        self.cluster = SimulatedCluster(
            self.cluster_name,
            lambda: self.clock.now,
            allocatable=_allocatable(self._groups),
            pace=Pace(join=30, stop=1),
            at=self.clock.at,
        )
        self.rights: dict[str, tuple[PolicyRule, ...]] = {}
        """What each group may do in the cluster, by the roles and bindings that were applied."""
        self.apply_rbac()
        self._closing = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as undo:
            undo.enter_context(self.stack)
            self._build(undo)
            self._closing = undo.pop_all()
        return self

    def __exit__(self, *about: object) -> None:
        self._closing.close()

    def _build(self, undo: ExitStack) -> None:
        for group in self._groups:
            self.cluster.set_target(
                GroupFact(
                    group.name,
                    group.instance_type,
                    group.count,
                    threads_per_core=group.threads_per_core,
                    training_plan=self._bought(group),
                )
            )
        eks_name = self.cluster_name if self.is_plain_eks else EKS_NAME
        eks = self.stack.eks
        verifier = TokenVerifier(
            eks_name,
            lambda: self.clock.now,
            groups_of=lambda key: eks.groups_of(eks_name, key),
            name_of=eks.username_of,
        )
        server = ClusterApiServer(self.cluster.store, verifier=verifier, rules=self._rules_of, writes=self.cluster)
        self.api_server = undo.enter_context(server)
        entries = entries_of(self.stack, is_plain_eks=self.is_plain_eks)
        about: dict[str, Any] = {"entries": entries} | ({"addons": {}} if self.is_plain_eks else {})
        eks.register_cluster(eks_name, server.url, certificate_authority="", **about)
        if self.is_plain_eks:
            self.cluster.configure_kueue(fair_sharing=True)
        else:
            sagemaker = self.stack.sagemaker
            self.registered = sagemaker.register_cluster(self.cluster_name, self.cluster, eks_cluster_name=eks_name)
            sagemaker.on_quota_settled(self._follow)
            sagemaker.on_scheduler_config_settled(self._follow)
        for name in self.walkthrough.team_topics:
            self.stack.client("sns").create_topic(Name=name)
        self.stack.run_until_quiet()  # the nodes join

    def _bought(self, group: Group) -> str | None:
        """Buy the training plan of a group, and return its ARN."""
        until = group.training_plan_until
        if until is None:
            return None
        plans, starts = self.stack.sagemaker.training_plans, self.walkthrough.starts
        return plans.buy(group.name, group.instance_type, group.count, starts, until).arn

    def apply_rbac(self) -> None:
        """Do what `kubectl apply -f docs/rbac.yaml` does."""
        self.rights = {group: read_rules(RBAC, group) for group in (READERS, WRITERS, VIEWERS)}

    def _rules_of(self, groups: frozenset[str]) -> tuple[PolicyRule, ...]:
        return tuple(rule for group in sorted(groups) for rule in self.rights.get(group, ()))

    @property
    def cluster_arn(self) -> str:
        """The ARN of the HyperPod cluster, or of the plain EKS cluster."""
        if self.is_plain_eks:
            return self.stack.place.arn("eks", f"cluster/{self.cluster_name}")
        return self.registered.arn

    def tell_of_node(self, instance_id: str, reason: str, *, healthy: bool) -> None:
        """Send the events of a node, as its kind of cluster does."""
        if not self.is_plain_eks:
            self.stack.sagemaker.emit_node_health(self.registered, instance_id, healthy=healthy, reason=reason)
            return
        state = "running" if healthy else "stopped"
        detail = {"instance-id": instance_id, "state": state}
        self.stack.bus.publish("aws.ec2", "EC2 Instance State-change Notification", detail)

    def tell_of_resize(self) -> None:
        """Send the events of nodes that came or went."""
        if self.is_plain_eks:
            detail = {
                "AutoScalingGroupName": "workers",
                "EC2InstanceId": "i-0123456789abcdef0",
                "StatusCode": "InProgress",
            }
            self.stack.bus.publish("aws.autoscaling", "EC2 Instance Launch Successful", detail)
        else:
            self.stack.sagemaker.emit_cluster_state_change(self.registered)

    def _follow(self, _settled: object) -> None:
        """Let the add-on in the cluster see what SageMaker holds now."""
        policy = self.stack.sagemaker.scheduler_config(self.cluster_arn)
        held = ClusterSchedulerConfig.model_validate(policy).scheduler_config if policy else None
        self.cluster.govern(self._kept_quotas(), held)

    # What holds now

    def quotas(self) -> QuotaRows:
        """Return what the service, or the cluster itself, holds for each team."""
        if self.is_plain_eks:
            return {
                quota.compute_quota_target.team_name: tuple(
                    row.to_api() for row in quota.compute_quota_config.compute_quota_resources
                )
                for quota in self._kept_quotas()
            }
        return {
            summary["ComputeQuotaTarget"]["TeamName"]: tuple(summary["ComputeQuotaConfig"]["ComputeQuotaResources"])
            for summary in self._quota_summaries()
        }

    def _quota_summaries(self) -> Iterator[dict[str, Any]]:
        paginator = self.stack.client("sagemaker").get_paginator("list_compute_quotas")
        for page in paginator.paginate(ClusterArn=self.cluster_arn):
            yield from page["ComputeQuotaSummaries"]

    def _kept_quotas(self) -> tuple[ComputeQuota, ...]:
        if not self.is_plain_eks:
            return tuple(ComputeQuota.model_validate(quota) for quota in self.stack.sagemaker.quotas(self.cluster_arn))
        store = self.cluster.store
        beside = [item for plural in ("namespaces", "resourceflavors", "localqueues") for item in store.list(plural)]
        reading = Reading(self.cluster_arn, InstanceTypeTable(), "v1beta2")
        return quotas_of(reading, store.list("clusterqueues"), beside)

    def carriers(self) -> tuple[str, ...]:
        """Return the types of objects that carry a quota or the cluster policy where no add-on does, by plural name.

        A cohort that carries no policy is only there for its queues.
        """
        kept = any(POLICY in cohort["metadata"].get("annotations", {}) for cohort in self.cluster.store.list("cohorts"))
        return ("clusterqueues", "cohorts") if kept else ("clusterqueues",)

    def quota_named(self, name: str) -> dict[str, Any]:
        """Return the summary of a quota. Raises LookupError when there is none of this name."""
        for summary in self._quota_summaries():
            if name in {summary["Name"], summary["ComputeQuotaTarget"]["TeamName"]}:
                return summary
        raise LookupError(f"no quota is named {name}")

    def scheduler_config(self) -> dict[str, Any]:
        """Return the summary of the cluster policy. Raises LookupError when there is none."""
        sagemaker = self.stack.client("sagemaker")
        found = sagemaker.list_cluster_scheduler_configs(ClusterArn=self.cluster_arn)
        if not found["ClusterSchedulerConfigSummaries"]:
            raise LookupError("the cluster has no cluster policy")
        return dict(found["ClusterSchedulerConfigSummaries"][0])

    def leases(self) -> tuple[LeaseEntry, ...]:
        """Return the leases as they stand: what the last run saw of the cluster, with the quotas and records of now."""
        s3, bucket = self.stack.client("s3"), self.stack.physical("GovernanceBucket")
        stored = s3.list_objects_v2(Bucket=bucket, Prefix=f"snapshots/{self.cluster_name}/").get("Contents", ())
        if not stored:
            return ()
        newest = max(stored, key=lambda snapshot: (snapshot["LastModified"], snapshot["Key"]))
        seen = snapshot_from_json(s3.get_object(Bucket=bucket, Key=newest["Key"])["Body"].read())
        kept = self._kept_quotas()
        return lease_book(replace(seen, taken_at=self.clock.now, quotas=kept, applied=self._applied()))

    def _applied(self) -> tuple[AppliedQuota, ...]:
        found = self.stack.client("dynamodb").query(
            TableName=self.stack.physical("GovernanceTable"),
            KeyConditionExpression="pk = :pk AND begins_with(sk, :sk)",
            ExpressionAttributeValues={":pk": {"S": keys.cluster(self.cluster_arn)}, ":sk": {"S": keys.QUOTA}},
        )
        return tuple(APPLIED.read(item["record"]["S"]) for item in found["Items"])

    def waiting_plan(self) -> str:
        """Return the id of the plan that waits for a person. Raises LookupError when none does."""
        key = {name: {"S": value} for name, value in keys.state(self.cluster_arn).items()}
        table = self.stack.physical("GovernanceTable")
        state = self.stack.client("dynamodb").get_item(TableName=table, Key=key).get("Item", {})
        if "askedPlan" not in state:
            raise LookupError("no plan waits for approval")
        return str(state["askedPlan"]["S"])

    def plan_at(self, pointer: dict[str, str]) -> Plan:
        """Read a plan from the bucket."""
        return plan_from_json(self.document(Pointer.model_validate(pointer)))

    def document(self, pointer: Pointer) -> bytes:
        """Read a document from the bucket."""
        body: bytes = self.stack.client("s3").get_object(Bucket=pointer.bucket, Key=pointer.key)["Body"].read()
        return body

    def dead_letters(self) -> int:
        """Return how many messages lie in the intake's dead-letter queue."""
        url = self.stack.physical("IntakeDeadLetterQueue")
        answer = self.stack.client("sqs").get_queue_attributes(
            QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages"]
        )
        return int(answer["Attributes"]["ApproximateNumberOfMessages"])


def entries_of(stack: Stack, *, is_plain_eks: bool = False) -> dict[str, tuple[str, ...]]:
    """Return the access entries (role -> groups) that `docs/deploy.md` and `docs/kueue.md` have one make."""
    entries: dict[str, tuple[str, ...]] = dict.fromkeys(stack.outputs["KubernetesRoleArns"].split(","), (READERS,))
    if is_plain_eks:
        place = f"arn:{stack.place.partition}:iam::{stack.place.account}:role"
        entries[f"{place}/{stack.physical('VerifyPlanRole')}"] = (READERS,)
        entries[f"{place}/{stack.physical('ApplyChangeRole')}"] = (WRITERS,)
    return entries


def _allocatable(groups: tuple[Group, ...]) -> dict[str, dict[str, int]]:
    return {
        group.instance_type: {name: parse(name, str(amount)) for name, amount in group.allocatable.items()}
        for group in groups
        if group.allocatable
    }
