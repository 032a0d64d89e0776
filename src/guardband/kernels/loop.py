"""Rounds of the simulator: nature draws, every agent decides and learns, and then they may pool."""

from __future__ import annotations

import math

from guardband.kernels._jit import kernel
from guardband.kernels.disc_ucb import decide
from guardband.kernels.draw import draw_round
from guardband.kernels.environment import Metric, Played, Sight
from guardband.kernels.linalg import copy, dot
from guardband.kernels.pruning import floor_of, in_pruned_set
from guardband.kernels.ridge import absorb
from guardband.kernels.sync import due, pool
from guardband.kernels.types import Estimate, Mix, Reason, RoundInput, Rule, State, Statistic, Task

__all__ = [
    "act",
    "copy_features",
    "count_coin",
    "count_mixture",
    "count_round",
    "given_to",
    "outside",
    "save_checkpoint",
    "simulate",
    "task_of",
    "to_unit_length",
]

ACTION, TASK_VECTOR = int(Mix.ACTION), int(Mix.TASK_VECTOR)
KNOWN, UNKNOWN, BASELINE = int(Rule.KNOWN), int(Rule.UNKNOWN), int(Rule.BASELINE)
LEARNED, EMPTY = int(Reason.LEARNED), int(Reason.EMPTY)
HIDDEN, OBSERVED = int(Sight.HIDDEN), int(Sight.OBSERVED)
REGRET, REGRET_EXPECTED = int(Metric.REGRET), int(Metric.REGRET_EXPECTED)
VIOLATIONS_EXPECTED = int(Metric.VIOLATIONS_EXPECTED)
VIOLATIONS_REALISED = int(Metric.VIOLATIONS_REALISED)
VIOLATIONS_POLICY = int(Metric.VIOLATIONS_POLICY)
VIOLATIONS_CONSERVATIVE = int(Metric.VIOLATIONS_CONSERVATIVE)
VIOLATIONS_CONSERVATIVE_EXPECTED = int(Metric.VIOLATIONS_CONSERVATIVE_EXPECTED)
CONSERVATIVE, REWARD = int(Metric.CONSERVATIVE), int(Metric.REWARD)
BASELINE_REWARD = int(Metric.BASELINE_REWARD)
OUTSIDE, OPTIMUM_PRUNED = int(Metric.OUTSIDE), int(Metric.OPTIMUM_PRUNED)

TOLERANCE = 1e-12  # a reward this close below the floor is not a violation


@kernel
def simulate(fleet, pooled, terms, tasks, env, draws, clock, metrics, trace):
    """Play a chunk of rounds; changes everything but terms, tasks, env and draws."""
    agents = tasks.size.size
    own, estimate, work = fleet
    for s in range(draws.contexts.size):
        slot = draw_round(env, draws, s)
        t = clock.ints[0] + 1
        clock.ints[0] = t
        call = False
        for m in range(agents):
            state = State(
                Statistic(own.gram[m], own.moment[m], own.scalars[m]),
                Estimate(estimate.inverse[m], estimate.theta[m], estimate.scalars[m]),
                work[m],
            )
            given = given_to(env, slot, m)
            task = task_of(tasks, terms, given, draws, s, m)
            outcome = decide(state, pooled, terms, task, given, env.scratch, draws.coin[s, m])
            if terms.rule != BASELINE:
                totals = metrics.totals[m]
                totals[OUTSIDE] += outside(state, pooled, terms.ridge, env.theta, outcome.beta)
                best = env.best[slot, env.group[m]]
                totals[OPTIMUM_PRUNED] += _pruned(
                    state, pooled, terms, task, given, env.scratch, outcome, best
                )
            played = act(outcome, terms, task, env, draws, slot, s, m, state.work)
            if terms.rule != BASELINE:
                x = state.work[0]
                guess = dot(x, state.estimate.theta)
                absorb(state, x, played.reward + draws.noise[s, m], 1.0, guess)
                if due(state.estimate.scalars[0], clock.logdet[0], t - clock.ints[1], terms):
                    call = True
            count_round(env, tasks, metrics, trace, slot, t, m, played)
            count_coin(env, tasks, metrics, slot, m, outcome, task, played)
        if call:
            clock.logdet[0] = pool(fleet, pooled, terms.ridge)
            clock.ints[1] = t
            clock.ints[2] += 1
            if trace.synced.size > 0:
                trace.synced[t - 1] = True
        save_checkpoint(clock, metrics)


@kernel
def outside(state, pooled, ridge, theta, beta):
    """Tell whether theta lies outside the confidence set, which agents cannot see."""
    estimate, total = state.estimate, 0.0
    for i in range(theta.size):
        off = estimate.theta[i] - theta[i]
        total += off * off
    if estimate.scalars[1] * total <= beta * beta:
        return False  # no eigenvalue of V exceeds its trace
    total *= ridge
    for i in range(theta.size):
        off = estimate.theta[i] - theta[i]
        for j in range(theta.size):
            entry = state.own.gram[i, j] + pooled.gram[i, j]
            total += entry * off * (estimate.theta[j] - theta[j])
    return total > beta * beta


@kernel
def _pruned(state, pooled, terms, task, given, scratch, outcome, best):
    """Tell whether the gate was open and the best action not in the pruned set."""
    if terms.rule not in (KNOWN, UNKNOWN) or outcome.reason not in (LEARNED, EMPTY):
        return False
    if outcome.reason == LEARNED and outcome.action == best:
        return False
    floor = floor_of(terms, task.alpha, given, scratch[1])
    return not in_pruned_set(state, pooled, terms, outcome.beta, floor, scratch, best)


@kernel
def given_to(env, slot, m):
    """Return what agent m is offered: psi, or phi where it may see the context."""
    b = env.baseline[slot, m]
    if env.sight == OBSERVED:
        told = env.realised[slot, env.group[m], b]
        return RoundInput(env.truth[slot], b, told, env.gap[slot, m])
    return RoundInput(env.menu[slot], b, env.baseline_reward[slot, m], env.gap[slot, m])


@kernel
def task_of(tasks, terms, given, draws, s, m):
    """Return agent m's task in this round."""
    rho = tasks.rho[m]
    if draws.rho.size > 0:
        rho = draws.rho[s]
    elif terms.rule != UNKNOWN and terms.mix != ACTION and not given.baseline_reward > 0.0:
        rho = 0.0  # a baseline that is worth nothing has no share to give away
    return Task(tasks.coords[m, : tasks.size[m]], tasks.alpha[m], rho)


@kernel
def act(outcome, terms, task, env, draws, slot, s, m, work):
    """Carry out agent m's decision; writes the vector to learn from to work[0]."""
    k, g = outcome.action, env.group[m]
    mean, reward = env.expected[slot, g, k], env.realised[slot, g, k]
    x = work[0]
    if env.sight == HIDDEN:
        copy_features(env.menu[slot], k, task.coords, x)
    else:
        copy_features(env.truth[slot], k, task.coords, x)
    if outcome.conservative and terms.mix != ACTION:
        zeta = draws.zeta[s, min(m, draws.zeta.shape[1] - 1)]
        bonus = _blend(x, zeta, terms, task, env.theta, work[1])
        mean = (1.0 - task.rho) * mean + bonus
        reward = (1.0 - task.rho) * reward + bonus
    return Played(k, outcome.conservative, mean, reward)


@kernel
def count_round(env, tasks, metrics, trace, slot, t, m, played):
    """Write down what agent m played in round t, against the optimum and the baseline."""
    g, b = env.group[m], env.baseline[slot, m]
    expected, realised = env.expected[slot, g], env.realised[slot, g]
    best = env.best[slot, g]
    keep = 1.0 - tasks.judged[m]
    totals = metrics.totals[m]
    totals[REGRET] += realised[best] - played.reward
    totals[REGRET_EXPECTED] += expected[best] - played.mean
    low_mean = played.mean < keep * expected[b] - TOLERANCE
    low_reward = played.reward < keep * realised[b] - TOLERANCE
    totals[VIOLATIONS_EXPECTED] += low_mean
    totals[VIOLATIONS_POLICY] += low_mean
    totals[VIOLATIONS_REALISED] += low_reward
    totals[VIOLATIONS_CONSERVATIVE] += low_reward and played.conservative
    totals[VIOLATIONS_CONSERVATIVE_EXPECTED] += low_mean and played.conservative
    totals[CONSERVATIVE] += played.conservative
    totals[REWARD] += played.reward
    totals[BASELINE_REWARD] += realised[b]
    if trace.actions.size > 0:
        trace.actions[t - 1, m] = played.action
        trace.conservative[t - 1, m] = played.conservative
        trace.rewards[t - 1, m] = played.reward


@kernel
def count_coin(env, tasks, metrics, slot, m, outcome, task, played):
    """Where a coin chose, count the mixture it chose from; its other side is the baseline."""
    if outcome.explored:
        baseline = env.expected[slot, env.group[m], env.baseline[slot, m]]
        mixture = (1.0 - task.rho) * baseline + task.rho * played.mean
        count_mixture(tasks, metrics, m, baseline, played.mean, mixture)


@kernel
def count_mixture(tasks, metrics, m, baseline, mean, mixture):
    """Count the mixture a coin chose from, in place of what it happened to choose."""
    floor = (1.0 - tasks.judged[m]) * baseline - TOLERANCE
    metrics.totals[m, VIOLATIONS_POLICY] += (mixture < floor) - (mean < floor)


@kernel
def save_checkpoint(clock, metrics):
    """Copy the running sums if this round is a checkpoint."""
    p = clock.ints[3]
    if p < metrics.checkpoints.size and metrics.checkpoints[p] == clock.ints[0]:
        copy(metrics.totals, metrics.curves[p])
        metrics.syncs[p] = clock.ints[2]
        clock.ints[3] = p + 1


@kernel
def copy_features(menu, k, index, x):
    """Write action k's features to x, with zeros outside the task."""
    for i in range(x.size):
        x[i] = 0.0
    for p in range(index.size):
        x[index[p]] = menu[index[p], k]


@kernel
def _blend(x, zeta, terms, task, theta, direction):
    """Turn the baseline's features x into (1 - rho) x + rho zeta; return rho zeta'theta."""
    if terms.mix == TASK_VECTOR:
        for i in range(direction.size):
            direction[i] = 0.0
        for p in range(task.coords.size):
            direction[task.coords[p]] = zeta[task.coords[p]]
        norm = math.sqrt(dot(direction, direction))
        for i in range(direction.size):
            direction[i] /= norm
    else:
        for i in range(direction.size):
            direction[i] = zeta[i]
    for i in range(x.size):
        x[i] = (1.0 - task.rho) * x[i] + task.rho * direction[i]
    return task.rho * dot(direction, theta)


@kernel
def to_unit_length(vectors):
    """Scale every row of a (n, m, d) array to length one, in place."""
    for i in range(vectors.shape[0]):
        for j in range(vectors.shape[1]):
            norm = math.sqrt(dot(vectors[i, j], vectors[i, j]))
            for k in range(vectors.shape[2]):
                vectors[i, j, k] /= norm
