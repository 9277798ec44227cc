"""`taskgov audit`: the findings of a cluster, the report as files, and an exit code for pipelines."""

import json
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer.testing import CliRunner, Result

from taskgov.audit.report_build import audit_report, history_after
from taskgov.audit.trend import Earlier, history_to_json
from taskgov.services.audit_cluster import HISTORY_KEY
from taskgov.snapshot.codec import snapshot_to_json
from taskgov.snapshot.model import Snapshot
from taskgov_cli import live_reading
from taskgov_cli.main import app
from taskgov_cli.output import NO, NOT_UNDERSTOOD, OK
from tests.support.lab import Lab
from tests.support.memory import InMemoryDocuments
from tests.support.reports import report_from_json

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


def test_what_could_not_be_checked_is_listed_and_no_figure_is_made_of_it(tmp_path: Path) -> None:
    sample = json.loads(Path("examples/snapshot.json").read_text())
    del sample["kueue"]
    file = tmp_path / "snapshot.json"
    file.write_text(json.dumps(sample))
    output = tmp_path / "page.html"
    words = " ".join(audit("-s", str(file), "-o", str(output)).output.split())
    left_out = "Not checked: queues and tasks (the snapshot has no objects of Kueue)."
    assert left_out in words
    assert "GPUs: 7 healthy. Findings" in words  # not "0 used", not "0 workloads wait"
    page = output.read_text()
    assert left_out in page
    assert "<dt>Healthy</dt>" in page
    assert "<dt>Used</dt>" not in page
    data = json.loads(audit("-s", str(file), "--json").stdout)
    assert [each["part"] for each in data["notChecked"]] == ["queues and tasks"]


def test_without_a_document_no_quota_is_as_it_should_be(calm: str) -> None:
    words = " ".join(audit("-s", calm).output.split())
    assert "Not checked: quotas (there is no policy document)." in words
    assert "as they should be" not in words


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
    assert "2 findings need attention. No quota was checked." in result.output


def test_the_report_is_written_as_a_page_and_as_data(snapshot: str, tmp_path: Path) -> None:
    folder = tmp_path / "reports" / "today"
    result = audit("-s", snapshot, "-o", str(folder))
    page, data = sorted(folder.iterdir())
    assert (page.name, data.name) == ("ml-cluster-2026-11-20T120000Z.html", "ml-cluster-2026-11-20T120000Z.json")
    assert b"<h1>ml-cluster</h1>" in page.read_bytes()
    assert [finding.code for finding in report_from_json(data.read_bytes()).findings] == ["over-commitment"]
    assert f"written: {page}" in result.output


def test_a_name_that_ends_in_html_is_the_page_and_nothing_else_is_written(snapshot: str, tmp_path: Path) -> None:
    page = tmp_path / "reports" / "today.html"
    page.parent.mkdir()
    page.with_suffix(".json").write_text("somebody's")
    result = audit("-s", snapshot, "-o", str(page))
    assert b"<h1>ml-cluster</h1>" in page.read_bytes()
    assert f"written: {page}" in result.output
    assert {file.name for file in page.parent.iterdir()} == {"today.html", "today.json"}
    assert page.with_suffix(".json").read_text() == "somebody's"


def test_a_file_in_the_place_of_the_folder_is_refused_and_stays(snapshot: str, tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("mine")
    result = audit("-s", snapshot, "-o", str(file))
    assert (result.exit_code, file.read_text()) == (2, "mine")
    assert "notes.txt: File exists" in result.output


def test_a_folder_may_have_any_name(snapshot: str, tmp_path: Path) -> None:
    folder = tmp_path / "reports.html"
    folder.mkdir()
    audit("-s", snapshot, "-o", str(folder))
    assert len(list(folder.iterdir())) == 2


def test_json_is_the_report_by_its_published_schema(snapshot: str) -> None:
    data = json.loads(audit("-s", snapshot, "--json").output)
    jsonschema.validate(data, json.loads(SCHEMA.read_text()))
    assert (data["header"]["clusterName"], data["totals"]["borrowed"]) == ("ml-cluster", 2.0)


def test_without_a_cluster_and_without_a_file_it_says_what_to_give() -> None:
    result = audit()
    assert (result.exit_code, "--snapshot FILE" in result.output) == (NOT_UNDERSTOOD, True)


class Stack:
    """A stack with a cluster that is read live, and what its nightly audits left."""

    def __init__(self, now: Snapshot) -> None:
        self.now, self.documents = now, InMemoryDocuments()

    def audited_last_night(self, lab: Lab) -> None:
        then = replace(lab.snapshot(), taken_at=self.now.taken_at - timedelta(hours=10))
        history = history_after(audit_report(then), Earlier(run_id="last night"))
        self.documents.put(HISTORY_KEY.format(self.now.cluster.name), history_to_json(history), "application/json")


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch) -> Stack:
    """Return one whose cluster promises six machines and has five."""
    stack = Stack(Lab().team("team-a", 2).team("team-b", 4).machines(5).machines(1, cordoned=True).snapshot())
    monkeypatch.setattr(live_reading, "read_live", lambda *_: stack.now)
    monkeypatch.setattr(live_reading, "documents_of", lambda name: stack.documents if name else InMemoryDocuments())
    return stack


def live(*arguments: str) -> Any:
    return json.loads(audit("--cluster", "ml-cluster", *arguments, "--json").output)


def test_a_live_audit_is_compared_with_those_of_the_stack(stack: Stack) -> None:
    stack.audited_last_night(Lab().team("team-a", 2, borrow=0).team("team-b", 3).machines(6))
    before = dict(stack.documents.stored)
    data = live("--stack", "taskgov")
    assert (data["trend"]["previous"]["guaranteed"], data["totals"]["guaranteed"], data["trend"]["new"]) == (
        5.0,
        6.0,
        1,
    )
    words = " ".join(audit("--cluster", "ml-cluster", "--stack", "taskgov").output.split())
    assert "new: warning over-commitment, ml.g5.8xlarge" in words
    assert "Healthy (GPUs) 5 6 \N{MINUS SIGN}1" in words
    assert stack.documents.stored == before  # looking is no audit of the stack's: the next one compares with its own


def test_what_the_audit_before_found_is_shown_as_gone(stack: Stack) -> None:
    stack.audited_last_night(Lab().team("team-a", 9).machines(6))
    words = " ".join(audit("--cluster", "ml-cluster", "--stack", "taskgov").output.split())
    assert "Resolved since the last audit" in words


def test_without_a_stack_and_before_the_first_audit_there_is_no_trend(stack: Stack) -> None:
    assert live("--stack", "taskgov")["trend"]["previous"] is None
    stack.audited_last_night(Lab().team("team-a", 2).machines(6))
    assert live("--stack", "")["trend"]["previous"] is None


def test_a_history_that_somebody_damaged_is_named_with_what_to_do(stack: Stack) -> None:
    stack.documents.put(HISTORY_KEY.format("ml-cluster"), b"{", "application/json")
    result = audit("--cluster", "ml-cluster", "--stack", "taskgov")
    assert (result.exit_code, "memory/ml-cluster/audits.json cannot be read" in result.stderr) == (3, True)


def test_a_document_that_is_not_in_force_is_part_of_the_remedies(tmp_path: Path) -> None:
    examples = Path(__file__).parents[2] / "examples"
    page, policy = tmp_path / "page.html", str(examples / "policy.yaml")
    result = audit("-s", str(examples / "snapshot.json"), "-p", policy, "-o", str(page))
    assert result.exit_code == 1, result.output
    text = re.sub("<wbr ?/?>|<span[^>]*>|</span>", "", page.read_text())
    assert f"taskgov apply --policy {policy}" in text
    assert "taskgov reconcile" not in text
