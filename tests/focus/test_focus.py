"""The charges of `taskgov usage --focus` keep the rules of FOCUS 1.0, as focus-validator checks them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.cli.test_usage_focus import charges_csv

CHECK = Path(__file__).with_name("check.py")
PYTHON = Path(__file__).parents[2] / ".venv-focus" / "bin" / "python"

pytestmark = pytest.mark.focus


def checked(folder: Path, text: str) -> tuple[int, str]:
    file = folder / "charges.csv"
    file.write_text(text)
    done = subprocess.run([PYTHON, CHECK, file], check=False, capture_output=True, text=True, env={})  # noqa: S603
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout.strip()


def test_the_charges_keep_every_rule(tmp_path: Path) -> None:
    code, said = checked(tmp_path, charges_csv())
    assert (code, said) == (0, "16 charges keep 132 rules of FOCUS 1.0")


@pytest.mark.parametrize(
    ("before", "after", "rule"),
    [
        ("Usage-Based", "Always", "ChargeFrequency_Enum"),
        ("AI and Machine Learning", "GPUs", "ServiceCategory_Enum"),
        (",USD,", ",dollars,", "BillingCurrency_IsCurrencyCode"),
        ("BilledCost", "Cost", "BilledCost_Required"),
        ("2026-11-20T10:00:00Z", "yesterday", "ChargePeriodStart_IsDateTime"),
        ('"{""team"": ""a"", ""use"": ""used""}"', "team a", "Tags_IsJSONObject"),
    ],
)
def test_a_broken_rule_is_found(tmp_path: Path, before: str, after: str, rule: str) -> None:
    assert before in charges_csv()
    code, said = checked(tmp_path, charges_csv().replace(before, after))
    assert code == 1
    assert rule in said.split()
