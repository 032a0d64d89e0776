"""Learning from logs: rows that an earlier rule played, without a decision of the agent's own."""

from __future__ import annotations

import math

from guardband.kernels._jit import kernel, views
from guardband.kernels.certify import declared_weight, guard_radius, weigh
from guardband.kernels.leave_out import absorb_for_all, weigh_for_all, write_radii
from guardband.kernels.monitors import watch
from guardband.kernels.ridge import absorb, absorb_tidily, prediction, radius
from guardband.kernels.state import (
    ALPHA,
    RHO,
    group_of,
    left_out_of,
    shared_with,
    state_of,
    terms_of,
)
from guardband.kernels.sync import due
from guardband.kernels.types import RoundInput, Rule

__all__ = ["learn_rows"]

GUARD = int(Rule.GUARD)


@kernel
def learn_rows(numbers, without, settings, coords, turn, rows, rewards, weights, guesses, declared):
    """Let an agent learn rows (n, d) and rewards (n,) in their order, as if it had decided them.

    Of each row, beta, the prediction yhat = psi'theta-hat and the weight w are those of a decision
    for a menu of this row alone, in an unknown context: they follow from the rows before it.
    Writes w and yhat to `weights` and `guesses` (n,), and to `declared` the weights with which
    monitors watch. The rows have zeros outside the task's `coords`.

    `numbers` is a group's array, `without` that of data without each task, see `state`, and
    `settings` (TERMS + 2,) a row of what `pack` returns; `turn` is the agent, the epoch,
    log det(V / ridge) after the last pooling, the rounds since then, and the rounds in all. Returns
    beta after the last row, and whether a pooling is due, where every row counts as a round.
    """
    m, epoch, last_logdet, since, now = turn
    n, d = rows.shape
    group, terms = group_of(numbers, d), terms_of(settings)
    state, shared = state_of(group, m), shared_with(group, m)
    left = left_out_of(without, group.work.shape[0] - 2, d)
    estimate, weighted = state.estimate, terms.rule == GUARD or terms.weighted
    nothing = views(weights, 0, ((0, 0, 0),))[0]
    for r in range(n):
        x, y = rows[r], rewards[r]
        guess, weight = prediction(x, estimate.theta), 1.0
        if weighted:
            given = RoundInput(
                views(x, 0, ((d, 1),))[0],
                coords,
                0,
                math.nan,
                False,
                0.0,
                settings[ALPHA],
                settings[RHO],
                epoch,
                now,
                0.0,
                nothing,
                coords[:0],
                weights[:0],
                nothing,
            )
            if terms.tolerate:
                write_radii(state, shared, left, m, terms, epoch)
                weight, guess = weigh_for_all(left, m, terms, given, 0, guess)
                absorb_for_all(state, shared, left, m, terms, x, y, weight, guess)
            else:
                beta = guard_radius(state, shared.own, terms, epoch)
                weight, allowed = weigh(estimate, beta, terms, given, 0, guess)
                guess = allowed if terms.rule == GUARD else guess  # as in `loop`
                absorb_tidily(state, shared.own, terms, x, y, weight, guess)
            if not math.isnan(terms.alarm):
                declared[r] = declared_weight(terms, given, 0)
                watch(state, terms, x, y, declared[r], math.nan)
        else:
            absorb(state, x, y, weight, guess)
        weights[r], guesses[r] = weight, guess
    beta = guard_radius(state, shared.own, terms, epoch) if weighted else radius(estimate, terms)
    call = n > 0 and due(terms, estimate.scalars[0], last_logdet, since + n, now + n, False, d)
    return beta, call
