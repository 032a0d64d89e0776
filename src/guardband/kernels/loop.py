"""Rounds of the simulator: nature draws, every agent decides and learns, and then they may pool."""

from __future__ import annotations

import math

from guardband.kernels._jit import kernel
from guardband.kernels.choose import decide
from guardband.kernels.guard import floor_of, is_kept
from guardband.kernels.linalg import copy, dot
from guardband.kernels.nature import turn_page
from guardband.kernels.ridge import absorb
from guardband.kernels.scene import Metric, Played, Sight
from guardband.kernels.sync import due, pool
from guardband.kernels.types import Estimate, Mix, Offer, Reason, Rule, State, Statistic, Task

__all__ = [
    "act",
    "copy_features",
    "judge_coin",
    "judge_policy",
    "keep_books",
    "offer_of",
    "outside",
    "pass_checkpoint",
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
def simulate(fleet, pooled, terms, squad, scene, draws, clock, books, trail):
    """Play one stretch of rounds; changes everything but terms, squad, scene and draws."""
    agents = squad.size.size
    own, estimate, work = fleet
    for s in range(draws.contexts.size):
        page = turn_page(scene, draws, s)
        t = clock.ints[0] + 1
        clock.ints[0] = t
        call = False
        for m in range(agents):
            state = State(
                Statistic(own.gram[m], own.moment[m], own.scalars[m]),
                Estimate(estimate.inverse[m], estimate.theta[m], estimate.scalars[m]),
                work[m],
            )
            offer = offer_of(scene, page, m)
            task = task_of(squad, terms, offer, draws, s, m)
            outcome = decide(state, pooled, terms, task, offer, scene.desk, draws.coin[s, m])
            if terms.rule != BASELINE:
                totals = books.totals[m]
                totals[OUTSIDE] += outside(state, pooled, terms.ridge, scene.theta, outcome.beta)
                best = scene.best[page, scene.group[m]]
                totals[OPTIMUM_PRUNED] += _pruned(
                    state, pooled, terms, task, offer, scene.desk, outcome, best
                )
            played = act(outcome, terms, task, scene, draws, page, s, m, state.work)
            if terms.rule != BASELINE:
                x = state.work[0]
                guess = dot(x, state.estimate.theta)
                absorb(state, x, played.reward + draws.noise[s, m], 1.0, guess)
                if due(state.estimate.scalars[0], clock.logdet[0], t - clock.ints[1], terms):
                    call = True
            keep_books(scene, squad, books, trail, page, t, m, played)
            judge_coin(scene, squad, books, page, m, outcome, task, played)
        if call:
            clock.logdet[0] = pool(fleet, pooled, terms.ridge)
            clock.ints[1] = t
            clock.ints[2] += 1
            if trail.synced.size > 0:
                trail.synced[t - 1] = True
        pass_checkpoint(clock, books)


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
def _pruned(state, pooled, terms, task, offer, desk, outcome, best):
    """Tell whether the gate was open and the best action not in the pruned set."""
    if terms.rule not in (KNOWN, UNKNOWN) or outcome.reason not in (LEARNED, EMPTY):
        return False
    if outcome.reason == LEARNED and outcome.action == best:
        return False
    floor = floor_of(terms, task.alpha, offer, desk[1])
    return not is_kept(state, pooled, terms, outcome.beta, floor, desk, best)


@kernel
def offer_of(scene, page, m):
    """Return what agent m is offered: psi, or phi where it may see the context."""
    b = scene.baseline[page, m]
    if scene.sight == OBSERVED:
        told = scene.realised[page, scene.group[m], b]
        return Offer(scene.truth[page], b, told, scene.gap[page, m])
    return Offer(scene.menu[page], b, scene.baseline_reward[page, m], scene.gap[page, m])


@kernel
def task_of(squad, terms, offer, draws, s, m):
    """Return agent m's task in this round."""
    rho = squad.rho[m]
    if draws.rho.size > 0:
        rho = draws.rho[s]
    elif terms.rule != UNKNOWN and terms.mix != ACTION and not offer.baseline_reward > 0.0:
        rho = 0.0  # a baseline that is worth nothing has no share to give away
    return Task(squad.coords[m, : squad.size[m]], squad.alpha[m], rho)


@kernel
def act(outcome, terms, task, scene, draws, page, s, m, work):
    """Carry out agent m's decision; writes the vector to learn from to work[0]."""
    k, g = outcome.action, scene.group[m]
    mean, reward = scene.expected[page, g, k], scene.realised[page, g, k]
    x = work[0]
    if scene.sight == HIDDEN:
        copy_features(scene.menu[page], k, task.coords, x)
    else:
        copy_features(scene.truth[page], k, task.coords, x)
    if outcome.conservative and terms.mix != ACTION:
        zeta = draws.zeta[s, min(m, draws.zeta.shape[1] - 1)]
        bonus = _blend(x, zeta, terms, task, scene.theta, work[1])
        mean = (1.0 - task.rho) * mean + bonus
        reward = (1.0 - task.rho) * reward + bonus
    return Played(k, outcome.conservative, mean, reward)


@kernel
def keep_books(scene, squad, books, trail, page, t, m, played):
    """Write down what agent m played in round t, against the optimum and the baseline."""
    g, b = scene.group[m], scene.baseline[page, m]
    expected, realised = scene.expected[page, g], scene.realised[page, g]
    best = scene.best[page, g]
    keep = 1.0 - squad.judged[m]
    totals = books.totals[m]
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
    if trail.actions.size > 0:
        trail.actions[t - 1, m] = played.action
        trail.conservative[t - 1, m] = played.conservative
        trail.rewards[t - 1, m] = played.reward


@kernel
def judge_coin(scene, squad, books, page, m, outcome, task, played):
    """Where a coin chose, count the mixture it chose from; its other side is the baseline."""
    if outcome.explored:
        baseline = scene.expected[page, scene.group[m], scene.baseline[page, m]]
        mixture = (1.0 - task.rho) * baseline + task.rho * played.mean
        judge_policy(squad, books, m, baseline, played.mean, mixture)


@kernel
def judge_policy(squad, books, m, baseline, mean, mixture):
    """Count the mixture a coin chose from, in place of what it happened to choose."""
    floor = (1.0 - squad.judged[m]) * baseline - TOLERANCE
    books.totals[m, VIOLATIONS_POLICY] += (mixture < floor) - (mean < floor)


@kernel
def pass_checkpoint(clock, books):
    """Copy the running sums if this round is a checkpoint."""
    p = clock.ints[3]
    if p < books.checkpoints.size and books.checkpoints[p] == clock.ints[0]:
        copy(books.totals, books.curves[p])
        books.syncs[p] = clock.ints[2]
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
