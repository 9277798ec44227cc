"""Whether the API would accept a request that changes a quota or a cluster policy.

Tests ask it about what plans and writers would send: botocore lets most broken requests pass.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import ValidationError

from taskgov.hyperpod.limits import (
    CLUSTER_ARN,
    ENTITY_NAME,
    CheckLimits,
    Length,
    Pattern,
)
from taskgov.hyperpod.model import ActivationState, ApiModel, ComputeQuotaConfig, ComputeQuotaTarget, SchedulerConfig
from taskgov.violations import Violation, value_of, violations_from

RESOURCE_ID: Final = Pattern("[a-z0-9]{12}", "an id of 12 lower-case letters and digits")
DESCRIPTION: Final = Pattern("[\\p{L}\\p{M}\\p{Z}\\p{S}\\p{N}\\p{P}]*", "free of control characters")
TAG_TEXT: Final = Pattern("([\\p{L}\\p{Z}\\p{N}_.:/=+\\-@]*)", "letters, digits, spaces and _ . : / = + - @")
Operation = Literal[
    "CreateComputeQuota", "UpdateComputeQuota", "CreateClusterSchedulerConfig", "UpdateClusterSchedulerConfig"
]
EntityName = Annotated[str, Length(1, 63), ENTITY_NAME]
EntityDescription = Annotated[str, Length(0, 1024), DESCRIPTION]
ClusterArn = Annotated[str, Length(0, 256), CLUSTER_ARN]
SchedulerConfigId = Annotated[str, Length(0, 12), RESOURCE_ID]


class Tag(ApiModel):
    """A label on an AWS resource."""

    key: Annotated[str, Length(1, 128), TAG_TEXT]
    value: Annotated[str, Length(0, 256), TAG_TEXT]


TagList = Annotated[tuple[Tag, ...], Length(0, 50)]


class CreateComputeQuotaRequest(ApiModel):
    """Arguments of CreateComputeQuota."""

    name: EntityName
    cluster_arn: ClusterArn
    compute_quota_config: ComputeQuotaConfig
    compute_quota_target: ComputeQuotaTarget
    description: EntityDescription | None = None
    activation_state: ActivationState | None = None
    tags: TagList | None = None


class UpdateComputeQuotaRequest(ApiModel):
    """Arguments of UpdateComputeQuota; `target_version` is the version that was read."""

    compute_quota_id: Annotated[str, RESOURCE_ID]
    target_version: int
    compute_quota_config: ComputeQuotaConfig | None = None
    compute_quota_target: ComputeQuotaTarget | None = None
    activation_state: ActivationState | None = None
    description: EntityDescription | None = None


class CreateClusterSchedulerConfigRequest(ApiModel):
    """Arguments of CreateClusterSchedulerConfig."""

    name: EntityName
    cluster_arn: ClusterArn
    scheduler_config: SchedulerConfig
    description: EntityDescription | None = None
    tags: TagList | None = None


class UpdateClusterSchedulerConfigRequest(ApiModel):
    """Arguments of UpdateClusterSchedulerConfig; `target_version` is the version that was read."""

    cluster_scheduler_config_id: SchedulerConfigId
    target_version: int
    scheduler_config: SchedulerConfig | None = None
    description: EntityDescription | None = None


REQUESTS: Final[Mapping[Operation, type[ApiModel]]] = {
    "CreateComputeQuota": CreateComputeQuotaRequest,
    "UpdateComputeQuota": UpdateComputeQuotaRequest,
    "CreateClusterSchedulerConfig": CreateClusterSchedulerConfigRequest,
    "UpdateClusterSchedulerConfig": UpdateClusterSchedulerConfigRequest,
}


def check_request(operation: Operation, parameters: Mapping[str, Any]) -> tuple[Violation, ...]:
    """Return every limit of the API that these arguments (as boto3 takes them) break, with the place of each.

    Example:
        >>> for one in check_request("UpdateComputeQuota", {"ComputeQuotaId": "Q-1", "TargetVersion": 3}):
        ...     print(one)
        ComputeQuotaId: "Q-1" - must be an id of 12 lower-case letters and digits ([a-z0-9]{12})

    """
    try:
        request = REQUESTS[operation].model_validate(
            dict(parameters), context=CheckLimits(), extra="forbid", by_alias=True, by_name=False
        )
    except ValidationError as error:
        return tuple(violation for _, violation in violations_from(error))
    return _repeated_tags(getattr(request, "tags", None) or ())


def _repeated_tags(tags: tuple[Tag, ...]) -> tuple[Violation, ...]:
    """Tag keys are unique per resource (API reference, Tag)."""
    keys = [tag.key for tag in tags]
    return tuple(
        Violation(f"Tags[{index}].Key", value_of(key), "must be unique: another tag has this key")
        for index, key in enumerate(keys)
        if key in keys[:index]
    )
