"""The walkthroughs, played as tests, and their form. `make verify` shows what they expect.

That their checks can fail is in `test_checks`.
"""

from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

from taskgov_cli.main import app
from taskgov_cli.onboarding import first_day
from taskgov_embedded.walkthrough.checks import CHECKS
from taskgov_embedded.walkthrough.expectations import Expectations
from taskgov_embedded.walkthrough.model import Walkthrough, all_files, load
from tests.support.played import played_once

FILES = all_files()
README = Path(__file__).parents[2] / "README.md"


@pytest.mark.long
@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_everything_that_a_walkthrough_expects_holds(file: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert played_once(tmp_path_factory, file).failed == ()


@pytest.mark.long
def test_the_readme_says_how_many_checks_there_are_and_no_widget_of_the_dashboard_is_empty(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """`make verify` counts them: those of the walkthroughs, one of each widget, and those of the first day."""
    every = [played_once(tmp_path_factory, file) for file in FILES]
    widgets, published = every[-1].widgets, set[str]().union(*(one.published for one in every))
    assert [title for title, metrics in widgets.items() if published.isdisjoint(metrics)] == []
    first = [check.passed for step in first_day.play(app) for check in step.checks]
    assert all(first)
    count = sum(one.passed for one in every) + len(widgets) + len(first)
    assert f"\ndemo: {count} checks passed, 0 failed\n" in README.read_text()


def test_every_kind_of_expectation_has_its_check() -> None:
    assert CHECKS.keys() == Expectations.model_fields.keys()


def test_every_walkthrough_says_what_it_expects_in_every_step() -> None:
    silent = [
        f"{file.name}: {step.title}" for file in FILES for step in load(file).steps if not step.expect.model_fields_set
    ]
    assert silent == []


def test_a_misspelt_expectation_is_an_error_and_not_a_check_that_cannot_fail() -> None:
    data = yaml.safe_load(FILES[0].read_text())
    data["steps"][0]["expect"]["quotaz"] = []
    with pytest.raises(ValidationError, match="quotaz"):
        Walkthrough.model_validate(data)


def test_an_action_is_one_thing() -> None:
    data = yaml.safe_load(FILES[0].read_text())
    data["steps"][0]["do"].append({"waitMinutes": 1, "audit": True})
    with pytest.raises(ValidationError, match="one thing"):
        Walkthrough.model_validate(data)
