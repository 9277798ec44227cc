"""Run a walkthrough: do each step, record what it led to, and check it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from taskgov import errors
from taskgov.contracts.steps import Pointer
from taskgov.contracts.task_events import SOURCE
from taskgov_embedded.walkthrough.actions import Actor
from taskgov_embedded.walkthrough.checks import check
from taskgov_embedded.walkthrough.step_result import Check, StepResult
from taskgov_embedded.walkthrough.team_jobs import states_of_jobs, usage_of
from taskgov_embedded.walkthrough.world import MACHINES, World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskgov_embedded.walkthrough.model import Step, Walkthrough

DENIED = ("AccessDenied", "AuthorizationError", "403")
"""How the codes of refused calls begin, by service."""
GOVERNANCE_ERRORS = frozenset(
    name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, errors.GovernanceError)
)
"""What functions raise on purpose; anything else is a fault of theirs."""


@dataclass(frozen=True, slots=True)
class Marks:
    """How much had happened when a step began."""

    moments: int
    cycles: int
    calls: int
    results: int
    requests: int
    executions: frozenset[str]


class Runner:
    """Runs the steps of one walkthrough in an open world, in order."""

    def __init__(self, walkthrough: Walkthrough, world: World, actor: Actor | None = None) -> None:
        self.walkthrough = walkthrough
        self.world = world
        self._actor = actor or Actor(world)

    def run(self) -> Iterator[StepResult]:
        """Run one step after another; each result comes with its checks."""
        for step in self.walkthrough.steps:
            yield self._run(step)

    def _run(self, step: Step) -> StepResult:
        result, marks = StepResult(step.title, self.world.quotas()), self._marks()
        for action in step.do:
            self._actor.do(action, result)
        self._record(result, marks)
        result.checks = [*check(step.expect, result, self.world), *self._always(result)]
        return result

    def _marks(self) -> Marks:
        stack = self.world.stack
        return Marks(
            moments=len(stack.timeline),
            cycles=len(self.world.cluster.cycles),
            calls=len(stack.calls),
            results=len(stack.results),
            requests=len(self.world.api_server.calls),
            executions=frozenset(arn for arn, _, _ in self._executions()),
        )

    def _record(self, result: StepResult, marks: Marks) -> None:
        stack, world, store = self.world.stack, self.world, self.world.cluster.store
        result.quotas_after, result.usage_after, result.jobs_after = (
            world.quotas(),
            usage_of(store),
            states_of_jobs(store),
        )
        result.leases = world.leases()
        result.moments = stack.timeline.since(marks.moments)
        result.cycles = world.cluster.cycles[marks.cycles :]
        result.calls = stack.calls[marks.calls :]
        result.invocations = stack.results[marks.results :]
        carriers = world.carriers()
        result.kueue_writes = [
            call.path.rpartition("/")[2]
            for call in world.api_server.calls[marks.requests :]
            if call.method == "PATCH" and any(f"/{carrier}/" in call.path for carrier in carriers)
            if call.status < 400 and "dryRun" not in call.query
        ]
        result.executions = [
            (machine, status) for arn, machine, status in self._executions() if arn not in marks.executions
        ]
        result.published = [
            moment.detail["event"]
            for moment in result.moments
            if moment.kind == "event" and moment.detail["event"]["source"] == SOURCE
        ]
        told = [
            (call.params["TopicArn"], f"{call.params.get('Subject', '')}\n{call.params['Message']}")
            for call in result.calls
            if call.action == "sns:Publish" and call.error is None
        ]
        own = stack.physical("NoticeTopic")
        result.notices = [text for topic, text in told if topic == own]
        result.team_notices = [(topic.rpartition(":")[2], text) for topic, text in told if topic != own]
        result.plans = [world.plan_at(value["plan"]) for value in self._answers(result, "PlanQuotasFunction")]
        result.reports = [
            {form: world.document(Pointer.model_validate(value["report"][form])) for form in ("json", "html")}
            for value in self._answers(result, "AuditClusterFunction")
        ]

    @staticmethod
    def _answers(result: StepResult, function: str) -> list[dict[str, Any]]:
        named = [invocation for invocation in result.invocations if invocation.function == function]
        return [invocation.value for invocation in named if not invocation.is_error]

    def _executions(self) -> list[tuple[str, str, str]]:
        """Return ARN, machine and status of all executions so far, oldest first."""
        steps = self.world.stack.client("stepfunctions")
        found = []
        for machine, logical_id in MACHINES.items():
            pages = steps.get_paginator("list_executions").paginate(
                stateMachineArn=self.world.stack.physical(logical_id)
            )
            found += [
                (execution["executionArn"], machine, execution["status"])
                for page in pages
                for execution in page["executions"]
            ]
        return found

    @staticmethod
    def _always(result: StepResult) -> Iterator[Check]:
        """Check what must hold after every step, whatever it expects."""
        denied = [str(call) for call in result.calls if call.error and call.error.startswith(DENIED)]
        yield Check("no permission was missing", not denied, "none", "; ".join(denied) or "none")
        failed = [invocation.value for invocation in result.invocations if invocation.is_error]
        errors = [value.get("errorType", "") for value in failed]
        unexpected = sorted({error for error in errors if error not in GOVERNANCE_ERRORS})
        yield Check("no function failed unexpectedly", not unexpected, "none", ", ".join(unexpected) or "none")
