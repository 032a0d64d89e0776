"""Plots of panels: mean and interval over the rounds, with names beside the lines, not in a legend.

Colour tells algorithms apart. Curves of one algorithm have shades of its colour, from light to
dark, and bands whose edges have the dashes of their line; dash, marker and shade survive a printer
without colours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter

from guardband.algorithms import entry_of
from guardband.kernels.types import Floats, Ints
from guardband.lab.panel import RunResult, RunResults
from guardband.sim import (
    DASHES,
    GREY,
    INK,
    LINE_INCHES,
    REFERENCE,
    Curve,
    PlotSpec,
    Tint,
    draw_curve,
    end_label,
    frame,
    interval_half_width,
    label_ends,
    tints_of,
)

__all__ = [
    "View",
    "average_regret",
    "curves_of",
    "draw_views",
    "new_figure",
    "regret",
    "rewards",
    "since_first_violation",
    "subtitle_of",
    "violations",
]

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
WIDTH, HEIGHT = 8.4, 4.6
MILLIONS = 1_500_000  # from here on, ticks with all their zeros would meet


class View(NamedTuple):
    """One pair of axes."""

    look: PlotSpec
    rounds: Ints
    curves: Sequence[Curve]
    edged: Sequence[bool] = ()  # whether each curve's band has edges


def regret(results: RunResults, title: str = "Regret per agent") -> View:
    """Return the regret so far."""
    look = PlotSpec(title, "regret per agent so far (reward)")
    return View(look, _rounds(results), list(curves_of(results, "regret")), _edged(results))


def average_regret(results: RunResults) -> View:
    """Return the regret so far, divided by the rounds so far."""
    look = PlotSpec("Average regret R_t / t", "regret per agent and round so far", "average")
    curves = list(curves_of(results, "regret", per_round=True))
    return View(look, _rounds(results), curves, _edged(results))


def violations(results: RunResults, kind: str, title: str) -> View:
    """Return the rounds below the floor so far; `kind` is "realised" or "expected"."""
    look = PlotSpec(title, "rounds below the floor so far, per agent", "count")
    curves = list(curves_of(results, f"violations_{kind}"))
    return View(look, _rounds(results), curves, _edged(results))


def since_first_violation(results: RunResults, title: str) -> View:
    """Return the rounds since the first violation in any trial: what the notebooks draw.

    It is the same for all trials, so that it has no interval, and counts from the last checkpoint
    before the violation.
    """
    rounds, curves = _rounds(results), []
    for result, style in _styled(results):
        seen = result.series.curves["violations_realised"].mean(axis=2).any(axis=0)
        count = np.cumsum(np.where(seen, np.diff(rounds, prepend=0), 0)).astype(np.float64)
        curves.append(Curve(result.run.label, count, np.full_like(count, np.nan), **style))
    look = PlotSpec(title, "rounds since any trial's first violation", "count")
    return View(look, rounds, curves)


def rewards(results: RunResults, title: str) -> View:
    """Return the reward per round, averaged between checkpoints, with baseline and floor."""
    rounds = _rounds(results)
    first = next(iter(results.values()))
    baseline = _steps(first.series.curves["baseline_reward"].mean(axis=2), rounds).mean(axis=0)
    missing = np.full_like(baseline, np.nan)
    share = 1.0 - float(first.run.alpha or 0.0)
    curves = [
        Curve("the baseline", baseline, missing, GREY, REFERENCE[1], 1.2),
        Curve(f"the floor, {100 * share:.4g} % of it", share * baseline, missing, GREY, "-", 1.2),
    ]
    for result, style in _styled(results):
        samples = _steps(result.series.curves["reward"].mean(axis=2), rounds)
        curves.append(Curve(result.run.label, *_band(samples), **style))
    look = PlotSpec(title, "reward per round and agent", "average")
    return View(look, rounds, curves, [False, False, *_edged(results)])


def curves_of(results: RunResults, metric: str, *, per_round: bool = False) -> Iterator[Curve]:
    """Yield one curve per run: the mean over agents and trials, with its 95 % interval."""
    for result, style in _styled(results):
        samples = result.series.curves[metric].mean(axis=2)
        if per_round:
            samples = samples / result.rounds
        yield Curve(result.run.label, *_band(samples), **style)


def draw_views(title: str, subtitle: str, views: Sequence[View]) -> Figure:
    """Draw views side by side; a single one bears the title itself."""
    labels = [[_label(curve, view.look.kind) for curve in view.curves] for view in views]
    lines = max(sum(label.count("\n") + 1 for label in column) for column in labels)
    height = max(HEIGHT, 1.5 + LINE_INCHES * lines) + 0.4 * (len(views) > 1)
    figure = new_figure(WIDTH if len(views) == 1 else 7.6 * len(views), height)
    for i, (view, names) in enumerate(zip(views, labels, strict=True)):
        axes = figure.add_subplot(1, len(views), i + 1)
        edged = view.edged or [False] * len(view.curves)
        for curve, edges in zip(view.curves, edged, strict=True):
            draw_curve(axes, view.rounds, curve)
            if edges and not np.isnan(curve.half).any():
                _mark_band(axes.collections[-1], curve)
        if view.look.kind == "count" and not any(curve.mean.any() for curve in view.curves):
            style: dict[str, Any] = {"ha": "center", "color": GREY, "fontsize": 13}
            axes.text(0.5, 0.5, "not once, in any trial", transform=axes.transAxes, **style)
        look = view.look._replace(title=title) if len(views) == 1 else view.look
        frame(axes, look, view.curves, subtitle=subtitle if i == 0 else "", last=view.rounds[-1])
        if view.rounds[-1] >= MILLIONS:
            axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x / 1e6:g}"))
            axes.set_xlabel("round, in millions")
        label_ends(axes, view.curves, names, LINE_INCHES / (height - 1.3))
    if len(views) > 1:
        heading: dict[str, Any] = {"x": 0.012, "ha": "left", "fontweight": "bold"}
        figure.suptitle(title, **heading, color=INK, fontsize=15)
    return figure


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure that needs no display."""
    figure = Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.12))
    FigureCanvasAgg(figure)
    return figure


def subtitle_of(results: RunResults) -> str:
    """Return problem, agents, rounds and trials in one line."""
    runs = [result.run for result in results.values()]
    agents = sorted({result.series.regret.shape[1] for result in results.values()})
    trials = sorted({run.trials for run in runs})
    many = " to ".join(f"{n:,}" for n in dict.fromkeys((agents[0], agents[-1])))
    often = " to ".join(f"{n:,}" for n in dict.fromkeys((trials[0], trials[-1])))
    return (
        f"{runs[0].problem.name}, {many} agent{'' if agents == [1] else 's'}  ·  "
        f"{runs[0].rounds:,} rounds  ·  mean of {often} trials, shaded: 95 % interval"
    )


def _styled(results: RunResults) -> Iterator[tuple[RunResult, Mapping[str, Any]]]:
    """Yield every run with its shade, dash and marker; of one colour, no two dashes are alike."""
    for i, (result, tint) in enumerate(zip(results.values(), _tints(results), strict=True)):
        if tint is None:
            yield result, {"colour": REFERENCE[0], "dash": REFERENCE[1]}
            continue
        entry = entry_of(result.series.algorithm)
        ours = entry is not None and entry.kind.needs_model
        yield (
            result,
            {
                "colour": tint.shade,
                "dash": DASHES[(tint.turn + 2 * ours) % len(DASHES)],
                "marker": MARKERS[i % len(MARKERS)],
                "shift": (i + 0.5) / len(results),
            },
        )


def _edged(results: RunResults) -> list[bool]:
    """Tell of each run's band whether it shares its colour with others, and so needs edges."""
    return [tint is not None and tint.turns > 1 for tint in _tints(results)]


def _tints(results: RunResults) -> list[Tint | None]:
    return tints_of([result.series for result in results.values()])


def _mark_band(band: Any, curve: Curve) -> None:
    """Draw a band's edges as its line is drawn, so that bands that overlap can be followed."""
    face, edge = to_rgba(curve.colour, 0.1), to_rgba(curve.colour, 0.8)
    band.set(alpha=None, facecolor=face, edgecolor=edge, linewidth=1.0, linestyle=curve.dash)


def _label(curve: Curve, kind: str) -> str:
    """Return name and last value; a line never breaks within "α = 0.1"."""
    tied = curve.label.replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")
    return end_label(curve._replace(label=tied), kind)


def _band(samples: Floats) -> tuple[Floats, Floats]:
    return samples.mean(axis=0), interval_half_width(samples)


def _steps(sums: Floats, rounds: Ints) -> Floats:
    """Return (trials, P): running sums as averages over the rounds since the last checkpoint."""
    return np.diff(sums, axis=1, prepend=0.0) / np.diff(rounds, prepend=0)


def _rounds(results: RunResults) -> Ints:
    return next(iter(results.values())).rounds
