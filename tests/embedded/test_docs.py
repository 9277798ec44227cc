"""The example in docs/embedded-stack.md runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_the_example_of_the_page_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "embedded-stack.md").read_text(), re.DOTALL)
    exec(compile(example, "docs/embedded-stack.md", "exec"), {})  # noqa: S102 our own page
    assert "SageMaker HyperPod Cluster State Change" in capsys.readouterr().out
