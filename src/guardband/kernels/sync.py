"""How agents learn together: when pooling is due, and what it does."""

from __future__ import annotations

import math

from guardband.kernels._jit import kernel
from guardband.kernels.certify import radius_at
from guardband.kernels.monitors import Note
from guardband.kernels.ridge import copy_estimate, refresh
from guardband.kernels.state import state_of
from guardband.kernels.types import Trigger

__all__ = ["add_statistic", "clear_statistic", "due", "due_anytime", "pool"]
__all__ += ["set_pooled"]

LEVEL, APART = int(Note.LEVEL), int(Note.APART)
PAPER, GROWTH, ANYTIME = int(Trigger.PAPER), int(Trigger.GROWTH), int(Trigger.ANYTIME)


@kernel
def due(terms, logdet, last_logdet, rounds, now, conservative, dim):
    """Tell whether an agent's information has grown enough to call for a pooling.

    `rounds` have passed since the last pooling, `now` in all. Paper (Algorithm 1, line 20):
    log(det V / det V_last) * (t - t_last) >= B; growth: log(det V / det V_last) >= B; without a
    horizon: `due_anytime`, or growth by EAGER where a strict agent had to be conservative.
    """
    growth = logdet - last_logdet
    if terms.trigger == PAPER:
        return growth * rounds >= terms.budget
    if terms.trigger == GROWTH:
        return growth >= terms.budget
    if terms.trigger == ANYTIME:
        if conservative and growth >= terms.eager:
            return True
        return due_anytime(logdet, last_logdet, rounds, now, terms.agents, dim)
    return False


@kernel
def due_anytime(logdet, last_logdet, rounds, now, agents, dim):
    """Tell the same without a horizon: log(det V / det V_last) (t - t_last) >= t log(Mt+1)/(dM)."""
    return (logdet - last_logdet) * rounds >= now * math.log(agents * now + 1.0) / (dim * agents)


@kernel
def add_statistic(total, part):
    """Add the sums W, U and the scalars of `part` to those of `total`."""
    d = part.moment.size
    for i in range(d):
        total.moment[i] += part.moment[i]
        for j in range(d):
            total.gram[i, j] += part.gram[i, j]
    for i in range(part.scalars.size):
        total.scalars[i] += part.scalars[i]


@kernel
def clear_statistic(part):
    """Set all sums of a statistic to zero."""
    part.gram[:] = 0.0
    part.moment[:] = 0.0
    part.scalars[:] = 0.0


@kernel
def set_pooled(shared, nothing, terms):
    """Write the estimate from pooled data alone, and the radius of its set, to the shared entry.

    `nothing` is an empty statistic.
    """
    refresh(shared, nothing, terms.ridge)
    level = terms.pooled_confidence + shared.watch[LEVEL]
    shared.estimate.scalars[2] = radius_at(shared, nothing, terms, level)


@kernel
def pool(group, terms):
    """Move what every agent learned to the group's last entry, in their order, and share it out.

    `group` are the views of all entries, see `state`. Afterwards every agent has
    V = ridge I + W and U of all data so far. Agents that are apart have no part in it. Returns
    log det(V / ridge), 0 where all are apart.
    """
    agents, head = group.work.shape[0] - 2, -1
    shared = state_of(group, agents)
    for m in range(agents):
        if group.watch[m, APART] > 0.0:
            continue
        head = m if head < 0 else head
        state = state_of(group, m)
        add_statistic(shared.own, state.own)
        add_statistic(shared.reports, state.reports)
        clear_statistic(state.own)
        clear_statistic(state.reports)
    if head < 0:
        return 0.0
    first = state_of(group, head)
    refresh(first, shared.own, terms.ridge)
    if not math.isnan(terms.pooled_confidence):
        set_pooled(shared, first.own, terms)
    for m in range(head + 1, agents):
        # What the first knew of lambda_min bounds the common V as well: it contains its own.
        if group.watch[m, APART] == 0.0:
            copy_estimate(first.estimate, state_of(group, m).estimate)
    return first.estimate.scalars[0]
