"""What does the command line answer in the middle of a walkthrough? Asked by the demo, as a person would type it.

Before the questions of a step the cluster is read once, live, with `taskgov snapshot`; the files of a walkthrough make
a series that can be replayed. What a command does to the world stays done.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from taskgov_cli.in_process import typed
from taskgov_embedded.walkthrough.runner import Runner
from taskgov_embedded.walkthrough.step_result import Check

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from typer import Typer

    from taskgov_embedded.walkthrough.model import Question, Step, Walkthrough
    from taskgov_embedded.walkthrough.step_result import StepResult
    from taskgov_embedded.walkthrough.world import World

LIVE: Final = ("--cluster", "ml-cluster", "--stack", "taskgov")
"""What `{live}` stands for."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One question as it was typed, what was printed, and what was expected of it."""

    command: str
    output: str
    checks: tuple[Check, ...]


def played(
    app: Typer, walkthrough: Walkthrough, world: World, folder: Path
) -> Iterator[tuple[StepResult, tuple[Answer, ...]]]:
    """Run the steps of a walkthrough, and ask the questions of each; a result has the checks of its answers too."""
    questions = Questions(app, world, folder)
    for step, result in zip(walkthrough.steps, Runner(walkthrough, world).run(), strict=True):
        answers = tuple(questions.ask(step))
        result.checks += [check for answer in answers for check in answer.checks]
        yield result, answers


class Questions:
    """The questions of one walkthrough, asked of the command line `app`; `folder` keeps its snapshots and files."""

    def __init__(self, app: Typer, world: World, folder: Path) -> None:
        self._app, self._world, self._folder = app, world, folder
        self._series = folder / "series"
        self._series.mkdir()
        self._taken = 0

    def ask(self, step: Step) -> Iterator[Answer]:
        """Run the question of a step, in the cluster as it is now."""
        if not step.ask:
            return
        self._taken += 1
        snapshot = self._series / f"{self._taken:03}.json"
        self._type(["snapshot", *LIVE[1:], "-o", str(snapshot)])
        for question in step.ask:
            yield self._answer(question, snapshot)

    def _answer(self, question: Question, snapshot: Path) -> Answer:
        for name, content in question.files.items():
            text = json.dumps(content, indent=2, default=str)  # which is YAML too
            (self._folder / name).write_text(text.replace("${clusterArn}", self._world.cluster_arn))
        places = {"snapshot": snapshot, "series": self._series, "folder": self._folder, "live": shlex.join(LIVE)}
        words = question.command.format(**places, plan=_Plans(self._world, self._type))
        with self._world.stack.as_person(question.by):
            code, output = self._type(shlex.split(words))
        self._world.stack.advance(question.wait_minutes * 60)
        said = " ".join(output.split())
        checks = [
            Check("exit code", code == question.exit_code, str(question.exit_code), str(code)),
            *(Check("the answer", text in said, text, text if text in said else said) for text in question.shows),
        ]
        own = {f"{snapshot}": "ml-cluster.json", f"{self._folder}/": "", f"{self._folder}": "."}
        for path, name in own.items():
            words, output = words.replace(path, name), output.replace(path, name)
        typed_by = f"  # {question.by}" if question.by else ""
        return Answer(f"taskgov {words}{typed_by}", output.rstrip(), tuple(checks))

    def _type(self, words: list[str]) -> tuple[int, str]:
        """Run a command in this process; return what a person sees of it. Raises what no command should raise."""
        result = typed(self._app, words)
        return result.exit_code, result.output


@dataclass(frozen=True, slots=True)
class _Plans:
    """The plans of the cluster by how their runs ended, the newest of each."""

    world: World
    type_: Callable[[list[str]], tuple[int, str]]

    def __getitem__(self, outcome: str) -> str:
        """Return a plan's id. Raises LookupError when no run ended so, or none waits."""
        if outcome == "waiting":
            return self.world.waiting_plan()
        _, runs = self.type_(["history", self.world.cluster_name, "--json"])
        for run in json.loads(runs):
            if run["outcome"] == outcome:
                return str(run["planId"])
        raise LookupError(f"no run ended {outcome}")
