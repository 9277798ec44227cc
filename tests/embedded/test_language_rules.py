"""Rules of Amazon States Language by the letter, in machines whose tasks a test answers."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from taskgov_embedded.stepfunctions.host import Host, Task, TaskFailedError
from taskgov_embedded.stepfunctions.interpreter import MOST_BYTES, Interpreter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

NINE = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)
TASK = {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke"}
EVALUATION = "States.QueryEvaluationError"


@dataclass(slots=True)
class Answers(Host):
    """Answers tasks in order, a `TaskFailedError` by raising it; the last answer again and again."""

    answers: list[Any] = field(default_factory=lambda: [{}])
    moment: datetime = NINE
    asked: list[Task] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def now(self) -> datetime:
        return self.moment

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.moment += timedelta(seconds=seconds)

    def jittered(self, seconds: float) -> float:
        return seconds

    def token(self) -> str:
        return "token"

    def work(self, task: Task) -> Any:
        self.asked.append(task)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, TaskFailedError):
            raise answer
        return answer

    def side_by_side(self, branches: Sequence[Callable[[Host], Any]], at_most: int) -> list[Any]:
        return [branch(self) for branch in branches]

    def note(self, kind: str, **details: Any) -> None:
        pass


def run(host: Answers, given: Any = None, /, **states: dict[str, Any]) -> Any:
    return Interpreter(host, {}).run({"StartAt": next(iter(states)), "States": states}, given=given)


def failure(host: Answers, given: Any = None, /, **states: dict[str, Any]) -> str:
    with pytest.raises(TaskFailedError) as raised:
        run(host, given, **states)
    return raised.value.error


def wait(**how: Any) -> dict[str, Any]:
    return {"Type": "Wait", "End": True, **how}


CAUGHT = {"Type": "Pass", "Output": "caught", "End": True}


def trying(names: str, **more: Any) -> dict[str, Any]:
    """Return a task that tries such failures again twice, and catches whatever it can."""
    retry = [{"ErrorEquals": [names], "MaxAttempts": 2}]
    return {**TASK, "Retry": retry, "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "C"}], "End": True, **more}


@pytest.mark.parametrize(
    ("names", "error", "tried"),
    [
        ("States.TaskFailed", "ThrottledError", 3),
        ("States.TaskFailed", EVALUATION, 3),
        ("States.TaskFailed", "States.Timeout", 1),
        ("States.ALL", "States.Timeout", 3),
        ("States.ALL", EVALUATION, 3),
        ("Other", "ThrottledError", 1),
    ],
)
def test_a_wildcard_stands_for_the_errors_that_the_guide_says(names: str, error: str, tried: int) -> None:
    host = Answers([TaskFailedError(error)])
    assert run(host, A=trying(names), C=CAUGHT) == "caught"
    assert len(host.asked) == tried


@pytest.mark.parametrize("names", ["States.ALL", "States.TaskFailed"])
@pytest.mark.parametrize("error", ["States.DataLimitExceeded", "States.Runtime"])
def test_no_wildcard_tries_or_catches_a_terminal_error(names: str, error: str) -> None:
    host = Answers([TaskFailedError(error)])
    assert failure(host, A=trying(names), C=CAUGHT) == error
    assert len(host.asked) == 1


def test_what_a_task_gives_may_be_as_large_as_the_limit_in_utf_8_and_no_larger() -> None:
    text = "한" * (MOST_BYTES // 3 - 1)  # three bytes each, and two quotes
    assert (
        run(Answers([text + "12"[: MOST_BYTES - 2 - len(text.encode())]]), A=trying("States.ALL"), C=CAUGHT) != "caught"
    )
    assert failure(Answers([text + "1234"]), A=trying("States.ALL"), C=CAUGHT) == "States.DataLimitExceeded"


def test_what_a_task_is_given_and_what_an_assign_holds_have_the_same_limit() -> None:
    large = "x" * MOST_BYTES
    host = Answers()
    assert failure(host, A=trying("States.ALL", Arguments=large), C=CAUGHT) == "States.DataLimitExceeded"
    assert host.asked == []
    half = "x" * (MOST_BYTES // 2)
    assigns = {"Type": "Pass", "Assign": {"a": half, "b": half}, "End": True}
    assert failure(Answers(), A=assigns) == "States.DataLimitExceeded"


@pytest.mark.parametrize(
    "expression",
    [
        "$number('x')",
        "$toMillis('yesterday')",
        "$parse('no JSON')",
        "1 / 0",
        "$partition([1], 0)",
        "$hash('a', 'CRC')",
        "$sum",
        "$range(0, 1, 0)",
    ],
)
def test_an_expression_that_cannot_be_evaluated_fails_the_state_and_not_the_stack(expression: str) -> None:
    assert failure(Answers(), A={"Type": "Pass", "Output": f"{{% {expression} %}}", "End": True}) == EVALUATION


@pytest.mark.parametrize("seconds", [-1, 1.5, "10", True, None, 100_000_000])
def test_seconds_are_a_whole_number(seconds: Any) -> None:
    assert failure(Answers(), {"s": seconds}, A=wait(Seconds="{% $states.input.s %}")) == EVALUATION


@pytest.mark.parametrize("until", ["2026-11-20", "2026-11-20T09:10:00", "2026-11-20t09:10:00z", "soon", 5])
def test_a_timestamp_is_a_moment_with_its_zone(until: Any) -> None:
    assert failure(Answers(), {"t": until}, A=wait(Timestamp="{% $states.input.t %}")) == EVALUATION


def test_a_timestamp_has_any_zone_and_one_that_is_past_is_not_waited_for() -> None:
    host = Answers()
    run(host, A=wait(Timestamp="2026-11-20T10:00:01.5+01:00"))
    run(host, A=wait(Timestamp="2026-11-20T08:00:00Z"))
    assert host.waits == [1.5, 0.0]


def test_a_time_limit_of_nothing_fails_the_task() -> None:
    host = Answers()
    task = {**TASK, "TimeoutSeconds": "{% 0 %}", "Catch": [{"ErrorEquals": [EVALUATION], "Next": "C"}], "End": True}
    assert run(host, A=task, C=CAUGHT) == "caught"
    assert host.asked == []


def test_each_rule_of_a_retry_counts_its_own_and_its_back_off_ends_at_its_most() -> None:
    errors = [TaskFailedError(name) for name in ("A", "B", "A", "A", "A")]
    host = Answers([*errors, "done"])
    retry = [
        {"ErrorEquals": ["A"], "IntervalSeconds": 2, "BackoffRate": 3, "MaxDelaySeconds": 10, "MaxAttempts": 4},
        {"ErrorEquals": ["B"], "MaxAttempts": 1},
    ]
    assert run(host, A={**TASK, "Retry": retry, "End": True}) == "done"
    assert host.waits == [2, 1, 6, 10, 10]


def test_output_and_assign_see_the_values_from_before() -> None:
    states: dict[str, Any] = {
        "A": {"Type": "Pass", "Assign": {"n": 1}, "Next": "B"},
        "B": {"Type": "Pass", "Assign": {"n": 2, "m": "{% $n %}"}, "Output": "{% $n %}", "Next": "C"},
        "C": {"Type": "Pass", "Output": ["{% $states.input %}", "{% $n %}", "{% $m %}"], "End": True},
    }
    assert run(Answers(), **states) == [1, 2, 1]


def test_a_branch_reads_variables_from_outside_and_keeps_its_own() -> None:
    inner: dict[str, Any] = {"I": {"Type": "Pass", "Assign": {"own": "{% $n %}"}, "Next": "J"}}
    inner["J"] = {"Type": "Pass", "Output": "{% $own + $states.input %}", "End": True}
    states: dict[str, Any] = {
        "A": {"Type": "Pass", "Assign": {"n": 1}, "Next": "M"},
        "M": {"Type": "Map", "Items": [1, 2], "ItemProcessor": {"StartAt": "I", "States": inner}, "Next": "C"},
        "C": {"Type": "Pass", "Output": "{% $own %}", "End": True},
    }
    assert run(Answers(), **states | {"C": CAUGHT | {"Output": "{% $states.input %}"}}) == [2, 3]
    assert failure(Answers(), **states) == EVALUATION


def test_a_catcher_without_output_hands_the_error_on_and_one_with_output_may_assign_it() -> None:
    def caught(**catcher: Any) -> Any:
        task = {**TASK, "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "C", **catcher}], "End": True}
        after = {"Type": "Pass", "Output": ["{% $states.input %}", "{% $e %}"], "End": True}
        start = {"Type": "Pass", "Assign": {"e": "none"}, "Next": "A"}
        return run(Answers([TaskFailedError("Late", "why")]), S=start, A=task, C=after)

    assert caught() == [{"Error": "Late", "Cause": "why"}, "none"]
    assert caught(Output="o", Assign={"e": "{% $states.errorOutput.Error %}"}) == ["o", "Late"]
