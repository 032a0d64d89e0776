"""FedLinUCB: an agent exchanges data with the server alone, when it has learned enough itself.

Between two downloads an agent decides by what it downloaded; what it learned since is counted
towards the next upload and not used until then.
"""

from __future__ import annotations

from guardband.kernels._jit import kernel
from guardband.kernels.disc_ucb import optimism
from guardband.kernels.draw import draw_round
from guardband.kernels.linalg import dot
from guardband.kernels.ridge import absorb, copy_estimate, refresh
from guardband.kernels.rounds import (
    act,
    count_coin,
    count_round,
    given_to,
    observed_reward,
    save_checkpoint,
)
from guardband.kernels.state import group_of, scores_of, state_of, terms_of
from guardband.kernels.sync import add_statistic, clear_statistic

__all__ = ["simulate_asynchronous"]


@kernel
def simulate_asynchronous(
    numbers, downloaded, upload, settings, tasks, env, draws, clock, metrics, trace
):
    """Play a chunk of rounds; `numbers` and `downloaded` are arrays of a group, see `state`.

    The agents decide by the estimates that they downloaded. Their own run ahead of those: an agent
    exchanges data when log(det V / det V_downloaded) > growth, see `UploadRule`. The last entry of
    `numbers` holds the sums at the server.
    """
    agents, d = tasks.size.size, env.theta.size
    group, held, terms = group_of(numbers, d), group_of(downloaded, d), terms_of(settings[0])
    server = state_of(group, agents).own
    scores = scores_of(env.scratch, env.menu.shape[3])
    for s in range(draws.contexts.size):
        slot = draw_round(env, draws, s)
        t = clock.ints[0] + 1
        clock.ints[0] = t
        for j in range(agents):
            m = draws.order[s, j]
            state, known = state_of(group, m), state_of(held, m).estimate
            given = given_to(env, tasks, terms, settings[m], clock, draws, slot, s, m)
            outcome = optimism(known, upload.beta, terms, given, scores)
            played = act(outcome, terms, given, env, draws, slot, s, m, state.work)
            x = state.work[0]
            absorb(state, x, observed_reward(env, draws, s, m, played), 1.0, dot(x, known.theta))
            if state.estimate.scalars[0] - known.scalars[0] > upload.growth:
                add_statistic(server, state.own)
                clear_statistic(state.own)
                refresh(state, server, terms.ridge)
                copy_estimate(state.estimate, known)
                clock.ints[2] += 1
                if trace.synced.size > 0:
                    trace.synced[t - 1] = True
            count_round(env, tasks, metrics, trace, slot, t, m, played)
            count_coin(env, tasks, metrics, slot, m, outcome, played)
        save_checkpoint(clock, metrics)
