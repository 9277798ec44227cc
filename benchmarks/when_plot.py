"""How good estimates of starts were, as pictures: coverage against nominal, and the error by length of wait.

Needs matplotlib (the extra `plots`).
"""

from __future__ import annotations

from math import inf, isfinite
from statistics import median
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.when_score import PARTS, given_of
from taskgov_cli.replay_plot import FIRST, FONT, LINE, SECOND, save

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

    from benchmarks.when_score import Given, Kept

LENGTHS = (0, 300, 900, 1800, 3600, 7200, 14400, 28800, 86400, inf)
NAMES = ("5 min", "15 min", "30 min", "1 h", "2 h", "4 h", "8 h", "1 day", "longer")
LEAST = 20
"""With fewer estimates there is no bar."""


def plot(title: str, sizes: Sequence[tuple[int, Sequence[Kept], float]], file: Path) -> None:
    """Draw one row for each size: GPUs, the estimates, and the moment from which on submissions count."""
    with mpl.rc_context(FONT):
        figure = Figure(figsize=(11, 3.4 * len(sizes) + 0.6), layout="constrained")
        figure.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold")
        for row, (gpus, kept, first) in zip(figure.subplots(len(sizes), 2, squeeze=False), sizes, strict=True):
            given = [one for one in given_of(kept) if one.kept.came >= first]
            _coverage(row[0], gpus, given)
            _errors(row[1], gpus, given)
        save(figure, file)


def _coverage(axes: Axes, gpus: int, given: Sequence[Given]) -> None:
    axes.plot([0, 100], [0, 100], color=LINE, linewidth=1)
    for name, colour, first in (("at submission", FIRST, True), ("all", SECOND, False)):
        some = [one for one in given if one.kept.number == 0 or not first]
        axes.plot(
            [100 * part for part in PARTS],
            [100 * _part(some, place) for place in range(len(PARTS))],
            marker="o",
            markersize=3,
            color=colour,
            label=f"simulated, {name}",
        )
        points = [_hit(some, nine=nine) for nine in (False, True)]
        axes.plot([50, 90], points, linestyle="", marker="D", color=colour, label=f"corrected, {name}")
    axes.set(title=f"{gpus} GPUs: how often a quantile was right", xlabel="nominal, %", ylabel="started by then, %")
    axes.set(xlim=(0, 100), ylim=(0, 100))
    axes.grid(color=LINE, linewidth=0.6)
    axes.legend(loc="upper left", fontsize=8)


def _part(given: Sequence[Given], place: int) -> float:
    """Return the part of estimates of which a quantile of the futures was hit, of those whose time is over or hit."""
    hits = [
        one.scored.started and one.scored.waited <= seconds
        for one in given
        if isfinite(seconds := one.kept.waits[place]) and (one.scored.started or one.scored.waited > seconds)
    ]
    return sum(hits) / len(hits) if hits else 0.0


def _hit(given: Sequence[Given], *, nine: bool) -> float:
    pairs = [(one.scored, one.scored.estimate.nine if nine else one.scored.estimate.half) for one in given]
    hits = [
        job.started and job.waited <= seconds
        for job, seconds in pairs
        if isfinite(seconds) and (job.started or job.waited > seconds)
    ]
    return 100 * sum(hits) / len(hits) if hits else 0.0


def _errors(axes: Axes, gpus: int, given: Sequence[Given]) -> None:
    """Draw the median error of P50 by length of wait, and that of the best baseline of each length."""
    groups: list[list[Given]] = [[] for _ in NAMES]
    for one in given:
        if one.scored.started and isfinite(one.scored.estimate.half):
            groups[next(place for place, most in enumerate(LENGTHS[1:]) if one.scored.waited <= most)].append(one)
    for place, group in enumerate(groups):
        if len(group) < LEAST:
            continue
        own = median(abs(one.scored.estimate.half - one.scored.waited) for one in group)
        best = min(median(abs(one.kept.simple[at] - one.scored.waited) for one in group) for at in range(3))
        for shift, seconds, colour in ((-0.2, own, FIRST), (0.2, best, SECOND)):
            axes.bar(place + shift, max(seconds, 1.0) / 60, width=0.38, color=colour)
        axes.annotate(f"{len(group):,}", (place, max(own, best, 1.0) / 60), ha="center", va="bottom", fontsize=7)
    axes.bar(0, 0, color=FIRST, label="estimate")
    axes.bar(0, 0, color=SECOND, label="best baseline of each length")
    axes.set_yscale("log")
    axes.set_xticks(range(len(NAMES)), NAMES, fontsize=8)
    axes.set(title=f"{gpus} GPUs: median error of P50", xlabel="wait, up to", ylabel="minutes")
    axes.grid(axis="y", color=LINE, linewidth=0.6)
    axes.legend(loc="upper left", fontsize=8)
