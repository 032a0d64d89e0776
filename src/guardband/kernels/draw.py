"""Writes the features of one round: which slot of the environment belongs to it."""

from __future__ import annotations

from guardband.kernels._jit import kernel
from guardband.kernels.environment import Nature
from guardband.kernels.linalg import dot
from guardband.kernels.scan import argmax

__all__ = ["draw_round"]

TABLE, FRESH = int(Nature.TABLE), int(Nature.FRESH)


@kernel
def draw_round(env, draws, s):
    """Return the slot of round s; writes it first where every round has its own."""
    c = draws.contexts[s]
    if env.nature == TABLE:
        return c
    last = env.menu.shape[1] - 1
    if env.nature == FRESH:
        _write_fresh(env, c, last, draws.fresh[s])
    else:
        _write_forecast(env, c, last, draws.support[s], draws.weights[s])
    return last


@kernel
def _write_fresh(env, c, last, noise):
    """Write phi = psi + context_std noise to the last slot, with psi of context c; noise (K, d)."""
    d, actions = env.menu.shape[2], env.menu.shape[3]
    menu, truth = env.menu[0, last], env.truth[0, last]
    for i in range(d):
        for k in range(actions):
            menu[i, k] = env.menu[0, c, i, k]
            truth[i, k] = menu[i, k] + env.context_std * noise[k, i]
    for g in range(env.masked.shape[0]):
        env.best[last, g] = env.best[c, g]
        for k in range(actions):
            shift = env.context_std * dot(noise[k], env.masked[g])
            env.expected[last, g, k] = env.expected[c, g, k]
            env.realised[last, g, k] = env.expected[c, g, k] + shift
    if env.values.size > 0:
        for k in range(actions):
            env.values[last, k] = env.values[c, k]
    if env.costs.size > 0:
        for k in range(actions):
            env.costs[last, k] = env.costs[c, k]
    for m in range(env.group.size):
        env.baseline[last, m] = env.baseline[c, m]
        env.baseline_reward[last, m] = env.baseline_reward[c, m]
        env.gap[last, m] = env.gap[c, m]


@kernel
def _write_forecast(env, c, last, support, weights):
    """Write psi = sum_j weights_j phi(support_j) and phi of context c to the last slot.

    `support` and `weights` are (n,). The baseline is the rank-th best action by psi'theta.
    """
    d, actions = env.menu.shape[2], env.menu.shape[3]
    menu, truth = env.menu[0, last], env.truth[0, last]
    for i in range(d):
        for k in range(actions):
            menu[i, k] = 0.0
            truth[i, k] = env.truth[0, c, i, k]
    for j in range(support.size):
        weight = weights[j]
        slot = env.contexts[0, support[j]]
        for i in range(d):
            for k in range(actions):
                menu[i, k] += weight * slot[i, k]
    for g in range(env.masked.shape[0]):
        expected, realised = env.expected[last, g], env.realised[last, g]
        for k in range(actions):
            expected[k] = 0.0
            realised[k] = env.realised[c, g, k]
        for i in range(d):
            for k in range(actions):
                expected[k] += env.masked[g, i] * menu[i, k]
        env.best[last, g] = argmax(expected)
    for m in range(env.group.size):
        g = env.group[m]
        expected = env.expected[last, g]
        b = -1
        for other in range(m):  # agents of one task have one baseline
            if env.group[other] == g:
                b = env.baseline[last, other]
                break
        if b < 0:
            b = _ranked(expected, env.rank)
        env.baseline[last, m] = b
        env.baseline_reward[last, m] = expected[b]
        env.gap[last, m] = expected[env.best[last, g]] - env.high


@kernel
def _ranked(values, rank):
    """Return the index of the rank-th largest of `values` (K,); 1: the largest, ties by index."""
    for k in range(values.size):
        value, before = values[k], 0
        for j in range(values.size):  # a count is a vector instruction, walking down is not
            before += values[j] > value
        for j in range(k if before < rank else 0):
            before += values[j] == value
        if before == rank - 1:
            return k
    return -1
