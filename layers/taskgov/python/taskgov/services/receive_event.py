"""Take events in: find out which cluster each concerns, mark that cluster dirty, and see that a run will follow.

An event is only a hint. Delivered twice or late it does no harm: a run reads the cluster again, and changes nothing
when there is no difference.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from taskgov.contracts.events import Hint, Ignored, Subject, parse_event
from taskgov.contracts.steps import Cause
from taskgov.errors import InvalidRequestError, NoClusterNamedError, NotFoundError
from taskgov.ports import Clock, ClusterBackend, Execution, RunRecord, StateStore, Workflow
from taskgov.printable import printable
from taskgov.services.ended_owner import EndedOwner
from taskgov.snapshot.records import QuotaEdit
from taskgov.snapshot.unreadable import UnreadableItem, UnreadableItemError

NAME_LIMIT = 80
"""Characters in the name of a Step Functions execution."""
WHOLE_NAME = 56
"""So long may a cluster's name be that is whole in the names of executions; EKS has names of up to 100 characters."""


@dataclass(frozen=True, slots=True)
class Hinted:
    """What an event says, and the clusters that it says it of."""

    hint: Hint
    cluster_arns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Marked:
    """The result of several events: the clusters that are dirty now, how many runs started, and which were lost."""

    cluster_arns: tuple[str, ...]
    started: int
    failed: Mapping[str, Exception]
    """The events (by the caller's names for them) of a cluster that could not be marked: they must come again."""
    unknown: tuple[str, ...] = ()
    """Names in events that are not clusters: nothing is kept of them."""


@dataclass(frozen=True, slots=True)
class ReceiveEvent:
    """Turns one event into hints and runs. Its fields are the ports it uses."""

    backends: ClusterBackend
    state: StateStore
    workflow: Workflow
    clock: Clock
    own_role_arn: str

    def __call__(self, event: Mapping[str, Any]) -> Hinted | Ignored:
        """Find what the event concerns. Raises MalformedEventError for an event of a known kind that cannot be read."""
        match parse_event(event, own_role_arn=self.own_role_arn):
            case Ignored() as ignored:
                return ignored
            case Hint() as hint:
                if hint.subject.execution_arn:
                    return self._ended(hint, hint.subject.execution_arn)
                clusters = self._clusters(hint.subject)
                if not clusters:
                    return Ignored(f"{hint.subject} belongs to no cluster that is known")
                self._remember_edit(hint, clusters)
                self._carry_out(hint, clusters)
                return Hinted(hint, clusters)

    def _ended(self, hint: Hint, execution_arn: str) -> Hinted | Ignored:
        """Clear up after an execution that ended: a run follows where it held the lock or had asked for an approval.

        A run also follows one that was stopped or timed out without either: the hint that started it may not have been
        seen. One that failed without either has its record, and the next resync tries again: a run for each would fail
        as often. The cluster is in the execution's input. Without one, every cluster is described, one that cannot be
        described does not hide the one that is meant, and the name of the execution says which cluster it was started
        for. Raises ThrottledError, UpstreamError.
        """
        execution = self.workflow.execution(execution_arn)
        if execution is None or not execution.is_over:
            return Ignored(f"{execution_arn} is not an execution of a run, or runs again")
        named = hint.subject.cluster_arn
        failed: list[Exception] = []
        for cluster_arn in (named,) if named else self._candidates(execution.name):
            try:
                if self._owners.of_execution(cluster_arn, execution, hint.cause):
                    return Hinted(hint, (cluster_arn,))
            except Exception as error:  # noqa: BLE001 - raised below, when no other cluster is the one
                failed.append(error)
        clusters = self._left_without_a_run(execution, named)
        if not clusters and failed:
            raise failed[0]
        return Hinted(hint, clusters) if clusters else Ignored(f"{execution_arn} ended {execution.status} with no lock")

    def _candidates(self, execution: str) -> Iterator[str]:
        """Yield the clusters that an execution may belong to: the governed ones, then the one in its name."""
        governed = self.backends.clusters()
        yield from governed
        yield from (arn for arn in self._started_for(execution) if arn not in governed)

    def _left_without_a_run(self, execution: Execution, named: str | None) -> tuple[str, ...]:
        """Return for which cluster an execution was broken off that held nothing, if that is known."""
        if not execution.was_broken_off:
            return ()
        return (named,) if named else self._started_for(execution.name)

    def _started_for(self, execution: str) -> tuple[str, ...]:
        """Return the cluster that the name of an execution is of (see `execution_name`), if there is such a cluster."""
        name = cluster_part(execution)
        listed = tuple(arn for arn in self.backends.clusters() if _short(arn.rpartition("/")[2]) == name)
        try:
            return listed or self._clusters(Subject(cluster_name=name))
        except InvalidRequestError:  # a name that somebody gave by hand, and that no cluster can have
            return ()

    @property
    def _owners(self) -> EndedOwner:
        return EndedOwner(self.backends, self.state, self.workflow, self.clock)

    def _clusters(self, subject: Subject) -> tuple[str, ...]:
        """Return the ARNs of the clusters that an event concerns; none when it names one that is not there.

        A document that names no cluster is reported by each measurement, and another try of its event would not help.
        """
        try:
            return self._resolve(subject)
        except (NoClusterNamedError, NotFoundError):
            return ()

    def _resolve(self, subject: Subject) -> tuple[str, ...]:
        if subject.everything:
            return tuple(self.backends.clusters())
        if subject.cluster_arn:
            return (subject.cluster_arn,)
        if subject.cluster_name:
            return (str(self.backends.describe_cluster(subject.cluster_name)["ClusterArn"]),)
        return self._owner(subject)

    def _owner(self, subject: Subject) -> tuple[str, ...]:
        """Return the cluster of a quota or scheduler config: Update and Delete calls do not name it."""
        resource_id = subject.compute_quota_id or subject.scheduler_config_id or ""
        arn = self.state.cluster_of(resource_id)
        if arn is None and subject.compute_quota_id:
            arn = self.backends.quota(subject.compute_quota_id).cluster_arn
        elif arn is None and subject.scheduler_config_id:
            arn = self.backends.scheduler_config_by_id(subject.scheduler_config_id).cluster_arn
        return (arn,) if arn else ()

    def _remember_edit(self, hint: Hint, clusters: tuple[str, ...]) -> None:
        if hint.edited_quota_id and hint.cause.by:
            edit = QuotaEdit(hint.edited_quota_id, hint.cause.by, hint.cause.at, hint.cause.what, hint.edited_with)
            self.state.record_edit(clusters[0], edit)

    def _carry_out(self, hint: Hint, clusters: tuple[str, ...]) -> None:
        """Do what the signed entry was ordered beside asking for a run: it may write no records of clusters itself.

        An event that comes again finds it done: only what was refused before the order is forgotten.
        """
        for cluster_arn in clusters if hint.retry_refused else ():
            unreadable: list[UnreadableItem] = []  # reported as a finding by the run
            for refused in self.state.refusals(cluster_arn, unreadable.append):
                if refused.at <= hint.cause.at:
                    self.state.forget_refusal(cluster_arn, refused.subject)
        if hint.unlocked is not None:
            at = hint.cause.at
            cause = hint.cause.model_copy(update={"detail_type": "Unlock", "what": printable(hint.unlocked, limit=400)})
            run_id = f"unlock-{hint.cause.event_id}"
            self.state.record_run(RunRecord(clusters[0], run_id, at, at, "unlocked", cause, None, None, 0, None))

    def mark(self, events: Mapping[str, Hinted]) -> Marked:
        """Mark each cluster that these events concern dirty, once, by the first that does.

        However many events come together, they are one hint: a storm costs a write for each batch. A run is started
        unless one holds the lock: that one will see the new generation.
        """
        first: dict[str, Hint] = {}
        for hinted in events.values():
            for arn in hinted.cluster_arns:
                first.setdefault(arn, hinted.hint)
        results = {arn: self._try(arn, hint) for arn, hint in first.items()}
        errors = {arn: result for arn, result in results.items() if isinstance(result, Exception)}
        unknown = tuple(arn for arn, result in results.items() if result is None)
        return Marked(
            cluster_arns=tuple(arn for arn in results if arn not in errors and arn not in unknown),
            started=sum(result for result in results.values() if isinstance(result, int)),
            failed={
                name: errors[arn] for name, hinted in events.items() for arn in hinted.cluster_arns if arn in errors
            },
            unknown=unknown,
        )

    def _try(self, cluster_arn: str, hint: Hint) -> int | Exception | None:
        """Mark one cluster; one that fails does not stop the others. None: there is no such cluster."""
        try:
            return self._mark(cluster_arn, hint) if self._is_known(cluster_arn, hint) else None
        except Exception as error:  # noqa: BLE001 - whatever one cluster does, the others are marked; its events come again
            return error

    def _is_known(self, cluster_arn: str, hint: Hint) -> bool:
        """Return whether there is the cluster: it was marked before, was just listed, or is found now.

        A principal who may put events on the bus can name anything. One question for each new name of a batch, and
        nothing is written before its answer.
        """
        return hint.subject.everything or self._was_marked(cluster_arn) or self.backends.knows(cluster_arn)

    def _was_marked(self, cluster_arn: str) -> bool:
        try:
            return self.state.generation(cluster_arn) > 0
        except UnreadableItemError:  # marking replaces it
            return False

    def _mark(self, cluster_arn: str, hint: Hint) -> int:
        name = hint.subject.cluster_name or cluster_arn.rsplit("/", 1)[-1]
        dirty = self.state.mark_dirty(cluster_arn, name, hint.cause, self.clock.now())
        if not self._owners.of_hint(cluster_arn, dirty.lock, hint.cause):
            return 0
        return int(self.workflow.start(cluster_arn, hint.cause, execution_name(name, dirty.generation, hint.cause)))


def execution_name(cluster_name: str, generation: int, cause: Cause) -> str:
    """Return a name for the run: readable, and the same for the same event and generation.

    Example:
        >>> from datetime import datetime, UTC
        >>> cause = Cause(event_id="7bf73129-1428", source="aws.sagemaker", detail_type="x", at=datetime.now(UTC))
        >>> execution_name("ml-cluster", 12, cause)
        'ml-cluster-12-7bf73129'
    """
    suffix = f"-{generation}-{re.sub(r'[^A-Za-z0-9]', '', cause.event_id)[:8]}"
    return _short(cluster_name)[: NAME_LIMIT - len(suffix)] + suffix


def _short(cluster_name: str) -> str:
    """Return a cluster's name as the names of its executions have it: a long one ends in a digest of the whole."""
    plain = re.sub(r"[^A-Za-z0-9_-]", "-", cluster_name)
    return plain if len(plain) <= WHOLE_NAME else f"{plain[: WHOLE_NAME - 9]}-{sha256(plain.encode()).hexdigest()[:8]}"


def cluster_part(execution: str) -> str:
    """Return what `execution_name` has of the cluster: its name, or the last part of its ARN, shortened.

    Any other text for an execution that somebody else named.

    Example:
        >>> cluster_part("ml-cluster-12-7bf73129")
        'ml-cluster'
    """
    return execution.rsplit("-", 2)[0]
