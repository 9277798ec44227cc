"""A person at a terminal: one shell for each page, in a folder that looks like a checkout and may be written to."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from tests.typed.pages import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

PATHS = ":".join(str(ROOT / one) for one in (".", "workstation", "layers/taskgov/python"))
READ = ("docs", "events", "examples", "template.yaml")
"""What commands read of the checkout; whatever they write stays in the folder."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str


class Terminal:
    """A shell that keeps its variables and functions from one command to the next; open it with `with`.

    `taskgov` is this checkout's. What AWS and Kubernetes settings the machine has are left out.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder / "checkout"
        self._scratch = folder / "scratch"
        for made in (self._folder, self._scratch, folder / "bin"):
            made.mkdir(parents=True)
        for name in READ:
            (self._folder / name).symlink_to(ROOT / name)
        put_program(folder / "bin" / "taskgov", "taskgov_cli.main")
        (self._folder / ".venv").mkdir()
        (self._folder / ".venv" / "bin").symlink_to(folder / "bin")
        own = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "KUBE", "TASKGOV_"))}
        path = f"{folder / 'bin'}:{own['PATH']}"
        self._environment = {**own, "HOME": str(folder), "COLUMNS": "200", **environment, "PATH": path}

    def __enter__(self) -> Self:
        self._shell = subprocess.Popen(
            ["/bin/bash", "--norc"],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(self, *about: object) -> None:
        self._shell.communicate()

    @property
    def folder(self) -> Path:
        """The folder in which commands are typed."""
        return self._folder

    def put(self, name: str, source: Path) -> None:
        """Put a file or a folder there that the pages name."""
        target = self._folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        else:
            shutil.copy(source, target)

    def types(self, command: str) -> Outcome:
        """Type a command and return how it ended."""
        script, out, err = (self._scratch / name for name in ("typed", "out", "err"))
        script.write_text(f"{command}\n")
        files = (shlex.quote(str(one)) for one in (script, out, err))
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        self._shell.stdin.write("set -o pipefail; . {} >{} 2>{} </dev/null; echo $?\n".format(*files))
        self._shell.stdin.flush()
        return Outcome(int(self._shell.stdout.readline()), out.read_text(), err.read_text())


def put_program(place: Path, module: str) -> None:
    """Put a program there that runs a module of this checkout."""
    place.parent.mkdir(exist_ok=True)
    place.write_text(f'#!/bin/sh\nPYTHONPATH={PATHS} exec {sys.executable} -m {module} "$@"\n')
    place.chmod(0o755)
