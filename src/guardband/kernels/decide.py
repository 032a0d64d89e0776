"""Deciding and learning of one agent: the one place that knows which rule has which kernels."""

from __future__ import annotations

import math

from guardband.kernels._jit import kernel
from guardband.kernels.certify import observation_weight
from guardband.kernels.disc_ucb import choose as choose_disc
from guardband.kernels.disc_ucb import describe as describe_disc
from guardband.kernels.guard_ucb import choose as choose_guard
from guardband.kernels.guard_ucb import describe as describe_guard
from guardband.kernels.ridge import absorb, absorb_tidily
from guardband.kernels.types import Rule

__all__ = ["copy_features", "decide", "describe", "note_report", "update", "weight_of"]

GUARD = int(Rule.GUARD)


@kernel
def decide(state, shared, terms, given, scores):
    """Choose for one agent and one round; `shared` is the state of what all agents pooled."""
    if terms.rule == GUARD:
        return choose_guard(state, shared, terms, given, scores)
    return choose_disc(state, shared.own, terms, given, scores)


@kernel
def describe(state, shared, terms, given, scores, outcome, allowed):
    """Set `allowed` (K,): which actions are certified; return what a decision means.

    That is the width of the played action's confidence interval, the floor, the probability with
    which it was played, its margin over the floor, the certificate of what is promised (a code of
    `Certificate`), and whether the action itself is certified.
    """
    if terms.rule == GUARD:
        return describe_guard(state, shared, terms, given, scores, outcome, allowed)
    return describe_disc(state, shared.own, terms, given, scores, outcome, allowed)


@kernel
def weight_of(state, terms, given, outcome):
    """Return the weight w of the reward to come."""
    if terms.rule == GUARD:
        return observation_weight(state.estimate, outcome.plain, terms, given, outcome.action)
    return 1.0


@kernel
def update(state, shared, terms, x, y, weight, guess):
    """Learn from reward y of the vector x; `guess` is x'theta-hat when the agent decided."""
    if terms.rule == GUARD:
        absorb_tidily(state, shared.own, x, y, weight, guess, terms.ridge)
    else:
        absorb(state, x, y, weight, guess)


@kernel
def note_report(state, terms, given):
    """Add the baseline's features and its reported reward, if there is one, to the anchors.

    Overwrites work[0].
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
def copy_features(menu, k, coords, x):
    """Write action k's features to x, with zeros outside the task."""
    for i in range(x.size):
        x[i] = 0.0
    for p in range(coords.size):
        x[coords[p]] = menu[coords[p], k]
