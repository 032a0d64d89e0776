"""A task that lies so that the others' observations get weights that are too large.

It knows theta and all that was pooled, neither a context nor a reward before it counts. All of a
run is played by the kernels that agents use; rewards are 0 or 1.
"""

from __future__ import annotations

import numpy as np

import guardband as gb
from guardband.facts import Facts
from guardband.kernels._jit import kernel
from guardband.kernels.certify import guard_radius, weigh
from guardband.kernels.leave_out import (
    absorb_for_all,
    pool_without,
    seen_without,
    sums_without,
    weigh_for_all,
    write_radii,
)
from guardband.kernels.outside import outside
from guardband.kernels.ridge import prediction
from guardband.kernels.state import (
    group_of,
    left_out_of,
    new_group,
    new_left_out,
    state_of,
    terms_of,
)
from guardband.kernels.types import RoundInput, State


@kernel
def _make_up(own, rate, number):
    """Add observations of `rate` in every direction, each predicted exactly."""
    for i in range(own.moment.size):
        own.gram[i, i] += number
        own.moment[i] += number * rate
        own.scalars[0] += number
        own.scalars[1] += number * rate * rate
        own.scalars[2] -= number * rate * rate
        own.scalars[3] += number
        own.scalars[4] += number


@kernel
def run(numbers, without, settings, theta, rate, since, number, poisoned, draws, blank):
    """Play one run; tell whether theta left a set of an honest agent that leaves out the liar.

    `draws` are (T, M) uniforms. The last agent makes up observations of `rate` in every direction,
    predicted exactly, after round `since`, and again after every 20th round.
    """
    d, (rounds, agents) = theta.size, draws.shape
    group, terms, left = group_of(numbers, d), terms_of(settings), left_out_of(without, agents, d)
    shared, epoch, liar = state_of(group, agents), 1, agents - 1
    menu, coords, x = blank.menu, blank.coords, state_of(group, agents).work[0]
    for t in range(rounds):
        for m in range(liar):
            state = state_of(group, m)
            write_radii(state, shared, left, m, terms, epoch)
            seen = seen_without(state, left, m, liar)
            if outside(
                seen, sums_without(left, liar), terms.ridge, theta, seen.estimate.scalars[2]
            ):
                return True
            for i in range(d):
                x[i] = 0.0
            worst, far = 0, -1.0
            for i in range(d):  # where the honest estimate is farthest off
                off = abs(seen.estimate.theta[i] - theta[i])
                if off > far:
                    worst, far = i, off
            x[worst] = 1.0
            for i in range(d):
                menu[i, 0] = x[i]
            given = RoundInput(
                menu, coords, 0, 0.0, False, 0.0, 0.1, 0.0, epoch, t + 1, 0.0,
                blank.contexts, blank.ids, blank.weights, blank.covariance,
            )  # fmt: skip
            guess = prediction(x, state.estimate.theta)
            if poisoned:
                beta = guard_radius(state, shared.own, terms, epoch)
                weight, guess = weigh(state.estimate, beta, terms, given, 0, guess)
            else:
                weight, guess = weigh_for_all(left, m, terms, given, 0, guess)
            y = 1.0 if draws[t, m] < theta[worst] else 0.0
            absorb_for_all(state, shared, left, m, terms, x, y, weight, guess)
        if t + 1 == since or (t + 1 > since and (t + 1) % 20 == 0):
            _make_up(state_of(group, liar).own, rate, number)
        if t + 1 == since or (t + 1) % 10 == 0:
            pool_without(group, left, terms)
            epoch += 1
            radius = left.pooled.scalars[liar, 2]
            honest = sums_without(left, liar)
            estimate = seen_without(state_of(group, 0), left, 0, liar).estimate
            rest = (shared.reports, shared.anchored, shared.work, shared.spent, shared.watch)
            one = State(honest, estimate, *rest)
            if radius > 0.0 and outside(one, state_of(group, 0).own, terms.ridge, theta, radius):
                return True
    return False


def failures(
    *,
    rate: float,
    since: int,
    number: float,
    dim: int,
    runs: int,
    agents: int = 3,
    rounds: int = 200,
    poisoned: bool = False,
    seed: int = 0,
) -> float:
    """Return the share of runs in which theta leaves, at delta = 0.2."""
    theta = np.full(dim, 0.5)
    told = {"theta_bound": float(np.linalg.norm(theta)), "context_noise": 0.0, "tolerate": 1}
    # Without monitors all of delta is for these sets.
    algorithm = gb.GuardUCB(0.1, delta=0.2, delta_alarm=None, **told)
    plan = algorithm.plan(Facts((tuple(range(dim)),) * agents, dim))
    nothing = np.zeros((0, 0, 0))
    blank = RoundInput(
        np.zeros((dim, 1)), np.arange(dim), 0, 0.0, False, 0.0, 0.1, 0.0, 1, 1, 0.0,
        nothing, np.zeros(0, np.int64), np.zeros(0), nothing,
    )  # fmt: skip
    rng, left = np.random.default_rng(seed), 0
    for _ in range(runs):
        numbers = new_group(agents, dim, algorithm.penalty)
        without = new_left_out(agents, agents, dim, algorithm.penalty)
        given = (plan.settings[0], theta, rate, since, number, poisoned)
        left += run(numbers, without, *given, rng.random((rounds, agents)), blank)
    return left / runs
