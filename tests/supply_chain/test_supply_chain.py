"""What is installed is pinned, small, and listed for scanners of vulnerabilities."""

import re
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.supply_chain import audit

ROOT = Path(__file__).parents[2]
MIB = 2**20


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


def test_the_audit_covers_every_layer_and_our_locks() -> None:
    names = [str(file.relative_to(ROOT)) for file in audit.FILES]
    layers = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("layers/*/requirements.txt"))
    assert names == [*layers, *(f"requirements/{name}.txt" for name in audit.OURS)]


def test_every_check_that_checkov_skips_has_its_reason() -> None:
    text = (ROOT / ".checkov.yaml").read_text()
    skipped = yaml.safe_load(text)["skip-check"]
    assert [one for one in skipped if not re.search(rf"(#[^\n]*\n(?:\s+- CKV\S+ +#[^\n]*\n)*\s+- {one}\b)", text)] == []
    assert yaml.safe_load(text)["file"] == ["template.yaml"]


@pytest.mark.parametrize("tool", ["checkov", "awscli", "cosmic-ray", "focus-validator", "aws-sam-cli", "cyclonedx-bom"])
def test_a_tool_is_pinned_by_hash_in_an_environment_of_its_own(tool: str) -> None:
    (lock,) = (file for file in (ROOT / "requirements").glob("*.txt") if f"\n{tool}==" in f"\n{file.read_text()}")
    text = lock.read_text()
    versions = re.findall(r"^(\S+)==\S+", text, re.MULTILINE)
    assert tool in versions
    assert len(re.findall(r"^\S+==[^\n]*\\\n\s+--hash=", text, re.MULTILINE)) == len(versions)


def pinned(lock: str) -> dict[str, str]:
    """Return the versions of a lock by name."""
    text = (ROOT / "requirements" / f"{lock}.txt").read_text()
    return dict(re.findall(r"^([\w.-]+)(?:\[[\w,]+\])?==([^\s;]+)", text, re.MULTILINE))


def on_disk(package: str) -> int:
    """Return the bytes that a package takes here; none where it is not for this machine."""
    try:
        files = distribution(package).files or ()
    except PackageNotFoundError:
        return 0
    return sum(path.stat().st_blocks * 512 for file in files if (path := Path(str(file.locate()))).is_file())


def test_what_the_demo_and_the_tests_need_takes_at_most_450_mib() -> None:
    """pip, which is in every new environment, takes 20 MiB of these."""
    sizes = {package: on_disk(package) / MIB for package in pinned("dev")}
    assert 100 < sum(sizes.values()) < 430, sorted(sizes.items(), key=lambda item: -item[1])[:10]


@pytest.mark.parametrize("lock", ["lint", "plots", "browser"])
def test_what_is_added_to_the_environment_agrees_with_what_is_in_it(lock: str) -> None:
    own, added = pinned("dev"), pinned(lock)
    assert {package: added[package] for package in own.keys() & added.keys()} == {
        package: own[package] for package in own.keys() & added.keys()
    }
    assert added.keys() - own.keys()
