"""Widths from earlier rounds: V only grows, so an old width bounds today's from above.

The action of the largest upper bound is found from old widths, and only those that stand in its
way are computed anew: the same action as by computing all, ties by index included.

An old form psi'V^-1 psi, as computed, is a bound up to rounding. Let P be V^-1 as it is stored, u
half a unit in the last place, |.| the Frobenius norm. An update gives P' = P - f s s' + E with
f >= 0 and |E| <= 4 u (|P| + |P'|), entry by entry three roundings; and a form is computed with an
error of at most (2 d + 4) u ||psi||^2 |P|. So over updates t it grows by no more than ||psi||^2
sum_t (2 d + 16) u (|P_t| + |P_{t+1}|), which is the `drift`, times the largest ||psi||^2. |P| is
bounded by its last value plus the f ||s||^2 since. Where P is computed anew, |P' - P| is added;
where agents pool or start again, widths are forgotten.
"""

from __future__ import annotations

import math

from guardband.kernels._jit import kernel
from guardband.kernels.certify import guard_radius, slack_of
from guardband.kernels.disc_ucb import plays, why_shut
from guardband.kernels.guard_ucb import believed, no_choice, plays_target
from guardband.kernels.linalg import copy
from guardband.kernels.optimism import optimism_of
from guardband.kernels.pruning import eigenvalue_bounds, floor_of
from guardband.kernels.ridge import radius, refresh
from guardband.kernels.scan import argmax, form_of, scan_forms, write_image, write_products
from guardband.kernels.types import REGRET_WIDTHS, Reason, Rule

__all__ = ["begin_chunk", "choose_disc_by_old", "choose_guard_by_old", "forget", "note_choice"]
__all__ += ["note_update", "rebuild"]

FREE = int(Rule.FREE)
R_LEARNED, R_FREE, R_NONE = int(Reason.LEARNED), int(Reason.FREE), -1
CERTIFIED, ITSELF = int(Reason.CERTIFIED), int(Reason.ITSELF)
UNIT = 1.1102230246251565e-16  # 2^-53
UP = 1.0 + 8.0 * UNIT
TINY = 1e-290  # products that underflow
FEW = 8  # widths are computed one by one up to so many, or a 32nd of all
OFTEN = 32.0  # updates after which the norm is computed


@kernel
def forget(widths):
    """Forget all widths."""
    widths.since[:] = -math.inf


@kernel
def begin_chunk(widths, group):
    """Measure V^-1 of every agent, as it is before the first round of a chunk."""
    for m in range(widths.reach.size):
        widths.drift[m, 1] = _norm(group.estimate.inverse[m], group.work[m, 2])
        widths.drift[m, 2] = 0.0


@kernel
def _norm(matrix, sums):
    """Return a bound of the Frobenius norm; `sums` (d,) is scratch."""
    total = 0.0
    for j in range(sums.size):
        sums[j] = 0.0
    for i in range(sums.size):
        row = matrix[i]
        for j in range(sums.size):
            sums[j] += row[j] * row[j]
    for j in range(sums.size):
        total += sums[j]
    return 1.000001 * math.sqrt(total) + TINY


@kernel
def note_update(widths, m, state, weight, gain):
    """Note an update of agent m's estimate, whose V^-1 x is in work[1]; `gain`: see `rank_one`."""
    if widths.reach.size == 0:
        return
    drift, scaled = widths.drift[m], state.work[1]
    if not gain >= 1.0:  # worn, or no number: nothing is known of what it did
        since = widths.since[m]
        since[:] = -math.inf
    before, square = drift[1], 0.0
    for i in range(scaled.size):
        square += scaled[i] * scaled[i]
    drift[1] += 1.000001 * abs(weight / gain) * square
    drift[2] += 1.0
    if not drift[2] < OFTEN:
        drift[1], drift[2] = _norm(state.estimate.inverse, state.work[2]), 0.0
    drift[0] += (2.0 * scaled.size + 16.0) * UNIT * (before + drift[1]) + TINY


@kernel
def rebuild(widths, m, state, pooled, ridge):
    """Compute agent m's estimate anew, see `refresh`, and note by how much V^-1 changed."""
    if widths.reach.size == 0:
        refresh(state, pooled, ridge)
        return
    copy(state.estimate.inverse, widths.spare)
    refresh(state, pooled, ridge)
    drift, change = widths.drift[m], 0.0
    for i in range(state.own.moment.size):
        for j in range(state.own.moment.size):
            gap = state.estimate.inverse[i, j] - widths.spare[i, j]
            change += gap * gap
    before = drift[1]
    drift[1], drift[2] = _norm(state.estimate.inverse, state.work[2]), 0.0
    drift[0] += 1.000001 * math.sqrt(change)
    drift[0] += (2.0 * state.own.moment.size + 16.0) * UNIT * (before + drift[1]) + TINY


@kernel
def note_choice(widths, m, c, outcome):
    """Note what agent m chose in context c: where it took care, all widths are computed."""
    if widths.reach.size > 0:
        widths.choice[m, c] = -1 if outcome.conservative else outcome.target


@kernel
def _largest(widths, m, c, state, given, scores, beta, gamma, least):
    """Return the lowest index of the largest mean + gamma beta sqrt(form), of means >= `least`.

    -1: there is none. Writes all means, bounds of beta sqrt(form) to `part`, and to `least` of the
    scores which of them are exact; `widths` has the forms.
    """
    mean, upper, exact, form = scores.mean, scores.upper, scores.least, widths.form[m, c]
    actions, tries = mean.size, 0
    grown = widths.reach[m] * (widths.drift[m, 0] - widths.since[m, c]) * UP
    widths.since[m, c] = widths.drift[m, 0]
    known = not grown < math.inf
    if not known:
        write_products(state.estimate.theta, given.menu, given.coords, mean)
        for k in range(actions):
            form[k] = (form[k] + grown) * UP
    while True:
        if known:
            scan_forms(state.estimate, given.coords, given.menu, mean, form)
        for k in range(actions):
            scores.part[k] = beta * math.sqrt(form[k])
            upper[k] = mean[k] + gamma * scores.part[k] if mean[k] >= least else -math.inf
            exact[k] = known
        k = widths.choice[m, c]
        while known or (tries <= FEW or 4 * FEW * tries <= actions):
            if exact[k] == 0.0 and upper[k] > -math.inf:
                tries += 1
                _compute(widths, m, c, state, given, scores, beta, k)
                upper[k] = mean[k] + gamma * scores.part[k]
            ahead, value = 0, upper[k]
            for j in range(actions):  # a count is a vector instruction, a search is not
                ahead += upper[j] > value
            for j in range(k):
                ahead += upper[j] == value
            if ahead > 0:
                k = argmax(upper)
            if ahead == 0 or exact[k] > 0.0 or not upper[k] > -math.inf:
                return k if -math.inf < upper[k] < math.inf else -1
        known = True  # too many stood in the way: all are computed


@kernel
def _compute(widths, m, c, state, given, scores, beta, k):
    """Compute the width of action k, unless it is exact."""
    if scores.least[k] == 0.0:
        form = form_of(state.estimate, given.coords, given.menu, k, state.work[2])
        widths.form[m, c, k] = form
        scores.part[k], scores.least[k] = beta * math.sqrt(form), 1.0


@kernel
def choose_disc_by_old(widths, m, c, state, shared, terms, given, scores):
    """Do what `disc_ucb.choose` does, by old widths; an action of -1: they do not tell."""
    nothing = plays(-1, False, R_NONE, 0.0, False)
    if widths.reach.size == 0 or widths.choice[m, c] < 0:
        return nothing
    estimate = state.estimate
    beta, surely, hardly = radius(estimate, terms), -math.inf, -math.inf
    if terms.rule != FREE:
        if why_shut(state, shared.own, terms, given, beta) >= 0:
            return nothing
        floor, reach = floor_of(terms, given, scores.upper), terms.feature_bound * beta
        low, high = eigenvalue_bounds(estimate)
        surely = reach / math.sqrt(low) + floor if low > 0.0 else math.inf
        hardly = reach / math.sqrt(high) + floor
    k = _largest(widths, m, c, state, given, scores, beta, 1.0, hardly)
    if k < 0 or scores.mean[k] < surely:  # whether it is in the set depends on lambda_min(V)
        return nothing
    return plays(k, False, R_FREE if terms.rule == FREE else R_LEARNED, beta, True)


@kernel
def choose_guard_by_old(widths, m, c, state, shared, terms, given, scores):
    """Do what `guard_ucb.choose` does where the target is certified; else an action of -1."""
    nothing = plays(-1, False, R_NONE, 0.0, False)
    if widths.reach.size == 0 or widths.choice[m, c] < 0:
        return nothing
    beta = guard_radius(state, shared.own, terms, given.epoch)
    estimate, given, b = state.estimate, believed(state, given), given.baseline
    gamma = optimism_of(state, shared.own, terms)
    kept = (widths, m, c, state, given)
    k = _largest(*kept, scores, beta, gamma, -math.inf)
    if k < 0 or no_choice(state, beta) >= 0 or _may_lose_much(*kept, scores, beta, k):
        return nothing
    form = widths.form[m, c]
    _compute(*kept, scores, beta, b)
    scores.form[k], scores.form[b] = form[k], form[b]
    if terms.free:
        return plays_target(k, R_FREE, beta, beta, math.nan, False)
    image = state.work[1]
    write_image(estimate, given.menu, b, given.coords, image)
    slack = slack_of(estimate, beta, terms, given, scores, image, k)
    if not slack >= 0.0 and k != b:
        return nothing
    return plays_target(k, CERTIFIED if slack >= 0.0 else ITSELF, beta, beta, slack, False)


@kernel
def _may_lose_much(widths, m, c, state, given, scores, beta, k):
    """Tell whether action k may lose more than REGRET_WIDTHS of its widths, see `optimism.aim`."""
    mean, width, beyond = scores.mean, scores.part, 0
    limit = mean[k] + (REGRET_WIDTHS - 1.0) * beta * math.sqrt(widths.form[m, c, k])
    for j in range(mean.size):
        beyond += mean[j] + width[j] > limit
    if beyond > 0:
        for j in range(mean.size):
            if mean[j] + width[j] > limit:
                _compute(widths, m, c, state, given, scores, beta, j)
                if mean[j] + width[j] > limit:
                    return True
    return False
