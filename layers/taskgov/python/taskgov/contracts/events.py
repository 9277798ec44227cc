"""Events in: what an EventBridge event says about a cluster.

`receive_event` calls `parse_event`. `docs/events.md` lists the forms, with what is documented and what is inferred.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from taskgov.contracts.event_models import (
    ApiCall,
    ClusterEvent,
    ClusterState,
    Envelope,
    ExecutionStatus,
    NodeHealth,
    OperatorRequest,
    StoredObject,
)
from taskgov.contracts.steps import Cause
from taskgov.errors import MalformedEventError
from taskgov.hyperpod.cluster_arn import cluster_arn
from taskgov.hyperpod.inferred import (
    CLUSTER_ARN,
    CLUSTER_NAME,
    POLICY_CALLS,
    POLICY_ID,
    QUOTA_CALLS,
    QUOTA_ID,
    named_in_call,
    tool_behind,
)
from taskgov.printable import printable
from taskgov.violations import violations_from

Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Subject:
    """Which cluster an event concerns, in whatever way it names it; `everything` is all governed ones (a resync)."""

    cluster_arn: str | None = None
    cluster_name: str | None = None
    compute_quota_id: str | None = None
    scheduler_config_id: str | None = None
    everything: bool = False
    execution_arn: str | None = None
    """The execution that ended; `cluster_arn` beside it when its input names one."""


@dataclass(frozen=True, slots=True)
class Hint:
    """An event that makes a cluster dirty. `edited_quota_id` is set when somebody else changed that quota."""

    subject: Subject
    cause: Cause
    edited_quota_id: str | None = None
    edited_with: str | None = None
    """The tool of infrastructure as code that changed it, if one did (`taskgov.hyperpod.inferred`)."""
    retry_refused: bool = False
    """A person orders that writes that were refused before are tried again."""
    unlocked: str | None = None
    """Which lock a person had freed, and why."""


@dataclass(frozen=True, slots=True)
class Ignored:
    """An event that concerns nobody here, and why."""

    reason: str


CLUSTER_CALLS: Final = frozenset(
    {
        "UpdateCluster",
        "UpdateClusterSoftware",
        "BatchAddClusterNodes",
        "BatchDeleteClusterNodes",
        "BatchReplaceClusterNodes",
        "BatchRebootClusterNodes",
    }
)
RESERVATION_EVENTS: Final = (
    "Capacity Block Delivered",
    "Capacity Block Reservation Delivered",
    "Capacity Block Expiration Warning",
    "Capacity Block Reservation Expiration Warning",
    *(
        f"EC2 Capacity Reservation {state}"
        for state in ("Active", "Delayed", "Expired", "Failed", "Scheduled", "Unsupported")
    ),
)
"""EC2's events about reserved capacity; AWS documents those of Capacity Blocks in two spellings (docs/events.md)."""
POLICY_PREFIX: Final = "policies/"
POLICY_SUFFIX: Final = ".yaml"
WHAT_LIMIT: Final = 200
ORDERS: Final = "taskgov.orders"
"""Source of what the signed entry puts into the queue: its `by` is the caller whom AWS attests."""
RUN_ORDERED: Final = "Run Ordered"


def event_in(message: str) -> Any:
    """Return the event in the body of a queue's message. Raises MalformedEventError for a body that is not JSON."""
    try:
        return json.loads(message)
    except (ValueError, RecursionError) as error:
        raise MalformedEventError(f"the message is not JSON: {error}") from error


def parse_event(event: Mapping[str, Any], *, own_role_arn: str) -> Hint | Ignored:
    """Return what an event says. Raises MalformedEventError for an event of a known kind that cannot be read.

    `own_role_arn` is the role by which the automation itself writes quotas: its calls come back as CloudTrail events.
    """
    envelope = _read(Envelope, event, "an EventBridge event")
    if envelope.detail_type == "AWS API Call via CloudTrail" and envelope.source == "aws.sagemaker":
        return _of_a_cluster(_api_call(envelope, own_role_arn))
    reader = _READERS.get((envelope.source, envelope.detail_type))
    if reader is None:
        return Ignored(f"nothing is known of {envelope.source}: {envelope.detail_type}")
    return _of_a_cluster(reader(envelope))


def _of_a_cluster(read: Hint | Ignored) -> Hint | Ignored:
    """Ignore what has another text than a cluster's ARN in its place: locked under it, a cluster had two locks."""
    if isinstance(read, Hint) and read.subject.cluster_arn is not None:
        try:
            cluster_arn(read.subject.cluster_arn)
        except ValueError as error:
            return Ignored(f"{read.cause.detail_type}: clusterArn {error}")
    return read


def _cluster_state(envelope: Envelope) -> Hint:
    detail = _read_detail(ClusterState, envelope, envelope.detail)
    subject = Subject(cluster_arn=detail.cluster_arn, cluster_name=detail.cluster_name)
    return Hint(subject, _cause(envelope, what=f"cluster {detail.cluster_status or 'changed'}"))


def _node_health(envelope: Envelope) -> Hint:
    detail = _read_detail(NodeHealth, envelope, envelope.detail)
    status = detail.health_summary.health_status or "health changed"
    subject = Subject(cluster_arn=detail.cluster_arn, cluster_name=detail.cluster_name)
    return Hint(subject, _cause(envelope, what=f"node {detail.instance_id or '(unnamed)'} {status}"))


def _cluster_event(envelope: Envelope) -> Hint:
    """Read what is documented inside `EventDetails`, and also when it stands in the detail itself."""
    outer = envelope.detail
    inner = outer.get("EventDetails") if "ClusterArn" not in outer else None
    detail = _read_detail(ClusterEvent, envelope, inner if isinstance(inner, Mapping) else outer)
    whom = detail.instance_id or detail.instance_group_name or detail.cluster_name
    words = (detail.resource_type or "Cluster", whom, detail.health() or detail.event_level)
    subject = Subject(cluster_arn=detail.cluster_arn, cluster_name=detail.cluster_name)
    return Hint(subject, _cause(envelope, what=" ".join(filter(None, words)), at=detail.event_time))


def _api_call(envelope: Envelope, own_role_arn: str) -> Hint | Ignored:
    """Read a call; those that failed changed nothing, and the automation's own are known to it."""
    call = _read_detail(ApiCall, envelope, envelope.detail)
    if call.event_name not in QUOTA_CALLS | POLICY_CALLS | CLUSTER_CALLS:
        return Ignored(f"{call.event_name} changes nothing that is governed")
    if call.error_code:
        return Ignored(f"{call.event_name} failed with {call.error_code}")
    if call.event_name not in CLUSTER_CALLS and call.user_identity.role_arn() == own_role_arn:
        return Ignored(f"{call.event_name} was the automation's own")
    quota_id = call.value(QUOTA_ID) if call.event_name in QUOTA_CALLS else None
    who = call.user_identity
    cause = _cause(envelope, what=call.event_name, by=who.arn or who.invoked_by or who.principal_id)
    tool = tool_behind(call.user_agent, who.invoked_by, who.role_arn()) if quota_id else None
    return Hint(_called_upon(call, envelope), cause, edited_quota_id=quota_id, edited_with=tool)


def _called_upon(call: ApiCall, envelope: Envelope) -> Subject:
    """Return whom a call concerns: updates and deletions of a quota or policy name only that, not the cluster."""
    cluster = call.value(CLUSTER_ARN) or call.value(CLUSTER_NAME)
    named = named_in_call(call.event_name)
    subject = Subject(
        cluster_arn=cluster if cluster and cluster.startswith("arn:") else None,
        cluster_name=cluster if cluster and not cluster.startswith("arn:") else None,
        compute_quota_id=call.value(QUOTA_ID) if named == QUOTA_ID else None,
        scheduler_config_id=call.value(POLICY_ID) if named == POLICY_ID else None,
    )
    if subject == Subject():
        raise MalformedEventError(f"{call.event_name} {envelope.id} names no cluster, quota or scheduler config")
    return subject


def _policy_document(envelope: Envelope) -> Hint | Ignored:
    """Read a write or deletion of `policies/<cluster name>.yaml`."""
    detail = _read_detail(StoredObject, envelope, envelope.detail)
    name = detail.object.key.removeprefix(POLICY_PREFIX).removesuffix(POLICY_SUFFIX)
    if detail.object.key != f"{POLICY_PREFIX}{name}{POLICY_SUFFIX}" or not name or "/" in name:
        return Ignored(f"{detail.object.key} is not a policy document")
    what = f"{envelope.detail_type}: {detail.object.key}"
    return Hint(Subject(cluster_name=name), _cause(envelope, what=what, by=detail.requester))


def _plain_eks(envelope: Envelope) -> Hint:
    """Look at every cluster: events of EC2 and Auto Scaling name an instance or a reservation, and no cluster."""
    detail = envelope.detail
    names = ("instance-id", "EC2InstanceId", "capacity-reservation-id")
    about = next((detail[name] for name in names if detail.get(name)), "(unnamed)")
    return Hint(Subject(everything=True), _cause(envelope, what=f"{envelope.detail_type}: {about}"))


def _operator_request(envelope: Envelope) -> Hint:
    """Read a request that any principal who may put events on the bus can send; the name in it is not attested."""
    return _request(envelope, attested=False)


def _ordered_run(envelope: Envelope) -> Hint:
    """Read a request of the signed entry; no rule brings such an event from a bus (`template.yaml`)."""
    return _request(envelope, attested=True)


def _request(envelope: Envelope, *, attested: bool) -> Hint:
    detail = _read_detail(OperatorRequest, envelope, envelope.detail)
    if not (detail.cluster_arn or detail.cluster_name):
        raise MalformedEventError(f"{envelope.detail_type} {envelope.id} names neither clusterArn nor clusterName")
    subject = Subject(cluster_arn=detail.cluster_arn, cluster_name=detail.cluster_name)
    if not attested:
        return Hint(subject, _cause(envelope, what=envelope.detail_type))
    cause = _cause(envelope, what=envelope.detail_type, by=detail.by)
    return Hint(subject, cause, retry_refused=detail.retry_refused, unlocked=detail.unlocked)


def _execution_ended(envelope: Envelope) -> Hint:
    detail = _read_detail(ExecutionStatus, envelope, envelope.detail)
    subject = Subject(cluster_arn=detail.cluster_arn(), execution_arn=detail.execution_arn)
    return Hint(subject, _cause(envelope, what=f"{detail.execution_arn.rpartition(':')[2]} ended {detail.status}"))


def _resync(envelope: Envelope) -> Hint:
    return Hint(Subject(everything=True), _cause(envelope, what=envelope.detail_type))


_READERS: Final[Mapping[tuple[str, str], Callable[[Envelope], Hint | Ignored]]] = {
    ("aws.sagemaker", "SageMaker HyperPod Cluster State Change"): _cluster_state,
    ("aws.sagemaker", "SageMaker HyperPod Cluster Node Health Event"): _node_health,
    ("aws.sagemaker", "SageMaker HyperPod Cluster Event"): _cluster_event,
    ("aws.s3", "Object Created"): _policy_document,
    ("aws.s3", "Object Deleted"): _policy_document,
    ("aws.ec2", "EC2 Instance State-change Notification"): _plain_eks,
    ("aws.ec2", "EC2 Spot Instance Interruption Warning"): _plain_eks,
    ("aws.ec2", "EC2 Instance Rebalance Recommendation"): _plain_eks,
    ("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"): _plain_eks,
    **{("aws.ec2", kind): _plain_eks for kind in RESERVATION_EVENTS},
    ("aws.autoscaling", "EC2 Instance Launch Successful"): _plain_eks,
    ("aws.autoscaling", "EC2 Instance Launch Unsuccessful"): _plain_eks,
    ("aws.autoscaling", "EC2 Instance Terminate Successful"): _plain_eks,
    ("aws.autoscaling", "EC2 Instance Terminate Unsuccessful"): _plain_eks,
    ("aws.autoscaling", "EC2 Instance-launch Lifecycle Action"): _plain_eks,
    ("aws.autoscaling", "EC2 Instance-terminate Lifecycle Action"): _plain_eks,
    ("aws.states", "Step Functions Execution Status Change"): _execution_ended,
    ("taskgov.operator", "Reconcile Requested"): _operator_request,
    (ORDERS, RUN_ORDERED): _ordered_run,
    ("taskgov.schedule", "Resync Due"): _resync,
    ("taskgov.schedule", "Recheck Due"): _operator_request,
}


def _cause(envelope: Envelope, *, what: str, by: str | None = None, at: datetime | None = None) -> Cause:
    return Cause(
        event_id=envelope.id,
        source=envelope.source,
        detail_type=envelope.detail_type,
        at=at or envelope.time,
        by=printable(by, limit=WHAT_LIMIT) if by else None,
        what=printable(what, limit=WHAT_LIMIT),
    )


def _read_detail(model: type[Model], envelope: Envelope, detail: Mapping[str, Any]) -> Model:
    """Read the detail; where it does not name its cluster, the envelope's resources may."""
    arn = next((resource for resource in envelope.resources if ":cluster/" in resource), None)
    named = {"ClusterArn": arn, **detail} if arn and "cluster_arn" in model.model_fields else detail
    return _read(model, named, f"{envelope.detail_type} {envelope.id}")


def _read(model: type[Model], given: object, what: str) -> Model:
    try:
        return model.model_validate(given)
    except ValidationError as error:
        violations = tuple(violation for _, violation in violations_from(error))
        raise MalformedEventError(
            f"not {what}" if model is Envelope else f"{what} cannot be read", violations
        ) from error
