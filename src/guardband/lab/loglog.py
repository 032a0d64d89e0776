"""Lines on logarithmic axes, each with its name beside its end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count, cycle
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from guardband.kernels.types import Floats
from guardband.sim import (
    COLOURS,
    DASHES,
    FAINT,
    GREY,
    INK,
    REFERENCE,
    interval_half_width,
    place_labels,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

__all__ = ["Line", "draw_lines", "log_interval", "looks_of"]

MARKERS = ("o", "s", "^", "D", "v", "P")
FEW = 12  # points up to which an interval is a whisker; more points have a band
ROOM = 1.4  # above and below the means
SAMPLE = (1.03, 1.16)  # a line's sample beside the axes: long enough for two dashes


class Line(NamedTuple):
    """One line; what is not above 0 is left out.

    A line that was measured is thick and has markers; a bound is thin and grey. Its interval is a
    whisker at each of a few points, a band along many. Where it reaches 0, which has no place on a
    logarithmic axis, a whisker runs to the lower edge, and there is no band.
    """

    label: str
    x: Floats
    y: Floats
    half: Floats | None = None  # half the 95 % interval
    bound: bool = False
    look: int | None = None  # which colour and marker, from 6 on with dashes; None: the next
    dashed: bool = False
    span: tuple[Floats, Floats] | None = None  # the interval's ends, where y is not its middle

    def ends(self) -> tuple[Floats, Floats] | None:
        """Return the ends of the interval."""
        if self.half is not None:
            return self.y - self.half, self.y + self.half
        return self.span


def log_interval(samples: Floats) -> tuple[Floats, tuple[Floats, Floats]]:
    """Return the geometric mean over trials, and its 95 % interval by the logarithms.

    Unlike an interval of the mean it is never below 0.

    Parameters
    ----------
    samples
        (trials, n) above 0.
    """
    logs = np.log(samples)
    middle, half = logs.mean(axis=0), interval_half_width(logs)
    return np.exp(middle), (np.exp(middle - half), np.exp(middle + half))


def looks_of(names: Iterable[str], own: Mapping[str, int]) -> dict[str, int]:
    """Return a look for each name: its own, or the next that is no other's own."""
    left = (look for look in count() if look not in own.values())
    return {name: own[name] if name in own else next(left) for name in names}


def draw_lines(
    axes: Axes, lines: Sequence[Line], *, room: float = 0.055, at: Sequence[float] = ()
) -> None:
    """Draw lines and name them at their ends.

    `room` is a label's share of the height; `at` are the ticks of the x-axis, if not powers of 10.
    """
    axes.set_xscale("log")
    axes.set_yscale("log")
    looks, dashes = count(), cycle((*DASHES[1:], REFERENCE[1]))
    ends = []
    for line in lines:
        y = np.where(line.y > 0, line.y, np.nan)
        if not np.isfinite(y).any():
            continue
        style: dict[str, Any]
        if line.bound:
            style = {"color": GREY, "linestyle": next(dashes), "linewidth": 1.4}
        else:
            look = next(looks) if line.look is None else line.look
            spaced = np.geomspace(line.x[0], line.x[-1], 8)
            marked = np.unique(np.searchsorted(line.x, spaced * (1 - 1e-9)))
            turn, kind = divmod(look, len(MARKERS))
            style = {"color": COLOURS[kind], "linewidth": 2.3, "marker": MARKERS[kind]}
            style["linestyle"] = DASHES[(2 * turn + line.dashed) % len(DASHES)]
            style |= {"markevery": marked.tolist(), "markersize": 6}
        axes.plot(line.x, y, **style, zorder=3)
        ends.append((line, style, y))
    heights = np.concatenate([y[np.isfinite(y)] for _, _, y in ends])
    if heights.size:  # by the means alone: an interval may reach 0
        axes.set_ylim(heights.min() / ROOM, heights.max() * ROOM)
    for i, (line, style, _) in enumerate(ends):
        between = line.ends()
        if between is not None:
            _interval(axes, line.x, between, style, aside=(i + 0.5) / len(ends) - 0.5)
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


def _interval(
    axes: Axes, x: Floats, between: tuple[Floats, Floats], style: dict[str, Any], *, aside: float
) -> None:
    """Draw an interval; whiskers stand side by side, on half of the room between two points."""
    low, high = between
    shown = np.isfinite(low) & np.isfinite(high) & (high > 0)
    if x.size > FEW:
        axes.fill_between(
            x, low, high, where=shown & (low > 0), color=style["color"], alpha=0.2, linewidth=0
        )
        return
    step = float((x[1:] / x[:-1]).min()) if x.size > 1 else 1.0
    place = x * step ** (0.5 * aside)
    low = np.maximum(low, axes.get_ylim()[0])
    colour = {"color": style["color"], "linewidth": 1.3, "alpha": 0.7}
    axes.vlines(place[shown], low[shown], high[shown], **colour, zorder=2)


def _tick(axis: Axis) -> None:
    low, high = axis.get_view_interval()
    few = high < 100 * low  # powers of ten alone would leave one tick, or none
    axis.set_major_locator(LogLocator(10, subs=(1, 2, 5) if few else (1,), numticks=9))
    axis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.0f}" if v >= 1 else f"{v:g}"))
    axis.set_minor_formatter(NullFormatter())


def _name_ends(
    axes: Axes, ends: Sequence[tuple[Line, dict[str, Any], Floats]], room: float
) -> None:
    low, high = np.log(axes.get_ylim())
    last = [float(y[np.isfinite(y)][-1]) for _, _, y in ends]
    wanted = [(np.log(value) - low) / (high - low) for value in last]
    places = place_labels(wanted, [room] * len(ends))
    start, stop = SAMPLE
    for (line, style, y), end, place in zip(ends, wanted, places, strict=True):
        beside: dict[str, Any] = {"transform": axes.transAxes, "clip_on": False}
        axes.plot([1.005, start], [end, place], color=style["color"], linewidth=0.8, **beside)
        last_x = float(line.x[np.isfinite(y)][-1])
        if last_x < line.x[-1]:  # it ends before the others: lead from there to its name
            axes.hlines(float(y[np.isfinite(y)][-1]), last_x, line.x[-1], FAINT, linestyle=":")
        sample = {key: value for key, value in style.items() if key != "markevery"}
        middle = (start + stop) / 2
        axes.plot([start, middle, stop], [place] * 3, **(sample | {"markevery": [1]}), **beside)
        axes.text(stop + 0.01, place, line.label, va="center", color=INK, fontsize=10, **beside)
