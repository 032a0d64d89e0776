"""Rounds that a fixed rule played before agents began to learn, for the simulator."""

from __future__ import annotations

from guardband.kernels._jit import kernel
from guardband.kernels.draw import draw_round
from guardband.kernels.environment import Played, Sight
from guardband.kernels.observe import copy_features
from guardband.kernels.rounds import observed_reward

__all__ = ["play_history"]

HIDDEN = int(Sight.HIDDEN)


@kernel
def play_history(env, tasks, draws, uniform, rows, rewards):
    """Write what a fixed rule plays in a chunk of n rounds, and earns.

    Every agent plays its baseline or, if `uniform`, each action on offer with the same probability.
    `rows` (M, n, d) become the features, with zeros outside the task, that agents would learn
    from, and `rewards` (M, n) what they would see.
    """
    for s in range(draws.contexts.size):
        slot = draw_round(env, draws, s)
        for m in tasks.agents:
            k, g, a = env.baseline[slot, m], env.group[m], min(m, env.menu.shape[0] - 1)
            if uniform:
                k = int(draws.coin[s, m] * env.offered[slot, m])
            seen = env.menu[a, slot] if env.sight == HIDDEN else env.truth[a, slot]
            copy_features(seen, k, tasks.coords[m, : tasks.size[m]], rows[m, s])
            played = Played(k, False, env.expected[slot, g, k], env.realised[slot, g, k])
            rewards[m, s] = observed_reward(env, draws, s, m, played)
