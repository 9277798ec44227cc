"""Publish who uses, borrows and lends what, and how a run ended.

`fan_out` calls it for each governed cluster every minute; `reconcile` calls it at the end of each run.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from taskgov.allocation.lease_book import lease_book
from taskgov.allocation.mass_loss import mass_losses
from taskgov.allocation.plan import Plan
from taskgov.collector import collector_paused
from taskgov.contracts.steps import PublishUsageRequest, PublishUsageResult
from taskgov.errors import GovernanceError, InvalidRequestError, NotFoundError, NothingToReadError, UpstreamError
from taskgov.ports import Clock, ClusterBackend, DocumentStore, EventBus, Meter, Notices, StateStore
from taskgov.services import metric_catalogue as metric
from taskgov.services.end_of_run import EndOfRun, RunOutcome, record_of
from taskgov.services.failures import Failures
from taskgov.services.kept_starts import MeasureStarts
from taskgov.services.look_ages import LookAges
from taskgov.services.measure_run import measure_run
from taskgov.services.measure_usage import measure_preemptions, measure_usage
from taskgov.services.new_preemptions import NewPreemptions
from taskgov.services.run_events import event_of
from taskgov.services.run_notices import notice_of
from taskgov.services.series_cap import SeriesCap
from taskgov.services.step_inputs import stored_plan
from taskgov.services.take_snapshot import ReadKueue, TakeSnapshot, cluster_facts
from taskgov.services.tell_teams import TellTeams
from taskgov.services.use_history import UseHistory
from taskgov.services.written_in_run import WhatWasWritten, WrittenInRun
from taskgov.snapshot.model import Snapshot
from taskgov.usage.cluster_usage import ClusterUsage, cluster_usage
from taskgov.usage.starved import Starved, starved_teams

STARVED_NAMED: Final = 10
"""Starved teams that the metric's log line names."""


@dataclass(frozen=True, slots=True)
class _Usage:
    """What was measured of a cluster, and how many values were published of it."""

    snapshot: Snapshot
    standing: ClusterUsage
    published: int
    starved: tuple[Starved, ...]
    counted: frozenset[str]
    """The preemptions that were counted: teams are notified of no other."""


@dataclass(frozen=True, slots=True)
class PublishUsage:
    """Publishes the metrics of one measurement, and sends events about tasks. Its fields are the ports it uses."""

    take_snapshot: TakeSnapshot
    backends: ClusterBackend
    documents: DocumentStore
    state: StateStore
    bus: EventBus
    notices: Notices
    meter: Meter
    clock: Clock
    failures: Failures
    tell_teams: TellTeams
    governed: Callable[[], Callable[[str], bool]]
    """Returns what says of a cluster's name whether it is governed (`taskgov.services.governed_clusters`)."""
    follow_workloads: ReadKueue | None
    """How the schedule reads Kueue's objects (`taskgov.services.follow_workloads`); None: in full, as a run does."""
    keep_work: Callable[[Snapshot, ClusterUsage], None]
    """Adds a scheduled measurement to the record of work (`taskgov.services.keep_work`)."""
    write_pages: Callable[[Snapshot], None]
    """Writes the pages of the teams (`taskgov.services.team_pages`)."""
    cap: SeriesCap

    @collector_paused()
    def __call__(self, request: PublishUsageRequest) -> PublishUsageResult:
        """Return how many values were published.

        Without a run's end, the cluster is measured. With one, its record, event, notice and metrics come first:
        they must not wait for a Kubernetes API that is down.
        """
        if request.cluster_arn is None:
            return self._every_cluster()
        if request.outcome is None:
            return self._look(request.cluster_arn)
        end = self._end(request, request.cluster_arn)
        if self.state.was_counted(end.cluster_arn, end.identity):
            # The answer of the invocation that did it was lost, or the same call came twice.
            return PublishUsageResult(published=0, applied=end.applied)
        self._tell(end)
        if end.outcome == "unreadable" and self._is_governed(end):
            self.failures.report(
                end.cluster_name, "read the cluster for a run", UpstreamError(end.error or "no reason")
            )
        usage, unmeasured = self._usage_after(end)
        # Nothing but the mark comes after metrics: a retry would count preemptions and the run's changes again.
        measured = measure_run(end)
        self.meter.record(end.cluster_name, measured)
        unmarked = self._mark(end)
        published = len(measured) + (0 if usage is None else usage.published)
        if usage is not None and unmarked is None:  # a crash after metrics without a mark would count them twice
            published += self._tell_teams(usage)
            self._write_pages(usage.snapshot)
        return PublishUsageResult(published=published, applied=end.applied, unmeasured=unmeasured, unmarked=unmarked)

    def _is_governed(self, end: EndOfRun) -> bool:
        """Return whether a run that read nothing counts: an event may name a cluster that nobody has taken in yet.

        One whose name could not be found out either (the id in its ARN stands for it) counts.
        """
        try:
            return end.cluster_name == end.cluster_arn.rpartition("/")[2] or self.governed()(end.cluster_name)
        except GovernanceError:
            return True

    def _write_pages(self, snapshot: Snapshot) -> None:
        """Write the teams' pages; a run does not fail for a page that is as old as the run before."""
        try:
            self.write_pages(snapshot)
        except Exception as error:  # noqa: BLE001 - the run is over, and on record; the error is reported
            self.failures.report(snapshot.cluster.name, "write the pages of the teams", error)

    def _mark(self, end: EndOfRun) -> str | None:
        """Keep that the run was published; failing would publish it again, and be worse than the missing mark."""
        try:
            self.state.count_once(end.cluster_arn, end.identity, end.ended_at, by=end.run_id)
        except GovernanceError as error:
            return f"{type(error).__name__}: {error}"
        return None

    def _usage_after(self, end: EndOfRun) -> tuple[_Usage | None, str | None]:
        """Measure the usage too; a run does not fail when its usage cannot be measured, and the schedule continues."""
        if end.outcome in {"failed", "unreadable"}:  # what made the run fail would fail again here
            return None, None
        try:
            return self._usage(self.take_snapshot(end.cluster_arn), by=end.run_id), None
        except Exception as error:  # noqa: BLE001 - the run is over, and on record; the error is reported
            self.failures.report(end.cluster_name, "measure the usage after a run", error)
            said = f"{type(error).__name__}: {error}" if isinstance(error, GovernanceError) else type(error).__name__
            return None, said

    def _every_cluster(self) -> PublishUsageResult:
        """Measure one governed cluster after the other.

        `fan_out` calls this where no cluster is governed, and the schedule of an earlier release for all of them,
        until the deployment has replaced it.
        """
        looks = [self._look(arn) for arn in self.backends.clusters()]
        if not looks:
            self._ages.none_older_than(0)
        return PublishUsageResult(
            published=sum(look.published for look in looks), unreadable=sum(look.unreadable for look in looks)
        )

    def _look(self, cluster: str) -> PublishUsageResult:
        """Measure one cluster (ARN, or the name of its document); one without EKS, or nothing to read, has no usage.

        What fails is reported, and does not make the function fail.
        """
        try:
            described = self.backends.describe_cluster(cluster)
            facts = cluster_facts(described)
        except NotFoundError:
            self._ages.none_older_than(0)
            return PublishUsageResult(published=0)
        except Exception as error:  # noqa: BLE001 - whatever a cluster does is its own; it is reported
            self.failures.report(cluster.rpartition("/")[2], "describe the cluster", error)
            self._ages.publish_undescribed(cluster)
            return PublishUsageResult(published=0, unreadable=1)
        self._ages.publish(facts)
        try:
            return PublishUsageResult(published=self._watch(facts.arn, described) if facts.eks_arn else 0)
        except NothingToReadError:
            return PublishUsageResult(published=0)
        except Exception as error:  # noqa: BLE001 - as above
            self.failures.report(facts.name, "measure the usage", error)
            return PublishUsageResult(published=0, unreadable=1)

    @property
    def _ages(self) -> LookAges:
        return LookAges(self.documents, self.state, self.meter, self.clock, self.failures)

    def _watch(self, cluster_arn: str, described: Mapping[str, Any]) -> int:
        """Measure a cluster and record what is used: the schedule alone does, so that no time counts twice."""
        usage = self._usage(self.take_snapshot(cluster_arn, described=described, read_kueue=self.follow_workloads))
        UseHistory(self.documents).keep(usage.snapshot)
        self.keep_work(usage.snapshot, usage.standing)
        self.meter.record(usage.snapshot.cluster.name, [metric.CLUSTER_UNREADABLE.of(0)])
        return usage.published + 1 + self._tell_teams(usage)

    def _usage(self, snapshot: Snapshot, by: str | None = None) -> _Usage:
        standing = cluster_usage(snapshot, with_loans=False)
        mark = NewPreemptions(self.documents, self.state, self.clock, self.failures)
        marked = mark(snapshot, standing.preemptions, by)
        usage = measure_usage(standing, snapshot.taken_at, lease_book(snapshot))
        lost = metric.NODES_LOST.of(sum(len(loss.nodes) for loss in mass_losses(snapshot)))
        unread = metric.OBJECTS_UNREADABLE.of(len(snapshot.unreadable_objects) + len(snapshot.unreadable))
        starved = starved_teams(snapshot)
        names = sorted({team_starved.team for team_starved in starved})
        waiting = metric.TEAMS_STARVED.of(len(names), teams=", ".join(names[:STARVED_NAMED]))
        starts = MeasureStarts(self.documents, self.failures)(snapshot)
        measured = [*usage, *starts, lost, unread, waiting, *measure_preemptions(marked.new, standing.lost)]
        published = self.cap(snapshot.cluster.name, measured, snapshot.taken_at)
        self.meter.record(snapshot.cluster.name, published)
        return _Usage(snapshot, standing, len(published), starved, marked.counted)

    def _tell_teams(self, usage: _Usage) -> int:
        """Notify teams of events of tasks and teams; return how many values name the topics that were not reached.

        Usage is measured, and counts, even if this fails: an error is reported, and the next measurement tries again.
        """
        name = usage.snapshot.cluster.name
        try:
            untold = self.tell_teams(usage.snapshot, usage.starved, usage.counted)
        except Exception as error:  # noqa: BLE001 - usage is on record; the error is reported
            self.failures.report(name, "notify teams", error)
            return 0
        if not untold:
            return 0
        self.meter.record(name, [metric.NOTICES_FAILED.of(len(untold))])
        self.failures.untold(name, untold)
        return 1

    def _tell(self, end: EndOfRun) -> None:
        self.state.record_run(record_of(end))
        self.bus.publish(*event_of(end))
        notice = notice_of(end)
        if notice and self.state.count_once(end.cluster_arn, notice.identity, end.ended_at, by=end.run_id):
            try:
                self.notices.send(notice.subject, notice.text)
            except Exception:
                self._keep(end, self.state.reopen_once, notice.identity)
                raise
            self._keep(end, self.state.confirm_once, notice.identity)

    def _keep(self, end: EndOfRun, outcome: Callable[[str, str, datetime], None], identity: str) -> None:
        """Record whether people were notified: a retry sends no second notice, and the next run one that was lost."""
        try:
            outcome(end.cluster_arn, identity, end.ended_at)
        except GovernanceError as error:
            self.failures.report(end.cluster_name, "record whether people were notified", error)

    def _end(self, request: PublishUsageRequest, cluster_arn: str) -> EndOfRun:
        if request.run_id is None or request.started_at is None:
            raise InvalidRequestError("the end of a run comes with runId and startedAt")
        plan = stored_plan(self.documents, request.plan) if request.plan else None
        now = self.clock.now()
        written = self._written(request, request.started_at, now)
        return EndOfRun(
            cluster_arn=cluster_arn,
            cluster_name=plan.cluster_name if plan else self._name(cluster_arn),
            run_id=request.run_id,
            outcome=_run_outcome(request.outcome),
            applied=request.applied if written is None else len(written.subjects),
            written=written.subjects if written else (),
            started_at=request.started_at,
            ended_at=now,
            plan=plan,
            plan_pointer=request.plan,
            snapshot_pointer=request.snapshot,
            cause=request.cause,
            error="; ".join(filter(None, (request.error, written.unknown if written else None))) or None,
        )

    def _written(self, request: PublishUsageRequest, started_at: datetime, now: datetime) -> WhatWasWritten | None:
        """Return what the run wrote; None when it began no plan: its own count counts."""
        if not request.begun:
            return None
        plans = [stored_plan(self.documents, pointer) for pointer in request.begun]
        answered = _answered(request, plans)
        return WrittenInRun(self.backends, self.state)(plans, started_at, now, answered)

    def _name(self, cluster_arn: str) -> str:
        """Return the cluster's name, or the end of its ARN: a run that found SageMaker down must be reported too."""
        try:
            return str(self.backends.describe_cluster(cluster_arn)["ClusterName"])
        except (GovernanceError, LookupError, TypeError):  # the last two: an answer of another form
            return cluster_arn.rsplit("/", 1)[-1]


def _answered(request: PublishUsageRequest, plans: list[Plan]) -> set[str]:
    """Return the subjects of the writes that the state machine recorded."""
    try:
        return {plans[call.plan].changes[index].subject for call in request.wrote for index in call.changes}
    except IndexError as error:
        raise InvalidRequestError("wrote names a plan that was not begun, or a change that its plan has not") from error


def _run_outcome(outcome: str | None) -> RunOutcome:
    try:
        return TypeAdapter(RunOutcome).validate_python(outcome)
    except ValidationError as error:
        raise InvalidRequestError(f"{outcome!r} is not an outcome of a run") from error
