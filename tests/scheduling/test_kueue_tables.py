"""The recorder of Kueue's tables: what it changes in a Go test, and what it says where it cannot run."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.kueue_tables import record as recording
from tests.kueue_tables.record import RecordingError, overlay, record, with_recorder
from tests.kueue_tables.slices import worlds

if TYPE_CHECKING:
    from pathlib import Path


def test_only_the_cycle_and_the_cohorts_of_a_test_are_replaced() -> None:
    source = "func TestX(t *testing.T) {\n\ts.schedule(schedCtx)\n\tqueues.AddOrUpdateCohort(ctx, &cohort)\n}"
    assert with_recorder(source) == source.replace("s.schedule(schedCtx)", "taskgovSchedule(t, s, schedCtx)")


def test_the_overlay_names_the_recorder_and_the_tests_that_change(tmp_path: Path) -> None:
    package = tmp_path / "module" / "pkg" / "scheduler"
    package.mkdir(parents=True)
    (package / "some_test.go").write_text("scheduler.schedule(ctx)")
    (package / "other_test.go").write_text("nothing")
    (package / "some_bench_test.go").write_text("scheduler.schedule(ctx)")
    replaced = json.loads(overlay(tmp_path / "module", tmp_path).read_text())["Replace"]
    assert sorted(path.rpartition("/")[2] for path in replaced) == ["some_test.go", "taskgov_recorder_test.go"]
    assert (package / "some_test.go").read_text() == "scheduler.schedule(ctx)"


def test_without_go_or_the_module_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(RecordingError, match="There is no Go on this machine"):
        record(tmp_path, ".", None)
    monkeypatch.setattr(shutil, "which", lambda _: "/usr/bin/go")
    monkeypatch.setattr(recording, "kueue_module", lambda: None)
    with pytest.raises(RecordingError, match="make cluster-programs"):
        record(tmp_path, ".", None)


def test_the_same_seed_gives_the_same_worlds() -> None:
    assert worlds(3, 5) == worlds(3, 5) != worlds(3, 6)
