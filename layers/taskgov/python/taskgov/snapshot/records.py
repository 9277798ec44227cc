"""What the table keeps of a cluster: what was applied and refused, who edited a quota, who is behind a document."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pydantic import AwareDatetime

from taskgov.hyperpod.model import (
    ComputeQuotaConfig,
    ComputeQuotaTarget,
    ResourceSharingConfig,
    SchedulerConfig,
)


@dataclass(frozen=True, slots=True)
class PastQuota:
    """What a quota was until the automation changed it at that moment."""

    until: AwareDatetime
    config: ComputeQuotaConfig
    leased: Mapping[str, int] | None = None
    """Whole instances by type that leases brought (below zero: took) in `config`; None when it was not recorded."""
    demand: Mapping[str, int] | None = None
    """As in `AppliedQuota`."""


@dataclass(frozen=True, slots=True)
class AnnouncedWrite:
    """What this automation was about to write, and the version that the quota would get by it."""

    version: int
    config: ComputeQuotaConfig
    target: ComputeQuotaTarget
    began_from: ComputeQuotaConfig | None = None
    """As in `AppliedQuota`, for a low write."""
    sharing_within_budget: ResourceSharingConfig | None = None
    """As in `AppliedQuota`."""


@dataclass(frozen=True, slots=True)
class AppliedQuota:
    """What this automation last wrote to a quota, to distinguish its own writes from a person's."""

    compute_quota_id: str
    version: int
    config: ComputeQuotaConfig
    target: ComputeQuotaTarget
    plan_id: str
    at: AwareDatetime
    history: tuple[PastQuota, ...] | None = ()
    """Earlier configs, oldest first (`taskgov.allocation.applied_record`); None when they could not be read."""
    adopted: ComputeQuotaConfig | None = None
    """The edit by hand that was taken as the promise, if one was."""
    promise: str = ""
    """Digest of the document's promise at that time, to see that the document has changed since."""
    announced: AnnouncedWrite | None = None
    """A write that was about to be made; gone from the record once it is known to have taken effect."""
    began_from: ComputeQuotaConfig | None = None
    """What stood before the plan that wrote this, if this is the low one of its two writes; limits judge from there."""
    leased: Mapping[str, int] | None = None
    """Whole instances by type that leases bring (below zero: take) in `config`; None when it was not recorded."""
    demand: Mapping[str, int] | None = None
    """Whole instances by type that demand left of the promise, whatever was granted; None when it was not recorded."""
    sharing_within_budget: ResourceSharingConfig | None = None
    """How the team shares when no budget stops its borrowing; None when it was not recorded."""
    taken_over: bool = False
    """The record was lost, and this one was made of what stood: who wrote that, and why, is not known."""
    accepted_losses: Mapping[str, AwareDatetime] | None = None
    """By type: until when lost nodes are known to the person who approved this write; None without an approval."""


def began_from(applied: AppliedQuota | None, version: int | None) -> ComputeQuotaConfig | None:
    """Return what stood before the path whose low write is the version that stands; None where that is not a low write.

    A low write whose record was lost is known by its announcement.
    """
    if applied is None or version is None:
        return None
    if applied.version == version:
        return applied.began_from
    announced = applied.announced
    return announced.began_from if announced is not None and announced.version == version else None


@dataclass(frozen=True, slots=True)
class AppliedPolicy:
    """What this automation last wrote to the cluster policy."""

    config_id: str
    version: int
    config: SchedulerConfig
    plan_id: str
    at: AwareDatetime


class RefusalError(StrEnum):
    """Why a write was refused for good: stable tokens."""

    LIMIT_REACHED = "limit-reached"
    VALIDATION = "validation"
    NOT_FOUND = "not-found"
    ACCESS_DENIED = "access-denied"
    FAILED_TO_SETTLE = "failed-to-settle"


@dataclass(frozen=True, slots=True)
class RefusedWrite:
    """A write that the service refused for good, or that settled as failed: it is not tried again for a while."""

    subject: str
    """What it was to write, as `taskgov.allocation.plan.Change.subject`."""
    name: str
    """The name of the quota or of the cluster policy."""
    team: str
    """The team of the quota; empty for the cluster policy."""
    kind: str
    """The value of its `taskgov.allocation.plan.ChangeKind`."""
    resource_id: str | None
    """None for a creation."""
    version: int | None
    """The version that it was made from; None for a creation."""
    wanted: str
    """Digest of what the plan wanted the subject to be in the end (`taskgov.allocation.refusals.wanted_of`)."""
    error: RefusalError
    because: str
    """What the service said."""
    plan_id: str
    at: AwareDatetime


@dataclass(frozen=True, slots=True)
class QuotaEdit:
    """Who last changed a quota beside the automation, from the CloudTrail event."""

    compute_quota_id: str
    by: str
    at: AwareDatetime
    event_name: str
    tool: str | None = None
    """The tool of infrastructure as code that made the call, by name; None: a person, or a program of their own."""


@dataclass(frozen=True, slots=True)
class Authorship:
    """Who is behind a version of a policy document, by `taskgov.people.Person.identity`."""

    author: str | None = None
    """Who put it into force through the signed entry; None where it was stored in any other way."""
    accepted_by: str | None = None
    """Who approved a plan that follows from it, when its author was not known."""
    claim: str = ""
    """Who is said to have written it, for example by a forge; nobody has attested that."""


UNKNOWN_AUTHOR: Final = Authorship()
"""Nobody is known to be behind the document."""
