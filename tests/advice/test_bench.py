"""`make bench-advise`: the table of what advice would have been worth, on a history whose best setting is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.advise import COLUMNS, main
from tests.advice.synthetic import by_clock, history, steady, written

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a trace in which a team needs more than its limit in the mornings."""
    past = history(lambda chance: [*by_clock(chance, "burst", 6, 8, 14), *steady(chance, "calm", 3, size=2)])
    return written(past, tmp_path_factory.mktemp("trace") / "made.csv")


def test_a_row_for_each_size_says_what_was_won_and_what_the_exact_model_says(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main([str(trace), "--gpus", "6", "--splits", "1", "--looks-back", "1"])
    head, rule, row, *chosen = capsys.readouterr().out.splitlines()
    cells = dict(zip(COLUMNS, row.strip("| ").split(" | "), strict=True))
    assert head == f"| {' | '.join(COLUMNS)} |"
    assert rule.count("---") == len(COLUMNS)
    assert (cells["GPUs"], cells["splits won"]) == ("6", "1 of 1 (9 of 10)")
    assert float(cells["advised"].removesuffix(" h")) < float(cells["mean wait today"].removesuffix(" h"))
    assert cells["exact model, last split"] == "the same"
    assert chosen[:2] == ["", "6 GPUs"]


def test_a_higher_limit_is_set_beside_a_lower_one(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([str(trace), "--gpus", "6", "--limits", "2"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "6 GPUs, weeks 2 to 4, quotas from the use of the two weeks before"
    waits = {row.split(" | ")[0].strip("| "): float(row.split(" | ")[1].removesuffix(" h")) for row in lines[3:]}
    assert list(waits) == ["limit 50 %", "limit 100 %", "limit 200 %", "limit 500 %", "no limit"]
    assert waits["no limit"] < waits["limit 50 %"]


def test_a_picture_that_cannot_be_drawn_is_refused_before_anything_is_measured(
    trace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.plots.find_spec", lambda _: None)
    with pytest.raises(SystemExit, match="2"):
        main([str(trace), "--plot", "waits.png"])
    assert "drawing needs matplotlib: " in capsys.readouterr().err
