"""What travels between the steps of the state machines: small, and always a pointer to what is large.

The table of functions in `docs/architecture.md` shows who takes and gives what.
"""

import json
from datetime import datetime
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from taskgov.errors import InvalidRequestError
from taskgov.hyperpod.cluster_arn import cluster_arn
from taskgov.violations import Violation

ClusterArn = Annotated[str, AfterValidator(cluster_arn)]
"""The key of a cluster: its lock, its items and its plans are found by it."""
MOST: Final = 10**15
"""No count or token is greater: it is written to the table and as a metric, which take no number of any length."""


class StepModel(BaseModel):
    """A message between steps: immutable, camelCase outside, unknown members refused."""

    # A function takes one or two of these messages: only those that are used are built.
    model_config = ConfigDict(
        frozen=True, alias_generator=to_camel, populate_by_name=True, extra="forbid", defer_build=True
    )

    @classmethod
    def parse(cls, event: object) -> Self:
        """Read a message. Raises InvalidRequestError that names every member that is missing, unknown or wrong."""
        try:
            json.dumps(event, ensure_ascii=False, default=str).encode()
        except UnicodeEncodeError as error:
            raise InvalidRequestError(f"not a {cls.__name__}: half of a surrogate pair is not text") from error
        try:
            return cls.model_validate(event)
        except ValidationError as error:
            raise InvalidRequestError(f"not a {cls.__name__}", _violations(error)) from error

    def to_json(self) -> dict[str, Any]:
        """Return the message as the state machine sees it: absent members are absent."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


def _violations(error: ValidationError) -> tuple[Violation, ...]:
    return tuple(
        Violation(".".join(map(str, problem["loc"])) or "(the whole)", repr(problem["input"])[:80], problem["msg"])
        for problem in error.errors()
    )


class Pointer(StepModel):
    """Where a document is, and the digest (hex SHA-256) that it must have."""

    bucket: str
    key: str
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class Cause(StepModel):
    """Why something runs: the event, who caused it if known, and what happened in a few words."""

    event_id: str
    source: str
    detail_type: str
    at: datetime
    by: str | None = None
    what: str = ""


class ReconcileInput(StepModel):
    """What an execution of `reconcile` starts with."""

    cluster_arn: ClusterArn
    cause: Cause


class LockedRequest(StepModel):
    """A request of a run, which holds the lock of its cluster: the function renews the lease while it works.

    Both fields or none: without them nothing is locked or renewed.
    """

    lock_owner: str | None = None
    fencing_token: int | None = Field(default=None, ge=0, le=MOST)

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (self.lock_owner is None) != (self.fencing_token is None):
            raise ValueError("lockOwner and fencingToken belong together")
        return self


class ReadSnapshotRequest(LockedRequest):
    cluster_arn: ClusterArn
    run_id: str
    cause: Cause | None = None


class ReadSnapshotResult(StepModel):
    snapshot: Pointer
    generation: int
    cluster_name: str
    taken_at: datetime


class ClusterUnreadable(StepModel):
    """The other answer of `read_snapshot` and `audit_cluster`: why the cluster cannot be read. It is not a failure."""

    unreadable: str


class PlanQuotasRequest(StepModel):
    snapshot: Pointer
    apply_mode: Literal["plan", "apply"] = "plan"
    """What the operator allows; without it, a plan is made that nobody applies."""
    approved_changes: str | None = None
    approved_by: str | None = None
    """Who approved them: `taskgov.people.Person.identity`, as the signed entry attests it."""
    needs_approver: bool | None = None
    """Whether the stack names approvers: then a document of an unknown author needs one, and no author approves.

    None: the run began on the state machine of a release that does not say it, and does not write as this one does.
    """


class PlanQuotasResult(StepModel):
    outcome: str
    plan_id: str
    plan: Pointer
    change_count: int
    changes_sha256: str
    summary: str
    wave_count: int = 0
    """Waves of writes; each is waited for before the next begins."""
    recheck_at: datetime | None = None


class ApplyChangeRequest(StepModel):
    cluster_arn: ClusterArn
    plan: Pointer
    index: int = Field(ge=0)
    count: int = Field(default=1, ge=1, le=100)
    """At most so many changes in one call, of one wave, from `index` on."""
    lock_owner: str
    fencing_token: int = Field(ge=0, le=MOST)


class ApplyChangeResult(StepModel):
    """What became of one change."""

    index: int
    resource_id: str
    version_before: int | None = None
    version_after: int | None = None
    written: bool
    in_flight: bool = False
    """It is still settling, so that it could not be restored yet."""
    refused: str | None = None
    """Why the service refused the write for good; it is on record."""


class ApplyChangesResult(StepModel):
    """How far a call came: `next` is the index that is due, beyond the last change when all are made."""

    next: int = Field(ge=0)
    written: int
    """Quotas (or cluster policies) that were written; one that is written twice counts once, with its first write."""
    changes: tuple[int, ...] = ()
    """The indexes of those first writes."""
    wave_ends: bool = True
    """Whether `next` lies in another wave, or beyond the plan: what was written has to settle first."""
    refused: tuple[str, ...] = ()
    """Which writes the service refused for good, and why; they are on record, and `next` is beyond them."""


class VerifyPlanRequest(LockedRequest):
    cluster_arn: ClusterArn
    plan: Pointer
    next: int | None = Field(default=None, ge=-1)
    """The change that is due next (`ApplyChangesResult.next`): only the wave that ended there is judged; None: all."""


class VerifyPlanResult(StepModel):
    """The state of the wave that was written last; each tuple has sentences that name the quotas."""

    settled: bool
    """Whether nothing is pending."""
    pending: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    """What settled as failed; it is on record."""
    edited: tuple[str, ...] = ()
    """What somebody changed since it was written; it stands."""
    problems: tuple[str, ...] = ()
    """What is not as it was written, for no reason that is known."""


class WroteChanges(StepModel):
    """What one call of `apply_change` wrote: indexes of changes of a plan, the plan as its place in `begun`."""

    plan: int = Field(ge=0)
    changes: tuple[int, ...]


class PublishUsageRequest(StepModel):
    """The end of a run, or a cluster alone: then it is measured; nothing at all is every governed cluster."""

    cluster_arn: str | None = None
    """An ARN; where no run ends, and so nothing is kept under it, the name of an EKS cluster's document will do."""
    run_id: str | None = None
    outcome: str | None = None
    plan: Pointer | None = None
    snapshot: Pointer | None = None
    begun: tuple[Pointer, ...] = ()
    """The plans that the run began to write, one for each of its rounds that did."""
    wrote: tuple[WroteChanges, ...] = ()
    """What the answers of `apply_change` named; the records may name more, as an answer may be lost."""
    applied: int = Field(default=0, ge=0, le=MOST)
    """How many writes these were; counts where the plans cannot be read."""
    cause: Cause | None = None
    started_at: datetime | None = None
    error: str | None = None

    @model_validator(mode="after")
    def _keyed(self) -> Self:
        if self.outcome is not None and self.cluster_arn is not None:
            cluster_arn(self.cluster_arn)
        return self


class PublishUsageResult(StepModel):
    published: int
    unreadable: int = 0
    """Clusters that could not be measured; each is in the log, and has the metric `ClusterUnreadable`."""
    applied: int | None = None
    """Quotas and cluster policies that the run wrote, by the records; absent where it was not the end of a run."""
    unmeasured: str | None = None
    """Why the usage at the end of a run could not be measured; the run itself was published."""
    unmarked: str | None = None
    """Why it could not be kept that the run was published: asked again, it would be published again."""


class EstimateStartsRequest(StepModel):
    cluster_arn: str
    """An ARN, or the name of an EKS cluster's document: nothing is locked or kept under it."""


class EstimateStartsResult(StepModel):
    waiting: int = 0
    """Workloads that wait for their turn."""
    estimated: int = 0
    """Those with a valid estimate: of this run, or of an earlier one while the queue is the same."""
    futures: int = 0
    """Futures that this run played; 0 if none were due."""
    unreadable: int = 0
    """1 where the cluster could not be read; it is in the log, and has the metric `ClusterUnreadable`."""
    notes: tuple[str, ...] = ()
    """Why there are no estimates, or not of all."""


class AuditClusterRequest(StepModel):
    cluster_arn: str
    """An ARN, or the name of an EKS cluster's document: an audit locks and writes nothing."""
    run_id: str


class ReportPointers(StepModel):
    json_: Pointer = Field(alias="json")
    html: Pointer


class NothingToAudit(StepModel):
    """The cluster was deleted since it was listed, or it has no Kueue and is not governed."""

    nothing_to_read: str
    """Why."""


class AuditClusterResult(StepModel):
    cluster_name: str
    findings: int
    muted: int
    """Findings that a mute suppresses; they are not among `findings`."""
    worst: str | None
    report: ReportPointers
