"""Rounds within a phase of an elimination method: agents follow a plan that was fixed before it.

What happens between phases (the design, the estimate, the elimination) is rare and is left to
NumPy; see `guardband.algorithms.phases`.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from guardband.kernels._jit import kernel
from guardband.kernels.disc_ucb import argmax
from guardband.kernels.draw import draw_round
from guardband.kernels.linalg import rank_one
from guardband.kernels.loop import act, count_round, given_to, save_checkpoint, task_of
from guardband.kernels.scan import scan
from guardband.kernels.types import Estimate, Floats, Ints, Outcome, Reason

__all__ = ["Mode", "PhasePlan", "new_phase_plan", "simulate_phase"]

MOST_TESTS = 64  # phases grow geometrically: no run has as many


class Mode(IntEnum):
    """How a phase's plan is read."""

    SHARES = 0  # each context's visits are split among its actions in given proportions
    QUOTAS = 1  # each context's actions have quotas; when they are full, its leader is played
    TESTS = 2  # actions that pass all past tests are played where least is known


class PhasePlan(NamedTuple):
    """What agents do in a phase, and what they learn in it."""

    mode: int
    target: Floats  # (G, C, K) shares or quotas, by distinct task
    leader: Ints  # (G, C)
    counts: Floats  # (M, C, K) plays in this phase
    visits: Floats  # (M, C) rounds of this phase
    gram: Floats  # (M, d, d) sum of x x' over this phase
    moment: Floats  # (M, d) sum of y x
    inverse: Floats  # (M, d, d) of I + gram, for TESTS
    tests: Floats  # (n, d) past estimates
    slack: Floats  # (n,) how far behind the best an action may be by each of them
    passed: Ints  # (1,) number of tests so far
    work: Floats  # (4, d) scratch; row 3 stays zero


SHARES, QUOTAS, TESTS = int(Mode.SHARES), int(Mode.QUOTAS), int(Mode.TESTS)
R_FREE = int(Reason.FREE)


def new_phase_plan(mode: Mode, table: tuple[int, int, int], agents: int, dim: int) -> PhasePlan:
    """Return an empty plan; `table` are the numbers of tasks, contexts and actions."""
    groups, contexts, actions = table
    inverse = np.zeros((agents, dim, dim))
    inverse[:, range(dim), range(dim)] = 1.0
    return PhasePlan(
        mode=int(mode),
        target=np.zeros(table),
        leader=np.zeros((groups, contexts), np.int64),
        counts=np.zeros((agents, contexts, actions)),
        visits=np.zeros((agents, contexts)),
        gram=np.zeros((agents, dim, dim)),
        moment=np.zeros((agents, dim)),
        inverse=inverse,
        tests=np.zeros((MOST_TESTS, dim)),
        slack=np.zeros(MOST_TESTS),
        passed=np.zeros(1, np.int64),
        work=np.zeros((4, dim)),
    )


@kernel
def simulate_phase(phase, terms, tasks, env, draws, clock, metrics, trace, start, stop):
    """Play rounds `start` to `stop` of a chunk by its plan; writes what was learned to it."""
    for s in range(start, stop):
        slot = draw_round(env, draws, s)
        t = clock.ints[0] + 1
        clock.ints[0] = t
        c = draws.contexts[s]
        for m in range(tasks.size.size):
            given = given_to(env, slot, m)
            task = task_of(tasks, terms, given, draws, s, m)
            if phase.mode == TESTS:
                k = _least_known(phase, task.coords, given.menu, env.scratch, m)
            else:
                k = _next_by_plan(phase, env.scratch[0], env.group[m], m, c)
            outcome = Outcome(k, False, False, R_FREE, 0.0, False)
            played = act(outcome, terms, task, env, draws, slot, s, m, phase.work)
            _note(phase, m, played.reward + draws.noise[s, m])
            count_round(env, tasks, metrics, trace, slot, t, m, played)
        save_checkpoint(clock, metrics)


@kernel
def _next_by_plan(phase, lack, g, m, c):
    """Return the action that is furthest behind its share or quota; count it."""
    target, counts = phase.target[g, c], phase.counts[m, c]
    phase.visits[m, c] += 1.0
    scale = phase.visits[m, c] if phase.mode == SHARES else 1.0
    for k in range(lack.size):
        lack[k] = target[k] * scale - counts[k]
    k = argmax(lack)
    if phase.mode == QUOTAS and not lack[k] > 0.0:
        k = phase.leader[g, c]
    counts[k] += 1.0
    return k


@kernel
def _least_known(phase, index, menu, scratch, m):
    """Return the survivor with the largest norm(psi)_{V^-1} of this phase's V."""
    norm, value, lost = scratch[1], scratch[0], scratch[2]
    blank = phase.work[3]
    scan(Estimate(phase.inverse[m], blank, blank), 1.0, index, menu, scratch)
    for k in range(lost.size):
        lost[k] = 0.0
    for q in range(phase.passed[0]):
        for k in range(value.size):
            value[k] = 0.0
        for p in range(index.size):
            weight = phase.tests[q, index[p]]
            for k in range(value.size):
                value[k] += weight * menu[index[p], k]
        top = -math.inf
        for k in range(value.size):
            if lost[k] == 0.0 and value[k] > top:
                top = value[k]
        for k in range(value.size):
            if value[k] < top - phase.slack[q]:
                lost[k] = 1.0
    best = -1
    for k in range(norm.size):
        if lost[k] == 0.0 and (best < 0 or norm[k] > norm[best]):
            best = k
    return best


@kernel
def _note(phase, m, y):
    """Add what agent m saw of the vector in work[0] to the sums of the phase."""
    x, gram = phase.work[0], phase.gram[m]
    for i in range(x.size):
        phase.moment[m, i] += y * x[i]
        for j in range(x.size):
            gram[i, j] += x[i] * x[j]
    if phase.mode == TESTS:
        rank_one(phase.inverse[m], x, 1.0, phase.work[1])
