"""FedLinUCB: an agent talks to the server when it has learned enough itself, and to nobody else.

Between two downloads an agent decides by what it downloaded; what it learned since is counted
towards the next upload and used by nobody.
"""

from __future__ import annotations

from guardband.kernels._jit import kernel
from guardband.kernels.disc_ucb import optimism
from guardband.kernels.draw import draw_round
from guardband.kernels.linalg import dot
from guardband.kernels.loop import (
    act,
    count_coin,
    count_round,
    given_to,
    save_checkpoint,
    task_of,
)
from guardband.kernels.ridge import absorb, copy_estimate, refresh
from guardband.kernels.sync import add_statistic, clear_statistic
from guardband.kernels.types import Estimate, State, Statistic

__all__ = ["simulate_asynchronous"]


@kernel
def simulate_asynchronous(
    fleet, held, server, upload, terms, tasks, env, draws, clock, metrics, trace
):
    """Play a chunk of rounds; `held` are the downloaded estimates, `server` the sums there.

    The fleet's own estimates run ahead of the downloaded ones: they tell how much det V grew.
    """
    own, estimate, work = fleet
    for s in range(draws.contexts.size):
        slot = draw_round(env, draws, s)
        t = clock.ints[0] + 1
        clock.ints[0] = t
        for j in range(tasks.size.size):
            m = draws.order[s, j]
            state = State(
                Statistic(own.gram[m], own.moment[m], own.scalars[m]),
                Estimate(estimate.inverse[m], estimate.theta[m], estimate.scalars[m]),
                work[m],
            )
            known = Estimate(held.inverse[m], held.theta[m], held.scalars[m])
            given = given_to(env, slot, m)
            task = task_of(tasks, terms, given, draws, s, m)
            coin = draws.coin[s, m]
            outcome = optimism(known, upload.beta, terms, task, given, env.scratch, coin)
            played = act(outcome, terms, task, env, draws, slot, s, m, state.work)
            x = state.work[0]
            absorb(state, x, played.reward + draws.noise[s, m], 1.0, dot(x, known.theta))
            if state.estimate.scalars[0] - known.scalars[0] > upload.growth:
                add_statistic(server, state.own)
                clear_statistic(state.own)
                refresh(state, server, terms.ridge)
                copy_estimate(state.estimate, known)
                clock.ints[2] += 1
                if trace.synced.size > 0:
                    trace.synced[t - 1] = True
            count_round(env, tasks, metrics, trace, slot, t, m, played)
            count_coin(env, tasks, metrics, slot, m, outcome, task, played)
        save_checkpoint(clock, metrics)
