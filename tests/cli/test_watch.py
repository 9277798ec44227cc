"""`taskgov status --watch`: the newest answer in place on a terminal, one after the other in a pipe, until Ctrl-C."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import chain, repeat
from pathlib import Path

import pytest
import yaml
from rich.console import Console
from typer.testing import CliRunner, Result

from taskgov.errors import ThrottledError
from taskgov_cli import live_reading, watching
from taskgov_cli.main import app
from taskgov_cli.snapshots import read

SAMPLE = Path(__file__).parents[2] / "examples" / "snapshot.json"
HEEDS_CTRL_C = """
import runpy, signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets what runs in the background ignore it
runpy.run_module("taskgov_cli", run_name="__main__")
"""
Between = Callable[[], object]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    copy = tmp_path / "now.json"
    copy.write_bytes(SAMPLE.read_bytes())
    return copy


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Return what runs a command that watches: between two calls the next of `between` happens, then Ctrl-C."""

    def run(*words: str, between: list[Between]) -> Result:
        events: Iterator[Between] = chain(between, repeat(interrupt))
        waited: list[float] = []

        def sleep(seconds: float) -> None:
            waited.append(seconds)
            next(events)()

        monkeypatch.setattr(time, "sleep", sleep)
        monkeypatch.setattr(live_reading, "default_stack", lambda *_, **__: None)
        result = CliRunner().invoke(app, ["status", "--watch", *words])
        assert len(waited) == len(between) + 1 or result.exit_code
        return result

    return run


def interrupt() -> None:
    raise KeyboardInterrupt


def renamed(file: Path, name: str) -> Between:
    def rename() -> None:
        data = json.loads(SAMPLE.read_bytes())
        data["cluster"]["name"] = name
        file.write_text(json.dumps(data))

    return rename


def test_each_look_shows_what_the_file_holds_then(watched: Callable[..., Result], file: Path) -> None:
    result = watched("-s", str(file), between=[renamed(file, "second"), renamed(file, "third")])
    assert (result.exit_code, result.stderr) == (0, "")
    heads = [line.split(" ")[0] for line in result.stdout.splitlines() if " UTC, " in line]
    assert heads == ["ml-cluster", "second", "third"]
    assert "\n\nsecond" in result.stdout


def test_every_form_stays_what_it_is(watched: Callable[..., Result], file: Path) -> None:
    again: list[Between] = [renamed(file, "second")]
    printed = watched("-s", str(file), "--json", between=again).stdout
    first, at = json.JSONDecoder().raw_decode(printed)
    assert (first["cluster"], json.loads(printed[at:])["cluster"]) == ("ml-cluster", "second")
    printed = watched("-s", str(file), "--format", "yaml", between=again).stdout
    assert [each["cluster"] for each in yaml.safe_load_all(printed)] == ["second", "second"]
    rows = list(csv.reader(io.StringIO(watched("-s", str(file), "--format", "csv", between=again).stdout)))
    assert rows[: len(rows) // 2] == rows[len(rows) // 2 :]


def test_a_file_that_cannot_be_read_for_a_moment_is_said_and_the_next_look_works(
    watched: Callable[..., Result], file: Path
) -> None:
    between = [lambda: file.write_text("{"), file.unlink, renamed(file, "back")]
    result = watched("-s", str(file), between=between)
    assert result.exit_code == 0
    broken, gone = result.stderr.splitlines()
    assert broken.startswith(f"{file} is not a snapshot (")
    assert gone == f"{file}: No such file or directory"
    assert [line.split(" ")[0] for line in result.stdout.splitlines() if " UTC, " in line] == ["ml-cluster", "back"]


def test_what_fails_at_once_fails_as_without_it(watched: Callable[..., Result], file: Path) -> None:
    file.write_text("{")
    assert watched("-s", str(file), between=[]).exit_code == 2
    assert watched("-s", str(SAMPLE), "--team", "nobody", between=[]).exit_code == 2
    assert watched("-s", str(SAMPLE), "--every", "0.5", between=[]).exit_code == 2


def test_a_live_cluster_is_read_again_also_after_it_could_not_be(
    watched: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([read(SAMPLE), ThrottledError("sagemaker: slow down"), read(SAMPLE)])

    def read_live(*_: object) -> object:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(live_reading, "read_live", read_live)
    result = watched("-c", "ml-cluster", between=[lambda: None, lambda: None])
    assert (result.exit_code, result.stderr) == (0, "ThrottledError: sagemaker: slow down\n")
    assert result.stdout.count(" UTC, ") == 2


def test_a_defect_in_taskgov_ends_it(watched: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([read(SAMPLE)])
    monkeypatch.setattr(live_reading, "read_live", lambda *_: next(answers))
    assert isinstance(watched("-c", "ml-cluster", between=[lambda: None]).exception, StopIteration)


def test_a_terminal_shows_the_newest_in_place_with_what_was_said_below(
    watched: Callable[..., Result], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = io.StringIO()
    terminal = Console(file=screen, force_terminal=True, width=400, height=60, color_system=None)
    monkeypatch.setattr(watching, "console", lambda **_: terminal)
    between = [renamed(file, "second"), lambda: file.write_text("{"), renamed(file, "third")]
    result = watched("-s", str(file), between=between)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    frames = screen.getvalue().split("\x1b[2K\x1b[1A")
    assert len(frames) > 10  # each line of the last answer is taken away
    shown = screen.getvalue()
    assert [name for name in ("ml-cluster (", "second (", "third (") if name not in shown] == []
    (words,) = {line for line in shown.splitlines() if "no new answer" in line}
    assert f"UTC, no new answer: {file} is not a snapshot"[:60] in words
    assert shown.count("second (") == 2  # the last answer stays while there is no new one


@pytest.mark.skipif(sys.platform == "win32", reason="needs a terminal of Unix")
def test_ctrl_c_on_a_terminal_ends_it_quietly(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    words = [sys.executable, "-c", HEEDS_CTRL_C, "status", "-s", str(SAMPLE), "--watch", "--every", "1"]
    started = subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs)  # noqa: S603 - our own module
    os.close(theirs)
    seen = _until(ours, b"UnschedulablePendingReplacement", seconds=60)
    started.send_signal(signal.SIGINT)
    seen += _until(ours, b"never", seconds=60)
    assert started.wait(60) == 0
    assert b"Traceback" not in seen
    assert b"Abort" not in seen


def _until(terminal: int, words: bytes, seconds: float) -> bytes:
    """Return what is written up to these words, or to the end."""
    seen, until = b"", time.monotonic() + seconds
    while words not in seen and time.monotonic() < until:
        try:
            read_now = os.read(terminal, 4096)
        except OSError:  # closed at the other end
            break
        if not read_now:
            break
        seen += read_now
    return seen
