"""Lines on logarithmic axes, each with its name beside its end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count, cycle
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from guardband.core.types import Floats
from guardband.sim.plots import COLOURS, DASHES, FAINT, GREY, INK, spread

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

__all__ = ["Line", "draw_lines", "looks_of"]

MARKERS = ("o", "s", "^", "D", "v", "P")


class Line(NamedTuple):
    """One line; what is not above 0 is left out.

    A line that was measured is thick and has markers; a bound is thin and grey.
    """

    label: str
    x: Floats
    y: Floats
    half: Floats | None = None  # half the 95 % interval
    bound: bool = False
    look: int | None = None  # which colour and marker, from 6 on with dashes; None: the next
    dashed: bool = False


def looks_of(names: Iterable[str], own: Mapping[str, int]) -> dict[str, int]:
    """Return a look for each name: its own, or the next that is nobody's own."""
    left = (look for look in count() if look not in own.values())
    return {name: own[name] if name in own else next(left) for name in names}


def draw_lines(
    axes: Axes, lines: Sequence[Line], *, room: float = 0.055, at: Sequence[float] = ()
) -> None:
    """Draw lines and name them at their ends.

    `room` is a label's share of the height; `at` are the marks of the x-axis, if not powers of 10.
    """
    axes.set_xscale("log")
    axes.set_yscale("log")
    looks, dashes = count(), cycle(DASHES[1:])
    ends = []
    for line in lines:
        y = np.where(line.y > 0, line.y, np.nan)
        style: dict[str, Any]
        if line.bound:
            style = {"color": GREY, "linestyle": next(dashes), "linewidth": 1.4}
        else:
            look = next(looks) if line.look is None else line.look
            spaced = np.geomspace(line.x[0], line.x[-1], 8)
            marks = np.unique(np.searchsorted(line.x, spaced * (1 - 1e-9)))
            turn, kind = divmod(look, len(MARKERS))
            style = {"color": COLOURS[kind], "linewidth": 2.3, "marker": MARKERS[kind]}
            style["linestyle"] = DASHES[(2 * turn + line.dashed) % len(DASHES)]
            style |= {"markevery": marks.tolist(), "markersize": 6}
        axes.plot(line.x, y, **style, zorder=3)
        if line.half is not None:
            low, high = np.maximum(line.y - line.half, 1e-3 * y), line.y + line.half
            axes.fill_between(line.x, low, high, color=style["color"], alpha=0.2, linewidth=0)
        ends.append((line, style, y))
    for axis in (axes.xaxis, axes.yaxis):
        _tick(axis)
    if at:
        axes.set_xticks(list(at), [f"{x:,g}" for x in at])
        axes.set_xticks([], minor=True)
    axes.grid(color=FAINT, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(color=GREY, labelcolor=INK, labelsize=10, length=3)
    _name_ends(axes, ends, room)


def _tick(axis: Axis) -> None:
    low, high = axis.get_view_interval()
    few = high < 100 * low  # powers of ten alone would leave one mark, or none
    axis.set_major_locator(LogLocator(10, subs=(1, 2, 5) if few else (1,), numticks=9))
    axis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.0f}" if v >= 1 else f"{v:g}"))
    axis.set_minor_formatter(NullFormatter())


def _name_ends(
    axes: Axes, ends: Sequence[tuple[Line, dict[str, Any], Floats]], room: float
) -> None:
    low, high = np.log(axes.get_ylim())
    shown = [end for end in ends if np.isfinite(end[2]).any()]
    last = [float(y[np.isfinite(y)][-1]) for _, _, y in shown]
    wanted = [(np.log(value) - low) / (high - low) for value in last]
    places = spread(wanted, [room] * len(shown))
    for (line, style, _), end, place in zip(shown, wanted, places, strict=True):
        beside: dict[str, Any] = {"transform": axes.transAxes, "clip_on": False}
        axes.plot([1.005, 1.03], [end, place], color=style["color"], linewidth=0.8, **beside)
        sample = {key: value for key, value in style.items() if key != "markevery"}
        axes.plot([1.03, 1.06, 1.09], [place] * 3, **(sample | {"markevery": [1]}), **beside)
        axes.text(1.1, place, line.label, va="center", color=INK, fontsize=10, **beside)
