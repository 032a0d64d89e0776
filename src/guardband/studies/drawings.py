"""The pictures of a study's page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import ConciseDateFormatter
from matplotlib.figure import Figure
from numpy.typing import NDArray

from guardband.studies.contents import MeanReward
from guardband.studies.values import PolicyValue

__all__ = ["draw_rates", "draw_values"]

INK, GREY = "#222222", "#6b6b6b"
COLOURS = {"logged": "#6b6b6b", "baseline": "#0072B2", "learned": "#D55E00"}


def draw_rates(rates: Sequence[MeanReward], times: NDArray[Any], named: str) -> Figure:
    """Return mean rewards over time, with 95 % intervals; times may be dates."""
    figure, axes = _axes(6.4, 2.6)
    means = np.array([rate.mean for rate in rates])
    low = means - np.array([rate.low for rate in rates])
    high = np.array([rate.high for rate in rates]) - means
    axes.errorbar(times, means, (low, high), fmt="o-", color=COLOURS["baseline"], ms=4, lw=1)
    if times.dtype.kind == "M":
        look = ConciseDateFormatter(axes.xaxis.get_major_locator())  # type: ignore[no-untyped-call]
        axes.xaxis.set_major_formatter(look)
    axes.set_xlabel(named, parse_math=False)
    axes.set_ylabel("mean reward")
    axes.set_ylim(bottom=max(0.0, float((means - low).min()) * 0.9))
    return figure


def draw_values(values: Sequence[PolicyValue]) -> Figure:
    """Return estimates with their intervals; thin lines are the ones for many rows."""
    shown = [e for e in values if e.policy in COLOURS and e.value is not None]
    figure, axes = _axes(6.4, 0.5 + 0.27 * max(len(shown), 1))
    for place, each in enumerate(reversed(shown)):
        assert each.value is not None
        assert each.low is not None
        assert each.high is not None
        colour = COLOURS[each.policy]
        axes.plot([each.low, each.high], [place, place], color=colour, lw=4, alpha=0.35)
        if each.asymptotic is not None:
            axes.plot(each.asymptotic, [place, place], color=colour, lw=1)
        axes.plot([each.value], [place], "o", color=colour, ms=5)
    axes.set_yticks(range(len(shown)), [f"{e.policy}, {e.estimator}" for e in reversed(shown)])
    axes.set_xlabel("reward per round")
    return figure


def _axes(width: float, height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=GREY, labelcolor=INK)
    return figure, axes
