"""What a live agent of Guard-UCB calls: the simulator's kernels behind Python's border."""

from __future__ import annotations

import numpy as np

from guardband.kernels._jit import kernel
from guardband.kernels.certify import certificate_of, observation_weight, slacks
from guardband.kernels.guard_ucb import guard_decide, write_image
from guardband.kernels.guarded_loop import note_report
from guardband.kernels.loop import copy_features
from guardband.kernels.ridge import absorb_tidily, prediction
from guardband.kernels.sync import EAGER, due_anytime
from guardband.kernels.types import (
    Estimate,
    Floats,
    GuardRoundInput,
    GuardTerms,
    State,
    Statistic,
    Task,
    Trigger,
)

__all__ = ["GUARD_REPORT", "guard_learn", "pack_guard", "serve_guarded"]

GUARD_REPORT = 13
ALPHA = len(GuardTerms._fields)
NEVER = int(Trigger.NEVER)


@kernel
def serve_guarded(
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
    told_gram,
    told_moment,
    told_sums,
    pooled_told_gram,
    pooled_told_moment,
    pooled_told_sums,
    tied_inverse,
    tied_theta,
    tied_scalars,
    settings,
    coords,
    menu,
    contexts,
    ids,
    weights,
    covariance,
    numbers,
    scratch,
    allowed,
    x,
    report,
):
    """Decide, and describe the decision in `report`, in `allowed` (what is certified) and in x.

    `numbers` are the baseline, its reward (NaN: not known), epoch, round and coin.
    """
    state = State(Statistic(gram, moment, sums), Estimate(inverse, theta, scalars), work)
    pooled = Statistic(pooled_gram, pooled_moment, pooled_sums)
    told = Statistic(told_gram, told_moment, told_sums)
    pooled_told = Statistic(pooled_told_gram, pooled_told_moment, pooled_told_sums)
    tied = Estimate(tied_inverse, tied_theta, tied_scalars)
    terms, task = _terms(settings), Task(coords, settings[ALPHA], 0.0)
    b, reward = int(numbers[0]), numbers[1]
    usable = terms.tolerance >= 0.0 and not np.isnan(reward)
    given = GuardRoundInput(menu, b, usable, reward, contexts, ids, weights, covariance)
    turn = (int(numbers[2]), int(numbers[3]), numbers[4])
    outcome = guard_decide(
        state, pooled, told, pooled_told, tied, terms, task, given, scratch, turn
    )
    alarm = tied.scalars[0] != 0.0
    anchored = terms.anchors and not alarm and told_sums[0] + pooled_told_sums[0] > 0.0
    known = usable and not alarm
    believed = GuardRoundInput(menu, b, known, reward, contexts, ids, weights, covariance)
    used = tied if anchored else state.estimate
    write_image(used, menu, b, coords, state.work[1])
    slacks(used, outcome.beta, terms, task, believed, scratch, state.work[1])
    for k in range(allowed.size):
        allowed[k] = scratch[4, k] >= 0.0
    k = outcome.action
    report[12] = certificate_of(
        used, outcome.beta, terms, task, believed, scratch, state.work[1], k
    )
    copy_features(menu, k, coords, x)
    weight = observation_weight(state.estimate, outcome.plain, terms, task, given, k)
    guess = prediction(x, theta)
    if terms.anchors and not np.isnan(reward):
        copy_features(menu, b, coords, state.work[0])
        note_report(told, state.work[0], reward)
    report[0] = k
    report[1] = outcome.conservative
    report[2] = outcome.stuck
    report[3] = scratch[0, k]
    report[4] = outcome.beta * np.sqrt(scratch[3, k])
    report[5] = scratch[0, b] + outcome.beta * np.sqrt(scratch[3, b])
    report[6] = outcome.propensity
    report[7] = outcome.margin
    report[8] = weight
    report[9] = guess
    report[10] = alarm
    report[11] = outcome.target


@kernel
def guard_learn(
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
    x,
    y,
    weight,
    guess,
    conservative,
    last_logdet,
    since,
    now,
):
    """Learn from a reward; tell whether a pooling is due."""
    state = State(Statistic(gram, moment, sums), Estimate(inverse, theta, scalars), work)
    terms = _terms(settings)
    pooled = Statistic(pooled_gram, pooled_moment, pooled_sums)
    absorb_tidily(state, pooled, x, y, weight, guess, terms.ridge)
    if terms.trigger == NEVER:
        return False
    if terms.strict and conservative and scalars[0] - last_logdet >= EAGER:
        return True
    return due_anytime(scalars[0], last_logdet, since, now, terms.agents, x.size)


@kernel
def _terms(settings):
    """Return the terms that `pack_guard` put into an array."""
    return GuardTerms(
        settings[0] != 0.0,
        int(settings[1]),
        int(settings[2]),
        int(settings[3]),
        settings[4],
        settings[5],
        settings[6] != 0.0,
        settings[7],
        settings[8],
        settings[9],
        settings[10],
        settings[11],
        settings[12],
        settings[13],
        settings[14],
        settings[15],
        settings[16],
        settings[17],
    )


def pack_guard(terms: GuardTerms, alpha: float) -> Floats:
    """Return terms and alpha as one array, for `serve_guarded` and `guard_learn`."""
    return np.array([*terms, alpha], dtype=np.float64)
