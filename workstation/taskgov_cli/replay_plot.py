"""A replay as a picture: what was used and what waited over time, and what it meant for each team.

Needs matplotlib (the extra `plots`). The same outcome gives the same bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import matplotlib as mpl
from matplotlib.figure import Figure

from taskgov_cli.replay_counts import NO_LIMIT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from taskgov_cli.replay_counts import CountsOutcome
    from taskgov_cli.replay_outcome import Outcome

FORMS: Final = ("svg", "png", "pdf")
"""By the file's ending."""
INK, SOFT, LINE = "#1d2126", "#5f6873", "#e4e2dc"
FIRST, SECOND, THIRD, PALE, SUPPLY = "#8a94a3", "#3b6fd4", "#e39a34", "#c9d0d9", "#1d2126"
FONT: Final = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "svg.hashsalt": "taskgov",
    "text.color": INK,
    "axes.edgecolor": LINE,
    "axes.labelcolor": SOFT,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "legend.frameon": False,
    "legend.fontsize": 8,
}
DAY: Final = 86400


def plot_jobs(title: str, outcomes: Sequence[Outcome], file: Path) -> None:
    """Draw the outcomes of a trace of jobs beside one another; the last one is the policy's."""
    with mpl.rc_context(FONT):
        figure = Figure(figsize=(11, 9), layout="constrained")
        figure.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold")
        used, waiting, teams = figure.subplots(3, 1, height_ratios=(1, 1, 1.15))
        _over_time(used, outcomes, "used")
        _borrowed(used, outcomes[-1])
        used.set(title="GPUs held by admitted jobs", ylabel="GPUs")
        _over_time(waiting, outcomes, "waiting")
        waiting.set(
            title="GPUs that queued jobs request (only jobs that start at some time)",
            ylabel="GPUs",
            xlabel="days since the first job",
        )
        for axes in (used, waiting):
            axes.set_ylim(0, 1.2 * max(1.0, axes.dataLim.ymax))
            axes.legend(loc="upper left", ncols=4)
        _by_team(teams, outcomes)
        save(figure, file)


def _over_time(axes: Any, outcomes: Sequence[Outcome], name: str) -> None:
    days = [sample.at / DAY for sample in outcomes[0].samples]
    if name == "used":
        machines = [sample.machines for sample in outcomes[0].samples]
        axes.step(days, machines, where="post", color=SUPPLY, linewidth=0.9, linestyle=(0, (4, 3)), label="machines")
    for outcome, colour in zip(outcomes, (FIRST, SECOND), strict=True):
        values = [getattr(sample, name) for sample in outcome.samples]
        axes.step(days, values, where="post", color=colour, linewidth=1.4, label=outcome.name)
    axes.grid(axis="y", color=LINE, linewidth=0.6)
    axes.margins(x=0.005)


def _borrowed(axes: Any, outcome: Outcome) -> None:
    days = [sample.at / DAY for sample in outcome.samples]
    values = [sample.borrowed for sample in outcome.samples]
    axes.fill_between(
        days, values, step="post", color=THIRD, alpha=0.55, linewidth=0, label=f"borrowed, {outcome.name}"
    )


def _by_team(axes: Any, outcomes: Sequence[Outcome]) -> None:
    names = [team.team for team in outcomes[0].teams]
    for number, (outcome, colour) in enumerate(zip(outcomes, (FIRST, SECOND), strict=True)):
        places = [place + 0.4 * number - 0.2 for place in range(len(names))]
        axes.bar(
            places, [team.mean_wait / 3600 for team in outcome.teams], width=0.38, color=colour, label=outcome.name
        )
    axes.set_xticks(
        range(len(names)), names, rotation=30 if len(names) > 8 else 0, ha="right" if len(names) > 8 else "center"
    )
    axes.set(title="Mean wait by team", ylabel="hours")
    axes.grid(axis="y", color=LINE, linewidth=0.6)
    axes.legend(loc="upper left", ncols=2)


def plot_counts(title: str, counts: CountsOutcome, file: Path) -> None:
    """Draw counts by minute: hour by hour, team by team, and what each borrow limit could have served."""
    with mpl.rc_context(FONT):
        figure = Figure(figsize=(11, 8), layout="constrained")
        figure.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold")
        grid = figure.add_gridspec(2, 2)
        _by_hour(figure.add_subplot(grid[0, :]), counts)
        _counts_by_team(figure.add_subplot(grid[1, 0]), counts)
        _by_limit(figure.add_subplot(grid[1, 1]), counts)
        save(figure, file)


def _by_hour(axes: Any, counts: CountsOutcome) -> None:
    days = [number / 24 for number in range(len(counts.hours))]
    kinds = (("running", SECOND), ("idle", PALE))
    axes.stackplot(
        days,
        *([getattr(hour, name) for hour in counts.hours] for name, _ in kinds),
        colors=[colour for _, colour in kinds],
        labels=[name for name, _ in kinds],
        linewidth=0,
    )
    axes.plot(days, [hour.waiting for hour in counts.hours], color=THIRD, linewidth=1.5, label="waiting")
    axes.set(title="GPUs running, idle, and requested by waiting jobs", ylabel="GPUs", xlabel="days")
    axes.margins(x=0.005)
    axes.set_ylim(0, 1.15 * counts.gpus)
    axes.legend(loc="upper left", ncols=3)


def _counts_by_team(axes: Any, counts: CountsOutcome) -> None:
    places = range(len(counts.by_team))
    axes.barh(places, [team.idle for team in counts.by_team], color=PALE, height=0.4, align="edge", label="idle")
    axes.barh(
        places, [team.waiting for team in counts.by_team], color=THIRD, height=-0.4, align="edge", label="waiting"
    )
    axes.set_yticks(places, [team.team for team in counts.by_team])
    axes.invert_yaxis()
    axes.set(title="Idle and waiting GPUs by team", xlabel="GPU-hours")
    axes.grid(axis="x", color=LINE, linewidth=0.6)
    axes.legend(loc="lower right")


def _by_limit(axes: Any, counts: CountsOutcome) -> None:
    limits = [*counts.limits, *([counts.by_policy] if counts.by_policy else [])]
    special = {None: "policy", NO_LIMIT: "none"}
    names = [special.get(limit.borrow_limit, f"{limit.borrow_limit} %") for limit in limits]
    total = counts.waiting or 1.0
    for number, (name, colour, label) in enumerate(
        (("served_whole_jobs_gpu_hours", SECOND, "in whole jobs"), ("served_gpu_hours", FIRST, "GPU by GPU"))
    ):
        shares = [100 * getattr(limit, name) / total for limit in limits]
        places = [place + 0.4 * number - 0.2 for place in range(len(names))]
        bars = axes.bar(places, shares, width=0.38, color=colour, label=label)
        axes.bar_label(bars, fmt="%.0f", fontsize=7.5, color=SOFT)
    axes.set_xticks(range(len(names)), names)
    axes.set(title="Waiting that idle quota could have served", ylabel="percent", xlabel="borrow limit", ylim=(0, 118))
    axes.grid(axis="y", color=LINE, linewidth=0.6)
    axes.legend(loc="upper left", ncols=2)


def save(figure: Figure, file: Path) -> None:
    """Write a figure without what differs from one time to another."""
    nothing = {"svg": {"Date": None}, "png": {"Software": None}, "pdf": {"CreationDate": None, "ModDate": None}}
    figure.savefig(file, dpi=110, metadata=nothing[file.suffix.removeprefix(".").lower()])
