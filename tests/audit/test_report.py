"""The report as a value: what is written can be read, and the published schema is true."""

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from taskgov.audit.report import Report, report_json
from tests.support.golden import assert_golden
from tests.support.reports import a_report, an_empty_report, report_from_json, report_schema

SCHEMA = Path("events/schemas/audit-report.json")


@pytest.mark.parametrize("report", [a_report(), an_empty_report()], ids=["a full report", "an empty report"])
def test_a_report_comes_back_as_it_was_written(report: Report) -> None:
    assert report_from_json(report_json(report)) == report


@pytest.mark.parametrize("report", [a_report(), an_empty_report()], ids=["a full report", "an empty report"])
def test_a_report_keeps_to_the_published_schema(report: Report) -> None:
    jsonschema.validate(json.loads(report_json(report)), json.loads(SCHEMA.read_text()))


def test_the_published_schema_refuses_a_report_without_its_header() -> None:
    data = json.loads(report_json(a_report()))
    del data["header"]
    with pytest.raises(jsonschema.ValidationError, match="'header' is a required property"):
        jsonschema.validate(data, json.loads(SCHEMA.read_text()))


def test_the_published_schema_is_the_one_of_the_code() -> None:
    assert_golden(SCHEMA, json.dumps(report_schema(), indent=2) + "\n")


def test_members_are_camel_case_and_evidence_keeps_its_own_names() -> None:
    finding = replace(a_report().findings[0], evidence={"team_a": 1})
    data = json.loads(report_json(replace(a_report(), findings=(finding,))))
    assert {"clusterName", "takenAt", "snapshotSha256"} <= data["header"].keys()
    assert data["findings"][0]["evidence"] == {"team_a": 1}
