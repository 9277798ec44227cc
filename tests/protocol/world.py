"""What may happen next: every process's next call, each fault that is left, time, and what comes from outside."""

import json
from collections.abc import Iterator

from taskgov.ports import LOCK_SECONDS, LOOKS_OLD_SECONDS
from tests.protocol import functions
from tests.protocol.doing import COMMAND, FAILED, Doing, digest_of, event, said
from tests.protocol.functions import COMMANDS, INTERRUPTED, Running, next_of
from tests.protocol.invariants import RESTORED, broken_at_rest, expires, owner_of
from tests.protocol.machine import Failure, Standing
from tests.protocol.state import Execution, Process, State, Step
from tests.protocol.table import NO_ITEM, SORT_KEY, number, plain, text
from tests.support.memory import CLUSTER_ARN

BY_HAND = "by-hand"


class World(Doing):
    """All that a scenario allows, with one definition of the state machine."""

    def start(self) -> State:
        """Return a cluster at rest that nobody has looked at."""
        left = tuple(sorted(self.scenario.left.items()))
        key = {"pk": {"S": f"CLUSTER#{CLUSTER_ARN}"}, "sk": {"S": SORT_KEY}}
        item = text({**key, **self.scenario.item}) if self.scenario.item else NO_ITEM
        excused = item != NO_ITEM and self.scenario.repaired
        state = State(0, item, 0, 1, 0, (), (), (), scheduled=False, left=left, excused=excused)
        return self._begun(state._replace(facts=1), BY_HAND) if self.scenario.by_hand else state

    def steps(self, state: State) -> list[Step]:
        """Return everything that may happen next.

        What is local to one execution and cannot fail comes first and alone: nobody can see when it happens.
        """
        local = [one for one in state.executions if one.status == "running" and self._is_local(one)]
        if local and not state.may("fail"):
            return [self._local(state, local[0])]
        certain = [step for step in self._certain(state) if step.after != state or step.wrong]
        others = list(self._others(state))
        if not certain:
            others += self._at_rest(state)
        return certain + others

    # What goes on by itself.

    def _certain(self, state: State) -> Iterator[Step]:
        for execution in state.executions:
            if execution.status == "running" and self._is_local(execution):
                yield self._local(state, execution)
            elif execution.status == "running" and self._is_update(execution):
                yield self._update_of(state, execution, lost=False)
        for process in dict.fromkeys(state.processes):
            yield self._call(state, process, lost=False)
        for message in dict.fromkeys(state.messages):
            yield self._deliver(state, message, again=False)
        if state.scheduled:
            after = state._replace(scheduled=False).with_message(event("Recheck Due", f"recheck{state.facts}"))
            yield Step("the schedule fires", after)

    def _at_rest(self, state: State) -> Iterator[Step]:
        if not state.excused:
            yield Step("all is quiet", state, wrong=broken_at_rest(state, digest_of(state.facts, state.version)))
            return
        until = max(expires(state.item), number(state.item, "askedUntil") - int(functions.EPOCH.timestamp()))
        after = state._replace(now=max(state.now, until + 1) if plain(state.item) else state.now, excused=False)
        yield Step("the lease runs out, and the hourly resync comes", after.with_message(event("Resync Due", "resync")))

    # What nobody controls.

    def _others(self, state: State) -> Iterator[Step]:
        yield from self._from_outside(state)
        for execution in state.executions:
            yield from self._faults_of_execution(state, execution)
        for process in dict.fromkeys(state.processes):
            yield from self._faults_of_process(state, process)
        if state.may("duplicate"):
            for message in dict.fromkeys(state.messages):
                yield self._deliver(state.spent("duplicate"), message, again=True)
        looks_old = expires(state.item) - LOCK_SECONDS + LOOKS_OLD_SECONDS
        if state.may("old") and owner_of(state.item) is not None and looks_old > state.now:
            yield Step("time passes until the lock looks old", _later(state.spent("old"), looks_old), certain=False)
        if state.may("time") and owner_of(state.item) is not None and expires(state.item) >= state.now:
            yield Step(
                "time passes until the lease has run out",
                _later(state.spent("time"), expires(state.item) + 1),
                certain=False,
            )
        if state.may(RESTORED) and plain(state.item):
            after = state.spent(RESTORED)._replace(item=NO_ITEM, seen=0, excused=True)
            yield Step("the table is exchanged for an empty one", after, certain=False)

    def _from_outside(self, state: State) -> Iterator[Step]:
        if state.may("hint"):
            after = state.spent("hint")._replace(facts=state.facts + 1)
            after = after.with_message(event("Reconcile Requested", f"hint{after.facts}"))
            yield Step(f"fact {after.facts} comes about, with its event", after, certain=False)
        for kind in filter(state.may, COMMANDS):
            running = Running(kind, text({"owner": f"ana {dict(state.left)[kind]}"}), state.now)
            after = state.spent(kind).with_process(Process(running, COMMAND))
            yield Step(f"a person's {kind} starts", after, certain=False)
        for execution in state.executions:
            if execution.status == "running" and execution.at and self._waits(execution.at):
                yield from self._answers(state, execution, execution.at)

    def _answers(self, state: State, execution: Execution, at: Standing) -> Iterator[Step]:
        digest = json.loads(at.variables)["changesSha256"]
        approved = state._replace(approved=tuple(sorted({*state.approved, digest})))
        yield self._go_on(approved, execution, {"approved": True, "by": "ana"}, "is approved")._replace(certain=False)
        rejected = state._replace(rejected=tuple(sorted({*state.rejected, digest})))
        yield self._go_on(rejected, execution, {"approved": False, "by": "ana"}, "is rejected")._replace(certain=False)
        if state.may("expire"):
            after = state.spent("expire")._replace(excused=True)
            yield self._go_on(after, execution, Failure("States.Timeout"), "waits in vain")._replace(certain=False)

    def _faults_of_execution(self, state: State, execution: Execution) -> Iterator[Step]:
        name = execution.name
        if execution.status == "stopped" and state.may("redrive") and execution.at:
            again = execution._replace(status="running")
            after = self._enter(state.spent("redrive"), again, execution.at._replace(entered=state.now))
            yield Step(f"{name} is redriven", after, certain=False)
        if execution.status != "running" or execution.at is None:
            return
        if state.may("stop"):
            after = self._abandoned(state.spent("stop"), name).with_execution(execution._replace(status="stopped"))
            yield Step(f"{name} is stopped", self._with_status_change(after, name), certain=False)
        if state.may("lost") and self._is_update(execution):
            yield self._update_of(state.spent("lost"), execution, lost=True)
        if state.may("fail") and not self._waits(execution.at):
            after = self._abandoned(state.spent("fail"), name)._replace(excused=True)
            label = f"fails for good at {execution.at.state!r}"
            yield self._go_on(after, execution, Failure(FAILED), label)._replace(certain=False)
        if state.may("unreadable") and self.machine.resource(execution.at.state) == "lambda:ReadSnapshot":
            after = self._abandoned(state.spent("unreadable"), name)._replace(excused=True)
            answer = {"Payload": {"unreadable": "UpstreamError: 403"}}
            yield self._go_on(after, execution, answer, "cannot read the cluster")._replace(certain=False)

    def _faults_of_process(self, state: State, process: Process) -> Iterator[Step]:
        what = said(process)
        if state.may("lost") and next_of(process.running).kind in {"update", "write", "start"}:  # type: ignore[union-attr]
            yield self._call(state.spent("lost"), process, lost=True)
        if process.running.kind in COMMANDS:
            if state.may("kill"):
                after = state.spent("kill").without_process(process)._replace(excused=True)
                yield Step(f"{what} is killed", after, certain=False)
            if state.may("interrupt"):
                step = self._answered(state.spent("interrupt"), process, INTERRUPTED, f"{what} is interrupted")
                yield step._replace(certain=False)
            return
        if state.may("crash"):
            after = state.spent("crash").without_process(process)
            if process.running.kind == "receive":
                after = after.with_message(process.parent)
            elif not process.orphan:
                after = after.with_process(process._replace(running=_anew(process.running, state.now)))
            yield Step(f"{what} crashes, and is called again", after, certain=False)
        if state.may("twice") and process.running.kind != "receive" and not process.orphan:
            after = state.spent("twice").without_process(process).with_process(process._replace(orphan=True))
            after = after.with_process(process._replace(running=_anew(process.running, state.now)))
            yield Step(f"{what} is called again while it still runs", after, certain=False)


def _later(state: State, now: int) -> State:
    """Let time pass. Who is about to ask for the lock reads the clock when the call is sent, not before."""
    processes = []
    for process in state.processes:
        running = process.running
        if next_of(running).kind == "update":  # type: ignore[union-attr]
            *before, last = running.answers or (None,)
            if last is None:
                running = running._replace(started=now)
            else:
                running = running._replace(answers=(*before, last._replace(at=now)))
        processes.append(process._replace(running=running))
    return state._replace(now=now, processes=tuple(sorted(processes)))


def _anew(running: Running, now: int) -> Running:
    return Running(running.kind, running.payload, now)
