"""Single-task methods: one agent alone, in the coordinates of its own task.

Stage-wise: SCLTS, SCLUCB and SEGE differ in the score by which they choose among the actions that
the whole confidence ellipsoid certifies, and in their gate; ROFUL has none, see `directional`.
Cumulative: CLUCB keeps a budget of what it earned beyond its promise and spends it on optimism,
C-SquareCB spends it on draws by predicted gaps, see `inverse_gap`. And the oracle, who knows theta.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from guardband.kernels._jit import kernel
from guardband.kernels.certify import guard_radius
from guardband.kernels.directional import towards_best
from guardband.kernels.disc_ucb import conserve, plays
from guardband.kernels.draw import draw_round
from guardband.kernels.inverse_gap import explore_by_gaps
from guardband.kernels.linalg import cholesky, copy, dot, quadratic
from guardband.kernels.observe import weigh_played
from guardband.kernels.pruning import best_clear, floor_of, gate_need, gate_open
from guardband.kernels.ridge import absorb, absorb_tidily, horizon_radius
from guardband.kernels.rivals import Method
from guardband.kernels.rounds import (
    act,
    count_coin,
    count_round,
    given_to,
    observed_reward,
    save_checkpoint,
)
from guardband.kernels.scan import argmax, scan
from guardband.kernels.state import group_of, scores_of, state_of, terms_of
from guardband.kernels.types import Floats, Gate, Reason, Rule

__all__ = ["ConservativeBudget", "new_budget", "simulate_solo"]


class ConservativeBudget(NamedTuple):
    """What CLUCB and C-SquareCB remember of what was played so far."""

    chosen: Floats  # (d,) z: features of its own choices
    baseline_played: Floats  # (d,) u: baseline features of baseline rounds
    baseline_passed: Floats  # (d,) w: baseline features of rounds with a choice of its own
    rewards: Floats  # (4,) baseline rewards: of baseline rounds, of all rounds; how many baseline
    # rounds; rewards that C-SquareCB predicted
    sums: Floats  # (2, d) scratch


SAMPLE, OPTIMISM, GREEDY = int(Method.SAMPLE), int(Method.OPTIMISM), int(Method.GREEDY)
BUDGET, ORACLE = int(Method.BUDGET), int(Method.ORACLE)
DIRECTION, GAPS = int(Method.DIRECTION), int(Method.GAPS)
KNOWN, SHUT = int(Rule.KNOWN), int(Gate.SHUT)
R_LEARNED, R_GATE, R_EMPTY = int(Reason.LEARNED), int(Reason.GATE), int(Reason.EMPTY)
R_NOTHING, R_NO_FLOOR = int(Reason.NO_BASELINE_REWARD), int(Reason.NO_REWARD_FLOOR)
R_FREE = int(Reason.FREE)


def new_budget(dim: int) -> ConservativeBudget:
    """Return the budget of an agent before its first round."""
    return ConservativeBudget(
        np.zeros(dim), np.zeros(dim), np.zeros(dim), np.zeros(4), np.zeros((2, dim))
    )


@kernel
def simulate_solo(numbers, budget, solo, settings, tasks, env, draws, clock, metrics, trace):
    """Play a chunk of rounds of one agent; it pools nothing and uses no other agent's data.

    `numbers` is the array of a group of one, `solo` the method's settings, see `rivals.Solo`.
    """
    d, terms = env.theta.size, terms_of(settings[0])
    group = group_of(numbers, d)
    state, pooled = state_of(group, 0), state_of(group, 1).own
    scores = scores_of(env.scratch, env.menu.shape[3])
    for s in range(draws.contexts.size):
        slot = draw_round(env, draws, s)
        t = clock.ints[0] + 1
        clock.ints[0] = t
        given = given_to(env, tasks, terms, settings[0], clock, draws, slot, s, 0)
        learns = True
        if solo.method == ORACLE:
            outcome = plays(env.best[slot, env.group[0]], False, R_FREE, 0.0, False)
            learns = False
        elif solo.method == GAPS:
            k = env.offered[slot, 0]
            menu, some = given.menu[:, :k], scores_of(env.scratch, k)
            outcome = explore_by_gaps(state.estimate, budget, solo, terms, given, menu, some)
            learns = not outcome.conservative
        else:
            beta = _radius(state, pooled, solo, terms, given, d)
            if solo.method == DIRECTION:
                outcome = towards_best(state, beta, terms, given, scores)
            elif solo.method == BUDGET:
                outcome = _spend(state, budget, terms, given, scores, beta)
                # A known baseline reward teaches nothing.
                learns = not (outcome.conservative and terms.rule == KNOWN)
            else:
                outcome = _decide(state, pooled, solo, terms, given, scores, beta, draws, s)
        played = act(outcome, terms, given, env, draws, slot, s, 0, state.work)
        if learns:
            x = state.work[0]
            y, guess = observed_reward(env, draws, s, 0, played), dot(x, state.estimate.theta)
            if terms.weighted:
                weight = weigh_played(state.estimate, terms, given, outcome, guess)
                absorb_tidily(state, pooled, terms, x, y, weight, guess)
            else:
                absorb(state, x, y, 1.0, guess)
        count_round(env, tasks, metrics, trace, slot, t, 0, played)
        count_coin(env, tasks, metrics, slot, 0, outcome, played)
        save_checkpoint(clock, metrics)


@kernel
def _radius(state, pooled, solo, terms, given, dim):
    """Return beta in its horizon form, or of Guard-UCB's confidence set."""
    if terms.weighted:
        return guard_radius(state, pooled, terms, given.epoch)
    return horizon_radius(terms, dim, state.own.scalars[0], solo.level)


@kernel
def _decide(state, pooled, solo, terms, given, scores, beta, draws, s):
    """Choose among the certified actions, if lambda_min(V) reaches the gate; else play safe.

    The largest score of those with psi'theta-hat - beta norm(psi)_{V^-1} >= floor is played: the
    upper bound (SCLUCB), the mean (SEGE), or the reward under a sampled parameter (SCLTS).
    """
    if solo.method == GREEDY:
        need = solo.pace * math.sqrt(given.number)
    else:
        need = gate_need(terms, given, beta)
    if terms.gate == SHUT:
        reason = R_NO_FLOOR
    elif terms.rule == KNOWN and not given.baseline_reward > 0.0:
        reason = R_NOTHING
    elif not gate_open(state, pooled, terms.ridge, need):
        reason = R_GATE
    else:
        scan(state.estimate, beta, given.coords, given.menu, scores)
        floor = floor_of(terms, given, scores.upper)
        score = scores.upper
        if solo.method == GREEDY:
            score = scores.mean
        elif solo.method == SAMPLE:
            score = scores.part
            _sample(state, beta, draws.normal[s, 0])
            _score(given.menu, state.work[1], score)
        best = best_clear(score, scores, floor)
        if best >= 0:
            return plays(best, False, R_LEARNED, beta, True)
        reason = R_EMPTY
    return conserve(state.estimate, beta, terms, given, scores, reason)


@kernel
def _sample(state, beta, normal):
    """Write theta-hat + beta A eta to work[1], with A = U', U'U = V^-1; eta (d,)."""
    sample = state.work[1]
    factor = state.work[4 : 4 + sample.size]
    copy(state.estimate.inverse, factor)
    cholesky(factor)
    for i in range(sample.size):
        total = 0.0
        for j in range(i + 1):
            total += factor[j, i] * normal[j]
        sample[i] = state.estimate.theta[i] + beta * total


@kernel
def _score(menu, theta, score):
    """Write psi'theta of every action to `score` (K,); menu (d, K), theta (d,)."""
    for k in range(score.size):
        score[k] = 0.0
    for i in range(theta.size):
        for k in range(score.size):
            score[k] += theta[i] * menu[i, k]


@kernel
def _spend(state, budget, terms, given, scores, beta):
    """Choose optimistically if the budget covers it, else the baseline; keeps the budget.

    z, u and w are the sums of a `ConservativeBudget`, and low and high the bounds of `_bound`. The
    largest upper bound, psi_x, is played if low(z + psi_x) + what the baseline rounds earned is at
    least (1 - alpha) times what the baseline would have earned in all rounds; where its reward is
    not known, if low(z + psi_x) + alpha max(low(u), n_b r_l) >= (1 - alpha) high(w + psi_b).
    """
    scan(state.estimate, beta, given.coords, given.menu, scores)
    best, b = argmax(scores.upper), given.baseline
    hoped, owed = budget.sums[0], budget.sums[1]
    for i in range(hoped.size):
        hoped[i] = budget.chosen[i] + given.menu[i, best]
        owed[i] = budget.baseline_passed[i] + given.menu[i, b]
    sure = _bound(state.estimate, -beta, hoped, given.coords)
    if terms.rule == KNOWN:
        sure += budget.rewards[0]
        floor = (1.0 - given.alpha) * (budget.rewards[1] + given.baseline_reward)
    else:
        spare = _bound(state.estimate, -beta, budget.baseline_played, given.coords)
        sure += given.alpha * max(spare, budget.rewards[2] * terms.reward_floor)
        floor = (1.0 - given.alpha) * _bound(state.estimate, beta, owed, given.coords)
    budget.rewards[1] += given.baseline_reward
    if sure >= floor:
        for i in range(hoped.size):
            budget.chosen[i] = hoped[i]
            budget.baseline_passed[i] = owed[i]
        return plays(best, False, R_LEARNED, beta, True)
    budget.rewards[0] += given.baseline_reward
    budget.rewards[2] += 1.0
    for i in range(hoped.size):
        budget.baseline_played[i] += given.menu[i, b]
    return plays(b, True, R_EMPTY, beta, True)


@kernel
def _bound(estimate, beta, x, index):
    """Return x'theta-hat + beta norm(x)_{V^-1}, the largest reward, or with -beta the least.

    `x` is (d,).
    """
    form = quadratic(estimate.inverse, x, index)
    return dot(x, estimate.theta) + beta * math.sqrt(0.0 if form < 0.0 else form)
