"""How each thing that happens changes the state: calls of functions, tasks of executions, deliveries."""

import json
from functools import cache
from typing import Any

from tests.protocol import functions
from tests.protocol.functions import Answer, Call, Running, next_of
from tests.protocol.invariants import (
    broken_by_approval,
    broken_by_asking,
    broken_by_check,
    broken_by_keeping,
    broken_by_refusal,
    broken_by_taking,
    broken_by_update,
    broken_by_write,
    owner_of,
)
from tests.protocol.machine import Ended, Failure, Machine, Standing
from tests.protocol.state import Execution, Process, Scenario, State, Step
from tests.protocol.table import plain, text, updated
from tests.support.memory import CLUSTER_ARN

GIVEN = text({"clusterArn": CLUSTER_ARN, "cause": {}})
UNKEPT = ("lastCause", "name", "askedPlan", "askedDocument", "lockPlan", "lockPlanToken")
"""What the item says and nothing decides on."""
STATUS_CHANGE = "Step Functions Execution Status Change"
SOURCES = {"Reconcile Requested": "taskgov.operator", STATUS_CHANGE: "aws.states"}
STATUSES = {"running": "RUNNING", "stopped": "ABORTED", "over": "SUCCEEDED"}
COMMAND = "a person's command"
FAILED = "UpstreamError"
NOTHING = "nothing"
"""What stands for the digest of a plan without changes."""
UNSUCCESSFUL = ("failed", "unfinished", "unreadable")


class Doing:
    """One definition of the state machine, and what each step of a process does."""

    def __init__(self, definition: dict[str, Any], scenario: Scenario) -> None:
        constants: dict[str, Any] = {"lockTries": 0}
        if scenario.spent:
            definition["States"]["Note the cause"]["Assign"]["events"] = scenario.spent
        else:
            constants["events"] = 0
        self.machine = Machine(definition, constants)
        self.scenario = scenario

    def _deliver(self, state: State, message: str, *, again: bool) -> Step:
        running = Running("receive", message, state.now)
        after = state.with_process(Process(running, message))
        if not again:
            left = list(state.messages)
            left.remove(message)
            after = after._replace(messages=tuple(left))
        often = " (and will be again)" if again else ""
        return Step(f"{json.loads(message)['id']} is delivered{often}", after, certain=not again)

    def _local(self, state: State, execution: Execution) -> Step:
        at = execution.at
        assert at is not None
        resource = self.machine.resource(at.state)
        if resource == "lambda:PlanQuotas":
            if self.machine.arguments(execution.arn, at)["snapshot"] is None:
                return self._go_on(state, execution, Failure("InvalidRequestError"), "has nothing to plan from")
            return self._go_on(state, execution, {"Payload": self._plan(execution)}, "plans")
        if resource == "lambda:PublishUsage":
            outcome, generation = (json.loads(at.variables)[name] for name in ("outcome", "generation"))
            good = outcome not in UNSUCCESSFUL
            after = state._replace(seen=max(state.seen, generation)) if good else state
            return self._go_on(after, execution, {"Payload": {}}, f"publishes {outcome}, having seen {generation}")
        if resource.startswith("aws-sdk:scheduler:"):
            if state.scheduled and resource.endswith("createSchedule"):
                return self._go_on(state, execution, Failure("Scheduler.ConflictException"), "finds a schedule")
            return self._go_on(state._replace(scheduled=True), execution, {}, "schedules another look")
        empty: dict[str, list[Any]] = {"ComputeQuotaSummaries": [], "ClusterSchedulerConfigSummaries": []}
        return self._go_on(state, execution, empty, f"does {at.state!r}")

    def _plan(self, execution: Execution) -> dict[str, Any]:
        assert execution.at is not None
        asked = self.machine.arguments(execution.arn, execution.at)
        seen = json.loads(asked["snapshot"]["key"])
        digest = digest_of(seen["facts"], seen["version"]) if seen["facts"] != seen["content"] else NOTHING
        outcome = "nothing-to-do" if digest == NOTHING else "apply"
        if outcome == "apply" and self.scenario.approval and asked["approvedChanges"] != digest:
            outcome = "needs-approval"
        count = int(outcome != "nothing-to-do")
        return {
            "outcome": outcome,
            "planId": "plan",
            "plan": asked["snapshot"],
            "changeCount": count,
            "waves": [1] * count,
            "changesSha256": digest,
            "summary": "",
        }

    def _update_of(self, state: State, execution: Execution, *, lost: bool) -> Step:
        at = execution.at
        assert at is not None
        done = updated(state.item, text(self.machine.arguments(execution.arn, at)))
        after, wrong = self._changed(state, done.item, execution.arn)
        if lost:
            return Step(f"{execution.name}: {at.state!r}, and the answer is lost", after, wrong, certain=False)
        if not done.met:
            failure = Failure("DynamoDB.ConditionalCheckFailedException")
            step = self._go_on(after, execution, failure, f"{at.state!r} is refused")
            return step._replace(wrong=broken_by_keeping(after.item, at, execution.arn) or step.wrong)
        step = self._go_on(after, execution, {"Attributes": json.loads(done.item)}, at.state)
        return step._replace(wrong=wrong or step.wrong)

    def _call(self, state: State, process: Process, *, lost: bool) -> Step:
        call = next_of(process.running)
        assert isinstance(call, Call)
        answer, after, wrong = getattr(self, f"_{call.kind}")(state, process, json.loads(call.body))
        label = f"{said(process)}: {call.kind}{_told(call.kind, answer)}"
        if lost:
            return Step(f"{label}, and the answer is lost", after, wrong, certain=False)
        return self._answered(after, process, text(answer), label)._replace(wrong=wrong)

    def _update(self, state: State, process: Process, asked: Any) -> tuple[Any, State, str | None]:
        done = updated(state.item, text(asked))
        after, wrong = self._changed(state, done.item, _actor(process), over=_told_to_be_over(process))
        wrong = wrong or (broken_by_check(done.item, process) if done.met else broken_by_refusal(state, process))
        told = {"item": _kept(done.item)} if asked.get("ReturnValues") == "ALL_NEW" else {}
        return {"met": done.met, **told}, after, wrong

    def _get(self, state: State, _: Process, __: Any) -> tuple[Any, State, None]:
        return {"item": _kept(state.item)}, state, None

    def _look(self, state: State, _: Process, __: Any) -> tuple[Any, State, None]:
        return {"facts": state.facts, "version": state.version, "content": state.content}, state, None

    def _write(self, state: State, process: Process, asked: Any) -> tuple[Any, State, str | None]:
        if self.scenario.versions and asked["version"] != state.version:
            return {"conflict": True}, state, None
        after = state._replace(version=state.version + 1, content=asked["content"], approved=())
        wrong = broken_by_write(state, process, asked["version"])
        if self.scenario.approval and not wrong:
            wrong = broken_by_approval(process, digest_of(asked["content"], asked["version"]), state.approved)
        if self.scenario.approval and process.orphan and owner_of(state.item) != _actor(process):
            after = after._replace(excused=True)  # the next run may ask a person for what it saw before this write
        return {"version": after.version}, after, wrong

    def _start(self, state: State, _: Process, asked: Any) -> tuple[Any, State, None]:
        if state.execution(asked["name"]) is not None:
            return {"started": False}, state, None
        return {"started": True}, self._begun(state, asked["name"]), None

    def _begun(self, state: State, name: str) -> State:
        """Let an execution begin."""
        execution = Execution(name, "running", None)
        return self._arrive(state, execution, self.machine.begin(execution.arn, GIVEN, state.now))

    def _request(self, state: State, _: Process, __: Any) -> tuple[Any, State, None]:
        return {}, state.with_message(event("Reconcile Requested", f"request{state.facts}")), None

    def _describe(self, state: State, _: Process, asked: Any) -> tuple[Any, State, None]:
        execution = state.execution(asked["arn"].removeprefix(functions.EXECUTION))
        assert execution is not None
        return {"status": STATUSES[execution.status]}, state, None

    def _changed(
        self, state: State, item: str, actor: str, *, over: frozenset[str] = frozenset()
    ) -> tuple[State, str | None]:
        """Take over the item that an operation left, and judge the change."""
        after = state._replace(item=_without_unkept(item))
        wrong = broken_by_update(state.item, item, actor, state.now, over=over)
        return after, wrong or broken_by_taking(after, self.scenario.left)

    def _answered(self, state: State, process: Process, body: str, label: str) -> Step:
        """Let a function know its answer; one that has ended gives its result to the caller that waits for it."""
        running = process.running._replace(answers=(*process.running.answers, Answer(state.now, body)))
        after, following = state.without_process(process), next_of(running)
        if isinstance(following, Call):
            return Step(label, after.with_process(process._replace(running=running)))
        execution = after.execution(process.parent)
        if execution is None or process.orphan:
            return Step(label, after)
        result = Failure(following.error) if following.error else {"Payload": json.loads(following.result)}
        return self._go_on(after, execution, result, f"{label}, and ends", named=False)

    def _go_on(self, state: State, execution: Execution, result: Any, label: str, *, named: bool = True) -> Step:
        assert execution.at is not None
        arrived = self.machine.go_on(execution.arn, execution.at, result, state.now)
        label = f"{execution.name}: {label}" if named else label
        after = self._arrive(state, execution, arrived)
        if isinstance(arrived, Ended) or not self._waits(arrived):
            return Step(label, after)
        wrong = broken_by_asking(after, self._waiting(after), self.scenario.left, NOTHING)
        return Step(label, after, wrong)

    def _waiting(self, state: State) -> list[Standing]:
        """Return where the executions are that wait for a person."""
        running = (one.at for one in state.executions if one.status == "running" and one.at)
        return [at for at in running if self._waits(at)]

    def _arrive(self, state: State, execution: Execution, arrived: Standing | Ended) -> State:
        if isinstance(arrived, Ended):
            after = state.with_execution(Execution(execution.name, "over", None))
            return self._with_status_change(after, execution.name) if arrived.failed else after
        return self._enter(state, execution, arrived)

    def _enter(self, state: State, execution: Execution, at: Standing) -> State:
        """Bring an execution to a task; a function is invoked at once, and may take its time."""
        after = state.with_execution(execution._replace(at=at))
        kind = self.machine.resource(at.state).removeprefix("lambda:")
        if kind not in functions.KINDS:
            return after
        running = Running(kind, text(self.machine.arguments(execution.arn, at)), state.now)
        return after.with_process(Process(running, execution.name))

    def _with_status_change(self, state: State, name: str) -> State:
        """Send the event of an execution's end, which is best effort: one that is lost the next resync makes up for."""
        if state.may("unheard"):
            return state.spent("unheard")._replace(excused=True)
        return state.with_message(event(STATUS_CHANGE, f"the end of {name}", functions.EXECUTION + name))

    def _abandoned(self, state: State, name: str) -> State:
        """Leave the functions of an execution to themselves."""
        processes = (one._replace(orphan=True) if one.parent == name else one for one in state.processes)
        return state._replace(processes=tuple(sorted(processes)))

    def _is_update(self, execution: Execution) -> bool:
        return execution.at is not None and self.machine.is_of_the_protocol(execution.at.state)

    def _waits(self, at: Standing) -> bool:
        return self.machine.resource(at.state).endswith(".waitForTaskToken")

    def _is_local(self, execution: Execution) -> bool:
        if execution.at is None or self._is_update(execution) or self._waits(execution.at):
            return False
        return self.machine.resource(execution.at.state).removeprefix("lambda:") not in functions.KINDS


@cache
def event(kind: str, identity: str, execution: str | None = None) -> str:
    """Return an EventBridge event that the product reads."""
    detail = {} if kind == "Resync Due" else {"clusterArn": CLUSTER_ARN, "by": "ana"}
    if execution is not None:
        detail = {"executionArn": execution, "status": "ABORTED"}
    return text(
        {
            "version": "0",
            "id": identity,
            "detail-type": kind,
            "source": SOURCES.get(kind, "taskgov.schedule"),
            "account": "111122223333",
            "time": "2026-11-20T09:00:00Z",
            "region": "us-east-1",
            "resources": [],
            "detail": detail,
        }
    )


@cache
def digest_of(facts: int, version: int) -> str:
    """Return what stands for the digest of a plan's changes."""
    return f"{facts} at version {version}"


def said(process: Process) -> str:
    """Name a process for people."""
    if process.running.kind == "receive":
        return f"receive_event ({json.loads(process.parent)['id']})"
    left = ", left alone" if process.orphan else ""
    return f"{process.parent} ({process.running.kind}{left})"


@cache
def _without_unkept(item: str) -> str:
    return text({name: value for name, value in json.loads(item).items() if name not in UNKEPT})


@cache
def _kept(item: str) -> dict[str, Any]:
    values = plain(_without_unkept(item))
    return {name: int(value) if not isinstance(value, str) else value for name, value in values.items()}


def _actor(process: Process) -> str:
    return "an event" if process.running.kind == "receive" else _owner(process.running.payload)


@cache
def _owner(payload: str) -> str:
    known = json.loads(payload)
    return str(known.get("lockOwner") or known.get("owner"))


def _told_to_be_over(process: Process) -> frozenset[str]:
    """Return the executions of which a function was told that they are over."""
    running, over = process.running, set()
    for number, answer in enumerate(running.answers):
        if json.loads(answer.body).get("status", "RUNNING") != "RUNNING":
            asked = next_of(running._replace(answers=running.answers[:number]))
            assert isinstance(asked, Call)
            over.add(json.loads(asked.body)["arn"])
    return frozenset(over)


def _told(kind: str, answer: Any) -> str:
    return " is refused" if answer.get("met") is False or "conflict" in answer else ""
