"""What an agent learns from in a round, under every rule: the played features, and reports."""

from __future__ import annotations

import math

from guardband.kernels._jit import kernel
from guardband.kernels.certify import weigh
from guardband.kernels.types import Mix

__all__ = ["copy_features", "note_report", "weigh_played"]

PARTWAY = int(Mix.PARTWAY)


@kernel
def note_report(state, terms, given):
    """Add the baseline's features and its reported reward r, if there is one, to the reports.

    A += psi_b psi_b', a += r psi_b, n += 1 and s += r^2. Overwrites work[0].
    """
    reward = given.baseline_reward
    if not terms.anchors or math.isnan(reward):
        return
    x, reports = state.work[0], state.reports
    copy_features(given.menu, given.baseline, given.coords, x)
    for i in range(x.size):
        reports.moment[i] += reward * x[i]
        for j in range(x.size):
            reports.gram[i, j] += x[i] * x[j]
    reports.scalars[0] += 1.0
    reports.scalars[1] += reward * reward


@kernel
def weigh_played(estimate, terms, given, outcome, guess):
    """Return Guard-UCB's weight of what was played: partway, the lesser of both actions'."""
    weight, _ = weigh(estimate, outcome.plain, terms, given, outcome.action, guess)
    if terms.mix == PARTWAY:
        other, _ = weigh(estimate, outcome.plain, terms, given, outcome.target, guess)
        weight = min(weight, other)
    return weight


@kernel
def copy_features(menu, k, coords, x):
    """Write action k's features, column k of `menu` (d, K), to x (d,); zeros outside the task."""
    for i in range(x.size):
        x[i] = 0.0
    for p in range(coords.size):
        x[coords[p]] = menu[coords[p], k]
