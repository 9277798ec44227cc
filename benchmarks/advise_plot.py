"""What advice came to, as a picture: the mean wait of each split, today and advised, for each size of cluster.

Needs matplotlib (the extra `plots`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.figure import Figure

from taskgov_cli.replay_plot import FIRST, FONT, LINE, SECOND, save

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

LEAST = 0.01
"""Hours: less is drawn as this, on a logarithmic scale."""


@dataclass(frozen=True)
class Waits:
    """Mean waits on so many GPUs, in hours: of each split, named by the week in which the choice is made."""

    gpus: int
    weeks: Sequence[int]
    today: Sequence[float]
    advised: Sequence[float]


def plot(title: str, sizes: Sequence[Waits], file: Path) -> None:
    """Draw one row for each size."""
    with mpl.rc_context(FONT):
        figure = Figure(figsize=(11, 2.4 * len(sizes) + 0.6), layout="constrained")
        figure.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold")
        for axes, size in zip(figure.subplots(len(sizes), 1, squeeze=False)[:, 0], sizes, strict=True):
            for shift, name, colour in ((-0.2, "today", FIRST), (0.2, "advised", SECOND)):
                places = [place + shift for place in range(len(size.weeks))]
                hours = [max(LEAST, value) for value in getattr(size, name)]
                axes.bar(places, hours, width=0.38, color=colour, label=name)
            axes.set_yscale("log")
            axes.set_xticks(range(len(size.weeks)), [f"week {week}" for week in size.weeks])
            axes.set(title=f"{size.gpus} GPUs: mean wait in the two weeks after the choice", ylabel="hours")
            axes.grid(axis="y", color=LINE, linewidth=0.6)
            axes.legend(loc="upper right", ncols=2)
        save(figure, file)
