"""How agents learn together: when pooling is due, and what it does."""

from __future__ import annotations

import math

from guardband.kernels._jit import kernel
from guardband.kernels.ridge import copy_estimate, refresh
from guardband.kernels.types import Estimate, State, Statistic, Trigger

__all__ = ["EAGER", "add_statistic", "clear_statistic", "due", "due_anytime", "pool"]

EAGER = 0.7  # growth of log det V at which an agent that had to be conservative calls at once
PAPER, GROWTH = int(Trigger.PAPER), int(Trigger.GROWTH)


@kernel
def due(logdet, last_logdet, rounds, terms):
    """Tell whether an agent's information has grown enough to call for a pooling.

    Paper (Algorithm 1, line 20): log(det V / det V_last) * (t - t_last) >= B.
    """
    growth = logdet - last_logdet
    if terms.trigger == PAPER:
        return growth * rounds >= terms.budget
    if terms.trigger == GROWTH:
        return growth >= terms.budget
    return False


@kernel
def due_anytime(logdet, last_logdet, rounds, now, agents, dim):
    """Tell the same without a horizon: log(det V / det V_last) (t - t_last) >= t log(Mt+1)/(dM)."""
    return (logdet - last_logdet) * rounds >= now * math.log(agents * now + 1.0) / (dim * agents)


@kernel
def add_statistic(total, part):
    """Add the sums of `part` to `total`."""
    d = part.moment.size
    for i in range(d):
        total.moment[i] += part.moment[i]
        for j in range(d):
            total.gram[i, j] += part.gram[i, j]
    for i in range(part.scalars.size):
        total.scalars[i] += part.scalars[i]


@kernel
def clear_statistic(part):
    """Forget all sums."""
    part.gram[:] = 0.0
    part.moment[:] = 0.0
    part.scalars[:] = 0.0


@kernel
def pool(fleet, pooled, ridge):
    """Move what every agent learned to `pooled`, in the agents' order, and share it out.

    Returns log det(V / ridge) of the pooled data, which is then every agent's.
    """
    own, estimate, work = fleet
    agents = own.moment.shape[0]
    for m in range(agents):
        add_statistic(pooled, Statistic(own.gram[m], own.moment[m], own.scalars[m]))
    clear_statistic(own)
    first = Estimate(estimate.inverse[0], estimate.theta[0], estimate.scalars[0])
    mine = Statistic(own.gram[0], own.moment[0], own.scalars[0])
    refresh(State(mine, first, work[0]), pooled, ridge)
    for m in range(1, agents):
        # What agent 0 knew of lambda_min bounds the common V as well: it contains agent 0's.
        other = Estimate(estimate.inverse[m], estimate.theta[m], estimate.scalars[m])
        copy_estimate(first, other)
    return first.scalars[0]
