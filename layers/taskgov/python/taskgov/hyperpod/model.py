"""The HyperPod governance resources as the SageMaker API has them, with every limit of the API.

Field names are the API's own, in snake case, with the API's spelling as alias, so that a response of boto3 can be
validated as it is and `to_api()` gives the arguments of a request. botocore checks neither enums, patterns nor maxima
(seen with 1.43.11), so the limits are checked here. Source: SageMaker API reference, ComputeQuota and
ClusterSchedulerConfig.
"""

from datetime import datetime
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_pascal


class ApiModel(BaseModel):
    """A structure of the SageMaker API: immutable, unknown members ignored, PascalCase outside."""

    model_config = ConfigDict(frozen=True, alias_generator=to_pascal, populate_by_name=True)

    def to_api(self) -> dict[str, Any]:
        """Return the structure as boto3 takes it: the API's names, nothing that was not given."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


class SharingStrategy(StrEnum):
    LEND = "Lend"
    DONT_LEND = "DontLend"
    LEND_AND_BORROW = "LendAndBorrow"


class PreemptTeamTasks(StrEnum):
    NEVER = "Never"
    LOWER_PRIORITY = "LowerPriority"


class ActivationState(StrEnum):
    ENABLED = "Enabled"
    DISABLED = "Disabled"


class Switch(StrEnum):
    ENABLED = "Enabled"
    DISABLED = "Disabled"


class AcceleratorPartition(ApiModel):
    type: str
    count: int


class ComputeQuotaResource(ApiModel):
    """A quota on one instance type (ComputeQuotaResourceConfig): whole instances or parts of them."""

    instance_type: str
    count: int | None = None
    accelerators: int | None = None
    vcpu: float | None = Field(default=None, alias="VCpu")
    memory_in_gib: float | None = Field(default=None, alias="MemoryInGiB")
    accelerator_partition: AcceleratorPartition | None = None


class ResourceSharingConfig(ApiModel):
    strategy: SharingStrategy = SharingStrategy.LEND_AND_BORROW
    borrow_limit: int | None = None
    absolute_borrow_limits: tuple[ComputeQuotaResource, ...] | None = None


class ComputeQuotaConfig(ApiModel):
    compute_quota_resources: tuple[ComputeQuotaResource, ...] = ()
    resource_sharing_config: ResourceSharingConfig | None = None
    preempt_team_tasks: PreemptTeamTasks | None = None


class ComputeQuotaTarget(ApiModel):
    team_name: str
    fair_share_weight: int | None = None


class ComputeQuota(ApiModel):
    """A compute quota as ListComputeQuotas/DescribeComputeQuota return it."""

    compute_quota_id: str
    compute_quota_arn: str = ""
    name: str
    compute_quota_version: int
    status: str
    failure_reason: str | None = None
    cluster_arn: str | None = None
    description: str | None = None
    compute_quota_config: ComputeQuotaConfig
    compute_quota_target: ComputeQuotaTarget
    activation_state: ActivationState = ActivationState.ENABLED
    creation_time: datetime | None = None
    last_modified_time: datetime | None = None


class PriorityClass(ApiModel):
    name: str
    weight: int


class SchedulerConfig(ApiModel):
    priority_classes: tuple[PriorityClass, ...] | None = None
    fair_share: Switch | None = None
    idle_resource_sharing: Switch | None = None


class ClusterSchedulerConfig(ApiModel):
    """The cluster policy as DescribeClusterSchedulerConfig returns it."""

    cluster_scheduler_config_id: str
    cluster_scheduler_config_arn: str = ""
    name: str
    cluster_scheduler_config_version: int
    status: str
    failure_reason: str | None = None
    status_details: dict[str, str] | None = None
    cluster_arn: str | None = None
    scheduler_config: SchedulerConfig = Field(default_factory=SchedulerConfig)
