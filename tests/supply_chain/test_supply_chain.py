"""What is deployed is named to the last package: in the bill of materials, and to whoever knows vulnerabilities."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from tests.supply_chain import audit

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


@pytest.fixture(scope="module")
def bill(tmp_path_factory: pytest.TempPathFactory) -> Path:
    written = tmp_path_factory.mktemp("sbom") / "sbom.cdx.json"
    command = ["make", "--silent", "--old-file=.venv/.ready", "sbom", f"SBOM={written}", f"BIN={BIN}"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)  # noqa: S603 - our own command
    return written


def pins() -> dict[str, set[str]]:
    """Return the SHA-256 of every wheel that a layer takes, by name and version."""
    found: dict[str, set[str]] = {}
    for path in ROOT.glob("layers/*/requirements.txt"):
        for pin, hashes in re.findall(r"^(\S+==\S+)((?: \\\n\s+--hash=sha256:\w+)+)", path.read_text(), re.MULTILINE):
            found.setdefault(pin, set()).update(re.findall(r"sha256:(\w+)", hashes))
    return found


def test_the_bill_of_materials_lists_what_the_layers_bring_with_its_hashes(bill: Path) -> None:
    components: list[dict[str, Any]] = json.loads(bill.read_text())["components"]
    listed = {
        f"{one['name']}=={one['version']}": {
            digest["content"] for reference in one["externalReferences"] for digest in reference.get("hashes", ())
        }
        for one in components
    }
    assert listed == pins()
    assert {one["purl"] for one in components} == {"pkg:pypi/" + one.replace("==", "@") for one in pins()}


def test_the_bill_of_materials_is_valid_cyclonedx_and_says_whose_it_is(bill: Path) -> None:
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(bill.read_text()) is None
    about = json.loads(bill.read_text())["metadata"]["component"]
    assert (about["name"], about["type"]) == ("taskgov", "application")


def test_a_known_vulnerability_is_a_finding_that_says_what_fixes_it() -> None:
    vulnerability = {"id": "PYSEC-2026-1", "fix_versions": ["1.2"], "aliases": [], "description": ""}
    report = {"dependencies": [{"name": "a", "version": "1.1", "vulns": [vulnerability]}], "fixes": []}
    assert audit.read(report).findings == ("a 1.1: PYSEC-2026-1, fixed in 1.2",)
    assert audit.read(report).answered == 1


def test_a_package_that_the_service_does_not_know_is_not_taken_for_a_sound_one() -> None:
    report = {"dependencies": [{"name": "a", "skip_reason": "not found"}, {"name": "b", "version": "1", "vulns": []}]}
    assert audit.read(report) == audit.Audit(1, ("a: not found",), ())


def test_without_an_answer_it_says_skipped_and_asks_no_more(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[Path] = []

    def nobody(file: Path) -> tuple[dict[str, Any] | None, str]:
        asked.append(file)
        return {"dependencies": [{"name": "a", "skip_reason": "not found on the index"}]}, ""

    monkeypatch.setattr(audit, "_audit", nobody)
    assert audit.main() == 0
    assert "SKIPPED: layers/core/requirements.txt was NOT audited" in capsys.readouterr().out
    assert len(asked) == 1


def test_findings_fail_the_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    bad = {"name": "a", "version": "1", "vulns": [{"id": "X", "fix_versions": []}]}
    monkeypatch.setattr(audit, "_audit", lambda _file: ({"dependencies": [bad]}, ""))
    assert audit.main() == 1


def test_the_audit_covers_every_layer_and_the_lock() -> None:
    names = [str(file.relative_to(ROOT)) for file in audit.FILES]
    assert names == [*sorted(names[:-1]), "requirements/dev.txt"]
    assert set(names[:-1]) == {str(path.relative_to(ROOT)) for path in ROOT.glob("layers/*/requirements.txt")}


def test_every_check_that_checkov_skips_has_its_reason() -> None:
    text = (ROOT / ".checkov.yaml").read_text()
    skipped = yaml.safe_load(text)["skip-check"]
    assert [one for one in skipped if not re.search(rf"(#[^\n]*\n(?:\s+- CKV\S+ +#[^\n]*\n)*\s+- {one}\b)", text)] == []
    assert yaml.safe_load(text)["file"] == ["template.yaml"]


@pytest.mark.parametrize("tool", ["checkov", "awscli", "cosmic-ray"])
def test_a_tool_is_pinned_by_hash_in_an_environment_of_its_own(tool: str) -> None:
    text = (ROOT / "requirements" / f"{tool}.txt").read_text()
    versions = re.findall(r"^(\S+)==\S+", text, re.MULTILINE)
    assert tool in versions
    assert len(re.findall(r"^\S+==[^\n]*\\\n\s+--hash=", text, re.MULTILINE)) == len(versions)
