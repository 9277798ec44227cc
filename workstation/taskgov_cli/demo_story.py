"""The story of `taskgov demo` for people: what will happen, one paragraph a step, what was seen, what to try next."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rich.text import Text

from taskgov_cli import demo_steps
from taskgov_cli.grid import table
from taskgov_cli.plans import OUTCOME_STYLE
from taskgov_embedded.deployable import SAMPLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from taskgov.allocation.plan import Plan
    from taskgov_embedded.walkthrough.model import Walkthrough
    from taskgov_embedded.walkthrough.step_result import StepResult

SECONDS: Final = 15
"""So much processor time the story takes, with a margin; `tests/cli/test_demo_story.py` holds it."""
TO_TRY: Final = (
    ("status -s {sample}", "who uses, borrows and waits"),
    ("explain speech/voices -s {sample}", "why this job waits, and what would start it"),
    ("what-if -s {sample} --lose-nodes 1xml.g5.8xlarge", "what another failed node would change"),
)
"""Commands on the sample, and what each answers."""


def opening(story: Walkthrough) -> Iterator[RenderableType]:
    """Say what will happen, and how long it takes."""
    yield Text.assemble((story.name, "bold"), "\n", story.about, "\n")
    yield Text(
        f"{len(story.steps)} steps, about {SECONDS} seconds. All of it runs on this machine: an emulated AWS account\n"
        "built from template.yaml, a simulated HyperPod cluster beside it, and a clock that jumps over waits."
    )


def step(number: int, count: int, result: StepResult) -> Iterator[RenderableType]:
    """Return a step: what happened, why, and what each team has after it where that changed."""
    title, *failed = demo_steps.heading(number, result.title, result.checks, of=count)
    yield title
    for plan in result.plans[-1:]:
        yield from _plan(plan)
    for cycle in result.cycles:
        for lost in cycle.preempted:
            victim, preemptor = demo_steps.task_of(lost.workload), demo_steps.task_of(lost.preemptor)
            yield _line(f"{victim} is preempted for {preemptor} ({lost.reason})", "yellow")
    for report in result.reports:
        yield from _findings(json.loads(report["json"]))
    if result.cycles or result.quotas_before != result.quotas_after:
        yield _teams(result)
    yield from failed


def closing(story: Walkthrough, page: Path) -> Iterator[RenderableType]:
    """Say what was seen, where the report is, and what to try next."""
    yield Text("\nWhat you saw", style="bold")
    for seen in (step.shows for step in story.steps if step.shows):
        yield Text(f"  - {seen}")
    yield Text(f"\nThe audit report: {page} (--open opens it)")
    yield Text("\nTry next, on a snapshot that was taken after step 4", style="bold")
    for command, about in TO_TRY:
        yield Text.assemble(f"  {command_line(command)}", (f"  # {about}", "dim"))
    yield Text("")


def command_line(command: str) -> str:
    """Return one of `TO_TRY` as a person types it here: with the program and the sample where they are."""
    own = Path(sys.argv[0])
    program = _nearby(own) if own.stem == "taskgov" and shutil.which("taskgov") is None else "taskgov"
    return f"{program} {command.format(sample=_nearby(SAMPLE))}"


def _nearby(path: Path) -> str:
    """Return a path as short as it can be typed from the working directory."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative


def _line(text: str, style: str = "") -> Text:
    return Text(f"   {text}", style=style)


def _plan(plan: Plan) -> Iterator[RenderableType]:
    yield Text.assemble("   plan: ", (plan.outcome.value, OUTCOME_STYLE[plan.outcome]))
    for change in plan.changes:
        yield _line(f"  {change.team or change.name}: {change.because}")
    for verdict in plan.guardrails:
        if not verdict.passed:
            yield _line(f"  {verdict.guardrail}: {verdict.because}", "yellow")


def _findings(report: dict[str, Any]) -> Iterator[RenderableType]:
    for finding in report["findings"]:
        yield _line(f"{finding['severity']}: {finding['subject']}: {finding['because']}")


def _teams(result: StepResult) -> RenderableType:
    rows = [
        (
            f"     {team}",
            _gpus(result.quotas_before.get(team, ()), result.quotas_after[team]),
            *demo_steps.used(result, team),
            ", ".join(demo_steps.jobs(result, team)),
        )
        for team in sorted(result.quotas_after)
    ]
    return table("", ("     team", "quota #", "used #", "beyond quota #", "jobs"), rows)


def _gpus(before: Sequence[dict[str, Any]], after: Sequence[dict[str, Any]]) -> str:
    """Return a quota in instances, which have one GPU each here, and what it was if that was another."""
    was, now = (sum(row["Count"] for row in rows) for rows in (before, after))
    return f"{now}" if was == now else f"{was} -> {now}"
