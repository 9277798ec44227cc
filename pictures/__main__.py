"""Make the pictures: `python -m pictures [NAME ...]`; all of them when no name is given."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pictures import dashboard, pages
from pictures.recorded import panels
from taskgov_embedded.walkthrough.model import load
from taskgov_embedded.walkthrough.runner import Runner
from taskgov_embedded.walkthrough.world import World

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pictures.recorded import Panel

HERE: Final = Path(__file__).parent
FOLDER: Final = HERE.parent / "docs" / "pictures"
HEADING: Final = "taskgov - the CloudWatch dashboard"
TOP_ROWS: Final = 16
"""Of the dashboard's grid: what README shows."""
NOTE: Final = (
    "Three teams share twelve ml.g5.12xlarge, 48 GPUs. Metric data that the functions published on the embedded stack, "
    "laid out as the template's dashboard."
)


def played() -> tuple[list[Panel], bytes]:
    """Play the story; return what its dashboard shows, and the page of its last audit. Raises when a check failed."""
    # The emulated account takes any credentials, and must not find real ones.
    os.environ |= {"AWS_ACCESS_KEY_ID": "none", "AWS_SECRET_ACCESS_KEY": "none", "AWS_DEFAULT_REGION": "us-east-1"}
    walkthrough = load(HERE / "story.yaml")
    with World(walkthrough) as world:
        results = list(Runner(walkthrough, world).run())
        failed = [str(check) for result in results for check in result.checks if not check.passed]
        if failed:
            raise RuntimeError(f"the story did not go as it should: {failed}")
        *_, last = (report["html"] for result in results for report in result.reports)
        return panels(world), last


def main(names: Sequence[str]) -> None:
    """Write the pictures that are asked for."""
    FOLDER.mkdir(exist_ok=True)
    shown, report = played()
    if not names or "dashboard" in names:
        dashboard.draw(HEADING, NOTE, shown, FOLDER / "dashboard.png")
        top = [panel for panel in shown if panel.place[1] < TOP_ROWS]
        dashboard.draw(HEADING, NOTE, top, FOLDER / "dashboard-top.png")
    if not names or "report" in names:
        pages.photograph(report, FOLDER)


if __name__ == "__main__":
    main(sys.argv[1:])
