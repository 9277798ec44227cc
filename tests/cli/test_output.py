"""What others wrote never acts on the reader's terminal."""

import io
import json

import pytest
import typer
from rich.console import Console
from rich.text import Text
from typer.testing import CliRunner

from taskgov.errors import UpstreamError
from taskgov.findings import Finding, Severity
from taskgov_cli import live_reading, output
from taskgov_cli.deployed import RefusedError, told
from taskgov_cli.failures import SafeGroup
from taskgov_cli.formats import print_parts
from taskgov_cli.grid import table
from taskgov_cli.main import app

HOSTILE = {
    "colours": "a\x1b[31mred",
    "title of the window": "a\x1b]0;owned\x07b",
    "clipboard": "a\x1b]52;c;ZXZpbA==\x1b\\b",
    "C1": "a\x9b31mred",
    "direction": "a\u202egpj.exe",
    "isolated direction": "a\u2066b\u2069",
    "carriage return": "good\rbad",
    "backspace": "bad\x08\x08\x08good",
    "delete": "a\x7fb",
    "zero width": "team\u200b-a",
}
ACTING = {
    chr(code) for code in (*range(32), *range(0x7F, 0xA0), 0x200B, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
}


def shown(part: object) -> str:
    console = output.console()
    console.file = io.StringIO()
    console.print(part)
    return str(console.file.getvalue())


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_nothing_that_acts_reaches_the_terminal(text: str) -> None:
    finding = Finding(text, Severity.INFO, text, text, text)
    parts = (text, Text(text), table(text, (text,), [(text,), (Text(text),)]), output.findings_table([finding]))

    for part in parts:
        assert not ACTING - {"\n"} & set(shown(part))


def test_what_is_seen_stays_as_it_is() -> None:
    assert shown("équipe ✓ 東京 — 50 %") == "équipe ✓ 東京 — 50 %\n"


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_an_error_is_shown_as_safely(text: str) -> None:
    app = typer.Typer(cls=SafeGroup, pretty_exceptions_enable=False)

    @app.command()
    def refuse() -> None:
        raise typer.BadParameter(text)

    @app.command()
    def nothing() -> None: ...

    result = CliRunner().invoke(app, ["refuse"])

    assert result.exit_code == 2
    assert not ACTING - {"\n"} & set(result.output)


def test_json_escapes_by_itself(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_json(list(HOSTILE.values()))

    printed = capsys.readouterr().out
    assert json.loads(printed) == list(HOSTILE.values())
    assert not ACTING - {"\n"} & set(printed)


BRACKETED = ["gone[/b]", "[bold]x[/red]", "team[a]", "[/]", "a\\[b]"]
"""What rich would read as its own markup: some of it ends the command, the rest is swallowed."""


@pytest.mark.parametrize("text", BRACKETED)
def test_square_brackets_are_shown_as_they_are(text: str) -> None:
    finding = Finding("code", Severity.INFO, text, text, text)
    for part in (text, table(text, (text,), [(text,)]), output.findings_table([finding])):
        assert text in shown(part)


@pytest.mark.parametrize("text", BRACKETED)
def test_an_error_of_a_service_ends_the_command_with_its_own_words(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*_arguments: object) -> None:
        raise UpstreamError(f"describe cluster {text}: no such cluster")

    monkeypatch.setattr(live_reading, "read_live", unreachable)
    result = CliRunner().invoke(app, ["status", "--cluster", text, "--stack", "", "--json"])
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr == f"UpstreamError: describe cluster {text}: no such cluster\n"


def test_a_refusal_is_reported_in_its_own_words() -> None:
    with pytest.raises(typer.Exit) as ended, told():
        raise RefusedError("prod[/b] is there already")
    assert ended.value.exit_code == 1


@pytest.mark.parametrize("width", [24, 40, 140], ids=["blocks", "folded", "as they are"])
@pytest.mark.parametrize("more", ["", "two\nlines"], ids=["lines", "several lines"])
def test_a_pipe_gets_the_text_that_a_terminal_without_colours_gets(more: str, width: int) -> None:
    rows = [("日本", "12 ", "holds 3 of 4, and waits"), (Text("team-b", style="red"), "", more)]
    grid = table("Teams :tada:", ("team", "quota #", "because"), rows)
    texts = []
    for is_terminal in (True, False):
        file = io.StringIO()
        print_parts([grid], Console(file=file, width=width, force_terminal=is_terminal, color_system=None))
        texts.append(file.getvalue())
    assert texts[0] == texts[1]


def test_json_has_names_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_json({"team": ":warning: [b]"})
    assert json.loads(capsys.readouterr().out) == {"team": ":warning: [b]"}
