"""What the simulator keeps so that it has to compute less; nothing compiled.

Neither changes a choice: `widths` says which widths need not be computed, `blocks` which rounds
need not be looked at one by one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from guardband.kernels.environment import EnvironmentArrays, Metric, Nature, Sight, TaskTable
from guardband.kernels.types import Floats, Gate, Ints, Mix, Rule, Terms, Trigger

__all__ = ["Before", "OldWidths", "new_before", "new_widths"]

MOST = 1 << 22  # widths are kept up to this many: 32 MB
VISITS = 50  # of a context, from which on it pays to keep its widths
LEAST_DIM = 5  # below it, widths cost no more than looking them up
GUARD = int(Rule.GUARD)


class OldWidths(NamedTuple):
    """Bounds of psi'V^-1 psi from earlier rounds, by agent, context and action; see `widths`."""

    form: Floats  # (M, C, K); none: widths are not kept
    since: Floats  # (M, C) the drift when they were last brought up to date; -inf: never
    choice: Ints  # (M, C) the action that was played then without care; -1: there was none
    drift: Floats  # (M, 3) what rounding may have added to V^-1 so far; a bound of its norm now;
    # and updates since that was computed
    reach: Floats  # (M,) the largest ||psi||^2
    spare: Floats  # (d, d) scratch


class Before(NamedTuple):
    """What was so before a block of rounds; see `blocks`."""

    numbers: Floats  # the group's array; none: rounds are played one by one
    totals: Floats  # (M, metrics)
    notes: Floats  # (M, 4) beta and the distance of theta before; of the block, the sum of squared
    # surprises, and the least that lambda_min(V) had to reach


def new_widths(terms: Terms, tasks: TaskTable, env: EnvironmentArrays, rounds: int) -> OldWidths:
    """Return what is kept of widths in so many rounds; nothing where that would not pay.

    Menus must recur: they do where the context tells what an agent is given.
    """
    agents, contexts, dim, actions = tasks.size.size, *env.menu.shape[1:]
    hidden = env.nature == Nature.FRESH and env.sight != Sight.OBSERVED
    fixed = env.nature == Nature.TABLE or hidden
    guard = terms.rule == GUARD and not (terms.anchors or terms.tolerate or terms.half)
    other = terms.rule in (Rule.FREE, Rule.KNOWN) and not terms.weighted
    pays = dim >= LEAST_DIM and rounds >= VISITS * contexts and agents * contexts * actions <= MOST
    if not (fixed and (guard or other) and pays and not env.values.size):
        agents = contexts = actions = dim = 0
    reach = np.zeros(agents)
    for m in range(agents):
        own = tasks.coords[m, : tasks.size[m]]
        for table in (env.menu, env.truth):
            rows = table[min(m, len(table) - 1)][:, own]
            reach[m] = max(reach[m], np.einsum("cik,cik->ck", rows, rows).max())
    return OldWidths(
        np.zeros((agents, contexts, actions)),
        np.full((agents, contexts), -np.inf),
        np.full((agents, contexts), -1),
        np.zeros((agents, 3)),
        reach,
        np.zeros((dim, dim)),
    )


def new_before(terms: Terms, numbers: Floats, agents: int, env: EnvironmentArrays) -> Before:
    """Return where a group's array is kept before blocks of rounds; nothing where there are none.

    They are for rules that wait at a gate, and then play the baseline mixed with a direction.
    """
    waits = terms.rule in (Rule.KNOWN, Rule.UNKNOWN, Rule.CLEAR) and terms.gate != Gate.NONE
    mixes = terms.mix in (Mix.VECTOR, Mix.TASK_VECTOR) and terms.trigger != Trigger.ANYTIME
    plain = not terms.weighted and len(env.thetas) == 1 and env.fabricated.number == 0.0
    used = waits and mixes and plain and not env.lies.size
    return Before(
        np.zeros(numbers.size if used else 0),
        np.zeros((agents, len(Metric))),
        np.zeros((agents, 4)),
    )
