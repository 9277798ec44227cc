"""The performance scenario: the decisions of the small variants, not the time they take."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from benchmarks import engine
from benchmarks.scenario import SCENARIO, variant

if TYPE_CHECKING:
    import pytest


def test_the_small_variant_is_decided_as_kueue_decided_it() -> None:
    figures = engine.run(SCENARIO, "small_lockstep")
    assert figures["decisions"] == "as Kueue"
    assert (figures["admissions"], figures["preemptions"], figures["cycles"]) == (4182, 1182, 1030)
    assert (figures["instants"], figures["makespanMs"], figures["unfinished"]) == (477, 76_800, 0)


def test_a_log_that_differs_is_reported(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = SCENARIO | {"variants": {"tiny": variant(1, 1, {"small": 2, "medium": 0, "large": 0}, digest="0" * 64)}}
    monkeypatch.setattr(engine, "SCENARIO", tiny)
    assert engine.main(["--variant", "tiny", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["decisions"] == "DIFFERENT"
