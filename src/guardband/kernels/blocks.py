"""Conservative rounds in blocks: while the gate stays shut, agents need no estimate.

A block is played as if every agent took every round of it conservatively: only sums grow. Then the
estimates are computed once, and it is proved that the block went as round by round: lambda_min(V),
log det V and the radius never fall, so what is true at its end (the gate is shut, no pooling is
due) was true within it. If that is not so, the block is taken back. The sums are those of single
rounds to the bit; estimates differ in rounding, being computed from the sums.

Whether theta was outside the set: with z = U - V theta, ||theta-hat - theta||_V = ||z||_{V^-1}. In
a block z moves by sum eta x, eta = y - x'theta, and ||sum eta x||_{A^-1} is at most sqrt(sum eta^2
tr(A^-1 sum x x')) for all its rounds. With A = V before the block that bounds the distance from
above, with A = V after it from below.
"""

from __future__ import annotations

import math

from guardband.kernels._jit import kernel
from guardband.kernels.disc_ucb import plays
from guardband.kernels.draw import draw_round
from guardband.kernels.environment import Metric
from guardband.kernels.linalg import copy, dot
from guardband.kernels.outside import squared_distance
from guardband.kernels.pruning import eigenvalue_bounds, gate_need
from guardband.kernels.ridge import copy_estimate, count_reward, exact_eigenvalue, radius, refresh
from guardband.kernels.rounds import act, count_round, given_to, observed_reward, save_checkpoint
from guardband.kernels.state import group_of, shared_with, state_of
from guardband.kernels.sync import add_statistic, clear_statistic, due
from guardband.kernels.types import Reason, Rule

__all__ = ["LEAST", "MOST", "PAUSE", "play_block", "room_for"]

LEAST, MOST = 32, 256  # rounds in a block
PAUSE = 128  # rounds that are played one by one where the least block was not right
UNKNOWN, R_GATE, OUTSIDE = int(Rule.UNKNOWN), int(Reason.GATE), int(Metric.OUTSIDE)
BETA, DISTANCE, SQUARES, NEED = 0, 1, 2, 3  # notes of a block, see `Before`
EASE = 1e-6  # what is proved by a smaller share is not: estimates differ in rounding


@kernel
def room_for(before, clock, metrics, size, left):
    """Return how many rounds a block may have, of `size`: up to the chunk's end or a checkpoint."""
    if before.numbers.size == 0:
        return 0
    p = clock.ints[3]
    if p < metrics.checkpoints.size:
        left = min(left, metrics.checkpoints[p] - clock.ints[0])
    return min(size, left)


@kernel
def play_block(before, numbers, terms, settings, tasks, env, draws, clock, metrics, trace, s, n):
    """Play n rounds from round s of the chunk on, conservatively; tell whether that was right.

    If not, everything is as it was before.
    """
    group, start, right = group_of(numbers, env.theta.size), clock.ints[0], True
    last = env.thetas.shape[1] - 1
    old = group_of(before.numbers, env.theta.size)
    copy(metrics.totals, before.totals)
    for m in tasks.agents:
        state, theta, notes = state_of(group, m), env.thetas[0, min(m, last)], before.notes[m]
        square = squared_distance(state, shared_with(group, m).own, terms.ridge, theta)
        notes[BETA], notes[DISTANCE] = radius(state.estimate, terms), math.sqrt(square)
        notes[SQUARES], notes[NEED] = 0.0, math.inf
        _keep(state, state_of(old, m))
    for r in range(s, s + n):
        slot = draw_round(env, draws, r)
        clock.ints[0] += 1
        for m in tasks.agents:
            state, notes = state_of(group, m), before.notes[m]
            given = given_to(env, tasks, terms, settings[m], clock, draws, slot, r, m)
            if terms.rule == UNKNOWN or given.baseline_reward > 0.0:
                notes[NEED] = min(notes[NEED], gate_need(terms, given, notes[BETA]))
            outcome = plays(given.baseline, True, R_GATE, 0.0, False)
            played = act(outcome, terms, given, env, draws, slot, r, m, state.work)
            x, y = state.work[0], observed_reward(env, draws, r, m, played)
            count_reward(state.own, x, y, 1.0, 0.0)  # these rules need no prediction
            surprise = y - dot(x, env.thetas[0, min(m, last)])
            notes[SQUARES] += surprise * surprise
            count_round(env, tasks, metrics, trace, slot, clock.ints[0], m, played)
    for m in tasks.agents:
        state, was, pooled = state_of(group, m), state_of(old, m), shared_with(group, m).own
        totals, notes, theta = metrics.totals[m], before.notes[m], env.thetas[0, min(m, last)]
        if right:
            wide = _spread(was.estimate, state.own, was.own)
            refresh(state, pooled, terms.ridge)
            near = notes[DISTANCE] + math.sqrt(notes[SQUARES] * wide)
            right = _stays(state, pooled, terms, clock, notes[NEED])
            if not near <= (1.0 - EASE) * notes[BETA]:
                square = squared_distance(state, pooled, terms.ridge, theta)
                moved = math.sqrt(notes[SQUARES] * _spread(state.estimate, state.own, was.own))
                beta = (1.0 + EASE) * radius(state.estimate, terms)
                right = right and math.sqrt(square) - moved > beta
                totals[OUTSIDE] += n
    if right:
        save_checkpoint(clock, metrics)
    else:
        for m in tasks.agents:
            _keep(state_of(old, m), state_of(group, m))
        copy(before.totals, metrics.totals)
        clock.ints[0] = start
    return right


@kernel
def _keep(source, target):
    """Copy what a block changes of an agent's state."""
    copy_estimate(source.estimate, target.estimate)
    clear_statistic(target.own)
    add_statistic(target.own, source.own)


@kernel
def _spread(estimate, own, was):
    """Return tr(V^-1 sum x x'), with the sum over what was observed in the block."""
    total = 0.0
    for i in range(own.moment.size):
        for j in range(own.moment.size):
            total += estimate.inverse[i, j] * (own.gram[i, j] - was.gram[i, j])
    return total


@kernel
def _stays(state, pooled, terms, clock, need):
    """Tell whether the gate is still shut, and no pooling due, by the estimate after the block."""
    d, logdet = state.own.moment.size, state.estimate.scalars[0]
    now = clock.ints[0] + clock.ints[4]
    if due(terms, logdet + EASE, clock.logdet[0], now - clock.ints[1], now, True, d):
        return False
    if eigenvalue_bounds(state.estimate)[1] < need:
        return True
    exact_eigenvalue(state, pooled, terms.ridge)
    return eigenvalue_bounds(state.estimate)[1] < need
