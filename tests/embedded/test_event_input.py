from __future__ import annotations

from typing import Any

import pytest

from taskgov_embedded.eventbridge.event_input import InputError, target_input

EVENT = {"time": "T", "source": "s", "detail": {"name": 'a "b"', "count": 2, "list": [{"k": 1}], "none": None}}
RULE = "arn:aws:events:us-east-1:111122223333:rule/r"


def transformed(template: str, **paths: str) -> Any:
    target = {"InputTransformer": {"InputPathsMap": paths, "InputTemplate": template}}
    return target_input(target, EVENT, RULE)


def test_without_more_the_whole_event_is_sent() -> None:
    assert target_input({}, EVENT, RULE) == EVENT


def test_a_constant_is_sent_as_it_is() -> None:
    assert target_input({"Input": '{"a": 1}'}, EVENT, RULE) == {"a": 1}


@pytest.mark.parametrize(
    ("path", "want"),
    [("$.detail.count", 2), ("$.detail.list[0].k", 1), ("$.detail.list[5]", None), ("$.no.such", None), ("$", EVENT)],
)
def test_a_path_picks_a_part(path: str, want: object) -> None:
    assert target_input({"InputPath": path}, EVENT, RULE) == want


def test_a_template_takes_values_as_json_and_inside_strings_as_text() -> None:
    got = transformed('{"n": <n>, "c": <c>, "s": "<n> x <c>"}', n="$.detail.name", c="$.detail.count")
    assert got == {"n": 'a "b"', "c": 2, "s": 'a "b" x 2'}


def test_a_missing_value_is_null_or_nothing() -> None:
    assert transformed('{"n": <n>, "s": "<n>"}', n="$.detail.no") == {"n": None, "s": ""}


def test_reserved_variables_are_known() -> None:
    assert transformed('{"r": <aws.events.rule-arn>, "e": <aws.events.event.json>}') == {"r": RULE, "e": EVENT}


def test_an_unknown_placeholder_that_breaks_json_is_an_error() -> None:
    with pytest.raises(InputError):
        transformed('{"n": <unknown>}')
