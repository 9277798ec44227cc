"""The conformance runner, on cases of our own and, where they are at hand, on Kueue's."""

from __future__ import annotations

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
    status = conformance.main([str(directory)])
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
    assert "KeyError" in lines[1]


def test_a_directory_without_cases_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert conformance.main([str(tmp_path)]) == 2
    assert conformance.main([]) == 2
    assert "0 passed, 0 failed" in capsys.readouterr().out


@pytest.mark.skipif(not KUEUE_CASES.is_dir(), reason="Kueue's recorded cases are not at hand")
def test_every_recorded_decision_of_kueue_is_ours_too() -> None:
    wrong = [
        f"{file}: {case['name']}: {difference}"
        for file, case in conformance.cases_in(KUEUE_CASES)
        if (difference := conformance.check(case)) is not None
    ]
    assert wrong == []
