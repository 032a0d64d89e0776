"""Regret of many algorithms on many problems: a table, and a dot plot with intervals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import FuncFormatter

from guardband.lab.loglog import MARKERS
from guardband.lab.panel import RunResult
from guardband.sim import COLOURS, FAINT, GREY, mean_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_dots", "draw_table"]

Cells = Mapping[tuple[str, str], RunResult]  # by problem and algorithm; "baseline" is everywhere


def draw_table(
    axes: Axes, cells: Cells, rows: Mapping[str, str], columns: Mapping[str, str]
) -> None:
    """Write regret in shares of the baseline's, violations below it; dark: as much or more.

    Rows are problems, columns are algorithms, each with the words to show.
    """
    shade = np.full((len(rows), len(columns)), np.nan)
    for row, problem in enumerate(rows):
        base = _base(cells, problem)
        for column, name in enumerate(columns):
            if (problem, name) not in cells:
                axes.text(column, row, "–", ha="center", va="center", color="#999999")
                continue
            series = cells[problem, name].series
            ratio, low = series.regret_expected.mean() / base, series.violations_expected.mean()
            shade[row, column] = np.clip((np.log10(max(ratio, 1e-9)) + 3) / 3, 0, 1)
            dark = shade[row, column] > 0.7
            style: dict[str, Any] = {"ha": "center", "color": "white" if dark else "black"}
            place_of = "bottom" if low > 0 else "center"
            axes.text(column, row, _ratio(ratio), va=place_of, fontsize=11, **style)
            if low > 0:
                mark = f"▼ {low:,.0f}" if low >= 10 else f"▼ {low:.1f}" if low >= 0.05 else "▼ <0.1"
                axes.text(column, row + 0.06, mark, va="top", fontsize=9, **style)
    axes.imshow(0.85 * shade, cmap="Greys", vmin=0, vmax=1, aspect="auto")
    axes.set_xticks(range(len(columns)), list(columns.values()), rotation=40)
    axes.tick_params(axis="x", top=True, labeltop=True, bottom=False, labelbottom=False)
    for label in axes.get_xticklabels():
        label.set(ha="left", rotation_mode="anchor", fontsize=11)
    axes.set_yticks(range(len(rows)), list(rows.values()))
    axes.tick_params(length=0, labelsize=11)
    axes.set_xticks(np.arange(len(columns) + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(len(rows) + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=1.5)
    axes.tick_params(which="minor", length=0)
    axes.spines[:].set_visible(False)


def draw_dots(
    axes: Axes, cells: Cells, rows: Mapping[str, str], looks: Mapping[str, tuple[str, int]]
) -> None:
    """Draw the same on a logarithmic axis, with the 95 % interval over trials.

    An interval that reaches 0 runs to the left edge. `looks` has an algorithm's words, and which
    colour and marker it has.
    """
    spans = []
    for row, problem in enumerate(rows):
        base = _base(cells, problem)
        for i, (name, (_, look)) in enumerate(looks.items()):
            if (problem, name) in cells:
                regret = cells[problem, name].series.regret_expected.mean(axis=1)
                ends = [value / base for value in mean_interval(regret)]
                spans.append((ends, row + 0.8 * ((i + 0.5) / len(looks) - 0.5), look))
    left = 0.7 * min((ends[0] for ends, _, _ in spans if ends[0] > 0), default=1e-3)
    axes.set_xscale("log")
    for ends, height, look in spans:
        mean, low, high = np.maximum(ends, left)
        axes.hlines(height, low, high, COLOURS[look], linewidth=1.4)
        axes.plot(mean, height, MARKERS[look], color=COLOURS[look], markersize=5.5)
    for words, look in looks.values():
        axes.plot([], [], MARKERS[look], color=COLOURS[look], label=words)
    axes.axvline(1.0, color=GREY, linewidth=1.0)
    axes.set_xlim(left, axes.get_xlim()[1])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_yticks(range(len(rows)), list(rows.values()))
    for edge in range(1, len(rows)):
        axes.axhline(edge - 0.5, color=FAINT, linewidth=0.8)
    axes.grid(axis="x", color=FAINT, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.tick_params(axis="y", length=0, labelsize=11)
    axes.set_xlabel("regret as a share of the baseline's", fontsize=11)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=11)


def _base(cells: Cells, problem: str) -> float:
    return float(cells[problem, "baseline"].series.regret_expected.mean())


def _ratio(value: float) -> str:
    return f"{value:.1f}" if value >= 0.995 else f"{value:.2f}" if value >= 0.01 else f"{value:.4f}"
