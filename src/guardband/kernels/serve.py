"""What agents in a user's process call: the simulator's kernels behind Python's border."""

from __future__ import annotations

import math
from typing import NamedTuple

from guardband.kernels._jit import Kernel, kernel, rare_kernel, views
from guardband.kernels.certify import declared_weight, slacks, weigh
from guardband.kernels.disc_ucb import choose as choose_disc
from guardband.kernels.disc_ucb import describe as describe_disc
from guardband.kernels.guard_ucb import choose as choose_guard
from guardband.kernels.guard_ucb import describe as describe_guard
from guardband.kernels.guard_ucb import may_wait
from guardband.kernels.holdback import hold_back
from guardband.kernels.leave_out import (
    absorb_for_all,
    least_reward,
    lower_bound_for_all,
    weigh_for_all,
)
from guardband.kernels.leave_out import choose as choose_tolerant
from guardband.kernels.leave_out import describe as describe_tolerant
from guardband.kernels.monitors import lower_bound_of, watch
from guardband.kernels.observe import copy_features, note_report
from guardband.kernels.purse import worth_of_cost
from guardband.kernels.ridge import absorb, absorb_tidily, prediction
from guardband.kernels.scan import scan_forms, write_image
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
from guardband.kernels.types import Estimate, Reason, RoundInput, Rule, Terms, Wish
from guardband.kernels.value import choose as choose_by_value
from guardband.kernels.value import describe as describe_by_value

__all__ = ["SAID", "kernels_of", "weigh_actions"]

GUARD, HOLDBACK = int(Rule.GUARD), int(Reason.HOLDBACK)
SAID = 26  # numbers that `serve` writes about a decision


@kernel
def _write_table(scores, beta, k, margin, table):
    """Write the estimated reward, its lower bound and the certified lead of every action.

    `margin` is the lead of action k, which is played, where it is more than its slack says.
    """
    means, lowers, leads = table[0], table[1], table[2]
    for j in range(means.size):
        means[j] = scores.mean[j]
        lowers[j] = scores.mean[j] - beta * math.sqrt(scores.form[j])
        leads[j] = scores.slack[j]
    if not leads[k] >= 0.0:
        leads[k] = margin


@kernel
def weigh_actions(
    settings,
    coords,
    menu,
    contexts,
    ids,
    weights,
    covariance,
    known,
    played,
    scratch,
    image,
    allowed,
    table,
):
    """Write what `serve` left out: which actions are certified, and the table of all.

    `known` are V^-1, theta-hat and the radius that it decided by; `played` the baseline, its reward
    (NaN: not known), the action, its margin, and whether it is certified; `image` (d,) is scratch.
    """
    inverse, theta, beta = known
    baseline, reward, k, margin, certified = played
    terms, scores = terms_of(settings), scores_of(scratch, menu.shape[1])
    estimate = Estimate(inverse, theta, theta[:0])
    given = RoundInput(
        menu,
        coords,
        baseline,
        reward,
        terms.tolerance >= 0.0 and not math.isnan(reward),
        0.0,
        settings[ALPHA],
        settings[RHO],
        1,
        1,
        0.0,
        contexts,
        ids,
        weights,
        covariance,
    )
    scan_forms(estimate, coords, menu, scores.mean, scores.form)
    write_image(estimate, menu, baseline, coords, image)
    slacks(estimate, beta, terms, given, scores, image)
    for j in range(allowed.size):
        allowed[j] = scores.slack[j] >= 0.0
    allowed[k] = allowed[k] or certified
    _write_table(scores, beta, k, margin, table)


class AgentKernels(NamedTuple):
    """What an agent's engine calls."""

    serve: Kernel
    serve_many: Kernel
    learn: Kernel
    learn_many: Kernel


def _compiled(guard, valued=False, tolerant=False):
    """Return the kernels of Guard-UCB or of the other rules; see `loop` for why they are several.

    `valued` is Guard-UCB with values or costs of the caller's own, `tolerant` Guard-UCB by data
    that leave out one other task.
    """

    @rare_kernel  # `serve_many` calls it
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
        later,
        scratch,
        allowed,
        table,
        x,
        said,
    ):
        """Decide, and describe the decision.

        `numbers` is a group's array, `without` that of data without each task, see `state`,
        `settings` (TERMS + 2,) a row of what `pack` returns; `turn` is the agent, the baseline, its
        reward (NaN: not known), epoch, round, coin and the holdback's coin; `value`, `cost` and the
        two `limits` are a `Wish`; `scratch` is from `new_scratch`; for the others see `RoundInput`.
        Writes which actions are certified to `allowed` (K,), the estimated reward, its lower bound
        and the certified lead over the floor of every action to `table` (3, K), and the vector that
        is played to `x` (d,). With `later` it leaves the first two to `weigh_actions`, where that
        can compute them from the agent's own estimate.

        Writes to `said` (SAID,): the action, whether it is conservative, and the reason; the mean
        of its reward and the half width of the interval; floor, propensity, margin, certificate,
        and whether the action itself is certified; the anchors' alarm; the weight and the
        prediction of the reward to come; how many data the decision rests on; what it is charged
        with, and what is then left of the allowance; the radius of the agent's own set; what
        monitors need of it, the declared weight and the certified lower bound; whether something
        was left to `weigh_actions`; the stake of the holdback, see `gain_of`; what `worth_of_cost`
        says; and how many rows of logs in the data had been looked at before.
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
        left = left_out_of(without, group.work.shape[0] - 2, menu.shape[0])
        worth, waits = (0.0, 0.0), False
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
            found = describe_by_value(state, shared, terms, given, scores, outcome, allowed)
        elif tolerant:
            found = describe_tolerant(state, left, m, terms, given, scores, outcome, allowed)
        elif guard:
            waits = later and may_wait(terms, outcome)
            found = describe_guard(state, shared, terms, given, scores, outcome, allowed, waits)
        else:
            found = describe_disc(state, shared, terms, given, scores, outcome, allowed)
        lower, declared = lower_bound_of(terms, given, scores, outcome), 1.0
        if tolerant:
            lower = lower_bound_for_all(left, m, terms, given, outcome)
        width, floor, propensity, margin, certificate, certified = found
        if guard and outcome.reason == HOLDBACK:
            margin = scores.slack[baseline]
        k, weight = outcome.action, 1.0
        if guard and not waits:
            _write_table(scores, outcome.beta, k, margin, table)
        for j in range(0 if guard and not tolerant else menu.shape[1]):
            if tolerant:
                table[1, j] = least_reward(left, m, given, j)
            else:
                lower_bound = 2.0 * scores.mean[j] - scores.upper[j]
                table[0, j], table[1, j] = scores.mean[j], lower_bound
                table[2, j] = lower_bound - floor
        copy_features(menu, k, coords, x)
        guess = prediction(x, state.estimate.theta)
        if tolerant:
            weight, guess = weigh_for_all(left, m, terms, given, k, guess)
        elif guard:
            weight, guess = weigh(state.estimate, outcome.plain, terms, given, k, guess)
        if guard:
            declared = declared_weight(terms, given, k)
        data = state.own.scalars[0] + shared.own.scalars[0]
        if terms.anchors:  # reports are data, too
            data += state.reports.scalars[0] + shared.reports.scalars[0]
        alarm = state.anchored.scalars[0] > 0.0
        note_report(state, terms, given)
        said[0], said[1], said[2] = k, outcome.conservative, outcome.reason
        said[3], said[4], said[5] = scores.mean[k], width, floor
        said[6], said[7], said[8], said[9] = propensity, margin, certificate, certified
        said[10], said[11], said[12], said[13] = alarm, weight, guess, data
        said[14] = outcome.charge
        said[15] = terms.allowance - state.spent[0] - outcome.charge
        said[16], said[17], said[18], said[19] = outcome.plain, declared, lower, waits
        said[20], said[21], said[22] = stake
        said[23], said[24] = worth
        said[25] = state.own.scalars[5] + group.own.scalars[group.work.shape[0] - 2, 5]

    @rare_kernel
    def serve_many(
        numbers,
        without,
        known,
        unknown,
        coords,
        nothing,
        menus,
        ends,
        m,
        turns,
        scratch,
        allowed,
        tables,
        xs,
        said,
    ):
        """Decide for agent m with every menu of a batch, as `serve` does one after another.

        Nothing is given but features and the baseline's reward. The (d, K) menus lie one after
        another in `menus`, the actions of all together counted up to `ends` (n,); `turns` (n, 6)
        are the baseline, its reward, epoch, round, coin and the holdback's coin; `known` and
        `unknown` are the settings with that reward and without; `nothing` is what stands for
        contexts, ids, weights and a covariance. `allowed` and `tables` are as long as `menus`
        need, `xs` (n, d) and `said` (n, SAID). What is certified beside the play waits where the
        menu is more than the estimate.
        """
        contexts, ids, weights = nothing
        d, start = xs.shape[1], 0
        for i in range(ends.size):
            stop, turn = ends[i], turns[i]
            serve(
                numbers,
                without,
                unknown if math.isnan(turn[1]) else known,
                coords,
                views(menus, d * start, ((d, stop - start),))[0],
                contexts,
                ids,
                weights,
                contexts,
                (m, int(turn[0]), turn[1], int(turn[2]), int(turn[3]), turn[4], turn[5]),
                weights,
                weights,
                (0.0, math.inf),
                stop - start > d,
                scratch,
                allowed[start:stop],
                views(tables, 3 * start, ((3, stop - start),))[0],
                xs[i],
                said[i],
            )
            start = stop

    @rare_kernel
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
        else:
            absorb(state, x, y, weight, guess)
        if guard and declared > 0.0 and not math.isnan(terms.alarm):
            watch(state, terms, x, y, declared, lower)
        logdet = state.estimate.scalars[0]
        return due(terms, logdet, last_logdet, rounds, now, conservative, x.size)

    @rare_kernel
    def learn_many(numbers, without, settings, m, xs, ys, seen, last_logdet, rounds, now):
        """Do what `learn` does for vectors xs (n, d) and rewards ys (n,); `seen` is (n, 5)."""
        due = False
        for i in range(ys.size):
            row = seen[i]
            mine, conservative = (row[0], row[1], row[2], row[3]), row[4] > 0.0
            given = (xs[i], ys[i], mine, conservative, last_logdet, rounds, now)
            due = learn(numbers, without, settings, m, *given) or due
        return due

    return AgentKernels(serve, serve_many, learn, learn_many)


GUARDED, UNGUARDED = _compiled(guard=True), _compiled(guard=False)
VALUED, TOLERANT = _compiled(guard=True, valued=True), _compiled(guard=True, tolerant=True)


def kernels_of(terms: Terms, *, valued: bool = False) -> AgentKernels:
    """Return the kernels that serve agents with these settings, or those for `valued` rounds."""
    if valued:
        return VALUED
    if terms.rule != GUARD:
        return UNGUARDED
    return TOLERANT if terms.tolerate else GUARDED
