"""Nature's move: the page of the scene that belongs to this round."""

from __future__ import annotations

import math

from guardband.kernels._jit import kernel
from guardband.kernels.choose import argmax
from guardband.kernels.linalg import dot
from guardband.kernels.scene import Nature

__all__ = ["turn_page"]

TABLE, FRESH = int(Nature.TABLE), int(Nature.FRESH)


@kernel
def turn_page(scene, draws, s):
    """Return the page of round s; writes it first where every round has its own."""
    c = draws.contexts[s]
    if scene.nature == TABLE:
        return c
    last = scene.menu.shape[0] - 1
    if scene.nature == FRESH:
        _write_fresh(scene, c, last, draws.fresh[s])
    else:
        _write_forecast(scene, c, last, draws.support[s], draws.weights[s])
    return last


@kernel
def _write_fresh(scene, c, last, noise):
    """Write true features around the context's expected ones."""
    d, actions = scene.menu.shape[1], scene.menu.shape[2]
    menu, truth = scene.menu[last], scene.truth[last]
    for i in range(d):
        for k in range(actions):
            menu[i, k] = scene.menu[c, i, k]
            truth[i, k] = menu[i, k] + scene.spread * noise[k, i]
    for g in range(scene.masked.shape[0]):
        scene.best[last, g] = scene.best[c, g]
        for k in range(actions):
            shift = scene.spread * dot(noise[k], scene.masked[g])
            scene.expected[last, g, k] = scene.expected[c, g, k]
            scene.realised[last, g, k] = scene.expected[c, g, k] + shift
    for m in range(scene.group.size):
        scene.baseline[last, m] = scene.baseline[c, m]
        scene.baseline_reward[last, m] = scene.baseline_reward[c, m]
        scene.gap[last, m] = scene.gap[c, m]


@kernel
def _write_forecast(scene, c, last, support, weights):
    """Write expected features under the announced distribution, true ones under the context."""
    d, actions = scene.menu.shape[1], scene.menu.shape[2]
    menu, truth = scene.menu[last], scene.truth[last]
    for i in range(d):
        for k in range(actions):
            menu[i, k] = 0.0
            truth[i, k] = scene.truth[c, i, k]
    for j in range(support.size):
        weight = weights[j]
        page = scene.truth[support[j]]
        for i in range(d):
            for k in range(actions):
                menu[i, k] += weight * page[i, k]
    for g in range(scene.masked.shape[0]):
        expected, realised = scene.expected[last, g], scene.realised[last, g]
        for k in range(actions):
            expected[k] = 0.0
            realised[k] = scene.realised[c, g, k]
        for i in range(d):
            for k in range(actions):
                expected[k] += scene.masked[g, i] * menu[i, k]
        scene.best[last, g] = argmax(expected)
    for m in range(scene.group.size):
        g = scene.group[m]
        expected = scene.expected[last, g]
        b = -1
        for other in range(m):  # agents of one task have one baseline
            if scene.group[other] == g:
                b = scene.baseline[last, other]
                break
        if b < 0:
            b = _ranked(expected, scene.rank)
        scene.baseline[last, m] = b
        scene.baseline_reward[last, m] = expected[b]
        scene.gap[last, m] = expected[scene.best[last, g]] - scene.high


@kernel
def _ranked(values, rank):
    """Return the index of the rank-th largest value (1 = largest; ties by lowest index)."""
    # Walk down the order, one value at a time: K * rank steps, and no scratch.
    bound, last = math.inf, -1
    for _ in range(rank):
        best = -1
        for k in range(values.size):
            below = values[k] < bound or (values[k] == bound and k > last)
            if below and (best < 0 or values[k] > values[best]):
                best = k
        bound, last = values[best], best
    return last
