"""Tools that have environments of their own, made by the targets of make that use them."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
SAM: Final = ROOT / ".venv-sam" / "bin" / "sam"
SBOM_PYTHON: Final = ROOT / ".venv-sbom" / "bin" / "python"


def run_with_sam(code: str, *arguments: str, given: str = "") -> str:
    """Run Python code where the SAM CLI can be imported; return what it prints."""
    command = [str(SAM.with_name("python")), "-c", code, *arguments]
    return subprocess.run(command, input=given, capture_output=True, text=True, check=True).stdout  # noqa: S603
