"""Values of a document change in place: its comments, order and form stay."""

import json
from typing import Any

import pytest
import yaml

from taskgov_cli.yaml_edit import with_values

TEXT = """# of the cluster
teams:
  - name: a  # first
    quota: {Sharing: {BorrowLimit: 50, Strategy: "Lend"}, Count: 2}  # two
    # between
  - name: b
    quota:
      Rows:
        - {Count: 1}

      # behind b
  - {name: c}
rest: null
"""


def test_what_is_there_is_replaced_and_all_else_stays() -> None:
    changed = with_values(TEXT, {"teams": {0: {"quota": {"Sharing": {"BorrowLimit": 500}, "Count": 3}}}})
    assert changed == TEXT.replace("BorrowLimit: 50", "BorrowLimit: 500").replace("Count: 2}", "Count: 3}")


def test_what_is_missing_is_added_in_the_form_of_its_surroundings() -> None:
    changes = {"teams": {1: {"quota": {"Sharing": {"BorrowLimit": 100}}}, 2: {"quota": {"Never": True}}}, "more": "x"}
    changed = with_values(TEXT, changes)
    assert changed == TEXT.replace("- {Count: 1}\n", "- {Count: 1}\n      Sharing: {BorrowLimit: 100}\n").replace(
        "{name: c}", "{name: c, quota: {Never: true}}"
    ).replace("rest: null", "rest: null\nmore: x")


@pytest.mark.parametrize(
    ("text", "changes", "want"),
    [
        ("a: {}\n", {"a": {"b": 1}}, {"a": {"b": 1}}),
        ("a:\nb: 1\n", {"a": {"c": 2}}, {"a": {"c": 2}, "b": 1}),
        ("a: 1", {"b": 2}, {"a": 1, "b": 2}),
        ("a: {b: 1,}\n", {"a": {"c": 2}}, {"a": {"b": 1, "c": 2}}),
        ("a: [1, 2]\n", {"a": {1: 5}}, {"a": [1, 5]}),
        ("a: 'x'\n", {"a": "yes"}, {"a": "yes"}),
    ],
)
def test_odd_forms_are_read_back_as_meant(text: str, changes: dict[str, Any], want: object) -> None:
    assert yaml.safe_load(with_values(text, changes)) == want


def test_json_stays_json() -> None:
    text = json.dumps({"teams": [{"name": "a", "limit": "Lend"}], "n": {}}, indent=2)
    changed = with_values(text, {"teams": {0: {"limit": "Never", "more": {"x": [1]}}}, "new": "y"})
    assert json.loads(changed) == {"teams": [{"name": "a", "limit": "Never", "more": {"x": [1]}}], "n": {}, "new": "y"}


@pytest.mark.parametrize(
    ("text", "changes", "said"),
    [
        ("", {"a": 1}, "empty"),
        ("a: &x {b: 1}\nc: *x\n", {"a": {"b": 2}}, "a is shared by an anchor"),
        ("a: &x 1\nc: *x\n", {"c": 2}, "c is shared by an anchor"),
        ("a: [1]\n", {"a": {4: 1}}, "nothing at 4"),
    ],
)
def test_what_cannot_be_changed_alone_is_refused(text: str, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        with_values(text, changes)
