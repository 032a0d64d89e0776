"""What a live agent calls: the simulator's kernels behind a checked door."""

from __future__ import annotations

import math

import numpy as np

from guardband.kernels._jit import kernel
from guardband.kernels.disc_ucb import argmax, decide
from guardband.kernels.pruning import floor_of, mark_pruned
from guardband.kernels.ridge import absorb
from guardband.kernels.scan import BLOCK, scan
from guardband.kernels.sync import due
from guardband.kernels.types import (
    Estimate,
    Floats,
    Mix,
    RoundInput,
    Rule,
    State,
    Statistic,
    Task,
    Terms,
)

__all__ = [
    "FINE",
    "NOT_FINITE",
    "REPORT_SIZE",
    "TOO_LONG",
    "learn",
    "load_menu",
    "pack_settings",
    "serve",
]

FINE, NOT_FINITE, TOO_LONG = 0, 1, 2
REPORT_SIZE = 7
ALPHA, RHO = len(Terms._fields), len(Terms._fields) + 1

FREE, BASELINE, ACTION = int(Rule.FREE), int(Rule.BASELINE), int(Mix.ACTION)


@kernel
def load_menu(features, index, bound, menu):
    """Copy (K, d) or (K, size of the task) features to a (d, K) menu, zeros outside the task.

    Returns a code and, where it is not FINE, the first action that is at fault.
    """
    actions, columns = features.shape
    d = menu.shape[0]
    for start in range(0, actions, BLOCK):  # a block of rows is read once and stays in the cache
        stop = min(start + BLOCK, actions)
        for i in range(d):
            for k in range(start, stop):
                menu[i, k] = 0.0
        for p in range(index.size):
            row = menu[index[p]]
            column = index[p] if columns == d else p
            for k in range(start, stop):
                row[k] = features[k, column]
        for k in range(start, stop):
            total, norm = 0.0, 0.0
            for i in range(columns):
                total += features[k, i] * 0.0  # NaN if anything in the row is not finite
            if total != 0.0:
                return NOT_FINITE, k
            for p in range(index.size):
                value = features[k, index[p] if columns == d else p]
                norm += value * value
            if not math.sqrt(norm) <= bound:
                return TOO_LONG, k
    return FINE, 0


@kernel
def serve(
    gram,
    moment,
    sums,
    inverse,
    theta,
    scalars,
    work,
    pooled_gram,
    pooled_moment,
    pooled_sums,
    settings,
    index,
    menu,
    baseline,
    reward,
    coin,
    scratch,
    allowed,
    x,
    report,
):
    """Decide, and describe the decision in `report`, in `allowed` (the pruned set) and in x.

    The arrays of the agent's state and of the pooled data come one by one, and the terms as an
    array: taking them out of tuples at Python's border would cost more than the decision.
    """
    state = State(Statistic(gram, moment, sums), Estimate(inverse, theta, scalars), work)
    pooled = Statistic(pooled_gram, pooled_moment, pooled_sums)
    terms = _terms(settings)
    task = Task(index, settings[ALPHA], settings[RHO])
    given = RoundInput(menu, baseline, reward, 0.0)
    outcome = decide(state, pooled, terms, task, given, scratch, coin)
    if not outcome.scanned:
        scan(state.estimate, outcome.beta, task.coords, given.menu, scratch)
    mean, upper = scratch[0], scratch[1]
    k = outcome.action
    for i in range(x.size):
        x[i] = menu[i, k]
    propensity = 1.0
    floor = math.nan
    if terms.rule in (FREE, BASELINE):
        for j in range(allowed.size):
            allowed[j] = terms.rule == FREE or j == baseline
    else:
        floor = floor_of(terms, task.alpha, given, upper)
        mark_pruned(state, pooled, terms, outcome.beta, floor, scratch, allowed)
        if outcome.conservative and terms.mix == ACTION and argmax(upper) != baseline:
            propensity = task.rho if outcome.explored else 1.0 - task.rho
    report[0] = k
    report[1] = 0.0 if not outcome.conservative else 1.0 + outcome.explored
    report[2] = outcome.reason
    report[3] = mean[k]
    report[4] = upper[k]
    report[5] = floor
    report[6] = propensity


@kernel
def learn(
    gram, moment, sums, inverse, theta, scalars, work, settings, x, y, guess, last_logdet, rounds
):
    """Learn from a reward; tell whether a pooling is due."""
    state = State(Statistic(gram, moment, sums), Estimate(inverse, theta, scalars), work)
    absorb(state, x, y, 1.0, guess)
    return due(scalars[0], last_logdet, rounds, _terms(settings))


@kernel
def _terms(settings):
    """Return the terms that `pack_settings` put into an array."""
    return Terms(
        int(settings[0]),
        int(settings[1]),
        int(settings[2]),
        int(settings[3]),
        settings[4],
        settings[5],
        settings[6],
        settings[7],
        settings[8],
        settings[9],
        settings[10],
    )


def pack_settings(terms: Terms, alpha: float, rho: float) -> Floats:
    """Return terms, alpha and rho as one array, for `serve` and `learn`."""
    return np.array([*terms, alpha, rho], dtype=np.float64)
