"""Adversaries that know theta: they choose features, predictions and poolings, and theta may leave.

All of a run is played by the kernels that agents use; only the choices are the adversary's.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

import guardband as gb
from guardband.facts import Facts
from guardband.kernels._jit import kernel
from guardband.kernels.certify import guard_radius, reward_range, weigh
from guardband.kernels.outside import outside
from guardband.kernels.ridge import absorb_tidily
from guardband.kernels.state import group_of, new_group, state_of, terms_of
from guardband.kernels.sync import clear_statistic, pool
from guardband.kernels.types import RoundInput


class Attack(NamedTuple):
    """What an adversary does.

    features: 0 one direction; 1 all in turn; 2 where the estimate is farthest off; 3 at random.
    prediction: 0 the agent's own; 1 the end of [l, u] that is farther from the truth; 2 and 3 above
    and below the truth by a fifth of a standard deviation, as far as [l, u] goes.
    reward: 0 one or nothing; 1 zero or twice the mean; 2 uniform around the mean.
    pooling: 0 never; 1 when some agent's estimate is far off; 2 every 50 rounds; 3 every round;
    4 every round, without the data of agents whose noise was negative, which nothing allows.
    late: so many rounds after its decision every other agent learns its reward.
    """

    features: int
    prediction: int
    reward: int
    pooling: int
    late: int = 0


@kernel
def _features(kind, rate, theta, state, t, coin, x):
    """Write the features to x; their expected reward is `rate` if theta allows it."""
    d = theta.size
    for i in range(d):
        x[i] = 0.0
    i = 0
    if kind == 1:
        i = t % d
    elif kind == 3:
        i = int(coin * d) % d
    elif kind == 2:
        worst = -1.0
        for j in range(d):
            off = abs(state.estimate.theta[j] - theta[j]) / math.sqrt(state.estimate.inverse[j, j])
            if off > worst:
                i, worst = j, off
    x[i] = min(1.0, rate / theta[i])


@kernel
def _reward(kind, p, u):
    if kind == 1 and p <= 0.5:
        return 2.0 * p if u < 0.5 else 0.0
    if kind == 2:
        half = min(p, 1.0 - p)
        return p + half * (2.0 * u - 1.0)
    return 1.0 if u < p else 0.0


@kernel
def _off(state, pooled, ridge, theta):
    """Return ||theta-hat - theta||_V^2."""
    total = 0.0
    for i in range(theta.size):
        one = state.estimate.theta[i] - theta[i]
        total += ridge * one * one
        for j in range(theta.size):
            entry = state.own.gram[i, j] + pooled.gram[i, j]
            total += one * entry * (state.estimate.theta[j] - theta[j])
    return total


@kernel
def _leave_out(group, agents, theta):
    """Forget what an agent learned since the last pooling if sum w x'1 (y - x'theta) < 0."""
    for m in range(agents):
        own, noise = state_of(group, m).own, 0.0
        for i in range(theta.size):
            noise += own.moment[i]
            for j in range(theta.size):
                noise -= own.gram[i, j] * theta[j]
        if noise < 0.0:
            clear_statistic(own)


@kernel
def run(numbers, settings, theta, rate, attack, shared_context, inflate, draws, coins, held, blank):
    """Play one run; tell whether theta left an agent's set, or that of the pooled data.

    `inflate` multiplies every weight; `draws` are (T, M) uniforms for rewards, of which only the
    first counts if the context is shared: then all rewards of a round hang together. `held`
    (T, M, d + 3) keeps features, reward, weight and prediction of every decision.
    """
    d, (rounds, agents) = theta.size, draws.shape
    group, terms = group_of(numbers, d), terms_of(settings)
    shared, epoch = state_of(group, agents), 1
    menu, coords, x = blank.menu, blank.coords, state_of(group, agents).work[0]
    for t in range(rounds):
        for m in range(agents):
            state = state_of(group, m)
            beta = guard_radius(state, shared.own, terms, epoch)
            if outside(state, shared.own, terms.ridge, theta, beta):
                return True
            _features(attack.features, rate, theta, state, t + m, coins[t, m], x)
            p, mean = 0.0, 0.0
            for i in range(d):
                menu[i, 0] = x[i]
                p += x[i] * theta[i]
                mean += x[i] * state.estimate.theta[i]
            given = RoundInput(
                menu, coords, 0, 0.0, False, 0.0, 0.1, 0.0, epoch, t + 1, 0.0,
                blank.contexts, blank.ids, blank.weights, blank.covariance,
            )  # fmt: skip
            weight, guess = weigh(state.estimate, beta, terms, given, 0, mean)
            if attack.prediction > 0:
                low, high = reward_range(state.estimate, beta, terms, given, 0, mean)
                guess = high if high - p > p - low else low
                if attack.prediction > 1:
                    step = 0.2 * math.sqrt(p * (1.0 - p)) * (5.0 - 2.0 * attack.prediction)
                    guess = min(max(p + step, low), high)
            y = _reward(attack.reward, p, draws[t, 0 if shared_context else m])
            for i in range(d):
                held[t, m, i] = x[i]
            held[t, m, d], held[t, m, d + 1], held[t, m, d + 2] = y, inflate * weight, guess
            known = t - attack.late * (m % 2)
            if known >= 0:
                item = held[known, m]
                absorb_tidily(state, shared.own, terms, item[:d], item[d], item[d + 1], item[d + 2])
        due = attack.pooling >= 3 or (attack.pooling == 2 and (t + 1) % 50 == 0)
        for m in range(agents if attack.pooling == 1 else 0):
            off = _off(state_of(group, m), shared.own, terms.ridge, theta)
            due = due or off > 1.0 + epoch
        if due and agents > 1:
            if attack.pooling == 4:
                _leave_out(group, agents, theta)
            pool(group, terms)
            epoch += 1
            nothing, beta = state_of(group, 0).own, shared.estimate.scalars[2]
            if beta > 0.0 and outside(shared, nothing, terms.ridge, theta, beta):
                return True
    return False


def failures(
    attack: Attack,
    *,
    rate: float,
    dim: int,
    agents: int = 1,
    shared_context: bool = True,
    runs: int = 1000,
    rounds: int = 300,
    inflate: float = 1.0,
    seed: int = 0,
    sharing: float | None = None,
    **settings: object,
) -> float:
    """Return the share of runs in which theta leaves, at delta = 0.2."""
    theta = np.full(dim, max(rate, 0.3 if rate < 0.3 else rate))
    algorithm = gb.GuardUCB(
        0.1,
        delta=0.2,
        theta_bound=float(np.linalg.norm(theta)),
        shared_context=shared_context,
        **settings,  # type: ignore[arg-type]
    )
    plan = algorithm.plan(Facts((tuple(range(dim)),) * agents, dim))
    if sharing is not None:
        plan = plan._replace(terms=plan.terms._replace(sharing=sharing))
    nothing = np.zeros((0, 0, 0))
    blank = RoundInput(
        np.zeros((dim, 1)), np.arange(dim), 0, 0.0, False, 0.0, 0.1, 0.0, 1, 1, 0.0,
        nothing, np.zeros(0, np.int64), np.zeros(0), nothing,
    )  # fmt: skip
    rng, left = np.random.default_rng(seed), 0
    held = np.zeros((rounds, agents, dim + 3))
    for _ in range(runs):
        numbers = new_group(agents, dim, algorithm.penalty)
        draws, coins = rng.random((rounds, agents)), rng.random((rounds, agents))
        given = (plan.settings[0], theta, rate, attack, shared_context, inflate)
        left += run(numbers, *given, draws, coins, held, blank)
    return left / runs
