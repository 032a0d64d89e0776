"""Alarms in the simulator: heeded after the round in which they were raised, and counted."""

from __future__ import annotations

import math

from guardband.kernels._jit import kernel, rare_kernel
from guardband.kernels.alarms import misfit, respond, slide
from guardband.kernels.environment import Metric
from guardband.kernels.monitors import AlarmCode, Note

__all__ = ["heed", "slide_window"]

PENDING, FIT = int(Note.PENDING), int(AlarmCode.FIT)
ALARMS, NOTICED = int(Metric.ALARMS_ASSUMPTIONS), int(Metric.NOTICED)


@rare_kernel
def heed(group, left, terms, clock, metrics, raised, look):
    """Respond to the alarms of a round; look for tasks that do not fit, after a pooling as well.

    Tells whether there was anything to respond to.

    `raised`: some agent's monitors did; `look`: it is time to, or agents have pooled.
    """
    agents, responded = group.work.shape[0] - 2, False
    if raised:
        for m in range(agents):
            code = int(group.watch[m, PENDING])
            if code > 0:
                responded = True
                look = _respond(group, left, terms, clock, metrics, m, code) or look
    if look and terms.shares and terms.drift == 0.0 and terms.alarm < math.inf:
        for _ in range(agents):
            m, _evidence = misfit(group, terms, group.work[0, 0, :0])
            if m < 0:
                break
            responded = True
            _respond(group, left, terms, clock, metrics, m, FIT)
    return responded


@kernel
def _respond(group, left, terms, clock, metrics, m, code):
    """Respond to an alarm of agent m and count it; tell whether the pool was made anew."""
    now, totals = clock.ints[0], metrics.totals[m]
    totals[ALARMS + code - 1] += 1.0
    if totals[NOTICED] == 0.0:
        totals[NOTICED] = now
    return _note_pooling(clock, respond(group, left, m, terms, code))


@rare_kernel
def slide_window(group, terms, clock):
    """Forget the older half of the window at its end."""
    _note_pooling(clock, slide(group, terms))


@kernel
def _note_pooling(clock, logdet):
    """Note that agents pooled, and tell whether; not if `logdet` is NaN."""
    if math.isnan(logdet):
        return False
    clock.logdet[0] = logdet
    clock.ints[1] = clock.ints[0] + clock.ints[4]
    clock.ints[2] += 1
    return True
