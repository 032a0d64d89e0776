"""Guard-UCB: one decision of one agent, and its description."""

from __future__ import annotations

import math

from guardband.kernels._jit import kernel
from guardband.kernels.allowance import charge_exploration, try_target
from guardband.kernels.anchors import anchor
from guardband.kernels.bounded import EASE, EMPTY, HOLDS, UNSURE, find_point, knowledge_of, least
from guardband.kernels.certify import (
    certificate_of,
    context_std,
    guard_radius,
    lead_of,
    promised,
    slack_of,
    slacks,
    write_leads,
)
from guardband.kernels.mixtures import mix, raise_chance
from guardband.kernels.monitors import Note
from guardband.kernels.optimism import aim, optimism_of
from guardband.kernels.scan import following, scan_forms, write_image, write_products
from guardband.kernels.types import Certificate, Outcome, Realised, Reason, RoundInput

__all__ = ["OTHERS", "believed", "bounded_slack", "choose", "describe", "learn_or_earn"]
__all__ += ["may_wait", "no_choice", "play_certified", "plays_target", "set_in_use"]

OTHERS = 8  # actions that are tried, where the most promising one is not certified
NONE = int(Realised.NONE)
CERTIFIED, ITSELF = int(Reason.CERTIFIED), int(Reason.ITSELF)
CAREFUL, STUCK, FREE = int(Reason.CAREFUL), int(Reason.STUCK), int(Reason.FREE)
REFUTED, TRIAL, SPENT = int(Reason.REFUTED), int(Reason.TRIAL), int(Reason.SPENT)
HOLDBACK = int(Reason.HOLDBACK)
ALARMED, HOLD, PENDING = int(Reason.ALARMED), int(Note.HOLD), int(Note.PENDING)
BY_LEAD, BY_MIXTURE = int(Certificate.LEAD), int(Certificate.MIXTURE)
BY_DIFFERENCE, BY_REWARD = int(Certificate.DIFFERENCE), int(Certificate.REWARD)
BY_POOLED, BY_TRIAL = int(Certificate.POOLED), int(Certificate.TRIAL)
BY_BOUNDS, NO_CERTIFICATE = int(Certificate.BOUNDED), int(Certificate.NONE)


@kernel
def no_choice(state, plain):
    """Return why nothing but the baseline may be played, whatever is on offer; -1: it may.

    After an alarm; or because numbers that broke down certify nothing.
    """
    if state.watch[HOLD] > 0.0 or state.watch[PENDING] > 0.0:
        return ALARMED
    if plain < math.inf:
        return -1
    return REFUTED if plain == math.inf else CAREFUL


@kernel
def choose(state, shared, terms, given, scores):
    """Choose for one agent and one round.

    `shared` is what all agents have pooled. Changes the scratch `scores` and the anchored
    estimate, whose first scalar remembers that the reports contradicted the observations.
    """
    plain = guard_radius(state, shared.own, terms, given.epoch)
    b = given.baseline
    reason = no_choice(state, plain)
    if reason >= 0:
        return Outcome(b, True, reason, plain, plain, False, b, b, 1.0, 1.0, 0.0, 0.0, False)
    estimate, beta = set_in_use(state, shared, terms, plain)
    given = believed(state, given)
    mean, form = scores.mean, scores.form
    scan_forms(estimate, given.coords, given.menu, mean, form)
    target = aim(scores, beta, optimism_of(state, shared.own, terms))
    if terms.free:
        return plays_target(target, FREE, beta, plain, math.nan, False)
    image = state.work[1]
    write_image(estimate, given.menu, b, given.coords, image)
    slack = slack_of(estimate, beta, terms, given, scores, image, target)
    if slack >= 0.0 or target == b:
        reason = CERTIFIED if slack >= 0.0 else ITSELF
        return plays_target(target, reason, beta, plain, slack, False)
    radius, pooled = shared.estimate.scalars[2], False
    if 0.0 < radius < math.inf:
        keep = 1.0 - given.alpha
        lead = lead_of(shared.estimate, radius, given, target, keep)
        if lead > lead_of(estimate, beta, given, target, keep):
            estimate, beta, pooled = shared.estimate, radius, True
            scan_forms(estimate, given.coords, given.menu, mean, form)
            write_image(estimate, given.menu, b, given.coords, image)
            slack = slack_of(estimate, beta, terms, given, scores, image, target)
            if slack >= 0.0:
                return plays_target(target, CERTIFIED, beta, plain, slack, True)
    outcome = _by_all_that_is_known(state, estimate, beta, plain, terms, given, scores, target)
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
def set_in_use(state, shared, terms, plain):
    """Return the estimate and the radius of the agent's own set, anchored if there are reports."""
    count = state.reports.scalars[0] + shared.reports.scalars[0]
    if terms.anchors and state.anchored.scalars[0] == 0.0 and count > 0.0:
        if anchor(state, shared, terms, plain):
            state.anchored.scalars[0] = 1.0
        else:
            return state.anchored, math.sqrt(2.0) * plain
    return state.estimate, plain


@kernel
def plays_target(k, reason, beta, plain, slack, pooled):
    """Return the outcome of playing the target, action k, for sure."""
    return Outcome(k, False, reason, beta, plain, True, k, k, 1.0, 1.0, slack, 0.0, pooled)


@kernel
def _by_all_that_is_known(state, estimate, beta, plain, terms, given, scores, target):
    """Choose where the confidence set alone does not certify the target.

    With the range of rewards, it may; else another action is played, or a mixture.
    """
    b, work, found = given.baseline, state.work, UNSURE
    known = knowledge_of(estimate, beta, terms, given)
    if terms.use_range:
        found = find_point(known, scores, work)
    if found == EMPTY:
        return Outcome(b, True, REFUTED, beta, plain, True, b, b, 1.0, 1.0, 0.0, 0.0, False)
    if found == HOLDS:
        slack = bounded_slack(known, terms, given, scores, work, target)
        if slack >= 0.0:
            return plays_target(target, CERTIFIED, beta, plain, slack, False)
    slacks(estimate, beta, terms, given, scores, work[1])
    holds = found == HOLDS
    if not terms.strict:
        outcome = mix(estimate, beta, plain, terms, given, scores, work[1], work[2], target)
        if holds:
            outcome = raise_chance(known, given, scores, work, outcome)
        if terms.allowance >= 0.0:
            outcome = charge_exploration(state, known, holds, terms, given, scores, outcome)
        if outcome.reason != SPENT:
            return outcome
    if holds:
        _certify_others(known, terms, given, scores, work, target)
    outcome = play_certified(estimate, beta, plain, terms, given, scores, work[2], target)
    if outcome.reason == STUCK and terms.allowance > 0.0:
        return try_target(state, known, holds, terms, given, scores, outcome)
    return outcome


@kernel
def bounded_slack(known, terms, given, scores, work, k):
    """Return a lower bound of (psi_k - (1 - alpha) psi_b)'theta over all that is known.

    If something is promised about the context that is drawn, the bound of that, if it is smaller.
    """
    enough, announced = 0.0, given.ids.size > 0
    if terms.realised != NONE and not announced:
        enough = terms.tail * context_std(known.estimate, known.beta, given, k)
    slack = _least_lead(known, given, scores, work, given.menu, k, enough) - enough
    if terms.realised == NONE or not announced or not slack >= 0.0:
        return slack
    return min(slack, _bounded_promise(known, terms, given, scores, work, k))


@kernel
def _least_lead(known, given, scores, work, features, k, enough):
    """Return a lower bound of (x_k - (1 - alpha) x_b)'theta; x are the columns of `features`."""
    for p in range(given.coords.size):
        i = given.coords[p]
        work[4][i] = features[i, k] - (1.0 - given.alpha) * features[i, given.baseline]
    return least(known, scores, work, enough)


@kernel
def _bounded_promise(known, terms, given, scores, work, k):
    """Return the lead of action k in the worst context, or with probability 1 - chance.

    Leads that the confidence set leaves open are bounded by all that is known, until too many
    contexts are left in which nothing is certain.
    """
    values, missing = scores.values, 0.0
    write_leads(known.estimate, known.beta, given, scores, k)
    for j in range(given.ids.size):
        if given.weights[j] > 0.0 and not values[j] >= 0.0:
            features = given.contexts[given.ids[j]]
            values[j] = _least_lead(known, given, scores, work, features, k, 0.0)
            if not values[j] >= 0.0:
                missing += given.weights[j]
                if missing > terms.chance + EASE:
                    return -math.inf
    return promised(terms, given, scores)


@kernel
def _certify_others(known, terms, given, scores, work, target):
    """Look for the most promising action that is certified by all that is known.

    At most OTHERS are tried, from the most promising on, down to what is certified without.
    """
    upper, slack = scores.upper, scores.slack
    floor = upper[given.baseline]
    for k in range(upper.size):
        if slack[k] >= 0.0:
            floor = max(floor, upper[k])
    last = target
    for _ in range(OTHERS):
        best = following(upper, last)
        if best < 0 or not upper[best] > floor:
            return
        slack[best] = max(slack[best], bounded_slack(known, terms, given, scores, work, best))
        if slack[best] >= 0.0:
            return
        last = best


@kernel
def believed(state, given):
    """Return what was given, less the reported reward if reports were wrong once."""
    return RoundInput(
        given.menu,
        given.coords,
        given.baseline,
        given.baseline_reward,
        given.known and state.anchored.scalars[0] == 0.0,
        given.gap,
        given.alpha,
        given.rho,
        given.epoch,
        given.number,
        given.coin,
        given.contexts,
        given.ids,
        given.weights,
        given.covariance,
    )


@kernel
def play_certified(estimate, beta, plain, terms, given, scores, image, target):
    """Play a certified action: by a fair coin the most promising, or the most informative one.

    So does policy mode, once exploration may cost nothing more.
    """
    upper, form, slack = scores.upper, scores.form, scores.slack
    b = given.baseline
    write_image(estimate, given.menu, target, given.coords, image)
    write_products(image, given.menu, given.coords, scores.part)
    best, top, teacher, gain = b, -math.inf, b, -math.inf
    for k in range(given.menu.shape[1]):
        if k != b and not slack[k] >= 0.0:
            continue
        value = upper[k]
        if k == b and given.known:
            value = min(value, given.baseline_reward + terms.tolerance)
        if value > top:
            best, top = k, value
        cross = scores.part[k]
        learned = cross * cross * terms.planned_weight / (1.0 + terms.planned_weight * form[k])
        if learned > gain:
            teacher, gain = k, learned
    spent = not terms.strict
    return learn_or_earn(beta, plain, terms, given, scores, target, best, teacher, gain, spent)


@kernel
def learn_or_earn(beta, plain, terms, given, scores, target, best, teacher, gain, spent):
    """Play the best action or, by a fair coin, the teacher, if it teaches enough of the target.

    Both are certified; `gain` is what the teacher takes off the target's squared width, and
    `spent` tells that exploration may cost nothing more.
    """
    form, slack = scores.form, scores.slack
    stuck = gain < form[target] / (terms.agents * given.number + 1.0)
    action = best if stuck or not given.coin < 0.5 else teacher
    tossed = not stuck and best != teacher
    reason = STUCK if stuck else CAREFUL
    if spent:
        reason = SPENT
    return Outcome(
        action,
        True,
        reason,
        beta,
        plain,
        True,
        teacher if tossed else target,
        best,
        -0.5 if tossed else 0.0,
        0.5 if tossed else 1.0,
        slack[action],
        0.0,
        False,
    )


@kernel
def may_wait(terms, outcome):
    """Tell whether what is certified beside the play follows from the own estimate alone."""
    by_target = outcome.reason in (CERTIFIED, ITSELF)
    return by_target and not outcome.pooled and not terms.anchors


@kernel
def describe(state, shared, terms, given, scores, outcome, allowed, later):
    """Say what a decision means; sets `allowed` (K,) to what is certified, unless that is `later`.

    Returns the width of the played action's confidence interval, the floor, the probability with
    which it was played, its margin over the floor, the certificate of what is promised, and
    whether the action itself is certified.
    """
    used, k, b, beta = state.estimate, outcome.action, given.baseline, outcome.beta
    count = state.reports.scalars[0] + shared.reports.scalars[0]
    if terms.anchors and state.anchored.scalars[0] == 0.0 and count > 0.0:
        used = state.anchored
    if outcome.pooled:
        used = shared.estimate
    mean, form, image = scores.mean, scores.form, state.work[1]
    if not outcome.scanned:
        scan_forms(used, given.coords, given.menu, mean, form)
    if terms.free or not outcome.scanned:  # else it is there
        write_image(used, given.menu, b, given.coords, image)
    given = believed(state, given)
    refuted = outcome.reason == REFUTED
    if later:
        scores.slack[k] = slack_of(used, beta, terms, given, scores, image, k)
    elif refuted or not (outcome.conservative and outcome.scanned):  # else `choose` has done it
        slacks(used, beta, terms, given, scores, image)
    for j in range(0 if later else allowed.size):
        allowed[j] = j == b if refuted else scores.slack[j] >= 0.0
    certificate = certificate_of(used, beta, terms, given, scores, image, k)
    certified = k == b if refuted else scores.slack[k] >= 0.0
    alone = (SPENT, HOLDBACK, ALARMED)  # nothing was mixed
    mixed = outcome.conservative and not terms.strict and outcome.reason not in alone
    if outcome.reason == TRIAL:
        certificate = BY_TRIAL
    elif mixed and (outcome.propensity < 1.0 or k == b):
        certificate = BY_MIXTURE
    elif mixed and outcome.partner == outcome.target:
        certificate, certified = BY_LEAD, True  # it is sure to be worth the baseline or more
    elif certificate == NO_CERTIFICATE and outcome.reason in (CERTIFIED, CAREFUL, STUCK, SPENT):
        certificate, certified = BY_BOUNDS, True
        if not later:
            allowed[k] = True
    if outcome.pooled and certificate in (BY_DIFFERENCE, BY_LEAD, BY_REWARD):
        certificate = BY_POOLED
    reward = given.baseline_reward
    if math.isnan(reward):
        reward = mean[b] + beta * math.sqrt(form[b])
    width, floor = beta * math.sqrt(form[k]), (1.0 - given.alpha) * reward
    return width, floor, outcome.propensity, outcome.margin, certificate, certified
