"""Plots of metrics over the rounds, readable on slides and in print without colour."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from itertools import cycle, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import XAxis, YAxis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import (
    FixedLocator,
    FuncFormatter,
    MaxNLocator,
    NullLocator,
    StrMethodFormatter,
)

from guardband.algorithms import entry_of
from guardband.checks import check_choice
from guardband.errors import InvalidValueError
from guardband.kernels.types import Floats, Ints
from guardband.sim.stats import interval_half_width

if TYPE_CHECKING:
    from guardband.sim.results import Results, Series

__all__ = ["METRICS", "Curve", "PlotSpec", "Tint", "draw_curves"]
__all__ += ["draw_curve", "end_label", "frame", "label_ends", "tints_of"]

INK, GREY, FAINT = "#222222", "#6b6b6b", "#dddddd"

# Okabe and Ito's colours, told apart by colour-blind readers; without the yellow, too pale for a
# line. Six colours and five dashes meet again only after thirty curves.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (6, 1.5, 1, 1.5)), (0, (2, 1)), (0, (10, 2)))
REFERENCE = (GREY, (0, (1, 1.5)))
LIGHT, DARK = 0.45, 0.5  # how much white, or black, is in the first and last shade of a colour

LINE_INCHES, LABEL_WIDTH = 0.19, 32
SAMPLE = (1.035, 1.15)  # a curve's sample beside the axes: long enough for two dashes
LOW, DECADES = 0.03, 6  # curves that end below this share of the largest lie on top of each other


class PlotSpec(NamedTuple):
    """How a metric is shown."""

    title: str
    axis: str
    kind: str = "sum"  # or "count": whole numbers; "average", "percent": divided by the round


METRICS: dict[str, PlotSpec] = {
    "regret": PlotSpec("Regret per agent", "regret so far"),
    "regret_expected": PlotSpec("Regret per agent, in expected rewards", "expected regret so far"),
    "violations_expected": PlotSpec(
        "Rounds with an expected reward below {floor}", "rounds per agent so far", "count"
    ),
    "violations_realised": PlotSpec(
        "Rounds with a reward below {floor}", "rounds per agent so far", "count"
    ),
    "conservative": PlotSpec("Rounds played safe", "share of the rounds so far", "percent"),
    "reward": PlotSpec("Average reward", "reward per round so far", "average"),
    "value": PlotSpec("Average value", "value per round so far", "average"),
    "value_regret": PlotSpec("Value lost against the best safe action", "value lost so far"),
    "cost": PlotSpec("Cost per agent", "cost so far"),
    "sync_rounds": PlotSpec(
        "Rounds in which the agents pooled their data", "poolings so far", "count"
    ),
}


NO_VALUES = "the problem has no values, or there was no alpha to count by"
UNSAID = {"value": NO_VALUES, "value_regret": NO_VALUES, "cost": "its actions cost nothing"}


class Curve(NamedTuple):
    """One line of a picture."""

    label: str
    mean: Floats  # (P,)
    half: Floats  # (P,) half the 95 % interval, NaN where there is none
    colour: str
    dash: Any
    width: float = 2.2
    marker: str = ""  # beside colour and dash, a third way to tell curves apart
    shift: float = 0.0  # where markers begin, in [0, 1) of their distance: so equal curves show


class Tint(NamedTuple):
    """The colour of a curve, and its turn among the curves that have the same colour."""

    colour: str
    turn: int
    turns: int

    @property
    def shade(self) -> str:
        """One shade of the colour for each turn, from light to dark; the colour itself if alone."""
        if self.turns == 1:
            return self.colour
        part = 2.0 * self.turn / (self.turns - 1) - 1.0  # -1: the lightest
        target, weight = (1.0, -LIGHT * part) if part < 0.0 else (0.0, DARK * part)
        red, green, blue = ((1 - weight) * own + weight * target for own in to_rgb(self.colour))
        return to_hex((red, green, blue))


def draw_curves(results: Results, metric: str = "regret") -> Figure:
    """Draw a metric over the rounds: the mean over agents and trials, with its 95 % interval.

    Parameters
    ----------
    results
        What `gb.simulate` returned.
    metric
        "regret", "regret_expected", "violations_expected", "violations_realised", "conservative"
        (the share of rounds so far), "reward" (the average so far) or "sync_rounds".

    Returns
    -------
    matplotlib.figure.Figure
        Does not use pyplot and needs no display; `figure.savefig("regret.png")` writes it.
    """
    look = METRICS[check_choice("metric", metric, tuple(METRICS))]
    if metric in UNSAID and np.isnan(results.series[0].curves[metric]).any():
        raise InvalidValueError(f"{metric} was not counted: {UNSAID[metric]}.")
    if metric.startswith("violations") and results.settings["alpha"] is None:
        raise InvalidValueError(
            f"{metric} was not counted: there was no alpha to count by; "
            "call simulate(..., alpha=0.1), or compare with a constrained algorithm."
        )
    curves = [*_references(results, metric), *_curves(results, metric, look.kind)]
    labels = [end_label(curve, look.kind) for curve in curves]
    lines = sum(label.count("\n") + 1 for label in labels)
    height = max(4.6, 1.4 + LINE_INCHES * lines)
    layout = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.12)
    figure = Figure(figsize=(8.4, height), layout=layout)
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for curve in curves:
        draw_curve(axes, results.rounds, curve)
    if look.kind == "count" and not any(curve.mean.any() for curve in curves):
        style: dict[str, Any] = {"ha": "center", "color": GREY, "fontsize": 13}
        axes.text(0.5, 0.5, "not once, in any trial", transform=axes.transAxes, **style)
    title = look.title.format(floor=f"{_share(results.settings['alpha'])} the baseline's")
    named = look._replace(title=title)
    frame(axes, named, curves, subtitle=_subtitle(results), last=int(results.rounds[-1]))
    label_ends(axes, curves, labels, LINE_INCHES / (height - 1.2))
    return figure


def _curves(results: Results, metric: str, kind: str) -> Iterator[Curve]:
    dashes = cycle(DASHES)
    for series, tint in zip(results.series, tints_of(results.series), strict=True):
        colour, dash = REFERENCE if tint is None else (tint.shade, next(dashes))
        samples = _scaled(_samples(series, metric), results.rounds, kind)
        mean = samples.mean(axis=0)
        yield Curve(series.label, mean, interval_half_width(samples), colour, dash)


def tints_of(series: Sequence[Series]) -> list[Tint | None]:
    """Return the colour of each, which is its algorithm's own or the next that is free.

    The baseline has none: it is drawn as a reference.
    """
    entries = [entry_of(each.algorithm) for each in series]
    own = {entry.colour for entry in entries if entry is not None}
    free = cycle([colour for colour in COLOURS if colour not in own] or COLOURS)
    colours = [
        "" if each.policy.always_baseline else (entry and entry.colour) or next(free)
        for each, entry in zip(series, entries, strict=True)
    ]
    turns = [colours[:i].count(colour) for i, colour in enumerate(colours)]
    return [
        Tint(colour, turn, colours.count(colour)) if colour else None
        for colour, turn in zip(colours, turns, strict=True)
    ]


def _samples(series: Series, metric: str) -> Floats:
    """Return (trials, P): running sums, mean over the agents."""
    if metric == "sync_rounds":
        return series.sync_curve.astype(np.float64)
    mean: Floats = series.curves[metric].mean(axis=2)
    return mean


def _scaled(sums: Floats, rounds: Ints, kind: str) -> Floats:
    per_round = {"average": 1.0, "percent": 100.0}
    return sums * per_round[kind] / rounds if kind in per_round else sums


def _references(results: Results, metric: str) -> Iterator[Curve]:
    """Rewards mean little without the baseline's, and without the floor below it."""
    if metric not in ("reward", "value"):
        return
    earned = results.series[0].curves[f"baseline_{metric}"]  # all series meet the same contexts
    shown: dict[str, tuple[Floats, Any]] = {}
    if not any(series.policy.always_baseline for series in results.series):
        shown["the baseline"] = (earned, REFERENCE[1])
    alpha = results.settings["alpha"]
    if alpha is not None and metric == "reward":
        shown[f"floor: {_share(alpha)} baseline"] = ((1 - np.array(alpha)) * earned, "-")
    for label, (sums, dash) in shown.items():
        mean = _scaled(sums.mean(axis=(0, 2)), results.rounds, "average")
        yield Curve(label, mean, np.full_like(mean, np.nan), GREY, dash, 1.0)


def draw_curve(axes: Axes, rounds: Ints, curve: Curve) -> None:
    """Draw one line and its band."""
    step = max(len(rounds) // 8, 1)
    # Not clipped: a line along the edge, such as a count that stays 0, keeps its full width.
    axes.plot(
        rounds,
        curve.mean,
        color=curve.colour,
        linestyle=curve.dash,
        linewidth=curve.width,
        marker="o" if len(rounds) == 1 else curve.marker,
        markevery=(int(curve.shift * step), step),
        markersize=5.5,
        clip_on=False,
        zorder=3,
    )
    if not np.isnan(curve.half).any():
        low, high = curve.mean - curve.half, curve.mean + curve.half
        axes.fill_between(rounds, low, high, color=curve.colour, alpha=0.2, linewidth=0)


def frame(axes: Axes, look: PlotSpec, curves: Sequence[Curve], *, subtitle: str, last: int) -> None:
    """Set title, limits, ticks and grid; `last` is the last round."""
    axes.set_title(look.title, loc="left", pad=24, color=INK, fontsize=14, fontweight="bold")
    axes.annotate(
        subtitle,
        (0, 1),
        xytext=(0, 9),
        xycoords="axes fraction",
        textcoords="offset points",
        color=GREY,
        fontsize=10,
        parse_math=False,
    )
    axes.set_xlabel("round", color=INK, fontsize=11)
    axes.set_ylabel(look.axis, color=INK, fontsize=11)
    axes.set_xlim(0, last)
    _tick(axes.xaxis, whole=True)
    straight = _crowded_below(look.kind, curves)
    if straight is None:
        axes.set_ylim(*_limits(look.kind, curves))
        _tick(axes.yaxis, whole=look.kind == "count", unit=" %" if look.kind == "percent" else "")
    else:
        _bend(axes, *_limits(look.kind, curves), straight)
        axes.set_ylabel(f"{look.axis}\nlogarithmic from {straight:,g}", color=INK, fontsize=11)
    axes.tick_params(color=GREY, labelcolor=INK, labelsize=10, length=3)
    axes.grid(axis="y", color=FAINT, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GREY)


def _tick(axis: XAxis | YAxis, *, whole: bool, unit: str = "") -> None:
    """Set ticks at 1, 2 or 5 times a power of ten, all with the decimals that this needs."""
    axis.set_major_locator(MaxNLocator(5, integer=whole, steps=[1, 2, 5, 10]))
    ticks = axis.get_majorticklocs()
    decimals = max(0, -math.floor(math.log10(ticks[1] - ticks[0]) + 1e-6))
    axis.set_major_formatter(StrMethodFormatter(f"{{x:,.{decimals}f}}{unit}"))


def _crowded_below(kind: str, curves: Sequence[Curve]) -> float | None:
    """Return up to where an axis should be linear, if several curves would lie on top of another.

    That is where two or more, not all of them 0, end below 3 % of the largest; else None.
    """
    ends = [abs(float(curve.mean[-1])) for curve in curves]
    largest = max(ends)
    low = [end for end in ends if end < LOW * largest]
    if kind not in ("sum", "count") or len(low) < 2 or max(low) == 0:
        return None
    least = max(min(end for end in low if end > 0), largest / 10**DECADES)
    return float(10 ** math.floor(math.log10(least)))


def _bend(axes: Axes, low: float, high: float, straight: float) -> None:
    """Make the y-axis logarithmic beyond a number, and linear up to it."""
    axes.set_yscale("symlog", linthresh=straight, linscale=0.4)
    axes.set_ylim(low * 1.3, high * 1.3)
    powers = [straight]
    while powers[-1] * 10 <= max(high, -low):
        powers.append(powers[-1] * 10)
    ticks = [-power for power in powers if power <= -low] + [0.0]
    ticks += [power for power in powers if power <= high]
    axes.yaxis.set_major_locator(FixedLocator(sorted(ticks)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(
        FuncFormatter(lambda y, _: f"{y:,g}" if abs(y) < 1 else f"{y:,.0f}")
    )


def _limits(kind: str, curves: Sequence[Curve]) -> tuple[float, float]:
    if kind == "percent":
        return 0.0, 100.0
    halves = [np.nan_to_num(curve.half) for curve in curves]
    low = min(float((c.mean - h).min()) for c, h in zip(curves, halves, strict=True))
    high = max(float((c.mean + h).max()) for c, h in zip(curves, halves, strict=True))
    if kind == "average":  # differences count, not the distance from 0
        room = 0.06 * (high - low) or 0.1
        return low - room, high + room
    low = 0.0 if kind == "count" else min(low, 0.0)
    return low, low + max((high - low) * 1.04, 1.0 if kind == "count" else 1e-9)


def label_ends(axes: Axes, curves: Sequence[Curve], labels: Sequence[str], line: float) -> None:
    """Write every curve's name and last value beside its end, each on a line of its own."""
    scale = axes.yaxis.get_transform()
    low, high = scale.transform(np.array(axes.get_ylim()))
    last = scale.transform(np.array([float(curve.mean[-1]) for curve in curves]))
    ends = [float(end) for end in (last - low) / (high - low)]
    heights = [line * (label.count("\n") + 1) for label in labels]
    for curve, label, end, place in zip(
        curves, labels, ends, place_labels(ends, heights), strict=True
    ):
        beside: dict[str, Any] = {"transform": axes.transAxes, "clip_on": False}
        leader = {"color": curve.colour, "linewidth": 0.8, **beside}
        start, stop = SAMPLE
        axes.plot([1.005, start], [end, place], **leader)
        sample = leader | {"linewidth": curve.width, "linestyle": curve.dash}
        axes.plot([start, stop], [place, place], **sample)
        if curve.marker:
            middle = (start + stop) / 2
            axes.plot([middle], [place], **sample, marker=curve.marker, markersize=5.5)
        words = {"va": "center", "color": INK, "fontsize": 10, "parse_math": False, **beside}
        axes.text(stop + 0.01, place, label, **words)


def place_labels(wanted: Sequence[float], heights: Sequence[float]) -> list[float]:
    """Return the places in [0, 1] nearest to those wanted at which labels do not overlap.

    Least squares: with the room that the labels below need taken off, places must not fall, which
    is an isotonic regression (neighbours out of order share their mean).
    """
    order = sorted(range(len(wanted)), key=lambda i: (wanted[i], -i))  # ties: the first on top
    room = [heights[order[0]] / 2]
    for below, above in pairwise(order):
        room.append(room[-1] + (heights[below] + heights[above]) / 2)
    blocks: list[list[float]] = []
    for i, taken in zip(order, room, strict=True):
        block = [wanted[i] - taken]
        while blocks and np.mean(blocks[-1]) >= np.mean(block):
            block = blocks.pop() + block
        blocks.append(block)
    level = [float(np.mean(block)) for block in blocks for _ in block]
    most = max(1.0 - room[-1] - heights[order[-1]] / 2, 0.0)
    places = [0.0] * len(wanted)
    for i, taken, value in zip(order, room, level, strict=True):
        places[i] = min(max(value, 0.0), most) + taken
    return places


def end_label(curve: Curve, kind: str) -> str:
    """Return name and last value, wrapped, never with the value on a line of its own."""
    last = float(curve.mean[-1])
    if kind == "percent" and last < 100:
        last = min(last, 99.9)  # 100 % is a finding, not a matter of rounding
    if abs(last) >= 100:
        value = f"{last:,.0f}"
    else:  # measured values show that they were: 0.890, not 0.89
        value = f"{last:.3g}" if kind in ("count", "percent") else f"{last:#.3g}"
    unit = " %" if kind == "percent" else ""
    tied = f"  {value}{unit}".replace(" ", "\N{NO-BREAK SPACE}")
    return textwrap.fill(curve.label + tied, LABEL_WIDTH)


def _subtitle(results: Results) -> str:
    agents, trials = results.settings["agents"], results.settings["trials"]
    many = "one trial" if trials == 1 else f"mean of {trials:,} trials, shaded: 95 % interval"
    fleet = "1 agent" if agents == 1 else f"{agents:,} agents"
    return f"{results.problem}, {fleet}  ·  {results.settings['rounds']:,} rounds  ·  {many}"


def _share(alpha: Sequence[float] | None) -> str:
    same = alpha is not None and len(set(alpha)) == 1
    return f"{100 * (1 - alpha[0]):.4g} % of" if alpha and same else "(1 − alpha) of"
