"""What people and the world do in a walkthrough, done on the stack and the cluster."""

from __future__ import annotations

import copy
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import yaml
from botocore.exceptions import ClientError

from taskgov import keys
from taskgov.hyperpod.names import cluster_queue_of, namespace_of
from taskgov_embedded.cluster.manifests import job_manifest
from taskgov_embedded.walkthrough.model import SETTLE
from taskgov_embedded.walkthrough.team_jobs import find_job

if TYPE_CHECKING:
    from taskgov_embedded.walkthrough.model import Action, Call, Edit, Extension, Job, JobRef, NodeEvent
    from taskgov_embedded.walkthrough.step_result import StepResult
    from taskgov_embedded.walkthrough.world import World

APPROVER = "approver"
HMA_REASON = "HyperPod Health Monitoring Agent (HMA) has detected fault type NvidiaErrorTerminate on this node."
REFERENCE = re.compile(r"^\$\{(\w+)(?::([^}]+))?\}$")


class Actor:
    """Does actions one after another, and lets the world come to rest after each."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._document: dict[str, Any] = {}

    def do(self, action: Action, result: StepResult) -> None:
        """Do one action."""
        doing = getattr(self, f"_{action.verb}")
        argument = getattr(action, action.verb)
        if action.verb == "call":
            doing(argument, result)
        else:
            doing(argument)
        self._world.stack.run_until_quiet(SETTLE.total_seconds())

    def _call(self, call: Call, result: StepResult) -> None:
        """Call SageMaker as a person would; a call that must be refused must be refused with that code."""
        client = self._world.stack.client("sagemaker", person=call.by)
        try:
            getattr(client, call.operation)(**self._resolved(call.arguments))
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code != call.refused:
                raise
            result.refusals.append(f"{code}: {error.response['Error']['Message']}")
        else:
            if call.refused:
                raise AssertionError(f"{call.operation} should have been refused with {call.refused}, and was not")

    def _submit(self, job: Job) -> None:
        seconds = None if job.runs_minutes is None else int(job.runs_minutes * 60)
        names = [job.name] if job.copies == 1 else [f"{job.name}-{number}" for number in range(1, job.copies + 1)]
        for name in names:
            manifest = job_manifest(job.team, name, job.request, kind=job.kind, pods=job.pods, priority=job.priority)
            self._world.cluster.submit(manifest, run_seconds=seconds)

    def _delete(self, ref: JobRef) -> None:
        job = find_job(self._world.cluster.store, ref.team, ref.name)
        if job is None:
            raise LookupError(f"team {ref.team} has no job {ref.name}")
        self._world.cluster.delete_job(job["kind"], namespace_of(ref.team), ref.name)

    def _nodes(self, event: NodeEvent) -> None:
        """Let nodes fail, recover, join or leave, and let HyperPod say so as it does."""
        match event.happens:
            case "fails" | "recovers":
                self._change_health(event)
            case "joins" | "leaves":
                self._resize(event)
            case "taken-back":
                self._take_back(event)

    def _change_health(self, event: NodeEvent) -> None:
        failing = event.happens == "fails"
        chosen = [node for node in self._world.cluster.nodes() if node.group == event.group]
        chosen = [node for node in chosen if (node.message is None) == failing][: event.count]
        if len(chosen) < event.count:
            raise LookupError(f"group {event.group} has no {event.count} nodes of which one {event.happens}")
        for node in chosen:
            if failing:
                self._world.cluster.fail_node(node.instance_id)
            else:
                self._world.cluster.recover_node(node.instance_id)
            self._world.tell_of_node(node.instance_id, "" if not failing else HMA_REASON, healthy=not failing)

    def _resize(self, event: NodeEvent) -> None:
        cluster = self._world.cluster
        (group,) = (group for group in cluster.groups() if group.name == event.group)
        change = event.count if event.happens == "joins" else -event.count
        cluster.set_target(replace(group, target_count=group.target_count + change))
        self._world.stack.advance(60)  # nodes join in their own time; HyperPod's event follows
        self._world.tell_of_resize()

    def _take_back(self, event: NodeEvent) -> None:
        chosen = [node.instance_id for node in self._world.cluster.nodes() if node.group == event.group]
        for node in chosen[: event.count]:
            self._world.cluster.take_back(node)
        self._world.tell_of_resize()

    def _extend(self, extension: Extension) -> None:
        self._world.stack.sagemaker.training_plans.extend(extension.group, extension.until)

    def _kubectl(self, edit: Edit) -> None:
        queue = self._world.cluster.store.get("clusterqueues", cluster_queue_of(edit.team))
        changed = copy.deepcopy(queue)
        for path, value in edit.holds.items():
            *way, last = path.split(".")
            place: Any = changed["spec"]
            for part in way:
                place = place[int(part)] if isinstance(place, list) else place[part]
            place[last] = value
        self._world.cluster.update_object(changed, edit.by)

    def _policy_text(self, text: str) -> None:
        self._world.stack.client("s3").put_object(
            Bucket=self._world.stack.physical("GovernanceBucket"),
            Key=f"policies/{self._world.cluster_name}.yaml",
            Body=text.replace("${clusterArn}", self._world.cluster_arn).encode(),
        )

    def _policy(self, document: dict[str, Any]) -> None:
        self._document = document
        self._policy_text(yaml.safe_dump(document, sort_keys=False))

    def _policy_change(self, changed: dict[str, Any]) -> None:
        self._policy({**self._document, **changed})

    def _wait_minutes(self, minutes: float) -> None:
        self._world.stack.advance(minutes * 60)

    def _event(self, event: dict[str, Any]) -> None:
        self._world.stack.bus.publish(
            event["source"], event["detailType"], self._resolved(event["detail"]), bus=self._bus_for(event["source"])
        )

    def _bus_for(self, source: str) -> str:
        """AWS's own events come on the default bus; the operator's on the project's."""
        return "default" if source.startswith("aws.") else self._world.stack.physical("GovernanceBus")

    def _message(self, body: str) -> None:
        self._world.stack.client("sqs").send_message(
            QueueUrl=self._world.stack.physical("IntakeQueue"), MessageBody=body
        )

    def _reconcile(self, _asked: bool) -> None:  # noqa: FBT001 - a member of the file that is simply there
        detail = {"clusterName": self._world.cluster_name}
        self._event({"source": "taskgov.operator", "detailType": "Reconcile Requested", "detail": detail})

    def _audit(self, _asked: bool) -> None:  # noqa: FBT001 - as above
        self._world.stack.fire("AuditAllSchedule")

    def _approve(self, approved: bool) -> None:  # noqa: FBT001 - as above
        """Answer the run that waits for approval, as `taskgov approve` and `reject` do."""
        table = self._world.stack.client("dynamodb")
        found = table.query(
            TableName=self._world.stack.physical("GovernanceTable"),
            KeyConditionExpression="pk = :pk AND begins_with(sk, :sk)",
            ExpressionAttributeValues={
                ":pk": {"S": f"{keys.APPROVAL}{self._world.cluster_arn}"},
                ":sk": {"S": keys.APPROVAL},
            },
        )["Items"]
        if not found:
            raise LookupError("no plan waits for approval")
        order = {
            "action": "approve" if approved else "reject",
            "clusterArn": self._world.cluster_arn,
            "planId": found[-1]["planId"]["S"],
        }
        self._world.stack.entry.order(order, APPROVER)

    def _resolved(self, value: Any) -> Any:
        """Replace references by what they stand for now."""
        if isinstance(value, dict):
            return {key: self._resolved(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._resolved(item) for item in value]
        found = REFERENCE.match(value) if isinstance(value, str) else None
        return self._referenced(found[1], found[2] or "") if found else value

    def _referenced(self, kind: str, name: str) -> Any:
        world = self._world
        match kind:
            case "clusterArn":
                return world.cluster_arn
            case "quota":
                return world.quota_named(name)["ComputeQuotaId"]
            case "version":
                return world.quota_named(name)["ComputeQuotaVersion"]
            case "schedulerConfig":
                return world.scheduler_config()["ClusterSchedulerConfigId"]
            case "schedulerConfigVersion":
                return world.scheduler_config()["ClusterSchedulerConfigVersion"]
            case _:
                raise ValueError(f"a walkthrough has no ${{{kind}}}")
