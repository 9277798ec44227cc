"""The story of `make demo`: short, told from beginning to end, and with commands that work as they are printed."""

import json
import re
import shlex
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from taskgov_cli import demo_story
from taskgov_cli.main import app
from taskgov_embedded.deployable import SAMPLE
from tests.support.golden import assert_golden
from tests.support.once import once

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
AFTER_STEP = 4
SEEN = (
    "borrow",
    "preempted for",
    "node fails",
    "4 -> 3",
    "plan: blocked",
    "plan: needs-approval",
    "plan: apply",
    "beyond quota",
)


@dataclass(frozen=True, slots=True)
class Story:
    exit_code: int
    output: str
    seconds: float
    """Processor time."""
    sample: str
    """The cluster as it was after the step that the sample is of."""
    report: bytes


@pytest.fixture
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    return once(tmp_path_factory, "story", lambda: played(tmp_path_factory.mktemp("story")))


def played(folder: Path) -> Story:
    """Play it as `make demo` does in the checkout, and read the cluster after the step that the sample is of."""
    snapshot, own_step = folder / "snapshot.json", demo_story.step

    def step(number: int, *about: object) -> object:
        if number == AFTER_STEP:
            taken = CliRunner().invoke(app, ["snapshot", "ml-cluster", "--stack", "taskgov", "-o", str(snapshot)])
            assert taken.exit_code == 0, taken.output
        return own_step(number, *about)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        patch.setattr(sys, "argv", [".venv/bin/taskgov"])
        patch.setattr(shutil, "which", lambda _name: None)
        patch.setattr(demo_story, "step", step)
        began = time.process_time()
        result = CliRunner().invoke(app, ["demo", "--reports", str(folder)])
        seconds = time.process_time() - began
    (report,) = (page.read_bytes() for page in folder.glob("*.html"))
    return Story(result.exit_code, result.output, seconds, as_sample(snapshot.read_text()), report)


def as_sample(snapshot: str) -> str:
    """Return a snapshot for people to look at; the lineage of a state is the only thing in it that chance decides."""
    readable = json.dumps(json.loads(snapshot), indent=1, ensure_ascii=False)
    return re.sub(r'(?<="lineage": ")[0-9a-f]{16}', "4f1c09d2a7e35b68", readable) + "\n"


def test_it_shows_what_it_promises_on_few_screens_and_ends_with_the_number_of_checks(story: Story) -> None:
    lines = story.output.splitlines()
    assert story.exit_code == 0, story.output
    assert [seen for seen in SEEN if seen not in story.output] == []
    assert re.fullmatch(r"demo: \d+ checks passed, 0 failed", lines[-1])
    assert len(lines) < 120
    assert f"about {demo_story.SECONDS} seconds" in story.output


def test_it_takes_less_than_25_seconds_of_processor_time(story: Story) -> None:
    assert story.seconds < 25


def test_the_path_of_its_report_is_printed(story: Story) -> None:
    (path,) = re.findall(r"The audit report: (\S+) ", story.output)
    assert path.endswith(".html")
    assert story.report.startswith(b"<!doctype html>")


def test_the_sample_is_its_cluster(story: Story) -> None:
    assert_golden(SAMPLE, story.sample)
    assert f"after step {AFTER_STEP}" in story.output
    assert SAMPLE.stat().st_size < 100_000


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (demo_story.TO_TRY[0][0], "speech"),
        (demo_story.TO_TRY[1][0], "speech/voices: WaitingForQuota"),
        (demo_story.TO_TRY[2][0], "Teams, before -> after"),
    ],
)
def test_each_command_that_it_ends_with_works_as_it_is_printed(
    story: Story, command: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    typed = f".venv/bin/taskgov {command.format(sample='examples/snapshot.json')}"
    assert f"  {typed}  #" in story.output
    result = CliRunner().invoke(app, shlex.split(typed)[1:])
    assert (result.exit_code, says in result.output) == (0, True), result.output


def test_from_another_folder_the_sample_has_its_whole_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert demo_story.command_line("status -s {sample}") == f"taskgov status -s {SAMPLE}"


def test_every_line_that_the_readme_shows_is_printed(story: Story) -> None:
    (shown,) = re.findall(r"<!-- demo -->\n```text\n(.*?)```", README, re.DOTALL)
    printed = {line.rstrip() for line in story.output.splitlines()}
    assert [line for line in shown.splitlines() if line != "..." and line not in printed] == []


@pytest.fixture
def short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """Let the story be one step that ends with an audit, or what a test makes of it."""
    told: dict[str, object] = {
        "name": "A short story",
        "source": "made up",
        "about": "One team.",
        "starts": "2026-11-20T09:00:00Z",
        "cluster": {"groups": [{"instanceType": "ml.g5.8xlarge", "count": 1}]},
        "steps": [{"title": "An audit", "shows": "An audit.", "do": [{"audit": True}], "expect": {"deadLetters": 0}}],
    }
    write(tmp_path, monkeypatch, told)
    return told


def write(folder: Path, monkeypatch: pytest.MonkeyPatch, told: dict[str, object]) -> None:
    (folder / "story.yaml").write_text(json.dumps(told))
    monkeypatch.setattr("taskgov_cli.demo.STORY", folder / "story.yaml")


@pytest.mark.usefixtures("short")
def test_the_report_is_opened_on_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def launch(page: str) -> int:
        opened.append(page)
        return 0 if len(opened) == 1 else 1

    monkeypatch.setattr("typer.launch", launch)
    result = CliRunner().invoke(app, ["demo", "--open", "--reports", str(tmp_path)])
    assert (result.exit_code, opened) == (0, [str(tmp_path / "audit-1.html")])
    result = CliRunner().invoke(app, ["demo", "--open", "--reports", str(tmp_path)])
    assert "no program that opens" in " ".join(result.stderr.split())


def test_a_story_that_does_not_hold_says_what_failed_and_not_what_was_seen(
    short: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, monkeypatch, short | {"steps": [{"title": "Nothing", "expect": {"deadLetters": 1}}]})
    result = CliRunner().invoke(app, ["demo"])
    assert result.exit_code == 1
    assert "messages in the dead-letter queue: wanted 1, got 0" in result.output
    assert "What you saw" not in result.output
    assert result.output.splitlines()[-1] == "demo: 2 checks passed, 1 failed"
    data = json.loads(CliRunner().invoke(app, ["demo", "--json"]).output)
    assert (data["passed"], data["failed"]) == (2, 1)
    assert [step["title"] for step in data["walkthroughs"][0]["steps"]] == ["Nothing"]
