"""The command line as a whole: what it says when a part of it is not installed."""

import inspect
import json
import re
import shlex
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from taskgov.scheduling.kueue_version import FOLLOWED
from taskgov_cli import main
from taskgov_cli.extras import command_for


def test_a_command_of_the_embedded_stack_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in [name for name in sys.modules if name.startswith("taskgov_embedded") or name == "taskgov_cli.demo"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "moto", None)
    monkeypatch.setitem(sys.modules, "samtranslator", None)
    monkeypatch.setitem(sys.modules, "time_machine", None)
    monkeypatch.setattr(sys, "argv", ["taskgov", "demo"])
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == 2
    assert f", of the extra `embedded`: {command_for('embedded')}" in capsys.readouterr().err


def test_any_other_missing_module_is_a_fault_and_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "taskgov_cli.schema", None)
    monkeypatch.setattr(sys, "argv", ["taskgov", "schema"])
    with pytest.raises(ModuleNotFoundError, match=r"taskgov_cli\.schema"):
        main.main()


def test_conformance_says_that_a_folder_has_no_cases(tmp_path: Path) -> None:
    result = CliRunner().invoke(main.app, ["conformance", str(tmp_path)])
    assert result.exit_code == 2
    assert "0 passed, 0 failed" in result.output


def test_conformance_names_the_case_that_fails(tmp_path: Path) -> None:
    case = {"kind": "no-such-kind", "name": "a case of no known kind", "expected": {}}
    (tmp_path / "cases.json").write_text(json.dumps([case]))
    result = CliRunner().invoke(main.app, ["conformance", str(tmp_path)])
    assert result.exit_code == 1
    assert "a case of no known kind" in result.output


def test_conformance_is_given_as_json_too(tmp_path: Path) -> None:
    case = {"kind": "no-such-kind", "name": "a case", "expected": {}}
    (tmp_path / "cases.json").write_text(json.dumps([case]))
    result = CliRunner().invoke(main.app, ["conformance", str(tmp_path), "--json"])
    data = json.loads(result.output)
    assert (result.exit_code, data["passed"], data["failed"]) == (1, 0, 1)
    assert [(each["file"], each["case"]) for each in data["differences"]] == [("cases.json", "a case")]


def every_command() -> dict[str, Any]:
    """Return each command by its full name."""
    found: dict[str, Any] = {}

    def walk(command: Any, name: str) -> None:
        commands = getattr(command, "commands", None)
        if commands is None:
            found[name] = command
            return
        for part, each in commands.items():
            walk(each, f"{name} {part}")

    walk(typer.main.get_command(main.app), "taskgov")
    return found


COMMANDS = every_command()
PROMISED = (
    "status, snapshot, validate, plan, apply, approve, reject, rollback, explain, what-if, audit, replay, advise, "
    "when, lease, history, conformance, demo, local"
)


@pytest.mark.parametrize("name", PROMISED.split(", "))
def test_every_promised_command_is_there(name: str) -> None:
    assert any(full.split()[1] == name for full in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_json_a_short_h_and_an_example_that_it_understands(name: str) -> None:
    command = COMMANDS[name]
    options = {flag for parameter in command.params for flag in (*parameter.opts, *parameter.secondary_opts)}
    assert "--json" in options
    assert CliRunner().invoke(main.app, [*name.split()[1:], "-h"]).exit_code == 0
    (example,) = re.findall(r"Example: (.*)", inspect.cleandoc(command.help or ""))
    program, *arguments = shlex.split(example)
    parts = name.split()
    assert [program, *arguments][: len(parts)] == parts
    given = {argument.partition("=")[0] for argument in arguments if argument.startswith("-")}
    assert given <= options


SAME = {
    "--snapshot": "-s",
    "--policy": "-p",
    "--cluster": "-c",
    "--output": "-o",
    "--team": "-t",
    "--limit": "-n",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_an_option_has_the_same_short_form_wherever_it_is(name: str) -> None:
    for parameter in COMMANDS[name].params:
        for flag in set(parameter.opts) & SAME.keys():
            assert set(parameter.opts) == {flag, SAME[flag]}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_every_shell_completes_commands_and_options(shell: str) -> None:
    variables = {"_TASKGOV_COMPLETE": f"complete_{shell}", "COMP_WORDS": "taskgov wh", "COMP_CWORD": "1"}
    variables |= {"_TYPER_COMPLETE_ARGS": "taskgov wh", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    variables |= {"_TYPER_COMPLETE_WORD_TO_COMPLETE": "wh"}
    result = CliRunner().invoke(main.app, [], env=variables, prog_name="taskgov")
    assert "what-if" in result.output
    assert "status" not in result.output


def test_the_version_is_printed() -> None:
    printed = CliRunner().invoke(main.app, ["--version"])
    assert printed.exit_code == 0
    assert printed.stdout.startswith(f"taskgov {metadata.version('taskgov')} (Python 3.")
    assert f"as Kueue {FOLLOWED} makes them" in printed.stdout
