"""Play each walkthrough once in a run of the tests: for what it expects, and for the permissions that it needed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from taskgov_embedded.walkthrough.model import load
from taskgov_embedded.walkthrough.runner import Runner
from taskgov_embedded.walkthrough.world import World
from tests.permissions.playing import Recorded, recording
from tests.support.once import once

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

REPRESENTATIVE = ("07", "14", "21", "25", "26", "28", "29")
"""Walkthroughs that together with `permissions.playing.play_beside` use every permission that any of them uses."""


@dataclass(frozen=True, slots=True)
class Played:
    """What a walkthrough showed: each check that failed, and what its roles needed."""

    failed: tuple[str, ...]
    recorded: Recorded = field(default_factory=Recorded)


def played_once(factory: pytest.TempPathFactory, file: Path) -> Played:
    """Return what came of the walkthrough in `file`, played for the first caller."""
    return once(factory, f"walkthrough-{file.stem}", lambda: _play(file))


def _play(file: Path) -> Played:
    walkthrough, recorded = load(file), Recorded()
    with recording(recorded, World(walkthrough), file.stem) as world:
        failed = tuple(
            f"{result.title}: {check.what}: wanted {check.wanted}, got {check.got}"
            for result in Runner(walkthrough, world).run()
            for check in result.checks
            if not check.passed
        )
    return Played(failed, recorded)
