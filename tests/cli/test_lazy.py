"""No command waits for the imports of another."""

import inspect
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from taskgov_cli.main import GROUPS, PLACES, app

ROOT = Path(__file__).parents[2]
CODE = """
import os, runpy, sys
os._exit = sys.exit
sys.argv = ["taskgov", *sys.argv[1:]]
try:
    runpy.run_module("taskgov_cli", run_name="__main__")
except SystemExit as ended:
    code = ended.code
print("\\n" + str(code or 0), *sorted(sys.modules))
"""
REACHES_AWS = ("boto3", "botocore", "kubernetes", "requests", "s3transfer", "taskgov.adapters", "taskgov.backends")
EMBEDDED = ("moto", "samtranslator", "cryptography", "taskgov_embedded", "matplotlib", "jinja2")


def imported(*arguments: str) -> list[str]:
    """Run a command in a process of its own; return what it imported, other than of the standard library."""
    path = f"import sys; sys.path[:0] = {[str(ROOT / 'layers/taskgov/python'), str(ROOT / 'workstation')]!r}\n"
    ended = subprocess.run(  # noqa: S603 - our own module
        [sys.executable, "-c", path + CODE, *arguments], capture_output=True, text=True, check=True, cwd=ROOT
    )
    code, *modules = ended.stdout.splitlines()[-1].split()
    assert code == "0", ended.stdout + ended.stderr
    return [module for module in modules if module.partition(".")[0] not in sys.stdlib_module_names]


def of(modules: list[str], *packages: str) -> list[str]:
    return [module for module in modules if any(f"{module}.".startswith(f"{package}.") for package in packages)]


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_the_list_of_commands_imports_none_of_them(arguments: list[str]) -> None:
    modules = imported(*arguments)
    assert of(modules, *REACHES_AWS, *EMBEDDED, "pydantic", "pydantic_core", "yaml") == []
    assert of(modules, "taskgov_cli") == [
        "taskgov_cli",
        *(f"taskgov_cli.{name}" for name in ("failures", "keeping", "lazy", "main")),
    ]
    assert len(of(modules, "taskgov")) <= 5


def test_a_question_about_a_file_waits_neither_for_aws_nor_for_the_planner() -> None:
    modules = imported("status", "-s", "examples/snapshot.json")
    assert of(modules, *REACHES_AWS, *EMBEDDED, "yaml") == []
    assert of(modules, "taskgov.allocation.planner", "taskgov.policy.parse", "taskgov.audit", "taskgov.services") == []
    assert len(of(modules, "taskgov_cli")) <= 15


def test_an_explanation_of_a_job_does_not_wait_for_the_planner() -> None:
    modules = imported("explain", "speech/voices", "-s", "examples/snapshot.json")
    assert of(modules, "taskgov.allocation.planner", "taskgov_explain.team") == []


def test_the_list_says_of_each_command_what_its_own_help_begins_with() -> None:
    group = typer.main.get_command(app)
    assert list(group.commands) == list(PLACES)  # type: ignore[attr-defined]
    for name, place in PLACES.items():
        first, _, _ = inspect.cleandoc(group.commands[name].help).partition("\n\n")  # type: ignore[attr-defined]
        assert " ".join(first.split()) == place.summary


def test_a_paragraph_of_help_is_one_line_so_that_the_terminal_wraps_it() -> None:
    group = typer.main.get_command(app)
    for command in group.commands.values():  # type: ignore[attr-defined]
        for shown in (command, *getattr(command, "commands", {}).values()):
            paragraphs = inspect.cleandoc(shown.help).split("\n\n")
            assert [text for text in paragraphs if "\n" in text and not text.startswith("*")] == []


def test_the_list_has_a_heading_for_each_thing_that_people_do() -> None:
    assert list(GROUPS) == ["Ask", "Change", "Operate", "Set up", "Develop"]
    listed = [name for group in GROUPS.values() for name in group]
    assert len(listed) == len(set(listed)) == len(PLACES)
    lines = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "100"}).stdout.splitlines()
    panels = [line.strip("╭─╮ ") for line in lines if line.startswith("╭")]
    assert panels == ["Options", *GROUPS]
    shown = [line.split()[1] for line in lines if line.startswith("│ ") and line[2] not in " -"]
    assert shown == listed


def test_ctrl_c_while_it_imports_shows_no_traceback() -> None:
    interrupt = """
import sys
sys.path[:0] = [{layer!r}, {workstation!r}]
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupt())
from taskgov_cli.__main__ import main
main()
"""
    code = interrupt.format(layer=str(ROOT / "layers/taskgov/python"), workstation=str(ROOT / "workstation"))
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "\nInterrupted.\n")
