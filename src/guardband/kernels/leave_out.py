"""Tasks that lie: Guard-UCB by data that leave out one other task, whichever it is.

An action is certified if it is certified in every set that leaves out one other task. If one of
them sends lies, the set without it is made of honest data, and its certificate counts; nothing
depends on who it is. Weights follow from all of these sets together: the smallest l, the largest u
and the largest spread. What agents are compared by, the target and predictions, may follow from
lies. An agent that is apart from the pool has nothing but its own data in every set.
docs/guard-ucb-math.md has the proofs.
"""

from __future__ import annotations

import math

from guardband.kernels._jit import kernel
from guardband.kernels.bounded import EMPTY, HOLDS, UNSURE, find_point, knowledge_of
from guardband.kernels.certify import (
    guard_radius,
    half_range,
    lead_of,
    radius_at,
    reward_range,
    slack_of,
    slacks,
    weight_of,
)
from guardband.kernels.guard_ucb import (
    OTHERS,
    bounded_slack,
    no_choice,
    play_certified,
    plays_target,
)
from guardband.kernels.monitors import Note
from guardband.kernels.optimism import aim, optimism_of
from guardband.kernels.ridge import absorb_tidily, copy_estimate, is_worn, refresh, update
from guardband.kernels.scan import following, product, scan_forms, write_image
from guardband.kernels.state import state_of
from guardband.kernels.sync import add_statistic, clear_statistic, pool
from guardband.kernels.types import (
    Certificate,
    Estimate,
    Outcome,
    Realised,
    Reason,
    State,
    Statistic,
)

__all__ = ["absorb_for_all", "choose", "clear_pooled", "describe", "forget_others", "least_reward"]
__all__ += ["lower_bound_for_all", "pool_without", "seen_without", "set_without", "sums_seen"]
__all__ += ["sums_without", "weigh_for_all", "write_radii"]

APART, LEVEL = int(Note.APART), int(Note.LEVEL)
ON_AVERAGE = int(Realised.NONE)
BY_DEFINITION, BY_ALL = int(Certificate.BASELINE), int(Certificate.LEAVE_ONE_OUT)
CERTIFIED, REFUTED = int(Reason.CERTIFIED), int(Reason.REFUTED)


@kernel
def sums_without(left, j):
    """Return the sums of what was pooled without task j."""
    return Statistic(left.sums.gram[j], left.sums.moment[j], left.sums.scalars[j])


@kernel
def sums_seen(state, shared, left, j):
    """Return the same as an agent has it: `shared`, which is nothing, where it is apart."""
    if state.watch[APART] > 0.0:
        return shared.own
    return sums_without(left, j)


@kernel
def _pooled_without(left, j):
    """Return the estimate from them alone."""
    return Estimate(left.pooled.inverse[j], left.pooled.theta[j], left.pooled.scalars[j])


@kernel
def _view_without(left, m, j):
    """Return the estimate of agent m from them and its own data."""
    views = left.views
    return Estimate(views.inverse[m, j], views.theta[m, j], views.scalars[m, j])


@kernel
def seen_without(state, left, m, j):
    """Return the state of agent m, with the estimate that leaves out task j."""
    view = _view_without(left, m, j)
    rest = (state.reports, state.anchored, state.work, state.spent, state.watch)
    return State(state.own, view, *rest)


@kernel
def write_radii(state, shared, left, m, terms, epoch):
    """Write the radius of every set to its estimate; tell whether there are sets, all finite."""
    finite = left.sums.scalars.shape[0] > 1
    for j in range(left.sums.scalars.shape[0]):
        if j != m:
            seen = seen_without(state, left, m, j)
            beta = guard_radius(seen, sums_seen(state, shared, left, j), terms, epoch)
            seen.estimate.scalars[2] = beta
            finite = finite and beta < math.inf
    return finite


@kernel
def choose(state, shared, left, m, terms, given, scores):
    """Choose for agent m and one round, see `guard_ucb.choose`: in strict mode, without anchors."""
    plain, b = guard_radius(state, shared.own, terms, given.epoch), given.baseline
    finite = write_radii(state, shared, left, m, terms, given.epoch) and plain < math.inf
    reason = no_choice(state, plain if finite else math.inf)
    why = reason if reason >= 0 else REFUTED
    refuted = Outcome(b, True, why, plain, plain, False, b, b, 1.0, 1.0, 0.0, 0.0, False)
    if reason >= 0:
        return refuted
    mean, form = scores.mean, scores.form
    scan_forms(state.estimate, given.coords, given.menu, mean, form)
    target = aim(scores, plain, optimism_of(state, shared.own, terms))
    slack = 0.0 if target == b else _least_slack(state, left, m, terms, given, scores, target)
    if slack >= 0.0:
        return plays_target(target, CERTIFIED, plain, plain, slack, False)
    if math.isnan(slack) or not _write_slacks(state, left, m, terms, given, scores, target, True):
        return refuted
    scan_forms(state.estimate, given.coords, given.menu, mean, form)
    return play_certified(state.estimate, plain, plain, terms, given, scores, state.work[2], target)


@kernel
def _least_slack(state, left, m, terms, given, scores, k):
    """Return the slack of action k in all sets; -inf: one does not certify it; NaN: one is empty.

    The lead alone settles most: only where it does not, the other actions are looked at.
    """
    least, image = math.inf, state.work[1]
    for j in range(left.sums.scalars.shape[0]):
        if j == m:
            continue
        estimate, beta = _better(state, left, m, j, given, k)
        slack = -math.inf
        if terms.realised == ON_AVERAGE:
            slack = lead_of(estimate, beta, given, k, 1.0 - given.alpha)
        if not slack >= 0.0:
            scan_forms(estimate, given.coords, given.menu, scores.mean, scores.form)
            write_image(estimate, given.menu, given.baseline, given.coords, image)
            slack = slack_of(estimate, beta, terms, given, scores, image, k)
        if not slack >= 0.0 and terms.use_range:
            known = knowledge_of(estimate, beta, terms, given)
            found = find_point(known, scores, state.work)
            if found == EMPTY:
                return math.nan
            if found == HOLDS:
                slack = bounded_slack(known, terms, given, scores, state.work, k)
        if not slack >= 0.0:
            return -math.inf
        least = min(least, slack)
    return least


@kernel
def _better(state, left, m, j, given, k):
    """Return estimate and radius of the set without task j that certifies more of action k.

    That is the agent's view, or what was pooled, alone; see `guard_ucb.choose`.
    """
    view, pooled = _view_without(left, m, j), _pooled_without(left, j)
    beta, radius, keep = view.scalars[2], pooled.scalars[2], 1.0 - given.alpha
    if state.watch[APART] == 0.0 and 0.0 < radius < math.inf:
        lead = lead_of(pooled, radius, given, k, keep)
        if lead > lead_of(view, beta, given, k, keep):
            return pooled, radius
    return view, beta


@kernel
def _write_slacks(state, left, m, terms, given, scores, target, thorough):
    """Write the least slack of every action over all sets; False: one of them is refuted.

    If `thorough`, OTHERS that are promising next to the target may use the range of rewards, too.
    """
    slack, least, image = scores.slack, scores.least, state.work[1]
    for k in range(least.size):
        least[k] = math.inf
    for j in range(left.sums.scalars.shape[0]):
        if j == m:
            continue
        estimate, beta = _better(state, left, m, j, given, target)
        scan_forms(estimate, given.coords, given.menu, scores.mean, scores.form)
        write_image(estimate, given.menu, given.baseline, given.coords, image)
        slacks(estimate, beta, terms, given, scores, image)
        if thorough and terms.use_range:
            known = knowledge_of(estimate, beta, terms, given)
            if not _use_range(known, terms, given, scores, state.work, target):
                return False
        for k in range(least.size):
            if not slack[k] >= least[k]:
                least[k] = -math.inf if math.isnan(slack[k]) else slack[k]
    for k in range(least.size):
        slack[k] = least[k]
    return True


@kernel
def _use_range(known, terms, given, scores, work, target):
    """Raise slacks in one set to what the range of rewards certifies; False: it is empty.

    Only of actions that all sets before have certified, those that `scores.upper` has next to the
    target.
    """
    slack, least, upper = scores.slack, scores.least, scores.upper
    found, looked, k = UNSURE, False, following(upper, target)
    for _ in range(OTHERS):
        if k < 0:
            break
        if least[k] >= 0.0 and not slack[k] >= 0.0:
            if not looked:
                found, looked = find_point(known, scores, work), True
            if found != HOLDS:
                break
            slack[k] = max(slack[k], bounded_slack(known, terms, given, scores, work, k))
        k = following(upper, k)
    return found != EMPTY


@kernel
def weigh_for_all(left, m, terms, given, k, guess):
    """Return weight and prediction as `certify.weigh` does, by the hull of all sets.

    For the radii that were written last.
    """
    half, low, high = 0.0, 1.0, 0.0
    for j in range(left.sums.scalars.shape[0]):
        if j != m:
            estimate = _view_without(left, m, j)
            beta, mean = estimate.scalars[2], product(estimate.theta, given.menu, k, given.coords)
            half = max(half, half_range(estimate, beta, terms, given, k))
            bottom, top = reward_range(estimate, beta, terms, given, k, mean)
            low, high = min(low, bottom), max(high, top)
    return weight_of(terms, half, low, high, guess)


@kernel
def absorb_for_all(state, shared, left, m, terms, x, y, weight, guess):
    """Let agent m learn from reward y of the vector x (d,), see `ridge.absorb_tidily`."""
    absorb_tidily(state, shared.own, terms, x, y, weight, guess)
    for j in range(left.sums.scalars.shape[0]):
        if j != m:
            seen = seen_without(state, left, m, j)
            if is_worn(state.own, update(seen, x, y, weight)):
                refresh(seen, sums_seen(state, shared, left, j), terms.ridge)


@kernel
def pool_without(group, left, terms):
    """Pool as `sync.pool` does, and keep what is pooled without each task, if any is left out."""
    agents, places = group.work.shape[0] - 2, left.sums.scalars.shape[0]
    for j in range(places):
        for m in range(agents):
            if m != j and group.watch[m, APART] == 0.0:
                add_statistic(sums_without(left, j), state_of(group, m).own)
    logdet = pool(group, terms)
    nothing = state_of(group, agents + 1).own
    for j in range(places):
        set_without(state_of(group, agents), left, j, nothing, terms)
        for m in range(agents):
            if group.watch[m, APART] == 0.0:
                copy_estimate(_pooled_without(left, j), _view_without(left, m, j))
    return logdet


@kernel
def clear_pooled(shared, left):
    """Set all that was pooled to zero, with and without each task."""
    clear_statistic(shared.own)
    clear_statistic(shared.reports)
    for j in range(left.sums.scalars.shape[0]):
        clear_statistic(sums_without(left, j))


@kernel
def forget_others(state, nothing, left, m, ridge):
    """Let agent m know nothing but its own data; `nothing` is an empty statistic."""
    refresh(state, nothing, ridge)
    state.estimate.scalars[2] = ridge
    state.estimate.scalars[3] = ridge * state.own.moment.size
    for j in range(left.sums.scalars.shape[0]):
        refresh(seen_without(state, left, m, j), nothing, ridge)


@kernel
def set_without(shared, left, j, nothing, terms):
    """Write the estimate from what was pooled without task j, and the radius of its set.

    `nothing` is an empty statistic; the shared entry lends its scratch.
    """
    pooled = _pooled_without(left, j)
    rest = (shared.reports, shared.anchored, shared.work, shared.spent, shared.watch)
    state = State(sums_without(left, j), pooled, *rest)
    refresh(state, nothing, terms.ridge)
    pooled.scalars[2] = 0.0
    if not math.isnan(terms.pooled_confidence):
        level = terms.pooled_confidence + shared.watch[LEVEL]
        pooled.scalars[2] = radius_at(state, nothing, terms, level)


@kernel
def least_reward(left, m, given, k):
    """Return the least expected reward of action k in all sets."""
    least = math.inf
    for j in range(left.sums.scalars.shape[0]):
        if j != m:
            view = _view_without(left, m, j)
            least = min(least, lead_of(view, view.scalars[2], given, k, 0.0))
    return least


@kernel
def lower_bound_for_all(left, m, terms, given, outcome):
    """Return the lower bound that `monitors.lower_bound_of` returns, in all sets."""
    k = outcome.action
    if math.isnan(terms.alarm) or k == given.baseline:
        return math.nan
    return least_reward(left, m, given, k) - terms.bias


@kernel
def _most_reward(left, m, given, k):
    """Return the largest expected reward of action k in all sets."""
    most = -math.inf
    for j in range(left.sums.scalars.shape[0]):
        if j != m:
            view = _view_without(left, m, j)
            mean = product(view.theta, given.menu, k, given.coords)
            most = max(most, 2.0 * mean - lead_of(view, view.scalars[2], given, k, 0.0))
    return most


@kernel
def describe(state, left, m, terms, given, scores, outcome, allowed):
    """Say what a decision of `choose` means, see `guard_ucb.describe`.

    The interval of the played action is around its mean by all data, and holds those of all sets.
    """
    k, b = outcome.action, given.baseline
    refuted = outcome.reason == REFUTED
    if not refuted and not (outcome.conservative and outcome.scanned):  # else `choose` wrote them
        _write_slacks(state, left, m, terms, given, scores, outcome.target, False)
    estimate = state.estimate
    scan_forms(estimate, given.coords, given.menu, scores.mean, scores.form)
    for i in range(allowed.size):
        if refuted:
            scores.slack[i] = 0.0 if i == b else math.nan
        allowed[i] = scores.slack[i] >= 0.0 or i == k
    mean = scores.mean[k]
    low, high = least_reward(left, m, given, k), _most_reward(left, m, given, k)
    width = max(mean - low, high - mean)
    reward = given.baseline_reward
    if math.isnan(reward):
        reward = _most_reward(left, m, given, b)
    certificate = BY_DEFINITION if k == b else BY_ALL
    floor = (1.0 - given.alpha) * reward
    return width, floor, outcome.propensity, outcome.margin, certificate, True
