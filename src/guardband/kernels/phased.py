"""Rounds within a phase of an elimination method: agents follow a plan that was fixed before it.

What happens between phases (the design, the estimate, the elimination) is rare and is left to
NumPy; see `guardband.algorithms.phases`.
"""

from __future__ import annotations

import math

from guardband.kernels._jit import kernel
from guardband.kernels.disc_ucb import plays
from guardband.kernels.draw import draw_round
from guardband.kernels.linalg import rank_one
from guardband.kernels.rivals import Mode
from guardband.kernels.rounds import act, count_round, given_to, observed_reward, save_checkpoint
from guardband.kernels.scan import argmax, scan
from guardband.kernels.state import scores_of, terms_of
from guardband.kernels.types import Estimate, Reason

__all__ = ["simulate_phase"]

SHARES, QUOTAS, TESTS = int(Mode.SHARES), int(Mode.QUOTAS), int(Mode.TESTS)
R_FREE = int(Reason.FREE)


@kernel
def simulate_phase(phase, settings, tasks, env, draws, clock, metrics, trace, start, stop):
    """Play rounds `start` to `stop` of a chunk by its plan; writes what was learned to it.

    `phase` is a `PhasePlan`.
    """
    scores, terms = scores_of(env.scratch, env.menu.shape[3]), terms_of(settings[0])
    for s in range(start, stop):
        slot = draw_round(env, draws, s)
        t = clock.ints[0] + 1
        clock.ints[0] = t
        c = draws.contexts[s]
        for m in range(tasks.size.size):
            given = given_to(env, tasks, terms, settings[m], clock, draws, slot, s, m)
            if phase.mode == TESTS:
                k = _least_known(phase, given.coords, given.menu, scores, m)
            else:
                k = _next_by_plan(phase, scores.mean, env.group[m], m, c)
            outcome = plays(k, False, R_FREE, 0.0, False)
            played = act(outcome, terms, given, env, draws, slot, s, m, phase.work)
            _note(phase, m, observed_reward(env, draws, s, m, played))
            count_round(env, tasks, metrics, trace, slot, t, m, played)
        save_checkpoint(clock, metrics)


@kernel
def _next_by_plan(phase, lack, g, m, c):
    """Return the action that is furthest behind its share or quota; count it.

    That is argmax_k target_k visits - counts_k, or of quotas target_k - counts_k; `lack` (K,) is
    scratch, g the distinct task of agent m, and c the context.
    """
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
def _least_known(phase, index, menu, scores, m):
    """Return the survivor with the largest norm(psi)_{V^-1} of this phase's V; menu (d, K).

    A test q removes what has psi'theta_q < max psi'theta_q - slack_q, the maximum over survivors.
    """
    norm, value, lost = scores.upper, scores.mean, scores.part
    blank = phase.work[3]
    scan(Estimate(phase.inverse[m], blank, blank), 1.0, index, menu, scores)
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
    """Add reward y of x, the vector in work[0], to the phase: W += x x', U += y x."""
    x, gram = phase.work[0], phase.gram[m]
    for i in range(x.size):
        phase.moment[m, i] += y * x[i]
        for j in range(x.size):
            gram[i, j] += x[i] * x[j]
    if phase.mode == TESTS:
        rank_one(phase.inverse[m], x, 1.0, phase.work[1])
