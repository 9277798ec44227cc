"""Every command, option, finding, metric, alarm, parameter and output is documented, and every documented one exists.

Commands, findings and metrics have pages that are written from the code (`tests/cli/test_cli_page.py`,
`tests/findings`, `tests/services/test_metric_catalogue.py`). Here all pages are read for what they name.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
import typer

from taskgov.findings import of_audit, of_document, of_plan, of_state
from taskgov.findings.kind import FindingKind
from taskgov.services.metric_catalogue import METRICS
from taskgov_cli.main import app
from tests.support.golden import assert_section
from tests.template.conftest import ROOT, load

PAGES: Final = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / ".github").rglob("*.md")])
DEPLOY: Final = ROOT / "docs" / "deploy.md"
METRICS_PAGE: Final = ROOT / "docs" / "metrics.md"
Command = Any
"""A command of click, which typer keeps to itself."""
ROOMS: Final = (of_document, of_plan, of_state, of_audit)
CODES: Final = {kind.code for room in ROOMS for kind in vars(room).values() if isinstance(kind, FindingKind)}
pages = pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])


@cache
def commands() -> Mapping[str, Command]:
    """Return every command by its words, groups too; hidden ones are there and documented nowhere."""

    def below(words: str, command: Command) -> Iterator[tuple[str, Command]]:
        yield words, command
        for name, inner in getattr(command, "commands", {}).items():
            yield from below(f"{words} {name}", inner)

    return dict(below("taskgov", typer.main.get_command(app)))


def options(command: Command) -> set[str]:
    return {"--help"} | {name for option in command.params for name in (*option.opts, *option.secondary_opts)}


def shown(page: Path) -> str:
    """Return a page without what was: the changelog tells of commands that are gone."""
    return "" if page.name == "CHANGELOG.md" else page.read_text()


def commands_in(text: str) -> Iterator[str]:
    """Return what is typed: `taskgov ...` in code of a line or of a block, each with what follows it."""
    blocks = re.findall(r"```[a-z]*\n(.*?)```", text, re.DOTALL)
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    spans = re.findall(r"`([^`\n]+)`", prose)
    for code in [line for block in blocks for line in block.replace("\\\n", " ").splitlines()] + spans:
        match = re.match(r"(?:\$ |\(?\.venv/bin/)?(taskgov [a-z-].*)", code.strip())
        if match:
            yield re.split(r"  +|[|;&#>)]", match[1])[0].strip()


@pages
def test_a_command_that_a_page_shows_exists_with_its_options(page: Path) -> None:
    wrong = []
    for typed in commands_in(shown(page)):
        words = typed.split()
        known = [count for count in (1, 2, 3) if " ".join(words[:count]) in commands()]
        command = commands()[" ".join(words[: known[-1]])]
        named = set(re.findall(r"(?<=\s)(--[a-z-]+|-[a-z])\b", typed))
        if known[-1] == 1 and not words[1].startswith("-"):
            wrong.append(f"no such command: {typed}")
        elif named - options(command) - options(commands()["taskgov"]):
            wrong.append(f"no such option: {typed}")
    assert wrong == []


def test_every_command_and_option_that_is_not_hidden_is_on_the_page_of_the_command_line() -> None:
    page = (ROOT / "docs" / "cli.md").read_text()
    visible = {words: command for words, command in commands().items() if not command.hidden}
    sections = dict(re.findall(r"^#+ `(taskgov [^`]+)`\n(.*?)(?=^#+ `|\Z)", page, re.DOTALL | re.MULTILINE))
    assert sections.keys() == visible.keys() - {"taskgov"}
    for words, text in sections.items():
        told = re.findall(r"(?<![\w-])--?[a-z][a-z-]*", "\n".join(re.findall(r"^\* `([^`]*)`", text, re.MULTILINE)))
        shown_options = {
            name
            for option in visible[words].params
            if option.param_type_name == "option" and not getattr(option, "hidden", False)
            for name in (*option.opts, *option.secondary_opts)
        }
        assert set(told) == shown_options | {"--help"}, words


def test_the_table_of_commands_of_people_names_each_that_orders_or_answers() -> None:
    text = (ROOT / "docs" / "operations.md").read_text()
    for words in ("approve", "reject", "rollback", "reconcile", "stop", "unlock", "history", "apply", "lease"):
        assert f"taskgov {words}" in commands()
        assert f"`taskgov {words}" in text


@pages
def test_a_finding_that_a_page_names_exists(page: Path) -> None:
    text = shown(page)
    told = re.findall(r"[Ff]indings? (`[a-z-]+`(?:(?:, | and )`[a-z-]+`)*)", text)
    ruled = re.findall(r"\{finding: \"?([a-z-]+)\"?[,}]", text)
    named = {*ruled, *re.findall(r"`([a-z-]+)`", " ".join(told))}
    assert named - CODES == set()


@pages
def test_a_metric_that_a_page_names_exists(page: Path) -> None:
    named = [
        name
        for said in re.findall(r"(?<!own )[Mm]etrics? (`[A-Z]\w+`(?:(?:, | and )`[A-Z]\w+`)*)", shown(page))
        for name in re.findall(r"`(\w+)`", said)
    ]
    aws = set(re.findall(r'"?MetricName"?: "?(\w+)', (ROOT / "template.yaml").read_text()))
    assert set(named) - {metric.name for metric in METRICS} - aws == set()


def test_every_alarm_is_in_the_table_with_its_runbook() -> None:
    rows = ["| alarm | fires when | runbook |", "| --- | --- | --- |"]
    for name, alarm in sorted(alarms().items()):
        means, _, path = alarm["AlarmDescription"].partition(" Runbook - docs/")
        rows.append(f"| `{name}` | {means} | [{Path(path).name}]({path}) |")
    assert_section(METRICS_PAGE, "alarms", "\n".join(rows))


@pages
def test_an_alarm_that_a_page_names_exists(page: Path) -> None:
    assert set(re.findall(r"`(\w+Alarm)`", shown(page))) - alarms().keys() == set()


def test_every_parameter_is_in_the_table_with_its_default() -> None:
    table = DEPLOY.read_text().partition("\n## Parameters\n")[2].partition("\n## ")[0]
    told: dict[str, str] = {}
    for cells in (line.split(" | ") for line in table.splitlines() if line.startswith("| `")):
        names = re.findall(r"`(\w+)`", cells[0])
        defaults = [text.strip(" `") for text in re.split(r",\s*(?=`)|,\s+(?=[A-Z0-9])", cells[1])]
        told |= dict(zip(names, defaults * len(names) if len(defaults) == 1 else defaults, strict=True))
    want = {name: str(parameter["Default"]) or "none" for name, parameter in load().cfn["Parameters"].items()}
    off = {"AlarmStarvation": "none"}  # `no` in the template, and nothing rings
    assert told == want | off


@pages
def test_a_parameter_that_a_page_gives_exists(page: Path) -> None:
    given = {
        name
        for line in re.findall(r"--parameter-overrides ([^\n`]*)", shown(page))
        for name in re.findall(r"\b([A-Z]\w+)=", line)
    }
    beside = set(re.findall(r"^  (\w+):$", (ROOT / "examples" / "beside-hyperpod.yaml").read_text(), re.MULTILINE))
    assert given - load().cfn["Parameters"].keys() - beside == set()


@pages
def test_an_output_that_a_page_reads_exists(page: Path) -> None:
    assert set(re.findall(r"\$\(out (\w+)\)", shown(page))) - load().cfn["Outputs"].keys() == set()


BASES: Final = [ROOT / base for base in (".", "docs", "tests", "workstation", "layers/taskgov/python/taskgov")]
SOURCES: Final = ROOT / "layers/taskgov/python", ROOT / "workstation", ROOT
OF_OTHERS: Final = {"walkthroughs.md": "its files are those of the published documents"}


@pages
def test_a_file_that_a_page_names_exists(page: Path) -> None:
    named = [] if page.name in OF_OTHERS else in_prose(shown(page))
    files = [
        code.partition("::")[0] for code in named if re.fullmatch(r"[\w./-]+/[\w.-]+\.(py|ya?ml|md|json)(::\w+)?", code)
    ]
    assert [file for file in files if not any((base / file).exists() for base in BASES)] == []


@pages
def test_a_module_that_a_page_names_exists_with_what_it_names_in_it(page: Path) -> None:
    dotted = [code for code in in_prose(shown(page)) if re.fullmatch(r"(taskgov(_[a-z]+)?|tests)(\.\w+)+", code)]
    others = {"taskgov.operator", "taskgov.orders", "taskgov.schedule", "taskgov.toml"}  # sources of events, a file
    assert [
        name for name in dotted if name not in others and not any(_is_in(base, name.split(".")) for base in SOURCES)
    ] == []


@pages
def test_a_target_of_make_that_a_page_names_exists(page: Path) -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"(?:`|^)make ([a-z][a-z-]+)", shown(page), re.MULTILINE)) - targets == set()


def test_every_target_of_make_that_tests_something_is_on_the_page_of_the_tests() -> None:
    targets = re.findall(
        r"^((?:test|prove|weeks|mutants|demo|verify|conformance|lint)[a-z-]*):",
        (ROOT / "Makefile").read_text(),
        re.MULTILINE,
    )
    told = set(re.findall(r"^\| `make ([a-z-]+)", (ROOT / "docs" / "testing.md").read_text(), re.MULTILINE))
    assert set(targets) - told == set()


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    assert [path.name for path in (ROOT / "docs").glob("*.md") if f"({path.name})" not in index] == ["README.md"]


def test_what_contributing_says_to_copy_exists() -> None:
    told = re.findall(r"Copy `([\w/.]+)`", (ROOT / "CONTRIBUTING.md").read_text())
    code = {file: file.read_text() for base in SOURCES[:2] for file in base.rglob("*.py")}
    assert len(told) >= 6
    for name in told:
        assert any(
            file.match(name) or re.search(rf"^(def )?{name}\b", text, re.MULTILINE) for file, text in code.items()
        ), name


def test_the_places_that_answer_a_newcomers_questions_exist() -> None:
    """In the table of `docs/architecture.md`: a file is there, and what stands after it is in it."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    steps = [
        cell for row in re.findall(r"^\| (?:where|why|how) .*$", page, re.MULTILINE) for cell in row.split("|")[2:]
    ]
    told = re.findall(r"`([\w/.]+\.(?:py|yaml))`(?:: (?:`(\w+)`|\*([\w ]+)\*))?", " ".join(steps))
    assert len(told) >= 16
    for name, *inside in told:
        files = [base / name for base in (ROOT, *SOURCES[:2], SOURCES[0] / "taskgov") if (base / name).is_file()]
        assert len(files) == 1, name
        assert "".join(inside) in files[0].read_text(), (name, inside)


def test_the_files_that_contributing_names_exist() -> None:
    named = set(re.findall(r"`([\w/]+/[\w/<>]+\.\w+)`", (ROOT / "CONTRIBUTING.md").read_text()))
    bases = (ROOT, *SOURCES[:2], SOURCES[0] / "taskgov")
    assert [
        name for name in sorted(named) if "<" not in name and not any((base / name).exists() for base in bases)
    ] == []


def in_prose(text: str) -> list[str]:
    """Return what stands in backticks within lines."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))


def _is_in(base: Path, parts: list[str]) -> bool:
    """Say whether a dotted name is a package, a module, or something that stands in a module."""
    if base.joinpath(*parts).is_dir():
        return True
    for count in range(len(parts), 0, -1):
        file = base.joinpath(*parts[:count]).with_suffix(".py")
        if file.is_file():
            return all(re.search(rf"\b{name}\b", file.read_text()) for name in parts[count:])
    return False


def alarms() -> Mapping[str, Any]:
    return load().resources_of("AWS::CloudWatch::Alarm")
