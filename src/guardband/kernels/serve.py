"""What agents in a user's process call: the simulator's kernels behind Python's border."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from guardband.kernels._jit import kernel
from guardband.kernels.certify import declared_weight, weigh
from guardband.kernels.disc_ucb import choose as choose_disc
from guardband.kernels.disc_ucb import describe as describe_disc
from guardband.kernels.guard_ucb import choose as choose_guard
from guardband.kernels.guard_ucb import describe as describe_guard
from guardband.kernels.holdback import hold_back
from guardband.kernels.leave_out import absorb_for_all, least_reward, weigh_for_all
from guardband.kernels.leave_out import choose as choose_tolerant
from guardband.kernels.leave_out import describe as describe_tolerant
from guardband.kernels.monitors import lower_bound_of, watch
from guardband.kernels.observe import copy_features, note_report
from guardband.kernels.purse import worth_of_cost
from guardband.kernels.ridge import absorb, absorb_tidily, prediction
from guardband.kernels.scan import BLOCK
from guardband.kernels.state import (
    ALPHA,
    RHO,
    group_of,
    left_out_of,
    scores_of,
    shared_with,
    state_of,
    terms_of,
)
from guardband.kernels.sync import due
from guardband.kernels.types import Reason, RoundInput, Rule, Terms, Wish
from guardband.kernels.value import choose as choose_by_value
from guardband.kernels.value import describe as describe_by_value

__all__ = ["FINE", "NOT_FINITE", "TOO_LONG", "kernels_of", "load_menu"]

GUARD, HOLDBACK = int(Rule.GUARD), int(Reason.HOLDBACK)
FINE, NOT_FINITE, TOO_LONG = 0, 1, 2


@kernel
def load_menu(features, index, bound, menu):
    """Copy (K, d) or (K, size of the task) features to a (d, K) menu, zeros outside the task.

    Returns a code and, where it is not FINE, the first action that is at fault.
    """
    actions, columns = features.shape
    d = menu.shape[0]
    for start in range(0, actions, BLOCK):  # a block of rows is read once and stays in the cache
        stop = min(start + BLOCK, actions)
        for i in range(d):
            for k in range(start, stop):
                menu[i, k] = 0.0
        for p in range(index.size):
            row = menu[index[p]]
            column = index[p] if columns == d else p
            for k in range(start, stop):
                row[k] = features[k, column]
        for k in range(start, stop):
            total, norm = 0.0, 0.0
            for i in range(columns):
                total += features[k, i] * 0.0  # NaN if anything in the row is not finite
            if total != 0.0:
                return NOT_FINITE, k
            for p in range(index.size):
                value = features[k, index[p] if columns == d else p]
                norm += value * value
            if not math.sqrt(norm) <= bound:
                return TOO_LONG, k
    return FINE, 0


class AgentKernels(NamedTuple):
    """What an agent's engine calls."""

    serve: Callable[..., Any]
    learn: Callable[..., Any]


def _compiled(guard, valued=False, tolerant=False):
    """Return the kernels of Guard-UCB or of the other rules; see `loop` for why they are several.

    `valued` is Guard-UCB with values or costs of the caller's own, `tolerant` Guard-UCB by data
    that leave out one other task.
    """

    @kernel
    def serve(
        numbers,
        without,
        settings,
        coords,
        menu,
        contexts,
        ids,
        weights,
        covariance,
        turn,
        value,
        cost,
        limits,
        scratch,
        allowed,
        table,
        x,
    ):
        """Decide, and describe the decision.

        `numbers` is a group's array, `without` that of data without each task, see `state`,
        `settings` (TERMS + 2,) a row of what `pack` returns; `turn` is the agent, the baseline, its
        reward (NaN: not known), epoch, round, coin and the holdback's coin; `value`, `cost` and the
        two `limits` are a `Wish`; `scratch` is from `new_scratch`; for the others see `RoundInput`.
        Writes which actions are certified to `allowed` (K,), the estimated reward, its lower bound
        and the certified lead over the floor of every action to `table` (3, K), and the vector that
        is played to `x` (d,).

        Returns the action, whether it is conservative, and the reason; the mean of its reward and
        the half width of the interval; floor, propensity, margin, certificate, and whether the
        action itself is certified; the anchors' alarm; the weight and the prediction of the reward
        to come; how many data the decision rests on; what it is charged with, and what is then left
        of the allowance; the radius of the agent's own set; what `worth_of_cost` says; the stake of
        the holdback, see `gain_of`; and what monitors need of it, the declared weight and the
        certified lower bound.
        """
        m, baseline, reward, epoch, number, coin, hold = turn
        group, terms = group_of(numbers, menu.shape[0]), terms_of(settings)
        state, shared = state_of(group, m), shared_with(group, m)
        scores = scores_of(scratch, menu.shape[1])
        given = RoundInput(
            menu,
            coords,
            baseline,
            reward,
            terms.tolerance >= 0.0 and not math.isnan(reward),
            0.0,
            settings[ALPHA],
            settings[RHO],
            epoch,
            number,
            coin,
            contexts,
            ids,
            weights,
            covariance,
        )
        choose = choose_guard if guard else choose_disc
        describe = describe_guard if guard else describe_disc
        left = left_out_of(without, group.work.shape[0] - 2, menu.shape[0])
        worth = 0.0, 0.0
        if valued:
            wish = Wish(value, cost, limits[0], limits[1])
            outcome = choose_by_value(state, shared, terms, given, scores, wish)
            worth = worth_of_cost(wish, scores, baseline)
        elif tolerant:
            outcome = choose_tolerant(state, shared, left, m, terms, given, scores)
        else:
            outcome = choose(state, shared, terms, given, scores)
        stake = (0.0, 0.0, 0.0)
        if guard and terms.holdback > 0.0:
            outcome, stake = hold_back(terms, given, scores, outcome, hold)
        if valued:
            said = describe_by_value(state, shared, terms, given, scores, outcome, allowed)
        elif tolerant:
            said = describe_tolerant(state, left, m, terms, given, scores, outcome, allowed)
        else:
            said = describe(state, shared, terms, given, scores, outcome, allowed)
        lower, declared = lower_bound_of(terms, given, scores, outcome), 1.0
        width, floor, propensity, margin, certificate, certified = said
        if guard and outcome.reason == HOLDBACK:
            margin = scores.slack[baseline]
        k, weight = outcome.action, 1.0
        for j in range(menu.shape[1]):
            mean = scores.mean[j]
            table[0, j] = mean
            if tolerant:
                table[1, j] = least_reward(left, m, given, j)
                table[2, j] = margin if j == k and not scores.slack[j] >= 0.0 else scores.slack[j]
            elif guard:
                table[1, j] = mean - outcome.beta * math.sqrt(scores.form[j])
                sure = scores.slack[j]
                table[2, j] = margin if j == k and not sure >= 0.0 else sure
            else:
                table[1, j] = 2.0 * mean - scores.upper[j]
                table[2, j] = table[1, j] - floor
        copy_features(menu, k, coords, x)
        guess = prediction(x, state.estimate.theta)
        if tolerant:
            weight, guess = weigh_for_all(left, m, terms, given, k, guess)
        elif guard:
            weight, guess = weigh(state.estimate, outcome.plain, terms, given, k, guess)
            declared = declared_weight(terms, given, k)
        data = state.own.scalars[0] + shared.own.scalars[0]
        if terms.anchors:  # reports are data, too
            data += state.reports.scalars[0] + shared.reports.scalars[0]
        alarm = state.anchored.scalars[0] > 0.0
        note_report(state, terms, given)
        return (
            k,
            outcome.conservative,
            outcome.reason,
            scores.mean[k],
            width,
            floor,
            propensity,
            margin,
            certificate,
            certified,
            alarm,
            weight,
            guess,
            data,
            outcome.charge,
            terms.allowance - state.spent[0] - outcome.charge,
            outcome.plain,
            worth,
            stake,
            declared,
            lower,
        )

    @kernel
    def learn(numbers, without, settings, m, x, y, seen, conservative, last_logdet, rounds, now):
        """Let agent m learn from reward y of the vector x (d,); tell whether a pooling is due.

        `seen` are the weight, the prediction, the declared weight (0: monitors do not watch it) and
        the lower bound, as `serve` returned them and `conservative`; `rounds` have passed since the
        last pooling, after which log det(V / ridge) was `last_logdet`, and `now` in all.
        """
        group, terms = group_of(numbers, x.size), terms_of(settings)
        state, shared = state_of(group, m), shared_with(group, m)
        weight, guess, declared, lower = seen
        if tolerant:
            left = left_out_of(without, group.work.shape[0] - 2, x.size)
            absorb_for_all(state, shared, left, m, terms, x, y, weight, guess)
        elif guard:
            absorb_tidily(state, shared.own, terms, x, y, weight, guess)
            if declared > 0.0 and not math.isnan(terms.alarm):
                watch(state, terms, x, y, declared, lower)
        else:
            absorb(state, x, y, weight, guess)
        logdet = state.estimate.scalars[0]
        return due(terms, logdet, last_logdet, rounds, now, conservative, x.size)

    return AgentKernels(serve, learn)


GUARDED, UNGUARDED = _compiled(guard=True), _compiled(guard=False)
VALUED, TOLERANT = _compiled(guard=True, valued=True), _compiled(guard=True, tolerant=True)


def kernels_of(terms: Terms, *, valued: bool = False) -> AgentKernels:
    """Return the kernels that serve agents with these settings, or those for `valued` rounds."""
    if valued:
        return VALUED
    if terms.rule != GUARD:
        return UNGUARDED
    return TOLERANT if terms.tolerate else GUARDED
