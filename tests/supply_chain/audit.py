"""Is a vulnerability known in what is deployed or in what builds it? `make audit-deps` asks.

pip-audit asks the package index's advisory service about every pin. Where there is no such service it calls each
package "not found" and ends well, which reads like a clean bill: here that is SKIPPED, and said so.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

from tests.support.tools import SBOM_PYTHON

ROOT = Path(__file__).parents[2]
OURS = ("dev", "lint", "plots", "sam", "sbom")
"""Locks of what tests, checks and builds it; other tools only look at it."""
FILES = (*sorted(ROOT.glob("layers/*/requirements.txt")), *(ROOT / "requirements" / f"{name}.txt" for name in OURS))
"""What is deployed comes first, and is small: without an answer to it nothing more is asked."""


@dataclass(frozen=True, slots=True)
class Audit:
    """What pip-audit says of one file: pins that were looked up, pins that nobody could answer for, and findings."""

    answered: int
    unanswered: tuple[str, ...]
    findings: tuple[str, ...]


def read(report: Mapping[str, Any]) -> Audit:
    """Read pip-audit's JSON.

    >>> read({"dependencies": [{"name": "a", "skip_reason": "not found"}]})
    Audit(answered=0, unanswered=('a: not found',), findings=())
    """
    skipped = [one for one in report["dependencies"] if "skip_reason" in one]
    known = [one for one in report["dependencies"] if "skip_reason" not in one]
    return Audit(
        answered=len(known),
        unanswered=tuple(f"{one['name']}: {one['skip_reason']}" for one in skipped),
        findings=tuple(_finding(one, vulnerability) for one in known for vulnerability in one["vulns"]),
    )


def _finding(one: Mapping[str, Any], vulnerability: Mapping[str, Any]) -> str:
    mended = ", ".join(vulnerability["fix_versions"]) or "no version yet"
    return f"{one['name']} {one['version']}: {vulnerability['id']}, fixed in {mended}"


def main() -> int:
    """Audit every file; return 1 when something is known, 0 when nothing is or nobody could be asked."""
    findings: list[str] = []
    for file in FILES:
        name = file.relative_to(ROOT)
        report, said = _audit(file)
        audit = read(report) if report else Audit(0, (), ())
        if not audit.answered:
            why = said or "it knows none of the packages: " + "; ".join(audit.unanswered[:2])
            print(f"SKIPPED: {name} was NOT audited, the advisory service cannot be asked ({why})")
            break
        print(f"{name}: {audit.answered} pins audited, {len(audit.findings)} known vulnerabilities")
        for one in audit.unanswered:
            print(f"  NOT audited: {one}")
        for one in audit.findings:
            print(f"  {one}")
        findings += audit.findings
    return 1 if findings else 0


def _audit(file: Path) -> tuple[dict[str, Any] | None, str]:
    """Return the report, or None with the last line of what was said instead."""
    command = [str(SBOM_PYTHON), "-m", "pip_audit", "--disable-pip", "--require-hashes", "--progress-spinner", "off"]
    done = subprocess.run(  # noqa: S603 - our own command
        [*command, "--format", "json", "--requirement", str(file)], capture_output=True, text=True, check=False
    )
    if done.stdout.startswith("{"):
        return json.loads(done.stdout), ""
    return None, (done.stderr.strip().splitlines() or ["it said nothing"])[-1][-300:]


if __name__ == "__main__":
    sys.exit(main())
