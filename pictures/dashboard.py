"""Draw a dashboard as CloudWatch would: its grid, its widgets, their lines. The same data gives the same bytes."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING, Final

import matplotlib as mpl
from matplotlib.dates import DateFormatter, HourLocator, date2num
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

    from pictures.recorded import Panel, Series

UNIT: Final = 0.56
"""Inches of a column of the grid; a row is 0.9 of it."""
LEGEND_ROW: Final = 0.155
"""Inches."""
TOP: Final = 0.9
"""Inches above the grid, for the heading."""
INK, SOFT, LINE, PAGE, CARD = "#1d2126", "#5f6873", "#e4e2dc", "#f7f6f3", "#ffffff"
COLOURS: Final = ("#3b6fd4", "#e39a34", "#3f9b80", "#8c5bb5", "#c9463d", "#5f6873", "#b08a3e")
Style = str | tuple[float, tuple[float, float]]
"""Of a line: a name, or an offset with a pattern."""
STYLES: Final[tuple[Style, ...]] = ("-", (0, (4, 2)), (0, (1, 1.5)))
FONT: Final = {"font.family": "DejaVu Sans", "font.size": 9, "svg.hashsalt": "taskgov"}


def draw(heading: str, note: str, panels: Sequence[Panel], file: Path) -> None:
    """Write the picture."""
    rows = max(y + height for _, y, _, height in (panel.place for panel in panels))
    width, height = 24 * UNIT, rows * UNIT * 0.9 + TOP
    with mpl.rc_context(FONT):
        figure = Figure(figsize=(width, height), facecolor=PAGE)
        figure.text(0.5 * UNIT / width, 1 - 0.36 / height, heading, fontsize=15, fontweight="bold", color=INK)
        figure.text(0.5 * UNIT / width, 1 - 0.64 / height, note, fontsize=9, color=SOFT)
        colours, span = _colours(panels), _span(panels)
        for panel in panels:
            for axes in _panel(figure, panel, colours, (width, height)):
                axes.set_xlim(*span)
        figure.savefig(file, dpi=100, metadata={"Software": None})


def _colours(panels: Sequence[Panel]) -> Mapping[str, str]:
    """Give whomever a line is about the same colour in all widgets, in the order in which they come."""
    about = dict.fromkeys(each.of for panel in panels for each in panel.series if each.of)
    return dict(zip(about, cycle(COLOURS), strict=False))


def _span(panels: Sequence[Panel]) -> tuple[float, float]:
    """Return the first and the last moment of all widgets."""
    times = [float(date2num(at)) for panel in panels for each in panel.series for at in each.times if not each.counts]
    return min(times), max(times)


def _panel(figure: Figure, panel: Panel, colours: Mapping[str, str], size: tuple[float, float]) -> list[Axes]:
    """Draw one widget; return what has a time axis."""
    x, y, wide, high = panel.place
    width, height = size
    left, right = (x * UNIT + 0.12) / width, ((x + wide) * UNIT - 0.12) / width
    top = 1 - (TOP + y * UNIT * 0.9 + 0.06) / height
    bottom = 1 - (TOP + (y + high) * UNIT * 0.9 - 0.06) / height
    card = figure.add_axes((left, bottom, right - left, top - bottom), facecolor=CARD)
    card.set(xticks=[], yticks=[])
    for spine in card.spines.values():
        spine.set_color(LINE)
    card.text(0.02, 0.955, panel.title, transform=card.transAxes, va="top", fontweight="bold", color=INK)
    if panel.alarms:
        _alarms(card, panel)
    elif panel.are_figures:
        return _figures(figure, panel, (left, bottom, right - left, top - bottom))
    elif not panel.series:
        _words(card, "AWS/SQS: measured by AWS alone; the embedded stack has no data.")
    else:
        columns = _legend_columns(panel)
        below = 0.48 + LEGEND_ROW * -(-len(panel.series) // columns)
        sides = 1.1 if panel.right_label else 0.75
        inside = (
            left + 0.55 / width,
            bottom + below / height,
            right - left - sides / width,
            top - bottom - (below + 0.36) / height,
        )
        return _lines(figure.add_axes(inside, facecolor=CARD), panel, colours, columns)
    return []


def _figures(figure: Figure, panel: Panel, place: tuple[float, float, float, float]) -> list[Axes]:
    """Draw the last value of each series, large, over its course, and return what has a time axis."""
    left, bottom, width, height = place
    step = width * 0.96 / len(panel.series)
    courses = []
    for number, each in enumerate(panel.series):
        at = left + width * 0.02 + number * step
        last = f"{each.values[-1]:,.0f}" if each.values else "--"
        figure.text(at, bottom + height * 0.52, last, fontsize=19, fontweight="bold", color=INK)
        figure.text(at, bottom + height * 0.4, each.label, fontsize=7.6, color=SOFT)
        course = figure.add_axes((at, bottom + height * 0.08, step * 0.86, height * 0.24), facecolor=CARD)
        course.set_axis_off()
        course.plot([float(date2num(one)) for one in each.times], each.values, color=COLOURS[0], linewidth=1.1)
        courses.append(course)
    return courses


def _alarms(card: Axes, panel: Panel) -> None:
    rows = -(-len(panel.alarms) // 2)
    for number, name in enumerate(panel.alarms):
        words = name.split("-")[1].removesuffix("Alarm")
        row, column = divmod(number, 2)
        left, height = 0.04 + 0.48 * column, 0.76 - row * min(0.2, 0.68 / max(rows - 1, 1))
        card.add_line(Line2D([left], [height], marker="s", ms=7, color=SOFT, transform=card.transAxes))
        card.text(left + 0.025, height, words, transform=card.transAxes, va="center", color=INK)


def _words(card: Axes, words: str) -> None:
    card.text(0.5, 0.5, words, transform=card.transAxes, ha="center", va="center", color=SOFT)


def _legend_columns(panel: Panel) -> int:
    """Return how many labels are side by side: what the width of the widget has room for."""
    longest = max(len(each.label) for each in panel.series)
    return max(1, min(3, int(panel.place[2] * UNIT / (0.45 + longest * 0.068))))


def _lines(axes: Axes, panel: Panel, colours: Mapping[str, str], columns: int) -> list[Axes]:
    other = axes.twinx() if any(each.right for each in panel.series) else None
    metrics = list(dict.fromkeys(each.metric for each in panel.series))
    own = dict(zip(metrics, cycle(COLOURS), strict=False))
    handles: list[Line2D | Patch] = []
    for each in panel.series:
        colour = colours.get(each.of, own[each.metric])
        style = STYLES[metrics.index(each.metric) % len(STYLES)] if each.of else STYLES[0]
        target = other if each.right and other is not None else axes
        if not panel.is_stacked:
            handles += _line(target, each, colour, style)
    if panel.is_stacked:
        handles += _stack(axes, panel, colours)
    for side, label in ((axes, panel.left_label), (other, panel.right_label)):
        if side is not None:
            _axis(side, label)
    axes.grid(axis="y", color=LINE, linewidth=0.6)
    axes.legend(
        handles=handles,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.1),
        ncols=columns,
        frameon=False,
        fontsize=7.6,
        labelcolor=SOFT,
        handlelength=2,
        columnspacing=1.4,
        labelspacing=0.25,
    )
    return [axes] if other is None else [axes, other]


def _stack(axes: Axes, panel: Panel, colours: Mapping[str, str]) -> list[Patch]:
    """Draw areas on top of one another, in the order of the series; a series without a value then adds nothing."""
    moments = sorted({at for each in panel.series for at in each.times})
    levels = []
    for each in panel.series:
        known = dict(zip(each.times, each.values, strict=True))
        levels.append([known.get(at, 0.0) for at in moments])
    drawn = axes.stackplot(
        [float(date2num(at)) for at in moments],
        levels,
        colors=[colours.get(each.of, COLOURS[0]) for each in panel.series],
        step="post",
        alpha=0.8,
        linewidth=0,
    )
    return [
        Patch(color=area.get_facecolor()[0], label=each.label) for area, each in zip(drawn, panel.series, strict=True)
    ]


def _line(axes: Axes, each: Series, colour: str, style: Style) -> list[Line2D]:
    moments = [float(date2num(at)) for at in each.times]
    if each.counts or len(each.times) < 3:
        # What happens now and then: points, with a stem to the ground.
        points = [(at, value) for at, value in zip(moments, each.values, strict=True) if value]
        times, values = zip(*points, strict=True) if points else ((), ())
        axes.vlines(times, 0, values, color=colour, linewidth=1.2, alpha=0.5)
        form = "D" if each.right else "o"
        points_drawn: list[Line2D] = axes.plot(times, values, form, ms=4, color=colour, label=each.label)
        return points_drawn
    drawn: list[Line2D] = axes.plot(
        moments,
        each.values,
        color=colour,
        linestyle=style,
        linewidth=1.6,
        drawstyle="steps-post",
        label=each.label,
    )
    return drawn


def _axis(axes: Axes, label: str) -> None:
    axes.set_ylabel(label, color=SOFT, fontsize=8)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    axes.xaxis.set_major_locator(HourLocator())
    axes.xaxis.set_major_formatter(DateFormatter("%H:%M"))
    axes.tick_params(colors=SOFT, labelsize=8, length=0)
    low, high = axes.get_ylim()
    axes.set_ylim(min(0.0, low), max(1.0, high) * 1.06)
    for spine in axes.spines.values():
        spine.set_visible(False)
