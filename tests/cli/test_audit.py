"""`taskgov audit`: the findings of a cluster, the report as files, and an exit code for pipelines."""

import json
from pathlib import Path

import jsonschema
import pytest
from typer.testing import CliRunner, Result

from taskgov.audit.report import report_from_json
from taskgov.snapshot.codec import snapshot_to_json
from taskgov_cli.main import app
from taskgov_cli.output import NO, NOT_UNDERSTOOD, OK
from tests.support.lab import Lab

SCHEMA = Path("events/schemas/audit-report.json")


@pytest.fixture
def snapshot(tmp_path: Path) -> str:
    """Return a cluster that promises six machines and has five: one warning, and nothing worse."""
    lab = Lab().team("team-a", 2).team("team-b", 4).machines(5).machines(1, cordoned=True)
    lab.submit("team-a", "borrows", pods=4)
    return _file(tmp_path / "snapshot.json", lab)


@pytest.fixture
def calm(tmp_path: Path) -> str:
    return _file(tmp_path / "calm.json", Lab().team("team-a", 2, borrow=0).machines(2))


def _file(path: Path, lab: Lab) -> str:
    path.write_bytes(snapshot_to_json(lab.snapshot()))
    return str(path)


def audit(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["audit", *arguments])


def test_findings_are_shown_with_the_key_figures(snapshot: str) -> None:
    result = audit("-s", snapshot)
    words = " ".join(result.output.split())
    assert "1 finding needs attention." in words
    assert "GPUs: 5 healthy, 6 guaranteed, 4 used, 2 borrowed" in words
    assert "warning over-commitment" in words
    assert "declare" in words  # the remedy


def test_a_cluster_without_findings_says_so(calm: str) -> None:
    result = audit("-s", calm, "--fail-on", "info")
    assert (result.exit_code, "No findings." in result.output) == (OK, True), result.output


@pytest.mark.parametrize(
    ("fail_on", "code"), [("never", OK), ("info", NO), ("warning", NO), ("error", OK), ("incident", OK)]
)
def test_a_warning_ends_with_1_where_warnings_are_to_fail(snapshot: str, fail_on: str, code: int) -> None:
    assert audit("-s", snapshot, "--fail-on", fail_on).exit_code == code


def test_a_warning_fails_nothing_unless_it_is_asked_for(snapshot: str) -> None:
    assert audit("-s", snapshot).exit_code == OK


def test_a_document_that_breaks_rules_is_an_error(calm: str, tmp_path: Path) -> None:
    broken = tmp_path / "policy.yaml"
    broken.write_text("apiVersion: taskgov/v1\ncluster: {name: ml-cluster}\nteams: [{name: Team A}]\n")
    result = audit("-s", calm, "-p", str(broken))
    assert (result.exit_code, "policy-violation" in result.output) == (NO, True), result.output


def test_the_report_is_written_as_a_page_and_as_data(snapshot: str, tmp_path: Path) -> None:
    folder = tmp_path / "reports" / "today"
    result = audit("-s", snapshot, "-o", str(folder))
    page, data = sorted(folder.iterdir())
    assert (page.name, data.name) == ("ml-cluster-2026-11-20T120000Z.html", "ml-cluster-2026-11-20T120000Z.json")
    assert b"<h1>ml-cluster</h1>" in page.read_bytes()
    assert [finding.code for finding in report_from_json(data.read_bytes()).findings] == ["over-commitment"]
    assert f"written: {page}" in result.output


def test_json_is_the_report_by_its_published_schema(snapshot: str) -> None:
    data = json.loads(audit("-s", snapshot, "--json").output)
    jsonschema.validate(data, json.loads(SCHEMA.read_text()))
    assert (data["header"]["clusterName"], data["totals"]["borrowed"]) == ("ml-cluster", 2.0)


def test_without_a_cluster_and_without_a_file_it_says_what_to_give() -> None:
    result = audit()
    assert (result.exit_code, "--snapshot FILE" in result.output) == (NOT_UNDERSTOOD, True)
