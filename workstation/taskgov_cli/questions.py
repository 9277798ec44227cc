"""What does the command line answer in the middle of a walkthrough? Asked by the demo, as a person would type it.

Before the questions of a step the cluster is read once, live, with `taskgov snapshot`; the files of a walkthrough make
a series that can be replayed.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import yaml
from typer.testing import CliRunner

from taskgov_embedded.walkthrough.chapter import Check

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from taskgov_embedded.walkthrough.model import Question, Step

LIVE: Final = ("--cluster", "ml-cluster", "--stack", "taskgov")
"""What `{live}` stands for."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One question as it was typed, what was printed, and what was expected of it."""

    command: str
    output: str
    checks: tuple[Check, ...]


class Questions:
    """The questions of one walkthrough; `folder` keeps its snapshots and files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._series = folder / "series"
        self._series.mkdir()
        self._taken = 0

    def ask(self, step: Step) -> Iterator[Answer]:
        """Ask what a step asks, in the cluster as it is now."""
        if not step.ask:
            return
        self._taken += 1
        snapshot = self._series / f"{self._taken:03}.json"
        self._type(["snapshot", *LIVE[1:], "-o", str(snapshot)])
        for question in step.ask:
            yield self._answer(question, snapshot)

    def _answer(self, question: Question, snapshot: Path) -> Answer:
        for name, content in question.files.items():
            (self._folder / name).write_text(yaml.safe_dump(content, sort_keys=False))
        words = question.command.format(
            snapshot=snapshot, series=self._series, folder=self._folder, live=shlex.join(LIVE)
        )
        code, output = self._type(shlex.split(words))
        said = " ".join(output.split())
        checks = [
            Check("exit code", code == question.exit_code, str(question.exit_code), str(code)),
            *(Check("the answer", text in said, text, text if text in said else said) for text in question.shows),
        ]
        own = {f"{snapshot}": "ml-cluster.json", f"{self._folder}/": ""}
        for path, name in own.items():
            words = words.replace(path, name)
        return Answer(f"taskgov {words}", output.rstrip(), tuple(checks))

    @staticmethod
    def _type(words: list[str]) -> tuple[int, str]:
        """Run a command in this process. Raises what no command should raise."""
        from taskgov_cli.main import app  # noqa: PLC0415 -- it is the command line that brings the demo here

        result = CliRunner().invoke(app, words)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.exit_code, result.stdout
