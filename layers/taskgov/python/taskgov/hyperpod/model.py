"""The HyperPod governance resources as the SageMaker API has them, with every limit of the API.

Field names are the API's own, in snake case, with the API's spelling as alias, so that a response of boto3 can be
validated as it is and `to_api()` gives the arguments of a request. botocore checks neither enums, patterns nor maxima
(seen with 1.43.11), so the limits stand on the fields and are checked on request (`taskgov.hyperpod.limits`).

Where the sources differ: the reference's text says that BorrowLimit is 1 to 500, its model 0 to 10,000, and so does the
developer guide: the model is right. An instance type that the model does not list is accepted when it is spelled as
one, because the list grows quickly. A Strategy, which the model requires, is LendAndBorrow where none is given.
Source: SageMaker API reference, ComputeQuota and ClusterSchedulerConfig.
"""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_pascal

from taskgov.hyperpod.limits import (
    AMOUNT,
    MIG_PROFILES,
    TEAM_NAME,
    WEIGHT,
    Between,
    InstanceTypeName,
    Length,
)


class ApiModel(BaseModel):
    """A structure of the SageMaker API: immutable, unknown members ignored, PascalCase outside."""

    model_config = ConfigDict(frozen=True, alias_generator=to_pascal, populate_by_name=True, defer_build=True)

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


Amount = Annotated[int, AMOUNT]
FractionalAmount = Annotated[float, AMOUNT]


class AcceleratorPartition(ApiModel):
    """A number of slices of GPUs, all of one MIG profile."""

    type: Annotated[str, MIG_PROFILES]
    count: Amount


class ComputeQuotaResource(ApiModel):
    """A quota on one instance type (ComputeQuotaResourceConfig): whole instances or parts of them."""

    instance_type: Annotated[str, InstanceTypeName()]
    count: Amount | None = None
    accelerators: Amount | None = None
    vcpu: FractionalAmount | None = Field(default=None, alias="VCpu")
    memory_in_gib: FractionalAmount | None = Field(default=None, alias="MemoryInGiB")
    accelerator_partition: AcceleratorPartition | None = None


ResourceList = Annotated[tuple[ComputeQuotaResource, ...], Length(0, 15)]


class ResourceSharingConfig(ApiModel):
    """How a team lends and borrows. `borrow_limit` is in percent of its own quota; absolute limits win over it."""

    strategy: SharingStrategy = SharingStrategy.LEND_AND_BORROW
    borrow_limit: Annotated[int, Between(0, 10_000)] | None = None
    absolute_borrow_limits: ResourceList | None = None


class ComputeQuotaConfig(ApiModel):
    """What a team is guaranteed, how it shares, and whether it preempts its own lower priorities."""

    compute_quota_resources: ResourceList = ()
    resource_sharing_config: ResourceSharingConfig | None = None
    preempt_team_tasks: PreemptTeamTasks | None = None


class ComputeQuotaTarget(ApiModel):
    """The team, and its weight in fair sharing (0, the default, goes last)."""

    team_name: Annotated[str, TEAM_NAME]
    fair_share_weight: Annotated[int, WEIGHT] | None = None


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
    unknown_members: tuple[str, ...] = ()
    """Settings that the API has sent and that are not modelled here, as paths: an update would delete them."""


class PriorityClass(ApiModel):
    """A rank for tasks: the higher the weight, the earlier."""

    name: Annotated[str, TEAM_NAME]
    weight: Annotated[int, WEIGHT]


class SchedulerConfig(ApiModel):
    """The cluster policy: ranks, and how idle quota is given out (fairly unless FairShare is Disabled)."""

    priority_classes: Annotated[tuple[PriorityClass, ...], Length(0, 10)] | None = None
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
