"""What the README shows is what happens."""

import re
import subprocess
from pathlib import Path

import pytest

from taskgov.policy.parse import parse_policy

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
LAST = re.compile(r"^demo: \d+ checks passed, 0 failed$", re.MULTILINE)


def test_it_shows_how_the_demo_and_all_walkthroughs_end() -> None:
    """`.ci/run` has the number of the demo, and `tests/embedded/test_walkthroughs.py` that of all walkthroughs."""
    shown = re.search(r"<!-- demo -->\n```text\n(.*?)```", README, re.DOTALL)
    assert shown is not None
    assert LAST.fullmatch(shown[1].splitlines()[-1])
    assert len(LAST.findall(README)) == 2


def test_every_line_of_the_first_day_that_it_shows_is_on_the_page_about_it() -> None:
    shown = re.search(r"<!-- first day -->\n```text\n(.*?)```", README, re.DOTALL)
    assert shown is not None
    page = (ROOT / "docs" / "onboarding.md").read_text().splitlines()
    assert [line for line in shown[1].splitlines() if line != "..." and line not in page] == []


def test_the_policy_document_that_it_shows_is_valid() -> None:
    (document,) = re.findall(r"```yaml\n(apiVersion.*?)```", README, re.DOTALL)
    parsed = parse_policy(document)
    assert parsed.violations == ()
    assert parsed.document is not None
    assert [team.name for team in parsed.document.teams] == ["team-a", "team-b"]


@pytest.mark.parametrize("page", ["README.md", *sorted(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md"))])
def test_every_link_to_a_file_leads_to_one(page: str) -> None:
    text = (ROOT / page).read_text()
    links = [link for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text) if "://" not in link]
    assert [link for link in links if not (ROOT / page).parent.joinpath(link).exists()] == []


def test_every_make_target_that_it_names_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    named = set(re.findall(r"(?:^\$ |`)make ([a-z][a-z-]*)", README, re.MULTILINE))
    assert named >= {"demo", "test", "help"}
    assert [target for target in named if f"\n{target}:" not in makefile] == []


def test_the_marks_by_which_make_chooses_files_stand_in_the_files_of_their_tests() -> None:
    """`make test-long` and `make test-slow` collect only files in which the mark stands."""
    marks = re.compile(r"\bmark\.(long|slow)\b")
    others = [path for path in (ROOT / "tests").rglob("*.py") if not path.name.startswith("test_")]
    assert [str(path) for path in others if marks.search(path.read_text())] == []


def test_the_list_of_targets_has_no_colours_in_a_pipe() -> None:
    printed = subprocess.run(
        ["/usr/bin/env", "make", "help"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert re.search(r"^  demo +\S", printed, re.MULTILINE)
    assert "\033" not in printed


def test_its_chapters_are_in_the_order_that_readers_expect() -> None:
    assert re.findall(r"^## (.*)$", README, re.MULTILINE) == [
        "Quick start",
        "What you get",
        "How it works",
        "Everyday questions",
        "Deploy",
        "Comparison",
        "Limits, and what is inferred",
        "Help",
        "Licence",
    ]
    introduction = README.partition("\n## ")[0]
    assert "![" in introduction


def test_it_has_at_most_1500_words() -> None:
    """As `wc -w README.md` counts: code, tables and addresses too."""
    assert 500 < len(README.split()) <= 1500


def test_the_cost_that_it_names_is_that_of_the_bill() -> None:
    bill = re.search(r"^\| \*\*together\*\* \| (.*) \|$", (ROOT / "docs" / "cost.md").read_text(), re.MULTILINE)
    assert bill is not None
    small, _, large = (float(cell.strip("* ").replace(",", "")) for cell in bill[1].split("|"))
    said = re.search(r"about (\d+) dollars a month for 10 nodes and 4 teams, and about (\d+) for 1,000 nodes", README)
    assert said is not None
    assert [int(number) for number in said.groups()] == [round(small), round(large)]
