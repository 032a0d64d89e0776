"""The numbers of a group of agents: one array, and named views of it.

A group of M agents has one float64 array. It holds M + 2 entries of `entry_size(d)` numbers: one
per agent, one for what they have pooled, and one without data, which stands for it where an agent
is apart from the pool. Entries lie part by part, so that each part
of all entries is a view with a leading axis, and the part of one entry costs an index.

To add a part: a field of `State`, a line in `group_of` and in `state_of`, its size in `entry_size`.
"""

from __future__ import annotations

import numpy as np

from guardband.kernels._jit import fixed_tuple, kernel, views
from guardband.kernels.cuts import CUTS, ROWS
from guardband.kernels.monitors import Note, monitor_size
from guardband.kernels.types import Estimate, Floats, LeftOut, Scores, State, Statistic, Terms

__all__ = [
    "ALPHA",
    "RHO",
    "TERMS",
    "entry_size",
    "group_of",
    "left_out",
    "left_out_of",
    "new_group",
    "new_left_out",
    "new_scratch",
    "new_state",
    "new_statistic",
    "scores_of",
    "shared_with",
    "state_of",
    "terms_of",
    "view",
    "view_of",
]

APART = int(Note.APART)
SCORES = len(Scores._fields)
TERMS = len(Terms._fields)
ALPHA, RHO = TERMS, TERMS + 1  # in a row of settings


@kernel
def entry_size(d):
    """Return how many numbers an agent's state has: two statistics, two estimates and more.

    That is scratch, what was spent, and what monitors remember. The scratch is 2 d + 12 rows of d:
    four vectors (the played one, V^-1 times it, and others); a factorisation, d rows; then, for
    `absorb_tidily`, what rounding has left out of W and U, d + 1
    rows, and seven numbers, one in a row: the same of the last three sums, and the four as they
    were left.
    """
    sums = 2 * (d * d + d + 6) + 2 * (d * d + d + 4)
    return sums + (2 * d + 12) * d + 1 + monitor_size(d)


@kernel
def group_of(numbers, d):
    """Return named views of a group's array, each with a leading axis for the M + 2 entries.

    `numbers` is ((M + 2) entry_size(d),).
    """
    n = numbers.size // entry_size(d)
    sums, found = ((n, d, d), (n, d), (n, 6)), ((n, d, d), (n, d), (n, 4))
    size, rest = n * (d * d + d + 6), n * (d * d + d + 4)
    return State(
        Statistic(*views(numbers, 0, sums)),
        Estimate(*views(numbers, 2 * size, found)),
        Statistic(*views(numbers, size, sums)),
        Estimate(*views(numbers, 2 * size + rest, found)),
        *views(numbers, 2 * (size + rest), ((n, 2 * d + 12, d), (n, 1), (n, monitor_size(d)))),
    )


@kernel
def state_of(group, m):
    """Return the views of entry m of a group, which `group_of` returned."""
    own, estimate, reports, anchored = group.own, group.estimate, group.reports, group.anchored
    return State(
        Statistic(own.gram[m], own.moment[m], own.scalars[m]),
        Estimate(estimate.inverse[m], estimate.theta[m], estimate.scalars[m]),
        Statistic(reports.gram[m], reports.moment[m], reports.scalars[m]),
        Estimate(anchored.inverse[m], anchored.theta[m], anchored.scalars[m]),
        group.work[m],
        group.spent[m],
        group.watch[m],
    )


@kernel
def left_out_of(numbers, agents, d):
    """Return named views of the array that `new_left_out` returns."""
    size, found = d * d + d + 6, d * d + d + 4
    n = numbers.size // (size + (1 + agents) * found)
    return LeftOut(
        Statistic(*views(numbers, 0, ((n, d, d), (n, d), (n, 6)))),
        Estimate(*views(numbers, n * size, ((n, d, d), (n, d), (n, 4)))),
        Estimate(
            *views(
                numbers,
                n * (size + found),
                ((agents, n, d, d), (agents, n, d), (agents, n, 4)),
            )
        ),
    )


@kernel
def shared_with(group, m):
    """Return the views of what agent m shares with others: the pool, or nothing if it is apart."""
    agents = group.work.shape[0] - 2
    return state_of(group, agents + int(group.watch[m, APART]))


@kernel
def scores_of(scratch, actions):
    """Return named views of the scratch (SCORES, K or more) that `new_scratch` returns."""
    return Scores(
        scratch[0, :actions],
        scratch[1, :actions],
        scratch[2, :actions],
        scratch[3, :actions],
        scratch[4, :actions],
        scratch[5, :actions],
        scratch[6],
        scratch[7, :actions],
        views(scratch[8], 0, ((ROWS, CUTS),))[0],
    )


@kernel
def terms_of(settings):
    """Return the terms in a row of settings (TERMS + 2,); alpha and rho come after them."""
    return Terms(*fixed_tuple(settings, TERMS))


def view(numbers: Floats, dim: int) -> State:
    """Return what `group_of` does, outside kernels."""
    group: State = group_of.plain(numbers, dim)
    return group


def view_of(group: State, m: int) -> State:
    """Return what `state_of` does, outside kernels."""
    state: State = state_of.plain(group, m)
    return state


def new_group(agents: int, dim: int, ridge: float) -> Floats:
    """Return the array of `agents` agents that have seen nothing and pooled nothing."""
    numbers = np.zeros((agents + 2) * entry_size.plain(dim))
    estimate = view(numbers, dim).estimate
    estimate.inverse[:agents, range(dim), range(dim)] = 1.0 / ridge
    estimate.scalars[:agents, 1:] = (ridge * dim, ridge, ridge * dim)
    return numbers


def new_left_out(agents: int, tasks: int, dim: int, ridge: float) -> Floats:
    """Return the array of what `agents` know without each of so many tasks: nothing yet."""
    numbers = np.zeros(tasks * (dim * dim + dim + 6 + (1 + agents) * (dim * dim + dim + 4)))
    left = left_out(numbers, agents, dim)
    for estimate in (left.pooled, left.views):
        estimate.inverse[..., range(dim), range(dim)] = 1.0 / ridge
        estimate.scalars[..., 1] = ridge * dim
    return numbers


def left_out(numbers: Floats, agents: int, dim: int) -> LeftOut:
    """Return what `left_out_of` does, outside kernels."""
    found: LeftOut = left_out_of.plain(numbers, agents, dim)
    return found


def new_scratch(actions: int, contexts: int = 0) -> Floats:
    """Return scratch for the scores of so many actions in so many possible contexts."""
    return np.empty((SCORES, max(actions, contexts, ROWS * CUTS)))


def new_state(dim: int, ridge: float) -> State:
    """Return the state of one agent that has seen nothing."""
    return view_of(view(new_group(1, dim, ridge), dim), 0)


def new_statistic(dim: int) -> Statistic:
    """Return an empty statistic."""
    return Statistic(np.zeros((dim, dim)), np.zeros(dim), np.zeros(6))
