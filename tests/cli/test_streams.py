"""Ctrl-C, closed and narrow streams, terminals without colours: a sentence and an exit code, and no traceback."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from taskgov_cli import in_process, output
from taskgov_cli.failures import SafeGroup
from taskgov_cli.files import put
from taskgov_cli.grid import LONGEST_WORD, table
from taskgov_cli.main import app

ROOT = Path(__file__).parents[2]
SAMPLE = str(ROOT / "examples" / "snapshot.json")
POLICY = str(ROOT / "examples" / "policies" / "flexible.yaml")


def raising(error: BaseException) -> typer.Typer:
    own = typer.Typer(cls=SafeGroup, pretty_exceptions_enable=False)

    @own.command()
    def fail() -> None:
        raise error

    @own.command()
    def ask() -> None:
        typer.prompt("who")

    return own


def test_ctrl_c_inside_a_command_is_said_and_ends_it_as_in_a_shell() -> None:
    ended = CliRunner().invoke(raising(KeyboardInterrupt()), ["fail"])
    assert (ended.exit_code, ended.stdout, ended.stderr) == (130, "", "\nInterrupted.\n")


def test_ctrl_c_at_a_question_does_the_same_and_the_end_of_what_is_typed_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted(_: str) -> str:
        raise KeyboardInterrupt

    assert CliRunner().invoke(raising(ValueError()), ["ask"], input="").exit_code == 1
    with monkeypatch.context() as patch:
        patch.setattr("typer._click.termui.visible_prompt_func", interrupted)
        ended = CliRunner().invoke(raising(ValueError()), ["ask"])
    assert ended.exit_code in {1, 130}
    assert "Traceback" not in ended.output


def test_ctrl_c_in_a_command_that_another_types_ends_both() -> None:
    with pytest.raises(KeyboardInterrupt):
        in_process.typed(raising(KeyboardInterrupt()), ["fail"])


def run(
    words: list[str], settings: dict[str, str] | None = None, redirect: str = "", program: str = "/bin/sh"
) -> subprocess.CompletedProcess[str]:
    """Type a command in a shell, with a redirection."""
    command = f'"$0" -m taskgov_cli "$@" {redirect}'
    return subprocess.run(  # noqa: S603 -- our own module
        [program, "-c", command, sys.executable, *words],
        env={**os.environ, **(settings or {})},
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=120,
    )


def test_a_standard_output_that_is_closed_is_said() -> None:
    ended = run(["validate", POLICY], redirect=">&-")
    assert (ended.returncode, ended.stderr) == (2, "Error: cannot write the answer: standard output is closed\n")


def test_other_streams_that_are_closed_and_sizes_that_are_none_do_no_harm() -> None:
    odd = {"COLUMNS": "²", "LINES": "-3", "TERMINAL_WIDTH": "wide", "LC_ALL": "C", "PYTHONIOENCODING": "ascii"}
    ended = run(["validate", POLICY], odd, redirect="<&- 2>&-")
    assert (ended.returncode, "is a valid policy document" in " ".join(ended.stdout.split())) == (0, True)


@pytest.mark.parametrize("words", [["status", "-s", SAMPLE], ["status", "-s", SAMPLE, "--json"]])
def test_an_answer_that_nobody_reads_ends_as_in_a_shell(words: list[str]) -> None:
    ended = run(words, redirect="| true; exit ${PIPESTATUS[0]}", program="/bin/bash")
    assert (ended.returncode, ended.stderr) == (141, "")


@pytest.mark.parametrize(
    ("words", "code", "is_freed"),
    [(["jobs", "-s", SAMPLE, "--json"], 0, False), (["jobs", "-s", SAMPLE, "-tx"], 2, False), (["schema"], 0, True)],
)
def test_a_process_ends_without_freeing_a_snapshot(words: list[str], code: int, *, is_freed: bool) -> None:
    command = "import atexit; from taskgov_cli.__main__ import main; atexit.register(print, 'freed'); main()"
    typed = [sys.executable, "-c", command, *words]
    ended = subprocess.run(typed, capture_output=True, text=True, check=False, timeout=120)  # noqa: S603 - our own code
    in_process = CliRunner().invoke(app, words, prog_name="-c")
    assert (ended.returncode, ended.stderr) == (code, in_process.stderr) == (in_process.exit_code, ended.stderr)
    assert ended.stdout == in_process.stdout + "freed\n" * is_freed


def test_a_name_that_is_not_in_utf_8_is_said() -> None:
    ended = run(["validate"], redirect="\"$(printf 'no\\377.yaml')\"")
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr
    assert "does not exist" in " ".join(ended.stderr.split())


ANSWERS = (
    ["status"],
    ["jobs"],
    ["plan"],
    ["audit"],
    ["explain", "--team", "research"],
    ["what-if", "--lose-nodes", "1xml.g5.8xlarge"],
)


@pytest.mark.parametrize("words", ANSWERS, ids=lambda words: words[0])
def test_a_narrow_terminal_gets_narrow_lines_and_a_pipe_whole_ones(words: list[str]) -> None:
    narrow = CliRunner().invoke(app, [*words, "-s", SAMPLE], env={"COLUMNS": "40"})
    wide = CliRunner().invoke(app, [*words, "-s", SAMPLE])
    assert narrow.exit_code == wide.exit_code < 2
    assert "…" not in narrow.stdout
    assert "\x1b" not in narrow.stdout + wide.stdout
    assert max(map(len, wide.stdout.splitlines())) > 60


@pytest.mark.parametrize("columns", [40, 60, 80])
@pytest.mark.parametrize("words", ANSWERS, ids=lambda words: words[0])
def test_no_ordinary_word_is_cut_where_the_terminal_is_narrow(words: list[str], columns: int) -> None:
    text = CliRunner().invoke(app, [*words, "-s", SAMPLE], env={"COLUMNS": str(columns)}).stdout
    wide = CliRunner().invoke(app, [*words, "-s", SAMPLE, "--format", "wide"]).stdout
    whole = set(re.findall(r"[^\s,:]+", wide))
    folded = [word for word in whole if len(word) > LONGEST_WORD]
    cut = {
        word for word in re.findall(r"[^\s,:]+", text) if word not in whole and not any(word in one for one in folded)
    }
    assert cut == set()
    long = [line for line in text.splitlines() if len(line.rstrip()) > columns]
    assert [line for line in long if not line.startswith((" ", "written: "))] == []


def test_a_narrow_table_is_a_block_for_each_row() -> None:
    grid = table("Teams", ("team", "type", "quota #", "because", "leased #"), [("a", "ml.g5.8xlarge", 1, "x, y", "")])
    screen = io.StringIO()
    Console(file=screen, width=24).print(grid)
    assert [line.rstrip() for line in screen.getvalue().splitlines()] == [
        "Teams",
        " a",
        "   type ml.g5.8xlarge,",
        "   quota 1",
        "   because: x, y",
    ]


def test_a_reader_that_stops_ends_a_command_as_in_a_shell() -> None:
    ended = run(["schema"], redirect="| true; echo ${PIPESTATUS[0]}", program="/bin/bash")
    assert (ended.stdout.strip(), ended.stderr) == ("141", "")


@pytest.mark.parametrize("words", ANSWERS, ids=lambda words: words[0])
def test_a_terminal_without_colours_gets_none(words: list[str]) -> None:
    colour = re.compile("\x1b\\[(?:\\d+;)*(?:3[0-7]|4[0-7]|9[0-7]|[34]8;)")
    plain = CliRunner().invoke(app, [*words, "-s", SAMPLE], env={"FORCE_COLOR": "1", "NO_COLOR": "1"})
    assert colour.findall(plain.stdout) == []
    assert "\x1b" not in CliRunner().invoke(app, [*words, "-s", SAMPLE, "--json"], env={"FORCE_COLOR": "1"}).stdout


def test_what_takes_long_is_said_on_a_terminal_and_not_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    for is_terminal in (True, False):
        screen = io.StringIO()
        shown = Console(file=screen, force_terminal=is_terminal, width=60)
        with monkeypatch.context() as patch:
            patch.setattr(output, "console", lambda shown=shown, **_: shown)
            with output.working("reading ml-cluster") as say:
                say("judging")
        assert ("judging" in screen.getvalue()) is is_terminal


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, link = tmp_path / "a", tmp_path / "b"
    file.write_text("old")
    file.chmod(0o600)
    link.symlink_to(file)
    put(link, b"new")
    assert (file.read_text(), file.stat().st_mode & 0o777, link.is_symlink()) == ("new", 0o600, True)
    put(Path(os.devnull), b"new")

    def full(_self: Path, _body: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        put(file, b"newer")
    assert (file.read_text(), sorted(path.name for path in tmp_path.iterdir())) == ("new", ["a", "b"])
