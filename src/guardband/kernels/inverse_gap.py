"""C-SquareCB: inverse gap weighting on a regression oracle's predictions, paid from savings."""

from __future__ import annotations

import math

from guardband.kernels._jit import kernel
from guardband.kernels.disc_ucb import plays
from guardband.kernels.scan import argmax, scan_forms
from guardband.kernels.types import Reason

__all__ = ["explore_by_gaps", "oracle_regret", "predict", "weigh_by_gaps"]

LEARNED, EMPTY = int(Reason.LEARNED), int(Reason.EMPTY)


@kernel
def predict(estimate, coords, menu, scores):
    """Write psi'theta-hat / (1 + psi'V^-1 psi) to `mean`: the Vovk-Azoury-Warmuth forecaster."""
    scan_forms(estimate, coords, menu, scores.mean, scores.form)
    for k in range(menu.shape[1]):
        scores.mean[k] /= 1.0 + scores.form[k]


@kernel
def oracle_regret(terms, dim, count):
    """Return Reg(m) = d log(1 + m L^2 / (lambda d)) + lambda S^2, of m = `count` observations."""
    bound, length = terms.feature_bound, terms.theta_bound
    grown = math.log1p(count * (bound * bound) / (terms.ridge * dim))
    return dim * grown + terms.ridge * (length * length)


@kernel
def weigh_by_gaps(mean, gamma, coin):
    """Return the action that a coin draws, and the prediction averaged over the distribution.

    p_a = 1 / (K + gamma (yhat_j - yhat_a)) for a other than the leader j, which has the rest.
    """
    best, picked, below, average = argmax(mean), -1, 0.0, 0.0
    for k in range(mean.size):
        if k != best:
            chance = 1.0 / (mean.size + gamma * (mean[best] - mean[k]))
            below += chance
            average += chance * mean[k]
            if picked < 0 and coin < below:
                picked = k
    average += (1.0 - below) * mean[best]
    return (best if picked < 0 else picked), average


@kernel
def explore_by_gaps(estimate, budget, solo, terms, given, menu, scores):
    """Draw an action if what is predicted so far, less a slack, keeps 1 - alpha of the baseline.

    Tested is sum over past and present drawn rounds of sum_a p_a yhat_a, plus the baseline's
    rewards in the other rounds, minus c sqrt(m (Reg(m) + log(4 / delta))), m the number of past
    drawn rounds, against (1 - alpha) times the baseline's rewards in all rounds. Keeps the budget.

    `menu` is (d, K) with the actions on offer only: their number counts.
    """
    predict(estimate, given.coords, menu, scores)
    dim, m = estimate.theta.size, given.number - 1.0 - budget.rewards[2]
    errors = oracle_regret(terms, dim, m + 1.0) + math.log(8.0) + solo.level
    gamma = solo.rate * math.sqrt(scores.mean.size * (m + 1.0) / errors)
    picked, average = weigh_by_gaps(scores.mean, gamma, given.coin)
    errors = oracle_regret(terms, dim, m) + math.log(4.0) + solo.level
    sure = budget.rewards[3] + average + budget.rewards[0] - solo.pace * math.sqrt(m * errors)
    budget.rewards[1] += given.baseline_reward
    if sure >= (1.0 - given.alpha) * budget.rewards[1]:
        budget.rewards[3] += average
        return plays(picked, False, LEARNED, 0.0, False)
    budget.rewards[0] += given.baseline_reward
    budget.rewards[2] += 1.0
    return plays(given.baseline, True, EMPTY, 0.0, False)
