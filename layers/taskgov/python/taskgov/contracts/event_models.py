"""The documented forms of the events that concern a cluster, read tolerantly.

`taskgov.contracts.events` reads each event with one of these. Only what is needed is required; everything else may be
missing, new, or of another form than documented: an event is a hint, and the cluster is read again anyway.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic.alias_generators import to_camel, to_pascal

from taskgov.hyperpod.inferred import spellings


def _text_or_none(value: object) -> object:
    """Drop a value that is not a text where a text only decorates."""
    return value if isinstance(value, str) else None


def _mapping_or_empty(value: object) -> object:
    """CloudTrail writes null for parameters and answers that are empty."""
    return value if isinstance(value, Mapping) else {}


def _time_or_none(value: object, read: ValidatorFunctionWrapHandler) -> datetime | None:
    """Read ISO text or epoch milliseconds; without a zone, or in a form nobody foresaw, the envelope's time will do."""
    try:
        return read(value)  # type: ignore[no-any-return]
    except ValidationError:
        return None


OptionalTime = Annotated[AwareDatetime | None, WrapValidator(_time_or_none)]
OptionalText = Annotated[str | None, BeforeValidator(_text_or_none)]
Members = Annotated[dict[str, Any], BeforeValidator(_mapping_or_empty)]


class EventModel(BaseModel):
    """A part of an event: camelCase there, and what is not known is passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore", alias_generator=to_camel)


class Envelope(EventModel):
    """What every EventBridge event has around its detail."""

    id: str = Field(min_length=1)
    source: str
    detail_type: str = Field(alias="detail-type")
    time: AwareDatetime
    resources: tuple[str, ...] = ()
    detail: Members = {}


class HyperPodDetail(EventModel):
    """PascalCase, as SageMaker writes it; the cluster's ARN may end in anything (the documented samples do)."""

    model_config = ConfigDict(alias_generator=to_pascal, populate_by_name=True)

    cluster_arn: str = Field(pattern=r"^arn:aws[a-z-]*:sagemaker:[^:]*:[^:]*:cluster/.+$")
    cluster_name: OptionalText = None


class ClusterState(HyperPodDetail):
    """`SageMaker HyperPod Cluster State Change`."""

    cluster_status: OptionalText = None


class HealthSummary(EventModel):
    """What the health monitoring agent says of a node."""

    model_config = ConfigDict(alias_generator=to_pascal)

    health_status: OptionalText = None


class NodeHealth(HyperPodDetail):
    """`SageMaker HyperPod Cluster Node Health Event`: it names neither instance type nor group."""

    instance_id: OptionalText = None
    health_summary: HealthSummary = HealthSummary()


class ClusterEvent(HyperPodDetail):
    """`SageMaker HyperPod Cluster Event`, the inner `EventDetails`."""

    resource_type: OptionalText = None
    event_level: OptionalText = None
    event_time: OptionalTime = None
    instance_group_name: OptionalText = None
    instance_id: OptionalText = None
    event_details: Members = {}
    event_metadata: Members = {}

    def metadata(self) -> Mapping[str, Any]:
        """Return EventMetadata, which is documented inside a second EventDetails and was also seen without it."""
        return self.event_metadata or _mapping(self.event_details.get("EventMetadata"))

    def health(self) -> str | None:
        """Return the health status that rides on a cluster event, if one does (seen in the field, not documented)."""
        info = _mapping(_mapping(self.metadata().get("Instance")).get("NodeHealthInfo"))
        status = info.get("HealthStatus")
        return status if isinstance(status, str) else None


class UserIdentity(EventModel):
    """Who made an API call."""

    arn: OptionalText = None
    invoked_by: OptionalText = None
    principal_id: OptionalText = None
    session_context: Members = {}

    def role_arn(self) -> str | None:
        """Return the role behind an assumed-role session."""
        arn = _mapping(self.session_context.get("sessionIssuer")).get("arn")
        return arn if isinstance(arn, str) else None


class ApiCall(EventModel):
    """`AWS API Call via CloudTrail`; how its parameters are spelled is inferred (`taskgov.hyperpod.inferred`)."""

    event_source: str
    event_name: str
    error_code: str | None = None
    user_agent: OptionalText = None
    read_only: bool | None = None
    user_identity: UserIdentity = UserIdentity()
    request_parameters: Members = {}
    response_elements: Members = {}

    def value(self, name: str) -> str | None:
        """Return a text out of the parameters or else of the answer, by its name in the API."""
        for members in (self.request_parameters, self.response_elements):
            for key in spellings(name):
                if isinstance(members.get(key), str) and members[key]:
                    return str(members[key])
        return None


class StoredObject(EventModel):
    """`Object Created` and `Object Deleted` of S3."""

    object: "ObjectKey"
    requester: OptionalText = None


class ObjectKey(EventModel):
    """The key of an object; EventBridge gives it as it is, not URL-encoded."""

    key: str = Field(min_length=1)


class ExecutionStatus(EventModel):
    """`Step Functions Execution Status Change`; the input is left out when it is large or encrypted."""

    execution_arn: str = Field(pattern=r"^arn:aws[a-z-]*:states:[^:]+:[0-9]{12}:execution:[^:]+:[^:]+$")
    status: str
    input: OptionalText = None

    def cluster_arn(self) -> str | None:
        """Return the cluster that the input names, if there is an input that does."""
        try:
            given = json.loads(self.input or "")
        except ValueError:
            return None
        arn = given.get("clusterArn") if isinstance(given, dict) else None
        return arn if isinstance(arn, str) else None


class OperatorRequest(EventModel):
    """`Reconcile Requested` of `taskgov.operator`, `Run Ordered` of `taskgov.orders`: one cluster, by ARN or name."""

    cluster_arn: OptionalText = None
    cluster_name: OptionalText = None
    by: OptionalText = None
    retry_refused: StrictBool = False
    unlocked: OptionalText = None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
