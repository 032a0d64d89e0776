"""Guard-UCB with a value of one's own: of what is certified, the most valuable action is played.

The reward is then what is guarded, and nothing else. Values order actions and never enter a
certificate: docs/guard-ucb-math.md has the proofs. Without values nothing here is called.
"""

from __future__ import annotations

import math

from guardband.kernels._jit import kernel
from guardband.kernels.allowance import charge_exploration, try_target
from guardband.kernels.bounded import EASE, EMPTY, HOLDS, UNSURE, find_point, knowledge_of
from guardband.kernels.certify import certificate_of, guard_radius, lead_of, slack_of, slacks
from guardband.kernels.guard_ucb import (
    believed,
    bounded_slack,
    learn_or_earn,
    no_choice,
    plays_target,
    set_in_use,
)
from guardband.kernels.linalg import root
from guardband.kernels.mixtures import mixture_of, raise_chance
from guardband.kernels.optimism import aim, optimism_of
from guardband.kernels.scan import product, scan_forms, write_image
from guardband.kernels.types import Certificate, Outcome, Reason

__all__ = ["choose", "describe"]

TRIES = 24  # actions for which the range of rewards is tried, from the most valuable on
CERTIFIED, CAREFUL, FREE = int(Reason.CERTIFIED), int(Reason.CAREFUL), int(Reason.FREE)
STUCK, REFUTED = int(Reason.STUCK), int(Reason.REFUTED)
TRIAL, SPENT, HOLDBACK = int(Reason.TRIAL), int(Reason.SPENT), int(Reason.HOLDBACK)
BY_DEFINITION, NO_CERTIFICATE = int(Certificate.BASELINE), int(Certificate.NONE)
BY_MIXTURE, BY_TRIAL = int(Certificate.MIXTURE), int(Certificate.TRIAL)
BY_BOUNDS, BY_POOLED = int(Certificate.BOUNDED), int(Certificate.POOLED)
BY_CONTEXT = int(Certificate.CONTEXT)


@kernel
def choose(state, shared, terms, given, scores, wish):
    """Choose for one agent and one round, as `guard_ucb.choose` does without values.

    The best is the most valuable certified action; the target is the most valuable one that may
    clear the floor, by its largest lead over it in the set. Writes what actions are compared by to
    `upper` (-inf: not to be played), and the certified leads to `slack`.
    """
    plain = guard_radius(state, shared.own, terms, given.epoch)
    b = given.baseline
    reason = no_choice(state, plain)
    if reason >= 0:
        return Outcome(b, True, reason, plain, plain, False, b, b, 1.0, 1.0, 0.0, 0.0, False)
    estimate, beta = set_in_use(state, shared, terms, plain)
    given = believed(state, given)
    mean, form, image = scores.mean, scores.form, state.work[1]
    scan_forms(estimate, given.coords, given.menu, mean, form)
    if wish.value.size == 0:
        aim(scores, beta, optimism_of(state, shared.own, terms))
    _write_worth(given, scores, wish)
    if terms.free:
        return plays_target(_first(scores, b, True), FREE, beta, plain, math.nan, False)
    write_image(estimate, given.menu, b, given.coords, image)
    slacks(estimate, beta, terms, given, scores, image)
    _drop_hopeless(beta, terms, given, scores, image)
    best, target = _first(scores, b, False), _first(scores, b, True)
    if best == target:
        return plays_target(best, CERTIFIED, beta, plain, scores.slack[best], False)
    radius, pooled, keep = shared.estimate.scalars[2], False, 1.0 - given.alpha
    if 0.0 < radius < math.inf:
        lead = lead_of(shared.estimate, radius, given, target, keep)
        if lead > lead_of(estimate, beta, given, target, keep):
            estimate, beta, pooled = shared.estimate, radius, True
            scan_forms(estimate, given.coords, given.menu, mean, form)
            write_image(estimate, given.menu, b, given.coords, image)
            for k in range(mean.size):
                sure = slack_of(estimate, beta, terms, given, scores, image, k)
                if sure > scores.slack[k] or not scores.slack[k] >= 0.0:
                    scores.slack[k] = sure
            _drop_hopeless(beta, terms, given, scores, image)
            best, target = _first(scores, b, False), _first(scores, b, True)
            if best == target:
                return plays_target(best, CERTIFIED, beta, plain, scores.slack[best], True)
    outcome = _by_all_that_is_known(
        state, estimate, beta, plain, terms, given, scores, best, target
    )
    return Outcome(
        outcome.action,
        outcome.conservative,
        outcome.reason,
        beta,
        plain,
        True,
        outcome.target,
        outcome.partner,
        outcome.chance,
        outcome.propensity,
        outcome.margin,
        outcome.charge,
        pooled,
    )


@kernel
def _write_worth(given, scores, wish):
    """Write what actions are compared by to `upper`: the value, or the reward, less its price.

    The reward is what `aim` wrote. Actions that cost too much are out, but for the baseline.
    """
    upper = scores.upper
    for k in range(upper.size):
        if wish.value.size > 0:
            upper[k] = wish.value[k]
        if wish.cost.size > 0:
            upper[k] -= wish.price * wish.cost[k]
            if wish.cost[k] > wish.room and k != given.baseline:
                upper[k] = -math.inf


@kernel
def _drop_hopeless(beta, terms, given, scores, image):
    """Take out actions that no parameter of the set lets clear the floor; `image` is V^-1 psi_b."""
    mean, form, upper = scores.mean, scores.form, scores.upper
    keep, b = 1.0 - given.alpha, given.baseline
    floor = -math.inf
    if given.known:
        floor = keep * (given.baseline_reward - terms.tolerance)
    for k in range(upper.size):
        if k == b or scores.slack[k] >= 0.0 or upper[k] == -math.inf:
            continue
        cross = product(image, given.menu, k, given.coords)
        wide = root(form[k] - 2.0 * keep * cross + keep * keep * form[b])
        hope = mean[k] - keep * mean[b] + beta * wide
        if not (hope >= 0.0 and mean[k] + beta * math.sqrt(form[k]) >= floor):
            upper[k] = -math.inf


@kernel
def _ahead(scores, k, other):
    """Tell whether action k comes before another: by worth, by estimated reward, by row."""
    upper, mean = scores.upper, scores.mean
    if upper[k] != upper[other]:
        return upper[k] > upper[other]
    if mean[k] != mean[other]:
        return mean[k] > mean[other]
    return k < other


@kernel
def _first(scores, b, hoped):
    """Return the first action of those that are certified, as b is, or of all, if `hoped`."""
    best = b
    for k in range(scores.upper.size):
        if (hoped or scores.slack[k] >= 0.0) and _ahead(scores, k, best):
            best = k
    return best


@kernel
def _by_all_that_is_known(state, estimate, beta, plain, terms, given, scores, best, target):
    """Choose where the confidence set alone does not certify the target.

    With the range of rewards, it may, or an action that comes before the best so far; else the
    round is conservative.
    """
    b, work, found = given.baseline, state.work, UNSURE
    known = knowledge_of(estimate, beta, terms, given)
    if terms.use_range:
        found = find_point(known, scores, work)
    if found == EMPTY:
        return Outcome(b, True, REFUTED, beta, plain, True, b, b, 1.0, 1.0, 0.0, 0.0, False)
    holds = found == HOLDS
    if holds:
        best = _certify_by_range(known, terms, given, scores, work, best, target)
        if best == target:
            return plays_target(best, CERTIFIED, beta, plain, scores.slack[best], False)
    spent = False
    if not terms.strict:
        outcome = _mix(known, holds, plain, terms, given, scores, work, best, target)
        if terms.allowance >= 0.0:
            outcome = charge_exploration(state, known, holds, terms, given, scores, outcome)
        spent = outcome.reason == SPENT
        if outcome.chance > 0.0 and not spent:
            return outcome
    teacher, gain = _teacher(estimate, terms, given, scores, work[2], best, target)
    outcome = learn_or_earn(beta, plain, terms, given, scores, target, best, teacher, gain, spent)
    if outcome.reason == STUCK and terms.strict and terms.allowance > 0.0:
        return try_target(state, known, holds, terms, given, scores, outcome)
    return outcome


@kernel
def _certify_by_range(known, terms, given, scores, work, best, target):
    """Return the first action that is certified by all that is known, or the best so far.

    At most TRIES are tried, from the target on, down to the best. Those whose lead is negative at
    the point of the set that was found cannot be certified, and are not counted.
    """
    keep, b, last = 1.0 - given.alpha, given.baseline, -1
    for _ in range(TRIES):
        first = best
        for k in range(scores.upper.size):
            if last >= 0 and not _ahead(scores, last, k):
                continue
            if scores.point[k] - keep * scores.point[b] + EASE >= 0.0 and _ahead(scores, k, first):
                first = k
        if first == best:
            return best
        sure = bounded_slack(known, terms, given, scores, work, first)
        if sure >= 0.0:
            scores.slack[first] = sure
            return first
        last = first
    return best


@kernel
def _mix(known, holds, plain, terms, given, scores, work, best, target):
    """Mix the target with the best certified action: no such mixture has less value than that.

    With m a lower bound of the lead over the floor, the chance r of the target clears it if
    (1 - r) m(best) + r m(target) >= 0; the target's reward is not below its range. The baseline
    needs no bound: a chance of alpha clears the floor. Then the chance is raised as far as the
    mixture itself is certified. A chance of 0: nothing may be mixed.
    """
    slack, chance = scores.slack, given.alpha
    if best != given.baseline:
        worst = known.low - (1.0 - given.alpha) * known.top
        if slack[target] > worst:  # noqa: PLR1730 - not where it is NaN
            worst = slack[target]
        chance = slack[best] / (slack[best] - worst)
        if not chance >= 0.0:
            chance = 0.0
    estimate, beta = known.estimate, known.beta
    image, other = work[1], work[2]
    outcome = mixture_of(estimate, beta, plain, given, scores, image, other, target, best, chance)
    if holds:
        outcome = raise_chance(known, given, scores, work, outcome)
    return outcome


@kernel
def _teacher(estimate, terms, given, scores, image, best, target):
    """Return the certified action that teaches most about the target, and how much.

    That is what it takes off the target's squared width, at the weight that is planned with; see
    `play_certified`. A lesson may cost no more value than the target would bring: nothing else
    keeps it from the far end of a menu, where features teach most and values are least.
    """
    write_image(estimate, given.menu, target, given.coords, image)
    upper, weight, teacher, gain = scores.upper, terms.planned_weight, best, -math.inf
    for k in range(scores.form.size):
        if upper[best] - upper[k] > upper[target] - upper[best]:
            continue
        if k != given.baseline and not scores.slack[k] >= 0.0:
            continue
        cross = product(image, given.menu, k, given.coords)
        learned = cross * cross * weight / (1.0 + weight * scores.form[k])
        if learned > gain:
            teacher, gain = k, learned
    return teacher, gain


@kernel
def describe(state, shared, terms, given, scores, outcome, allowed):
    """Say what a decision means, as `guard_ucb.describe`; `scores` are as `choose` left them.

    An action that the set in use does not certify is certified by the agent's own, where the
    pooled one is in use, or by the range of rewards.
    """
    k, b, beta = outcome.action, given.baseline, outcome.beta
    own, own_beta = state.estimate, outcome.plain
    count = state.reports.scalars[0] + shared.reports.scalars[0]
    if terms.anchors and state.anchored.scalars[0] == 0.0 and count > 0.0:
        own, own_beta = state.anchored, math.sqrt(2.0) * outcome.plain
    used = shared.estimate if outcome.pooled else own
    mean, form, image = scores.mean, scores.form, state.work[1]
    if not outcome.scanned:
        scan_forms(used, given.coords, given.menu, mean, form)
    write_image(used, given.menu, b, given.coords, image)
    given = believed(state, given)
    if not outcome.scanned or terms.free:
        slacks(used, beta, terms, given, scores, image)
    only = outcome.reason == REFUTED or not outcome.scanned
    for j in range(allowed.size):
        allowed[j] = j == b or (scores.slack[j] >= 0.0 and not only)
    mixed = outcome.conservative and outcome.chance > 0.0 and outcome.partner != outcome.target
    mixed = mixed and outcome.reason != HOLDBACK
    certificate = NO_CERTIFICATE
    if outcome.reason == TRIAL:
        certificate = BY_TRIAL
    elif mixed:
        certificate = BY_MIXTURE
    elif k == b:
        certificate = BY_DEFINITION
    elif allowed[k]:
        certificate = certificate_of(used, beta, terms, given, scores, image, k)
        if outcome.pooled and certificate not in (NO_CERTIFICATE, BY_CONTEXT):
            certificate = BY_POOLED
        elif outcome.pooled and certificate == NO_CERTIFICATE:
            scan_forms(own, given.coords, given.menu, mean, form)
            write_image(own, given.menu, b, given.coords, image)
            certificate = certificate_of(own, own_beta, terms, given, scores, image, k)
            scan_forms(used, given.coords, given.menu, mean, form)
        if certificate == NO_CERTIFICATE:
            certificate = BY_BOUNDS
    reward = given.baseline_reward
    if math.isnan(reward):
        reward = mean[b] + beta * math.sqrt(form[b])
    width, floor = beta * math.sqrt(form[k]), (1.0 - given.alpha) * reward
    return width, floor, outcome.propensity, outcome.margin, certificate, allowed[k]
