"""Single-task methods: one agent alone, in the coordinates of its own task.

Stage-wise: SCLTS, SCLUCB and SEGE differ in the score by which they choose among the actions that
the whole confidence ellipsoid certifies, and in their gate. Cumulative: CLUCB keeps a purse of
what it earned beyond its promise and spends it on optimism. And the oracle, who knows theta.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from guardband.kernels._jit import kernel
from guardband.kernels.choose import argmax, conserve
from guardband.kernels.guard import best_clear, floor_of, gate_need, gate_open
from guardband.kernels.linalg import cholesky, copy, dot, quadratic
from guardband.kernels.loop import (
    act,
    judge_coin,
    keep_books,
    offer_of,
    pass_checkpoint,
    task_of,
)
from guardband.kernels.nature import turn_page
from guardband.kernels.ridge import absorb, horizon_radius
from guardband.kernels.scan import scan
from guardband.kernels.types import Floats, Gate, Outcome, Reason, Rule

__all__ = ["Method", "Purse", "Solo", "new_purse", "simulate_solo"]


class Method(IntEnum):
    """Whose rule an agent follows."""

    SAMPLE = 0  # SCLTS: the best certified action for a sampled parameter
    OPTIMISM = 1  # SCLUCB: the certified action with the largest upper bound
    GREEDY = 2  # SEGE: the certified action with the largest estimate; gate at pace sqrt(t)
    PURSE = 3  # CLUCB: optimism, as long as the purse covers what it may cost
    ORACLE = 4  # the best action


class Solo(NamedTuple):
    """The settings of a single-task method beside the common terms."""

    method: int
    level: float  # log(1 / delta'), of the horizon form of the radius
    pace: float  # SEGE's c


class Purse(NamedTuple):
    """CLUCB's memory of what was played so far."""

    chosen: Floats  # (d,) z: features of its own choices
    kept: Floats  # (d,) u: baseline features of baseline rounds
    missed: Floats  # (d,) w: baseline features of rounds with a choice of its own
    rewards: Floats  # (3,) baseline rewards: of baseline rounds, of all rounds; baseline rounds
    sums: Floats  # (2, d) scratch


SAMPLE, OPTIMISM, GREEDY = int(Method.SAMPLE), int(Method.OPTIMISM), int(Method.GREEDY)
PURSE, ORACLE = int(Method.PURSE), int(Method.ORACLE)
KNOWN, SHUT = int(Rule.KNOWN), int(Gate.SHUT)
R_LEARNED, R_GATE, R_EMPTY = int(Reason.LEARNED), int(Reason.GATE), int(Reason.EMPTY)
R_NOTHING, R_NO_FLOOR = int(Reason.NO_BASELINE_REWARD), int(Reason.NO_REWARD_FLOOR)
R_FREE = int(Reason.FREE)


def new_purse(dim: int) -> Purse:
    """Return the purse of an agent before its first round."""
    return Purse(np.zeros(dim), np.zeros(dim), np.zeros(dim), np.zeros(3), np.zeros((2, dim)))


@kernel
def simulate_solo(state, pooled, purse, solo, terms, squad, scene, draws, clock, books, trail):
    """Play one stretch of rounds of one agent; `pooled` stays empty, it learns from nobody."""
    d = state.own.moment.size
    for s in range(draws.contexts.size):
        page = turn_page(scene, draws, s)
        t = clock.ints[0] + 1
        clock.ints[0] = t
        offer = offer_of(scene, page, 0)
        task = task_of(squad, terms, offer, draws, s, 0)
        learns = True
        if solo.method == ORACLE:
            outcome = Outcome(scene.best[page, scene.group[0]], False, False, R_FREE, 0.0, False)
            learns = False
        else:
            beta = horizon_radius(terms, d, state.own.scalars[0], solo.level)
            if solo.method == PURSE:
                outcome = _spend(state, purse, terms, task, offer, scene.desk, beta)
                # A known baseline reward teaches nothing.
                learns = not (outcome.conservative and terms.rule == KNOWN)
            else:
                outcome = _decide(
                    state, pooled, solo, terms, task, offer, scene.desk, beta, t, draws, s
                )
        played = act(outcome, terms, task, scene, draws, page, s, 0, state.work)
        if learns:
            x = state.work[0]
            guess = dot(x, state.estimate.theta)
            absorb(state, x, played.reward + draws.noise[s, 0], 1.0, guess)
        keep_books(scene, squad, books, trail, page, t, 0, played)
        judge_coin(scene, squad, books, page, 0, outcome, task, played)
        pass_checkpoint(clock, books)


@kernel
def _decide(state, pooled, solo, terms, task, offer, desk, beta, t, draws, s):
    """Choose among the certified actions, if the gate is open; else play safe."""
    if solo.method == GREEDY:
        need = solo.pace * math.sqrt(t)
    else:
        need = gate_need(terms, task.alpha, offer, beta)
    if terms.gate == SHUT:
        reason = R_NO_FLOOR
    elif terms.rule == KNOWN and not offer.baseline_reward > 0.0:
        reason = R_NOTHING
    elif not gate_open(state, pooled, terms.ridge, need):
        reason = R_GATE
    else:
        scan(state.estimate, beta, task.coords, offer.menu, desk)
        floor = floor_of(terms, task.alpha, offer, desk[1])
        score = desk[1]
        if solo.method == GREEDY:
            score = desk[0]
        elif solo.method == SAMPLE:
            score = desk[2]
            _sample(state, beta, draws.normal[s, 0])
            _score(offer.menu, state.work[1], score)
        best = best_clear(score, desk, floor)
        if best >= 0:
            return Outcome(best, False, False, R_LEARNED, beta, True)
        reason = R_EMPTY
    return conserve(state.estimate, beta, terms, task, offer, desk, draws.coin[s, 0], reason)


@kernel
def _sample(state, beta, normal):
    """Write theta-hat + beta A eta to work[1], with A the Cholesky factor of V^-1."""
    sample = state.work[1]
    factor = state.work[4 : 4 + sample.size]
    copy(state.estimate.inverse, factor)
    cholesky(factor)
    for i in range(sample.size):
        total = 0.0
        for j in range(i + 1):
            total += factor[i, j] * normal[j]
        sample[i] = state.estimate.theta[i] + beta * total


@kernel
def _score(menu, theta, score):
    """Write every action's reward under `theta`."""
    for k in range(score.size):
        score[k] = 0.0
    for i in range(theta.size):
        for k in range(score.size):
            score[k] += theta[i] * menu[i, k]


@kernel
def _spend(state, purse, terms, task, offer, desk, beta):
    """Choose optimistically if the purse covers it, else the baseline; keeps the purse."""
    scan(state.estimate, beta, task.coords, offer.menu, desk)
    best, b = argmax(desk[1]), offer.baseline
    hoped, owed = purse.sums[0], purse.sums[1]
    for i in range(hoped.size):
        hoped[i] = purse.chosen[i] + offer.menu[i, best]
        owed[i] = purse.missed[i] + offer.menu[i, b]
    sure = _bound(state.estimate, -beta, hoped, task.coords)
    if terms.rule == KNOWN:
        sure += purse.rewards[0]
        floor = (1.0 - task.alpha) * (purse.rewards[1] + offer.baseline_reward)
    else:
        spare = _bound(state.estimate, -beta, purse.kept, task.coords)
        sure += task.alpha * max(spare, purse.rewards[2] * terms.reward_floor)
        floor = (1.0 - task.alpha) * _bound(state.estimate, beta, owed, task.coords)
    purse.rewards[1] += offer.baseline_reward
    if sure >= floor:
        for i in range(hoped.size):
            purse.chosen[i] = hoped[i]
            purse.missed[i] = owed[i]
        return Outcome(best, False, False, R_LEARNED, beta, True)
    purse.rewards[0] += offer.baseline_reward
    purse.rewards[2] += 1.0
    for i in range(hoped.size):
        purse.kept[i] += offer.menu[i, b]
    return Outcome(b, True, False, R_EMPTY, beta, True)


@kernel
def _bound(estimate, beta, x, index):
    """Return x'theta-hat + beta norm(x)_{V^-1}: the largest reward, or with -beta the least."""
    form = quadratic(estimate.inverse, x, index)
    return dot(x, estimate.theta) + beta * math.sqrt(0.0 if form < 0.0 else form)
