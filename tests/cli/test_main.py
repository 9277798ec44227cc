"""The command line as a whole: what it says when a part of it is not installed."""

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from taskgov_cli import main


def test_a_command_of_the_embedded_stack_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in [name for name in sys.modules if name.startswith("taskgov_embedded") or name == "taskgov_cli.demo"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "moto", None)
    monkeypatch.setitem(sys.modules, "samtranslator", None)
    monkeypatch.setitem(sys.modules, "time_machine", None)
    monkeypatch.setattr(sys, "argv", ["taskgov", "demo"])
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == 2
    assert "pip install 'taskgov[embedded]'" in capsys.readouterr().err


def test_any_other_missing_module_is_a_fault_and_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise ModuleNotFoundError("No module named 'boto4'", name="boto4")

    monkeypatch.setattr(main, "app", missing)
    with pytest.raises(ModuleNotFoundError, match="boto4"):
        main.main()


def test_conformance_says_that_a_folder_has_no_cases(tmp_path: Path) -> None:
    result = CliRunner().invoke(main.app, ["conformance", str(tmp_path)])
    assert result.exit_code == 2
    assert "0 passed, 0 failed" in result.output


def test_conformance_names_the_case_that_fails(tmp_path: Path) -> None:
    case = {"kind": "no-such-kind", "name": "a case of no known kind", "expected": {}}
    (tmp_path / "cases.json").write_text(json.dumps([case]))
    result = CliRunner().invoke(main.app, ["conformance", str(tmp_path)])
    assert result.exit_code == 1
    assert "a case of no known kind" in result.output
