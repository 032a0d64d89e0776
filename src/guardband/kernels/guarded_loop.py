"""Rounds of the simulator for Guard-UCB."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from guardband.kernels._jit import kernel
from guardband.kernels.certify import observation_weight
from guardband.kernels.draw import draw_round
from guardband.kernels.environment import Metric, Nature, Played
from guardband.kernels.guard_ucb import guard_decide
from guardband.kernels.loop import (
    copy_features,
    count_mixture,
    count_round,
    outside,
    save_checkpoint,
)
from guardband.kernels.ridge import absorb_tidily, prediction
from guardband.kernels.sync import EAGER, add_statistic, clear_statistic, due_anytime, pool
from guardband.kernels.types import (
    Estimate,
    GuardRoundInput,
    State,
    Statistic,
    Task,
    Trigger,
    new_statistic,
)

__all__ = ["Reports", "new_reports", "simulate_guarded"]

FORECAST, NEVER = int(Nature.FORECAST), int(Trigger.NEVER)
STUCK, OUTSIDE = int(Metric.STUCK), int(Metric.OUTSIDE)


class Reports(NamedTuple):
    """The baseline's reported rewards, for anchors, and the estimates that fit them."""

    own: Statistic  # (M, ...): gram, moment, and (how many, sum of r^2, -, -)
    pooled: Statistic
    anchored: Estimate  # (M, ...)


def new_reports(agents: int, dim: int) -> Reports:
    """Return reports before the first one."""
    anchored = Estimate(
        np.zeros((agents, dim, dim)), np.zeros((agents, dim)), np.zeros((agents, 4))
    )
    return Reports(new_statistic(dim, agents), new_statistic(dim), anchored)


@kernel
def simulate_guarded(
    fleet, pooled, reports, terms, tasks, env, draws, clock, metrics, trace, scratch, covariance
):
    """Play a chunk of rounds; changes everything but terms, tasks, env and draws."""
    agents, d = tasks.size.size, env.theta.size
    own, estimate, work = fleet
    told, anchored = reports.own, reports.anchored
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
            mine = Statistic(told.gram[m], told.moment[m], told.scalars[m])
            tied = Estimate(anchored.inverse[m], anchored.theta[m], anchored.scalars[m])
            task = Task(tasks.coords[m, : tasks.size[m]], tasks.alpha[m], 0.0)
            b, g = env.baseline[slot, m], env.group[m]
            expected, realised = env.expected[slot, g], env.realised[slot, g]
            count = draws.support.shape[1] if env.nature == FORECAST else 0
            given = GuardRoundInput(
                env.menu[slot],
                b,
                terms.tolerance >= 0.0,
                env.baseline_reward[slot, m],
                env.truth,
                draws.support[min(s, draws.support.shape[0] - 1), :count],
                draws.weights[min(s, draws.weights.shape[0] - 1), :count],
                covariance[m],
            )
            turn = (clock.ints[2] + 1, t, draws.coin[s, m])
            outcome = guard_decide(
                state, pooled, mine, reports.pooled, tied, terms, task, given, scratch, turn
            )
            k = outcome.action
            weight = observation_weight(state.estimate, outcome.plain, terms, task, given, k)
            metrics.totals[m, STUCK] += outcome.stuck
            metrics.totals[m, OUTSIDE] += outside(
                state, pooled, terms.ridge, env.theta, outcome.plain
            )
            x = state.work[0]
            copy_features(given.menu, k, task.coords, x)
            guess = prediction(x, state.estimate.theta)
            absorb_tidily(
                state, pooled, x, realised[k] + draws.noise[s, m], weight, guess, terms.ridge
            )
            if terms.anchors:
                copy_features(given.menu, b, task.coords, x)
                note_report(mine, x, given.baseline_reward)
            grown, since = state.estimate.scalars[0], t - clock.ints[1]
            if terms.trigger != NEVER:
                call = call or due_anytime(grown, clock.logdet[0], since, t, terms.agents, d)
                eager = terms.strict and outcome.conservative
                call = call or (eager and grown - clock.logdet[0] >= EAGER)
            played = Played(k, outcome.conservative, expected[k], realised[k])
            count_round(env, tasks, metrics, trace, slot, t, m, played)
            if outcome.conservative and not terms.strict:
                rho = outcome.chance
                mixture = (1.0 - rho) * expected[outcome.partner] + rho * expected[outcome.target]
                count_mixture(tasks, metrics, m, expected[b], expected[k], mixture)
        if call:
            clock.logdet[0] = pool(fleet, pooled, terms.ridge)
            for m in range(agents):
                add_statistic(
                    reports.pooled, Statistic(told.gram[m], told.moment[m], told.scalars[m])
                )
            clear_statistic(told)
            clock.ints[1] = t
            clock.ints[2] += 1
            if trace.synced.size > 0:
                trace.synced[t - 1] = True
        save_checkpoint(clock, metrics)


@kernel
def note_report(reports, x, reward):
    """Add the baseline's features and its reported reward to the anchors."""
    for i in range(x.size):
        reports.moment[i] += reward * x[i]
        for j in range(x.size):
            reports.gram[i, j] += x[i] * x[j]
    reports.scalars[0] += 1.0
    reports.scalars[1] += reward * reward
