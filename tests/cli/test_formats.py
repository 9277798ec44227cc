"""`--format`: one answer as tables, JSON, YAML, Markdown and CSV, whatever others wrote into it."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Final

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from rich.console import Group, RenderableType
from rich.text import Text
from typer.testing import CliRunner, Result

from taskgov.printable import printable
from taskgov.snapshot.codec import snapshot_to_json
from taskgov_cli import main
from taskgov_cli.form import Form
from taskgov_cli.formats import csv_of, escaped, markdown_of, markdown_table, print_parts, unfolded
from taskgov_cli.grid import table
from taskgov_cli.output import NOT_UNDERSTOOD, OK
from tests.support.lab import Lab

MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
POLICY = "examples/policies/flexible.yaml"


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a cluster that promises six machines and has five; a job borrows, another waits."""
    lab = Lab().team("team-a", 2).team("team-b", 4).machines(5).machines(1, cordoned=True)
    lab.submit("team-a", "borrows", pods=4).submit("team-a", "waits", pods=3)
    file = tmp_path_factory.mktemp("formats") / "snapshot.json"
    file.write_bytes(snapshot_to_json(lab.snapshot()))
    return str(file)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main.app, list(arguments))


COMMANDS = {
    "status": ("status", "-s", "{snapshot}"),
    "jobs": ("jobs", "-s", "{snapshot}"),
    "plan": ("plan", "-s", "{snapshot}"),
    "audit": ("audit", "-s", "{snapshot}", "--fail-on", "never"),
    "explain a workload": ("explain", "team-a/waits", "-s", "{snapshot}"),
    "explain a team": ("explain", "--team", "team-a", "-s", "{snapshot}"),
    "what-if": ("what-if", "-s", "{snapshot}", "--lose-nodes", "1xml.g5.8xlarge"),
    "validate": ("validate", POLICY),
    "lease list": ("lease", "list", "--policy", POLICY),
}


def typed(command: str, snapshot: str) -> list[str]:
    return [word.format(snapshot=snapshot) for word in COMMANDS[command]]


@pytest.mark.parametrize("command", COMMANDS)
def test_yaml_has_the_members_of_json(command: str, snapshot: str) -> None:
    words = typed(command, snapshot)
    as_json, as_yaml = run(*words, "--json"), run(*words, "--format", "yaml")
    assert (as_json.exit_code, as_yaml.exit_code) == (OK, OK), as_yaml.output
    assert (
        yaml.safe_load(as_yaml.output)
        == json.loads(as_json.output)
        == json.loads(run(*words, "--format", "json").output)
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_csv_is_one_table_with_headings(command: str, snapshot: str) -> None:
    rows = list(csv.reader(io.StringIO(run(*typed(command, snapshot), "--format", "csv").output)))
    assert rows
    assert len({len(row) for row in rows}) == 1


@pytest.mark.parametrize("command", COMMANDS)
def test_markdown_has_what_the_tables_have(command: str, snapshot: str) -> None:
    shown = run(*typed(command, snapshot), "--format", "markdown")
    assert shown.exit_code == OK, shown.output
    assert "\x1b" not in shown.output
    if command in {"status", "jobs", "plan", "audit"}:
        assert "<table>" in MARKDOWN.render(shown.output)


def test_every_command_that_shows_something_has_every_form() -> None:
    shows = "status jobs plan audit explain what-if validate history usage doctor preflight adopt replay advise when"
    for command in (*([name] for name in shows.split(" ")), ["lease", "list"], ["lease", "check"]):
        text = " ".join(run(*command, "--help").output.split())
        assert "--format" in text, command
        assert "--json" in text, command


def test_wide_folds_no_cell(snapshot: str) -> None:
    narrow, wide = (run("plan", "-s", snapshot, "--format", form.value).output for form in (Form.TABLE, Form.WIDE))
    because = json.loads(run("plan", "-s", snapshot, "--json").output)["allocations"][0]["because"]
    assert because in wide
    assert len(wide.splitlines()) <= len(narrow.splitlines())


def test_a_command_to_copy_stays_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    command = "  aws " + "--option value " * 30
    print_parts([unfolded(command)])
    assert capsys.readouterr().out.rstrip("\n") == command


def test_two_forms_at_once_are_refused(snapshot: str) -> None:
    result = run("status", "-s", snapshot, "--json", "--format", "csv")
    assert result.exit_code == NOT_UNDERSTOOD
    assert "exclude each other" in result.output


def test_the_main_table_of_status_is_the_teams(snapshot: str) -> None:
    (first, *teams) = csv.reader(io.StringIO(run("status", "-s", snapshot, "--format", "csv").output))
    assert first[:4] == ["team", "instance type", "quota", "leased"]
    assert [row[0] for row in teams] == ["team-a", "team-b"]


def test_csv_of_sentences_is_a_column_of_them() -> None:
    assert csv_of([Text("The stop switch is off."), unfolded("Next: a, b")]) == (
        'answer\nThe stop switch is off.\n"Next: a, b"\n'
    )


ONLY_DO: Final = {
    "report": "fetches a page",
    "snapshot": "writes a snapshot",
    "lease": "is a group",
    "review": "writes Markdown",
    "approve": "gives an order",
    "reject": "gives an order",
    "reconcile": "gives an order",
    "init": "writes a document",
    "kueue-config": "prints YAML",
    "schema": "prints JSON",
    "smoke": "writes a report",
    "demo": "plays",
    "local": "serves",
}
"""Commands that show nothing but what they did, and why they take no --format."""


def test_every_command_that_shows_something_takes_each_form() -> None:
    page = Path("docs/cli.md").read_text()
    sections = re.findall(r"(?ms)^###? `taskgov (.*?)`$(.*?)(?=^##|\Z)", page)
    without = {name.split()[-1] for name, text in sections if "--format" not in text}
    assert without == ONLY_DO.keys()


def test_csv_without_rows_keeps_its_headings() -> None:
    assert csv_of([Text("nothing"), table("Teams", ("team", "quota #"), [], main=True)]) == "team,quota\n"
    assert csv_of([table("", ("other",), [(1,)]), table("Teams", ("team",), [("a",)], main=True)]) == "team\na\n"


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-1", "@SUM(A1)"])
def test_no_name_is_a_formula_in_a_spreadsheet_and_numbers_stay_numbers(cell: str) -> None:
    rows = list(csv.reader(io.StringIO(csv_of([table("", ("name", "amount #"), [(cell, -1)])]))))
    assert rows[1][0].startswith("'")
    assert rows[1][1] == "-1"


def test_empty_tables_and_sentences_take_no_room_in_markdown() -> None:
    parts: list[RenderableType] = [
        table("Teams", ("team",), []),
        Text(""),
        Group(Text("One."), table("", ("n #",), [(1,)])),
    ]
    assert markdown_of(parts) == "One.\n\n| n |\n| ---: |\n| 1 |\n"


@given(st.text(max_size=60))
@example("a|b")
@example("@everyone <script>alert(1)</script>")
@example("![x](http://example.com/x.png) `code` *bold* _it_ #12 $x$ &amp; [x] ~~s~~")
@example("\\| \\")
@example("- item")
@example("# heading\n## heading")
def test_a_cell_of_markdown_shows_what_others_wrote_and_does_nothing_else(text: str) -> None:
    grid = table("", ("one", "two"), [(text, "end")])
    tokens = MARKDOWN.parse(markdown_table(grid))
    inline = [token for token in tokens if token.type == "inline"]
    assert [token.content for token in inline[:2]] == ["one", "two"]
    assert inline[3].content == "end"  # whatever the text is, it stays in its cell
    shown = ""
    for child in inline[2].children or []:
        assert child.type in {"text", "text_special", "html_inline"}, child
        assert child.type != "html_inline" or child.content in {"<br>", "<!-- -->"}
        shown += {"<br>": "\n", "<!-- -->": ""}.get(child.content, child.content)
    assert shown.split() == printable(text, keep="\n").split()


def test_nobody_is_mentioned() -> None:
    assert "@a" not in escaped("thanks @alice")
