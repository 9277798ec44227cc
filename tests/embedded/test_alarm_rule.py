"""When an alarm rings: the examples of the CloudWatch user guide, and what they leave open."""

from __future__ import annotations

import pytest

from taskgov_embedded.cloudwatch.alarm_rule import Rule, judge

WORDS = {"ok": "OK", "alarm": "ALARM", "insufficient": "INSUFFICIENT_DATA", "retain": "as before"}
TREATMENTS = ("missing", "ignore", "breaching", "notBreaching")

# "0" is within the threshold, "X" breaches it, "-" is missing; the newest comes last.
ALL_OF_THREE = [
    ("0 - X - X", "ok ok ok ok"),
    ("- - - - 0", "ok ok ok ok"),
    ("- - - - -", "insufficient retain alarm ok"),
    ("0 X X - X", "alarm alarm alarm alarm"),
    ("- - X - -", "alarm retain alarm ok"),
    ("- - - - X", "insufficient retain alarm ok"),
    ("- - - X -", "insufficient retain alarm ok"),
    ("X - - - -", "alarm retain alarm ok"),
]
TWO_OF_THREE = [
    ("0 - X - X", "alarm alarm alarm alarm"),
    ("0 0 X 0 X", "alarm alarm alarm alarm"),
    ("0 - X - -", "ok ok alarm ok"),
    ("- - - - 0", "ok ok alarm ok"),
    ("- - - X -", "alarm retain alarm ok"),
    ("- - - - X", "insufficient retain alarm ok"),
]
ONE_OF_ONE = [
    ("- - X", "alarm alarm alarm alarm"),
    ("X - -", "alarm alarm alarm alarm"),  # the last set of data points is evaluated again for a time
    ("X - 0", "ok ok ok ok"),
    ("- - -", "insufficient retain alarm ok"),
]
CASES = [
    pytest.param(
        points, treatment, WORDS[word], periods, datapoints, id=f"{datapoints} of {periods}: {points} {treatment}"
    )
    for periods, datapoints, table in ((3, 3, ALL_OF_THREE), (3, 2, TWO_OF_THREE), (1, 1, ONE_OF_ONE))
    for points, states in table
    for treatment, word in zip(TREATMENTS, states.split(), strict=True)
]


def series(points: str) -> list[float | None]:
    return [{"0": 1.0, "X": 5.0, "-": None}[point] for point in points.split()]


@pytest.mark.parametrize(("points", "treatment", "state", "periods", "datapoints"), CASES)
def test_missing_data_counts_as_the_guide_says(
    points: str, treatment: str, state: str, periods: int, datapoints: int
) -> None:
    rule = Rule("GreaterThanThreshold", 3, periods, datapoints, treatment)
    assert rule.points == len(points.split())
    for before in ("OK", "ALARM", "INSUFFICIENT_DATA"):
        judged = judge(series(points), rule, before)
        assert judged.state == (before if state == "as before" else state)
        assert judged.reason


@pytest.mark.parametrize(
    ("comparison", "value", "rings"),
    [
        ("GreaterThanThreshold", 3, False),
        ("GreaterThanOrEqualToThreshold", 3, True),
        ("LessThanThreshold", 3, False),
        ("LessThanOrEqualToThreshold", 3, True),
    ],
)
def test_each_comparison_is_its_own(comparison: str, value: float, rings: bool) -> None:
    rule = Rule(comparison, 3, 1, 1)
    assert (judge([None, None, value], rule, "OK").state == "ALARM") is rings


def test_what_cannot_be_evaluated_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="LessThanLowerThreshold"):
        Rule("LessThanLowerThreshold", 3, 1, 1)
    with pytest.raises(ValueError, match="sometimes"):
        Rule("GreaterThanThreshold", 3, 1, 1, "sometimes")


def test_the_reason_names_the_data_points() -> None:
    assert judge([None, 1, 5], Rule("GreaterThanThreshold", 3, 1, 1), "OK").reason == (
        "1 of 1 are GreaterThanThreshold 3 ([-, 1, 5])"
    )
