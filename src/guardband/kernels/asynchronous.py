"""FedLinUCB: an agent talks to the server when it has learned enough itself, and to nobody else.

Between two downloads an agent decides by what it downloaded; what it learned since is counted
towards the next upload and used by nobody.
"""

from __future__ import annotations

from typing import NamedTuple

from guardband.kernels._jit import kernel
from guardband.kernels.choose import optimism
from guardband.kernels.linalg import dot
from guardband.kernels.loop import (
    act,
    judge_coin,
    keep_books,
    offer_of,
    pass_checkpoint,
    task_of,
)
from guardband.kernels.nature import turn_page
from guardband.kernels.ridge import absorb, copy_estimate, refresh
from guardband.kernels.sync import add_statistic, clear_statistic
from guardband.kernels.types import Estimate, State, Statistic

__all__ = ["Upload", "simulate_asynchronous"]


class Upload(NamedTuple):
    """The settings of asynchronous agents beside the common terms."""

    growth: float  # log(1 + a): uploads when log det has grown by more than this
    beta: float  # the radius, the same in all rounds


@kernel
def simulate_asynchronous(
    fleet, held, server, upload, terms, squad, scene, draws, clock, books, trail
):
    """Play one stretch of rounds; `held` are the downloaded estimates, `server` the sums there.

    The fleet's own estimates run ahead of the downloaded ones: they tell how much det V grew.
    """
    own, estimate, work = fleet
    for s in range(draws.contexts.size):
        page = turn_page(scene, draws, s)
        t = clock.ints[0] + 1
        clock.ints[0] = t
        for j in range(squad.size.size):
            m = draws.order[s, j]
            state = State(
                Statistic(own.gram[m], own.moment[m], own.scalars[m]),
                Estimate(estimate.inverse[m], estimate.theta[m], estimate.scalars[m]),
                work[m],
            )
            known = Estimate(held.inverse[m], held.theta[m], held.scalars[m])
            offer = offer_of(scene, page, m)
            task = task_of(squad, terms, offer, draws, s, m)
            coin = draws.coin[s, m]
            outcome = optimism(known, upload.beta, terms, task, offer, scene.desk, coin)
            played = act(outcome, terms, task, scene, draws, page, s, m, state.work)
            x = state.work[0]
            absorb(state, x, played.reward + draws.noise[s, m], 1.0, dot(x, known.theta))
            if state.estimate.scalars[0] - known.scalars[0] > upload.growth:
                add_statistic(server, state.own)
                clear_statistic(state.own)
                refresh(state, server, terms.ridge)
                copy_estimate(state.estimate, known)
                clock.ints[2] += 1
                if trail.synced.size > 0:
                    trail.synced[t - 1] = True
            keep_books(scene, squad, books, trail, page, t, m, played)
            judge_coin(scene, squad, books, page, m, outcome, task, played)
        pass_checkpoint(clock, books)
