"""Play each walkthrough once in a run of the tests: for what it expects, and for the permissions that it needed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from taskgov_cli.main import app
from taskgov_cli.questions import played
from taskgov_embedded.walkthrough import measured
from taskgov_embedded.walkthrough.model import load
from taskgov_embedded.walkthrough.world import World
from tests.permissions.playing import Recorded, recording
from tests.support.once import once

if TYPE_CHECKING:
    import pytest

REPRESENTATIVE = ("07", "14", "21", "25", "26", "28", "29")
"""Walkthroughs that together with `permissions.playing.play_beside` use every permission that any of them uses."""


@dataclass(frozen=True, slots=True)
class Played:
    """What a walkthrough showed: its checks, what its roles needed, and what was measured of it."""

    passed: int
    failed: tuple[str, ...]
    recorded: Recorded
    published: set[str]
    widgets: dict[str, tuple[str, ...]]
    """Of the stack's dashboard, with the metrics that each shows."""


def played_once(factory: pytest.TempPathFactory, file: Path) -> Played:
    """Return what came of the walkthrough in `file`, played for the first caller."""
    return once(factory, f"walkthrough-{file.stem}", lambda: _play(file))


def _play(file: Path) -> Played:
    walkthrough, recorded = load(file), Recorded()
    passed, failed = 0, []
    with recording(recorded, World(walkthrough), file.stem) as world, TemporaryDirectory() as folder:
        for result, _ in played(app, walkthrough, world, Path(folder)):
            for check in result.checks:
                if check.passed:
                    passed += 1
                else:
                    failed.append(f"{result.title}: {check.what}: wanted {check.wanted}, got {check.got}")
        published, widgets = measured.published(world), measured.dashboard(world)
    return Played(passed, tuple(failed), recorded, published, widgets)
