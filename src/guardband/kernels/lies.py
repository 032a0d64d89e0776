"""An agent that makes up observations, for the simulator."""

from __future__ import annotations

import math

from guardband.kernels._jit import kernel
from guardband.kernels.monitors import monitor_of, rebuild
from guardband.kernels.ridge import refresh
from guardband.kernels.types import Rule

__all__ = ["make_up"]

GUARD = int(Rule.GUARD)


@kernel
def make_up(state, pooled, terms, made):
    """Add made-up observations, as if each had been predicted exactly, to what an agent learned.

    `made` are means over their rows, see `Fabricated`.
    """
    d = state.own.moment.size
    weight = 1.0 / terms.variance if terms.rule == GUARD or terms.weighted else 1.0
    _add(state.own, made, weight)
    refresh(state, pooled, terms.ridge)
    if not math.isnan(terms.alarm):  # it is what it would hand in if the pool were made anew, too
        monitor = monitor_of(state.watch, d)
        _add(monitor.own, made, weight)
        rebuild(monitor, terms, state.work[4 : 4 + d])


@kernel
def _add(own, made, weight):
    total = made.number * weight
    for i in range(own.moment.size):
        own.moment[i] += total * made.moment[i]
        for j in range(own.moment.size):
            own.gram[i, j] += total * made.gram[i, j]
    own.scalars[0] += made.number
    own.scalars[1] += total * made.square
    own.scalars[2] -= total * made.square  # w (yhat^2 - 2 y yhat) with yhat = y
    own.scalars[3] += total
