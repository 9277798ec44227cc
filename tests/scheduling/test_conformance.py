"""The conformance runner, on cases of our own and, where they are at hand, on Kueue's."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from taskgov_cli import conformance

KUEUE_CASES = Path(__file__).resolve().parents[3] / "shared" / "kueue-cases"


def _case(available: int) -> dict[str, Any]:
    quota = {"name": "cpu", "nominalQuota": "4", "borrowingLimit": None, "lendingLimit": None}
    group = {"coveredResources": ["cpu"], "flavors": [{"name": "red", "resources": [quota]}]}
    return {
        "kind": "quota_available",
        "name": "one queue",
        "config": {},
        "resourceFlavors": [{"name": "red"}],
        "cohorts": [],
        "clusterQueues": [{"name": "q", "cohort": None, "resourceGroups": [group]}],
        "usage": {"q": {"red/cpu": 1500}},
        "expected": {"available": {"q": {"red/cpu": available}}, "note": "not compared"},
    }


def _run(directory: Path, *cases: Any, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    (directory / "cases.json").write_text(json.dumps({"cases": cases}))
    status = conformance.run(directory)
    return status, capsys.readouterr().out.strip().splitlines()


def test_cases_that_agree_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, lines = _run(tmp_path, _case(2500), _case(2500), capsys=capsys)
    assert (status, lines[-1]) == (0, "2 passed, 0 failed")


def test_a_case_that_differs_is_named_with_its_first_difference(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    status, lines = _run(tmp_path, _case(2500), _case(9), capsys=capsys)
    assert (status, lines[-1]) == (1, "1 passed, 1 failed")
    assert lines[0] == "FAIL cases.json: one queue"
    assert lines[1].strip() == "quota_available: available.q.red/cpu: expected 9, found 2500"


def test_a_case_that_cannot_be_read_fails_and_does_not_hide_the_others(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    status, lines = _run(tmp_path, {"kind": "unheard of", "name": "x", "expected": {}}, _case(2500), capsys=capsys)
    assert (status, lines[-1]) == (1, "1 passed, 1 failed")
    assert lines[1].strip().startswith('unknown form: the kind "unheard of" is not one of ')


def test_a_directory_without_cases_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert conformance.run(tmp_path) == 2
    assert "0 passed, 0 failed" in capsys.readouterr().out


UNREADABLE = {
    "a file that is no JSON": ("cases.json", b"{", "cases.json"),
    "a file that is nested too deeply": ("cases.json", b"[" * 100_000 + b"]" * 100_000, "cases.json"),
    "a file that is not compressed": ("cases.json.gz", b"[]", "cases.json.gz"),
    "a compressed file that ends early": ("cases.json.gz", gzip.compress(b"[]" * 99)[:-9], "cases.json.gz"),
    "a file with something else than cases": ("cases.json", b'{"worlds": []}', "cases.json"),
    "a case that is a number": ("cases.json", b"[7]", "case 1"),
    "a case without a kind": ("cases.json", b'[{"name": "x"}]', "x"),
    "a case with a list as its kind": ("cases.json", b'[{"name": "x", "kind": []}]', "x"),
    "a case that expects nothing": ("cases.json", b'[{"name": "x", "kind": "schedule"}]', "x"),
    "a recorded case without a clock": ("cases.json", b'[{"name": "x", "objects": []}]', "x"),
    "a recorded case with a cycle of another form": (
        "cases.json",
        json.dumps(
            [
                {
                    "name": "x",
                    "now": "2026-11-20T09:00:00Z",
                    "cycles": 1,
                    "config": {"fairSharing": False, "strategies": [], "gates": {}},
                    "objects": [],
                    "expected": {"cycles": [{"assignments": []}]},
                }
            ]
        ).encode(),
        "x",
    ),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_file_or_case_of_another_form_is_one_failure_with_its_name(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, content, named = UNREADABLE[name]
    (tmp_path / file).write_bytes(content)
    assert conformance.run(tmp_path) == 1
    lines = capsys.readouterr().out.strip().splitlines()
    assert lines[0] == f"FAIL {file}: {named}"
    assert lines[1].strip().startswith("unknown form: ")
    assert lines[-1] == "0 passed, 1 failed"


def test_a_difference_is_shown_as_a_diff_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "cases.json").write_text(json.dumps([_case(9)]))
    assert conformance.run(tmp_path, verbose=True) == 1
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert {"--- Kueue", "+++ taskgov", '-   "red/cpu": 9', '+   "red/cpu": 2500'} <= set(lines)


@pytest.mark.long
@pytest.mark.skipif(not KUEUE_CASES.is_dir(), reason="Kueue's recorded cases are not at hand")
@pytest.mark.parametrize("folder", ["", "go-oracle"])
def test_every_recorded_decision_of_kueue_is_ours_too(folder: str) -> None:
    played = list(conformance.play(KUEUE_CASES / folder))
    assert len(played) > 300
    assert [f"{p.file}: {p.case}: {p.difference.sentence}" for p in played if p.difference is not None] == []
