"""`taskgov demo`: play the walkthroughs on the embedded stack, show what happens, and say whether it is as expected."""

from __future__ import annotations

import gc
import time
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from textwrap import indent
from typing import TYPE_CHECKING, Any

from rich.text import Text

from taskgov_cli import demo_steps
from taskgov_cli.grid import table
from taskgov_cli.onboarding import first_day
from taskgov_cli.output import NO, OK, console, print_json
from taskgov_cli.questions import Questions
from taskgov_embedded.walkthrough import measured
from taskgov_embedded.walkthrough.model import all_files, load
from taskgov_embedded.walkthrough.runner import Runner
from taskgov_embedded.walkthrough.step_result import Check
from taskgov_embedded.walkthrough.world import World

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console
    from typer import Typer

    from taskgov_cli.questions import Answer
    from taskgov_embedded.walkthrough.model import Walkthrough
    from taskgov_embedded.walkthrough.step_result import StepResult

SHOWN_METRICS = ("Borrowed", "Lent", "Preemptions")
"""What nobody has today, shown at the end of each walkthrough."""


def run(app: Typer, files: tuple[Path, ...], reports: Path | None, *, whole: bool, as_json: bool, brief: bool) -> int:
    """Play these walkthroughs; return the exit code, 1 when a check failed.

    `app` is the command line, which they ask. In the whole demo the dashboard is shown after them, and the first day.
    """
    gc.freeze()  # the collector need not look at what was imported, a million objects, again for each world
    demo = Demo(app, reports or Path(mkdtemp(prefix="taskgov-demo-")), brief=brief or as_json, quiet=as_json)
    for file in files:
        demo.play(load(file))
    if files and whole:
        demo.show_dashboard()
    if whole:
        demo.play_first_day()
    if as_json:
        print_json({"walkthroughs": demo.data, "passed": demo.passed, "failed": len(demo.failed)})
    else:
        demo.close()
    return NO if demo.failed else OK


class Demo:
    """The walkthroughs played so far, and what came of their checks."""

    def __init__(self, app: Typer, reports: Path, *, brief: bool, quiet: bool) -> None:
        self.passed = 0
        self.failed: list[str] = []
        self.data: list[dict[str, Any]] = []
        self._app = app
        self._reports = reports
        self._pages: list[Path] = []
        self._published: set[str] = set()
        self._widgets: dict[str, tuple[str, ...]] = {}
        self._brief = brief
        self._console: Console = console()
        self._console.quiet = quiet
        self._started = time.monotonic()

    def play(self, walkthrough: Walkthrough) -> None:
        """Play one walkthrough in a world of its own."""
        self._console.rule(Text(walkthrough.name, style="bold"), align="left")
        self._console.print(Text(walkthrough.about), Text(f"  ({walkthrough.source})", style="dim"), sep="\n")
        played: list[dict[str, Any]] = []
        with World(walkthrough) as world, TemporaryDirectory() as folder:
            questions = Questions(self._app, world, Path(folder))
            for number, result in enumerate(Runner(walkthrough, world).run(), 1):
                answers = tuple(questions.ask(walkthrough.steps[number - 1]))
                result.checks += [check for answer in answers for check in answer.checks]
                self._tell(walkthrough, number, result)
                self._tell_answers(answers)
                played.append(_as_data(result) | {"asked": list(answers)})
            series = measured.newest(world, SHOWN_METRICS)
            self._published |= measured.published(world)
            self._widgets = measured.dashboard(world)
        if series and not self._brief:
            self._console.print(demo_steps.metrics_table(series))
        metrics = [{"name": name, "dimensions": at, "value": value} for name, at, value in series]
        self.data.append(
            {
                "name": walkthrough.name,
                "source": walkthrough.source,
                "steps": played,
                "metrics": metrics,
            }
        )

    def show_dashboard(self) -> None:
        """Hold the stack's dashboard against what the walkthroughs measured: no widget may stay empty."""
        self._console.rule(Text("The dashboard of these walkthroughs", style="bold"), align="left")
        rows, checks = [], []
        for title, names in self._widgets.items():
            found = [name for name in names if name in self._published]
            silent = [name for name in names if name not in self._published]
            rows.append((title, ", ".join(found), ", ".join(silent)))
            checks.append(Check(f"the widget {title} has data", bool(found), "some of its metrics", ", ".join(found)))
        self._console.print(table("", ("widget", "measured", "nothing to measure here"), rows))
        self._judge("The dashboard", 1, "what it shows", checks)

    def play_first_day(self) -> None:
        """Play the first day with a cluster: the commands of onboarding, as a person types them."""
        self._console.rule(Text(first_day.TITLE, style="bold"), align="left")
        self._console.print(Text(first_day.ABOUT), Text(f"  ({first_day.SOURCE})", style="dim"), sep="\n")
        played: list[dict[str, Any]] = []
        for number, step in enumerate(first_day.play(self._app), 1):
            for part in demo_steps.heading(number, step.title, step.checks):
                self._console.print(part)
            if not self._brief:
                self._console.print(Text(f"$ {step.command}", style="dim"))
                self._console.print(step.output, markup=False, soft_wrap=True)
            self._judge(first_day.TITLE, number, step.title, step.checks)
            played.append({"title": step.title, "checks": list(step.checks)})
        self.data.append({"name": first_day.TITLE, "source": first_day.SOURCE, "steps": played, "metrics": []})

    def close(self) -> None:
        """Say what came of it; the path of the last report is printed before the last line."""
        self._console.rule()
        for failure in self.failed:
            self._console.print(Text(failure, style="red"))
        if self._pages:
            self._console.print(f"audit report: {self._pages[-1]}", soft_wrap=True)
        self._console.print(f"demo: {self.passed} checks passed, {len(self.failed)} failed")

    def _tell_answers(self, answers: Iterable[Answer]) -> None:
        for answer in () if self._brief else answers:
            self._console.print(Text(f"   $ {answer.command}", style="bold"), soft_wrap=True)
            self._console.print(Text(indent(answer.output, "     ")), soft_wrap=True)

    def _tell(self, walkthrough: Walkthrough, number: int, result: StepResult) -> None:
        for part in demo_steps.shown(number, result, brief=self._brief):
            self._console.print(part)
        for report in result.reports:
            page = self._reports / f"audit-{len(self._pages) + 1}.html"
            page.write_bytes(report["html"])
            self._pages.append(page)
        self._judge(walkthrough.name, number, result.title, result.checks)

    def _judge(self, name: str, number: int, title: str, checks: Sequence[Check]) -> None:
        self.passed += sum(check.passed for check in checks)
        self.failed += [
            f"{name}, step {number} ({title}): {check.what}: wanted {check.wanted}, got {check.got}"
            for check in checks
            if not check.passed
        ]


def _as_data(result: StepResult) -> dict[str, Any]:
    return {
        "title": result.title,
        "timeline": [{"time": m.time.isoformat(), "kind": m.kind, "what": m.what} for m in result.moments],
        "plans": result.plans,
        "quotas": {"before": result.quotas_before, "after": result.quotas_after},
        "leases": result.leases,
        "jobs": dict(result.jobs_after),
        "checks": list(result.checks),
    }


def chosen(names: list[str]) -> tuple[Path, ...]:
    """Return the files whose name or number contains one of these; all when none is given. Raises LookupError."""
    files = all_files()
    found = tuple(file for file in files if not names or any(name in file.stem for name in names))
    if not found and not wants_first_day(names):
        known = ", ".join((first_day.NAME, *(file.stem for file in files)))
        raise LookupError(f"no walkthrough is called {' or '.join(names)}; there are: {known}")
    return found


def wants_first_day(names: list[str]) -> bool:
    """Tell whether the first day is among what was asked for."""
    return not names or any(name in first_day.NAME for name in names)
