"""Guard-UCB's confidence set and certificates: what is sure to clear the floor.

The set is {theta: ||theta - theta-hat||_V <= beta}; min over it of v'theta is exactly
v'theta-hat - beta ||v||_{V^-1}. A certificate is such a minimum that is not negative.
"""

from __future__ import annotations

import math

from guardband.kernels._jit import kernel, rare_kernel
from guardband.kernels.linalg import quadratic, root
from guardband.kernels.monitors import Note
from guardband.kernels.ridge import write_unexplained
from guardband.kernels.scan import product, write_products
from guardband.kernels.types import LEAST_RATE, Certificate, Radius, Realised

__all__ = ["certificate_of", "context_std", "guard_radius", "lead_of", "promised"]
__all__ += ["declared_weight", "half_range", "radius_at", "reward_range", "slack_of", "slacks"]
__all__ += ["weigh", "weight_of", "write_leads"]

BEST, LOGDET, EMPIRICAL = int(Radius.BEST), int(Radius.LOGDET), int(Radius.EMPIRICAL)
NONE, CHANCE = int(Realised.NONE), int(Realised.CHANCE)

NO_CERTIFICATE, BY_DEFINITION = int(Certificate.NONE), int(Certificate.BASELINE)
BY_DIFFERENCE, BY_LEAD = int(Certificate.DIFFERENCE), int(Certificate.LEAD)
BY_REWARD, BY_CONTEXT = int(Certificate.REWARD), int(Certificate.CONTEXT)

LEVEL = int(Note.LEVEL)
MANY = 64  # pairs of support points are compared up to this many; beyond, distances to psi
ROUNDING = 1e-12
ROUNDING_OF_SUMS = 1e-13  # of the sum of w y^2, which H and U'V^-1 U all but cancel


@kernel
def guard_radius(state, pooled, terms, epoch):
    """Return beta of an agent's own view in this epoch and start, see `radius_at`."""
    level = terms.confidence + 4.0 * math.log(epoch) + state.watch[LEVEL]
    return radius_at(state, pooled, terms, level)


@kernel
def radius_at(state, pooled, terms, level):
    """Return beta from log det V, from the residuals, or the smaller of both.

    `level` is 2 log(1/delta_p).

    log det:   sqrt(log det(V/ridge) + 2 log(1/delta_p) + ridge S^2) + bias sqrt(sum w); where theta
               moves sqrt(ridge) S is added to the root instead, and moved sqrt(sum w)
    empirical: sqrt(max(0, G) + 2 log(1/delta_p) + ridge S^2), G = H + U'V^-1 U,
               H = sum w (yhat^2 - 2 y yhat); with a bias 4 log(1/delta_p) and + 2 bias^2 sum w.

    A G so negative that no theta is left cannot be: some H is wrong, and log det decides alone.
    For weights by variance log det is no radius: nothing is certified then. Overwrites work[3].
    """
    own, estimate = state.own, state.estimate
    prior = terms.ridge * terms.theta_bound * terms.theta_bound
    growth, total = estimate.scalars[0], own.scalars[3] + pooled.scalars[3]
    if terms.radius not in (BEST, LOGDET, EMPIRICAL):  # the paper's, in these units
        return math.sqrt(growth + terms.confidence) + math.sqrt(prior)
    by_volume = math.sqrt(growth + level + prior)
    if terms.drift > 0.0:  # see Proposition 11
        by_volume = math.sqrt(growth + level) + math.sqrt(prior)
    by_volume += (terms.bias + terms.moved) * math.sqrt(total)
    if terms.by_variance or own.scalars[4] + pooled.scalars[4] > 0.0:
        by_volume = math.inf
    beta = math.inf if terms.radius == EMPIRICAL else by_volume
    if terms.radius != LOGDET or by_volume == math.inf:
        fit = own.scalars[2] + pooled.scalars[2]
        # U'V^-1 U as 2 U'theta - theta'V theta: an error of theta counts only squared.
        theta, rest = estimate.theta, state.work[3]
        write_unexplained(own, pooled, terms.ridge, theta, rest)
        for i in range(theta.size):
            fit += (own.moment[i] + pooled.moment[i] + rest[i]) * theta[i]
        fit += ROUNDING_OF_SUMS * (own.scalars[1] + pooled.scalars[1])
        room = level + prior
        if terms.bias > 0.0:
            room += level + 2.0 * terms.bias * terms.bias * total
        if fit < -room:
            return by_volume
        empirical = math.sqrt((fit if not fit < 0.0 else 0.0) + room)
        beta = empirical if empirical < beta or math.isnan(empirical) else beta
    return beta


@kernel
def slack_of(estimate, beta, terms, given, scores, image, k):
    """Return the certified lead of action k over the floor; `image` is V^-1 psi_b.

    The difference form needs no reward: min of (psi_k - (1 - alpha) psi_b)'theta. With a baseline
    reward known to +-tau: max(0, min of psi_k'theta) - (1 - alpha)(r_b + tau), and for the
    baseline itself alpha (r_b - tau). NaN is no certificate.
    """
    mean, form = scores.mean, scores.form
    keep, b = 1.0 - given.alpha, given.baseline
    cross = product(image, given.menu, k, given.coords)
    if terms.realised != NONE:
        square = form[k] - 2.0 * keep * cross + keep * keep * form[b]
        slack = mean[k] - keep * mean[b] - beta * root(square)
        if k == b:
            slack = max(slack, 0.0)  # the baseline is safe by definition
        # Beside the promise about the context, never instead of the one in expectation.
        if given.ids.size > 0:
            write_leads(estimate, beta, given, scores, k)
            sure = promised(terms, given, scores)
        else:
            sure = slack - terms.tail * context_std(estimate, beta, given, k)
        return slack if k == b else min(slack, sure)
    return _slack_on_average(beta, terms, given, mean[b], form[b], mean[k], form[k], cross, k == b)


@kernel
def _slack_on_average(beta, terms, given, base, own, mean, form, cross, itself):
    """Return the slack of an action where nothing is promised about the context.

    From mean and form of the baseline and of the action, `cross` = psi_k'V^-1 psi_b, and whether
    they are the same. Without a branch that depends on the action: `slacks` has it in vectors.
    """
    keep = 1.0 - given.alpha
    slack = mean - keep * base - beta * root(form - 2.0 * keep * cross + keep * keep * own)
    if itself:
        slack = max(slack, 0.0)  # the baseline is safe by definition
    # Rewards are not negative: what is worth the baseline or more clears any share of it.
    lead = mean - base - beta * root(form - 2.0 * cross + own)
    slack = lead if lead > slack else slack
    if given.known:
        lower = mean - beta * math.sqrt(form)
        lower = lower if lower > 0.0 else 0.0
        sure = lower - keep * (given.baseline_reward + terms.tolerance)
        slack = sure if sure > slack else slack
        if itself:
            slack = max(slack, given.alpha * max(0.0, given.baseline_reward - terms.tolerance))
    return slack


@kernel
def certificate_of(estimate, beta, terms, given, scores, image, k):
    """Return which certificate clears the floor for action k: a code of `Certificate`."""
    if k == given.baseline:
        return BY_DEFINITION
    if not slack_of(estimate, beta, terms, given, scores, image, k) >= 0.0:
        return NO_CERTIFICATE
    if terms.realised != NONE:
        return BY_CONTEXT
    mean, form = scores.mean, scores.form
    keep, b = 1.0 - given.alpha, given.baseline
    cross = product(image, given.menu, k, given.coords)
    share = mean[k] - keep * mean[b]
    if share >= beta * root(form[k] - 2.0 * keep * cross + keep * keep * form[b]):
        return BY_DIFFERENCE
    if mean[k] - mean[b] >= beta * root(form[k] - 2.0 * cross + form[b]):
        return BY_LEAD
    return BY_REWARD


@kernel
def lead_of(estimate, beta, given, k, keep):
    """Return the least (psi_k - keep psi_b)'theta over a set."""
    b, mean, square = given.baseline, 0.0, 0.0
    for p in range(given.coords.size):
        i = given.coords[p]
        gap = given.menu[i, k] - keep * given.menu[i, b]
        mean += gap * estimate.theta[i]
        for q in range(given.coords.size):
            o = given.coords[q]
            square += gap * estimate.inverse[i, o] * (given.menu[o, k] - keep * given.menu[o, b])
    return mean - beta * root(square)


@rare_kernel
def slacks(estimate, beta, terms, given, scores, image):
    """Write the slack of every action to the scores; overwrites their `part`."""
    if terms.realised != NONE:
        for k in range(given.menu.shape[1]):
            scores.slack[k] = slack_of(estimate, beta, terms, given, scores, image, k)
        return
    mean, form, slack, cross = scores.mean, scores.form, scores.slack, scores.part
    write_products(image, given.menu, given.coords, cross)
    b = given.baseline
    base, own = mean[b], form[b]
    for k in range(slack.size):
        slack[k] = _slack_on_average(
            beta, terms, given, base, own, mean[k], form[k], cross[k], False
        )
    slack[b] = _slack_on_average(beta, terms, given, base, own, base, own, cross[b], True)


@kernel
def write_leads(estimate, beta, given, scores, k):
    """Write the least D_c'theta over the set for every possible context c to the scores' values.

    D_c = phi(k, c) - (1 - alpha) phi(b, c); the baseline is judged in the same context.
    """
    values, keep, b = scores.values, 1.0 - given.alpha, given.baseline
    for j in range(given.ids.size):
        features = given.contexts[given.ids[j]]
        lead, square = 0.0, 0.0
        for p in range(given.coords.size):
            i = given.coords[p]
            gap = features[i, k] - keep * features[i, b]
            lead += gap * estimate.theta[i]
            row = 0.5 * estimate.inverse[i, i] * gap
            for q in range(p):
                o = given.coords[q]
                row += estimate.inverse[i, o] * (features[o, k] - keep * features[o, b])
            square += 2.0 * row * gap
        values[j] = lead - beta * root(square)


@kernel
def promised(terms, given, scores):
    """Return the lead that holds in the worst context, or with probability 1 - chance.

    The scores' values are the leads in every possible context.
    """
    values, n, best, worst = scores.values, given.ids.size, -math.inf, math.inf
    for j in range(n):
        if given.weights[j] > 0.0:
            if not values[j] >= worst:  # NaN comes through
                worst = values[j]
            mass = 0.0
            for o in range(n):
                if values[o] >= values[j]:
                    mass += given.weights[o]
            if mass >= 1.0 - terms.chance - ROUNDING:
                best = max(best, values[j])
    return best if terms.realised == CHANCE else worst


@kernel
def context_std(estimate, beta, given, k):
    """Bound the deviation of D_c'theta over the set, from the covariance S of D_c.

    sqrt(theta-hat'S theta-hat) + beta sqrt(lambda_max(V^-1/2 S V^-1/2)); the eigenvalue is bounded
    by sqrt(trace((S V^-1)^2)), at most d^(1/4) times its root too large.
    """
    S = given.covariance[min(k, given.covariance.shape[0] - 1)]
    variance, square = 0.0, 0.0
    for p in range(given.coords.size):
        i = given.coords[p]
        for q in range(given.coords.size):
            j = given.coords[q]
            variance += estimate.theta[i] * S[i, j] * estimate.theta[j]
            one, other = 0.0, 0.0
            for r in range(given.coords.size):
                o = given.coords[r]
                one += S[i, o] * estimate.inverse[o, j]
                other += S[j, o] * estimate.inverse[o, i]
            square += one * other
    return root(variance) + beta * math.sqrt(root(square))


@kernel
def weigh(estimate, beta, terms, given, k, guess):
    """Return the weight of action k's reward, and the prediction as its sums may use it.

    w = 1 / (sigma^2 + f s^2), s half the range of phi(k, c)'theta over the support; s is declared,
    or 1/2 where nothing is known, or the least of 1/2, (S/2) times the diameter of the support's
    features, and half the range that the confidence set allows.

    If rewards outside [0, 1] are refused, w = 1 / (f v) where that is larger: v is the largest
    x (1 - x) over the range [l, u] of psi'theta in the confidence set, within [0, 1], S ||psi||
    and the ceiling, and widened by the bias; the prediction is cut to [l, u].
    """
    half, low, high = half_range(estimate, beta, terms, given, k), 0.0, 1.0
    if terms.by_variance:
        low, high = reward_range(estimate, beta, terms, given, k, guess)
    return weight_of(terms, half, low, high, guess)


@kernel
def weight_of(terms, half, low, high, guess):
    """Return what `weigh` does, from s and [l, u]."""
    weight = 1.0 / (terms.variance + terms.sharing * half * half)
    if not terms.by_variance:
        return weight, guess
    guess = min(max(guess, low), high)
    middle = min(max(0.5, low - terms.bias), high + terms.bias)  # where x (1 - x) is largest
    return max(weight, 1.0 / (terms.sharing * middle * (1.0 - middle))), guess


@kernel
def declared_weight(terms, given, k):
    """Return the largest weight of action k's reward that rests on no confidence set.

    As in `weigh`, with s declared, or (S/2) times the diameter of the support, at most 1/2; and
    4 / f where rewards outside [0, 1] are refused.
    """
    half = 0.5
    if not math.isnan(terms.context_noise):
        half = terms.context_noise
    elif given.ids.size > 0:
        half = min(half, 0.5 * terms.theta_bound * _diameter(given, k))
    weight = 1.0 / (terms.variance + terms.sharing * half * half)
    return max(weight, 4.0 / terms.sharing) if terms.by_variance else weight


@kernel
def reward_range(estimate, beta, terms, given, k, mean):
    """Return [l, u], the range of psi_k'theta in the set and within [0, 1], S ||psi||, the ceiling.

    `mean` is psi_k'theta-hat. Both ends keep LEAST_RATE from the far end of [0, 1].
    """
    square, length = quadratic(estimate.inverse, given.menu[:, k], given.coords), 0.0
    for p in range(given.coords.size):
        length += given.menu[given.coords[p], k] * given.menu[given.coords[p], k]
    low, high = 0.0, min(1.0, terms.ceiling, terms.theta_bound * math.sqrt(length))
    width = beta * root(square)
    if not math.isnan(width):
        low, high = max(low, mean - width), min(high, mean + width)
    if not low <= high:  # no parameter of the set is possible: only the range of rewards is sure
        return 0.0, 1.0
    return min(low, 1.0 - LEAST_RATE), max(high, LEAST_RATE)


@kernel
def half_range(estimate, beta, terms, given, k):
    """Return half the range of phi(k, c)'theta over the support, as `weigh` describes it."""
    if not math.isnan(terms.context_noise):
        return terms.context_noise
    if given.ids.size == 0:
        return 0.5
    top, bottom, far, first = -math.inf, math.inf, 0.0, -1
    for j in range(given.ids.size):
        if not given.weights[j] > 0.0:
            continue
        features = given.contexts[given.ids[j]]
        mean, square = 0.0, 0.0
        for p in range(given.coords.size):
            i = given.coords[p]
            mean += features[i, k] * estimate.theta[i]
            row = 0.5 * estimate.inverse[i, i] * features[i, k]
            for q in range(p):
                row += estimate.inverse[i, given.coords[q]] * features[given.coords[q], k]
            square += 2.0 * row * features[i, k]
        width = beta * root(square)
        top, bottom = max(top, mean + width), min(bottom, mean - width)
        first = j if first < 0 else first
        far = max(far, _distance(features, given.contexts[given.ids[first]], given.coords, k))
    half = 0.5
    if top >= bottom:  # not where a bound is NaN
        half = min(half, 0.5 * (min(1.0, top) - max(0.0, bottom)))
    if 0.5 * terms.theta_bound * far < half:  # else the diameter cannot be what decides
        half = min(half, 0.5 * terms.theta_bound * _diameter(given, k))
    return max(0.0, half)


@kernel
def _diameter(given, k):
    """Return the largest distance between two possible features of action k, or more."""
    far, n = 0.0, given.ids.size
    for j in range(n):
        if not given.weights[j] > 0.0:
            continue
        features = given.contexts[given.ids[j]]
        if n > MANY:  # every value lies within S times the distance of psi's
            far = max(far, 2.0 * _distance(features, given.menu, given.coords, k))
            continue
        for o in range(j):
            if given.weights[o] > 0.0:
                far = max(far, _distance(features, given.contexts[given.ids[o]], given.coords, k))
    return far


@kernel
def _distance(one, other, coords, k):
    """Return ||one_k - other_k|| of action k in two (d, K) tables of features."""
    total = 0.0
    for p in range(coords.size):
        gap = one[coords[p], k] - other[coords[p], k]
        total += gap * gap
    return math.sqrt(total)
