"""`taskgov demo`: play a story, or walkthroughs, on the embedded stack, and say whether all is as expected."""

from __future__ import annotations

import gc
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from textwrap import indent
from typing import TYPE_CHECKING, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.rule import Rule
from rich.text import Text

from taskgov_cli import demo_steps, demo_story
from taskgov_cli.grid import table
from taskgov_cli.onboarding import first_day
from taskgov_cli.output import NO, OK, console, print_error, print_json
from taskgov_cli.questions import played as played_with_questions
from taskgov_embedded.walkthrough import measured
from taskgov_embedded.walkthrough.model import STORY, all_files, load
from taskgov_embedded.walkthrough.runner import Runner
from taskgov_embedded.walkthrough.step_result import Check
from taskgov_embedded.walkthrough.world import World

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import Console, RenderableType
    from typer import Typer

    from taskgov_cli.questions import Answer
    from taskgov_embedded.walkthrough.model import Walkthrough
    from taskgov_embedded.walkthrough.step_result import StepResult

SHOWN_METRICS = ("Borrowed", "Lent", "Preemptions")
"""What nobody has today, shown at the end of each walkthrough."""


class UnknownWalkthroughError(LookupError):
    """No walkthrough has such a name."""


@dataclass(frozen=True, slots=True)
class Order:
    """What to play, and how it is shown."""

    names: tuple[str, ...] = ()
    """Walkthroughs, by a part of their names. Without names and without `every` it is the story."""
    every: bool = False
    verbose: bool = False
    reports: Path | None = None
    opens: bool = False
    as_json: bool = False


def run(app: Typer, order: Order) -> int:
    """Play what is ordered; return the exit code, 1 when a check failed. Raises UnknownWalkthroughError.

    `app` is the command line, which walkthroughs ask. After all of them the dashboard is checked, and the first day is
    played.
    """
    files = chosen(order.names) if order.names or order.every else ()
    gc.freeze()  # the collector need not traverse what was imported, a million objects, again for each world
    demo = Demo(app, order)
    if order.names or order.every:
        demo.play_all(files)
    elif order.verbose:
        demo.play(load(STORY), STORY.stem)
    else:
        demo.play_story(load(STORY))
    if order.as_json:
        print_json({"walkthroughs": demo.data, "passed": demo.passed, "failed": len(demo.failed)})
    else:
        demo.close()
    if order.opens and demo.pages and typer.launch(str(demo.pages[-1])) != 0:
        print_error("not opened", f"this machine has no program that opens {demo.pages[-1]}")
    return NO if demo.failed else OK


class Demo:
    """What was played so far, and the results of its checks."""

    def __init__(self, app: Typer, order: Order) -> None:
        self.passed = 0
        self.failed: list[str] = []
        self.data: list[dict[str, Any]] = []
        self.pages: list[Path] = []
        self._app = app
        self._order = order
        self._in_full = order.verbose or not order.every
        self._kept: list[RenderableType] = []
        self._reports = order.reports or Path(mkdtemp(prefix="taskgov-demo-"))
        self._published: set[str] = set()
        self._widgets: dict[str, tuple[str, ...]] = {}
        self._console: Console = console()
        self._console.quiet = order.as_json
        # Drawn by hand: a thread that draws would be on the clock of the emulated account.
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            console=self._console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            disable=order.as_json or not self._console.is_terminal,
        )

    # The story

    def play_story(self, story: Walkthrough) -> None:
        """Play the story: one paragraph a step, and at the end what was seen and what to try next."""
        for part in demo_story.opening(story):
            self._console.print(part)
        played: list[dict[str, Any]] = []
        with self._progress, World(story) as world:
            shown = self._progress.add_task("", total=len(story.steps))
            for number, result in enumerate(self._steps(story, world, shown), 1):
                for part in demo_story.step(number, len(story.steps), result):
                    self._console.print(part)
                self._keep_reports(result)
                self._judge(story.name, number, result.title, result.checks)
                played.append(_as_data(result))
        self._add(story.name, story.source, played)
        if not self.failed:
            for part in demo_story.closing(story, self.pages[-1]):
                self._console.print(part, soft_wrap=True)

    def _steps(self, walkthrough: Walkthrough, world: World, shown: Any) -> Iterator[StepResult]:
        """Run the steps; the bar says which one is running."""
        steps = Runner(walkthrough, world).run()
        for step in walkthrough.steps:
            self._progress.update(shown, description=step.title, refresh=True)
            yield next(steps)
            self._progress.advance(shown)

    # Walkthroughs

    def play_all(self, files: tuple[Path, ...]) -> None:
        """Play these walkthroughs; after all of them the dashboard, and the first day."""
        with_first_day = self._order.every or wants_first_day(self._order.names)
        with self._progress:
            shown = self._progress.add_task("", total=len(files) + with_first_day)
            for file in files:
                self._progress.update(shown, description=file.stem, refresh=True)
                self.play(load(file), file.stem)
                self._progress.advance(shown)
            if self._order.every:
                self.show_dashboard()
            if with_first_day:
                self._progress.update(shown, description=first_day.NAME, refresh=True)
                self.play_first_day()

    def play(self, walkthrough: Walkthrough, name: str) -> None:
        """Play one walkthrough in a world of its own."""
        before = (self.passed, len(self.failed))
        self._show(Rule(Text(walkthrough.name, style="bold"), align="left"))
        self._show(Text(walkthrough.about), Text(f"  ({walkthrough.source})", style="dim"))
        played: list[dict[str, Any]] = []
        series = []
        with World(walkthrough) as world, TemporaryDirectory() as folder:
            steps = played_with_questions(self._app, walkthrough, world, Path(folder))
            for number, (result, answers) in enumerate(steps, 1):
                self._show(*demo_steps.shown(number, result), *_answered(answers))
                self._keep_reports(result)
                self._judge(walkthrough.name, number, result.title, result.checks)
                played.append(_as_data(result) | {"asked": list(answers)})
            if self._in_full or self._order.as_json:
                series = measured.newest(world, SHOWN_METRICS)
            if self._order.every:
                self._published |= measured.published(world)
                self._widgets = measured.dashboard(world)
        if series:
            self._show(demo_steps.metrics_table(series))
        self._add(walkthrough.name, walkthrough.source, played, series)
        self._close_section(name, *before)

    def show_dashboard(self) -> None:
        """Hold the stack's dashboard against what the walkthroughs measured: no widget may stay empty."""
        before = (self.passed, len(self.failed))
        self._show(Rule(Text("The dashboard of these walkthroughs", style="bold"), align="left"))
        rows, checks = [], []
        for title, names in self._widgets.items():
            found = [name for name in names if name in self._published]
            silent = [name for name in names if name not in self._published]
            rows.append((title, ", ".join(found), ", ".join(silent)))
            checks.append(Check(f"the widget {title} has data", bool(found), "some of its metrics", ", ".join(found)))
        self._show(table("", ("widget", "measured", "nothing to measure here"), rows))
        self._judge("The dashboard", 1, "what it shows", checks)
        self._close_section("the dashboard", *before)

    def play_first_day(self) -> None:
        """Play the first day with a cluster: the commands of onboarding, as a person types them."""
        before = (self.passed, len(self.failed))
        self._show(Rule(Text(first_day.TITLE, style="bold"), align="left"))
        self._show(Text(first_day.ABOUT), Text(f"  ({first_day.SOURCE})", style="dim"))
        played: list[dict[str, Any]] = []
        for number, step in enumerate(first_day.play(self._app), 1):
            self._show(*demo_steps.heading(number, step.title, step.checks))
            self._show(Text(f"$ {step.command}", style="dim"), Text(step.output))
            self._judge(first_day.TITLE, number, step.title, step.checks)
            played.append({"title": step.title, "checks": list(step.checks)})
        self._add(first_day.TITLE, first_day.SOURCE, played)
        self._close_section(first_day.NAME, *before)

    # What is common to both

    def close(self) -> None:
        """Name what failed; the path of the last report is printed before the last line."""
        for failure in self.failed:
            self._console.print(Text(failure, style="red"))
        if self.pages and (self._order.names or self._order.every or self._order.verbose or self.failed):
            self._console.print(f"audit report: {self.pages[-1]}", soft_wrap=True)
        self._console.print(f"demo: {self.passed} checks passed, {len(self.failed)} failed")

    def _show(self, *parts: RenderableType) -> None:
        """Print this now; without details keep it until it is known whether the walkthrough failed."""
        if not self._in_full:
            self._kept += parts
            return
        for part in parts:
            self._console.print(part, soft_wrap=isinstance(part, Text))

    def _close_section(self, name: str, passed: int, failed: int) -> None:
        """Print the line of a walkthrough, and its details when a check of it failed."""
        if self._in_full:
            return
        ok, bad = self.passed - passed, len(self.failed) - failed
        mark = Text("ok    ", style="green") if not bad else Text("FAILED", style="bold red")
        counted = f"{ok} checks" if not bad else f"{ok} checks passed, {bad} failed"
        self._console.print(Text.assemble(mark, f"  {name}  ", (counted, "dim")))
        for part in self._kept if bad else ():
            self._console.print(part, soft_wrap=isinstance(part, Text))
        self._kept.clear()

    def _keep_reports(self, result: StepResult) -> None:
        for report in result.reports:
            page = self._reports / f"audit-{len(self.pages) + 1}.html"
            page.write_bytes(report["html"])
            self.pages.append(page)

    def _judge(self, name: str, number: int, title: str, checks: Sequence[Check]) -> None:
        self.passed += sum(check.passed for check in checks)
        self.failed += [
            f"{name}, step {number} ({title}): {check.what}: wanted {check.wanted}, got {check.got}"
            for check in checks
            if not check.passed
        ]

    def _add(self, name: str, source: str, steps: list[dict[str, Any]], series: Sequence[Any] = ()) -> None:
        metrics = [{"name": metric, "dimensions": at, "value": value} for metric, at, value in series]
        self.data.append({"name": name, "source": source, "steps": steps, "metrics": metrics})


def _answered(answers: Iterable[Answer]) -> Iterator[RenderableType]:
    for answer in answers:
        yield Text(f"   $ {answer.command}", style="bold")
        yield Text(indent(answer.output, "     "))


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


def chosen(names: tuple[str, ...]) -> tuple[Path, ...]:
    """Return the files whose name or number contains one of these; all when none is given.

    Raises UnknownWalkthroughError.
    """
    files = all_files()
    found = tuple(file for file in files if not names or any(name in file.stem for name in names))
    if not found and not wants_first_day(names):
        known = ", ".join((first_day.NAME, *(file.stem for file in files)))
        raise UnknownWalkthroughError(f"there is no walkthrough named {' or '.join(names)}; there are: {known}")
    return found


def wants_first_day(names: tuple[str, ...]) -> bool:
    """Return whether the first day is among what was requested."""
    return any(name in first_day.NAME for name in names)
