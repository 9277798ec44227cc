"""`taskgov report --team`: the page of a team is found, written to a file and opened; what is not there is said."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.support.members import team_cluster
from tests.support.operating import taskgov

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from taskgov_embedded.walkthrough.world import World

ASK = ("report", "ml-cluster", "--team", "team-a")


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with team_cluster() as made:
        made.stack.fire("AuditAllSchedule")
        made.stack.run_until_quiet(300)
        yield made


def flat(text: str) -> str:
    return " ".join(text.replace("│", " ").split())


def test_it_says_where_the_page_is(world: World) -> None:
    bucket = world.stack.physical("GovernanceBucket")
    result = taskgov(*ASK)
    assert result.exit_code == 0, result.output
    assert (
        result.output
        == f"page: s3://{bucket}/reports/ml-cluster/teams/team-a.html\nTo read it, add --open, or -o FILE.\n"
    )


@pytest.mark.usefixtures("world")
def test_the_page_is_written_and_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    file = tmp_path / "page.html"
    result = taskgov(*ASK, "-o", str(file), "--open", "--json")
    assert json.loads(result.stdout)["file"] == str(file)
    assert "<h1>team-a</h1>" in file.read_text()
    assert opened == [file.as_uri()]


@pytest.mark.usefixtures("world")
def test_a_page_that_is_not_there_may_have_another_name() -> None:
    result = taskgov("report", "ml-cluster", "--team", "team-x")
    assert (result.exit_code, "there is no page of team-x at s3://" in flat(result.output)) == (1, True)
    assert "check the names: taskgov status --cluster ml-cluster" in flat(result.output)


def test_the_arn_of_a_hyperpod_cluster_is_refused_as_it_has_no_name(world: World) -> None:
    result = taskgov("report", world.cluster_arn, "--team", "team-a")
    assert (result.exit_code, "give its name" in flat(result.output)) == (2, True)


@pytest.mark.usefixtures("world")
def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    result = taskgov(*ASK, "-o", str(tmp_path / "no" / "page.html"))
    assert (result.exit_code, "cannot be written: No such file" in flat(result.output)) == (2, True)


@pytest.mark.usefixtures("world")
def test_another_stack_is_an_error_of_the_account() -> None:
    result = taskgov(*ASK, "--stack", "other")
    assert (result.exit_code, "describe stack other" in flat(result.output)) == (3, True)
