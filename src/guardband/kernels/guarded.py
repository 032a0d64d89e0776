"""Guard-UCB: one decision of one agent."""

from __future__ import annotations

import math

from guardband.kernels._jit import kernel
from guardband.kernels.certify import anchor, guard_radius, slack_of, slacks
from guardband.kernels.linalg import root
from guardband.kernels.scan import scan_forms
from guardband.kernels.types import GuardOffer, GuardOutcome

__all__ = ["DESK_ROWS", "guard_decide", "write_image"]

DESK_ROWS = 6  # means, upper bounds, scratch, forms, slacks, values over the support
HALVINGS = 60


@kernel
def guard_decide(state, pooled, reports, pooled_reports, anchored, terms, task, offer, desk, turn):
    """Choose for one agent and one round.

    `turn` is (epoch, round, coin). Changes the scratch `desk` and `anchored`; the latter's first
    scalar remembers that the reports contradicted the observations.
    """
    epoch, _, coin = turn
    plain = guard_radius(state, pooled, terms, epoch)
    b = offer.baseline
    if not plain < math.inf:  # numbers that broke down certify nothing
        return GuardOutcome(b, b, b, 1.0, 1.0, True, False, 0.0, plain, plain)
    estimate, beta = state.estimate, plain
    count = reports.scalars[0] + pooled_reports.scalars[0]
    if terms.anchors and anchored.scalars[0] == 0.0 and count > 0.0:
        if anchor(state, pooled, reports, pooled_reports, anchored, terms, plain):
            anchored.scalars[0] = 1.0
        else:
            estimate, beta = anchored, math.sqrt(2.0) * plain
    # Reports that were wrong once are not believed again.
    offer = GuardOffer(
        offer.menu,
        offer.baseline,
        offer.known and anchored.scalars[0] == 0.0,
        offer.baseline_reward,
        offer.pages,
        offer.ids,
        offer.weights,
        offer.covariance,
    )
    mean, upper, form = desk[0], desk[1], desk[3]
    scan_forms(estimate, task.coords, offer.menu, mean, form, desk[2])
    target = 0
    for k in range(offer.menu.shape[1]):
        upper[k] = mean[k] + terms.optimism * beta * math.sqrt(form[k])
        if upper[k] > upper[target]:
            target = k
    image = state.work[1]
    write_image(estimate, offer.menu, offer.baseline, task.coords, image)
    slack = slack_of(estimate, beta, terms, task, offer, desk, image, target)
    if slack >= 0.0 or target == offer.baseline:
        return GuardOutcome(target, target, target, 1.0, 1.0, False, False, slack, beta, plain)
    slacks(estimate, beta, terms, task, offer, desk, image)
    if terms.strict:
        return _strict(estimate, beta, plain, terms, task, offer, desk, state.work[2], turn, target)
    return _policy(estimate, beta, plain, terms, task, offer, desk, image, coin, target)


@kernel
def write_image(estimate, menu, k, coords, out):
    """Write V^-1 psi_k to `out`, at the task's coordinates."""
    for p in range(coords.size):
        i = coords[p]
        total = 0.0
        for q in range(coords.size):
            total += estimate.inverse[i, coords[q]] * menu[coords[q], k]
        out[i] = total


@kernel
def _product(image, menu, k, coords):
    total = 0.0
    for p in range(coords.size):
        total += image[coords[p]] * menu[coords[p], k]
    return total


@kernel
def _strict(estimate, beta, plain, terms, task, offer, desk, image, turn, target):
    """Play a certified action: by a fair coin the most promising, or the most informative one."""
    _, round_number, coin = turn
    upper, form, slack = desk[1], desk[3], desk[4]
    b = offer.baseline
    write_image(estimate, offer.menu, target, task.coords, image)
    best, top, teacher, gain = b, -math.inf, b, -math.inf
    for k in range(offer.menu.shape[1]):
        if k != b and not slack[k] >= 0.0:
            continue
        value = upper[k]
        if k == b and offer.known:
            value = min(value, offer.baseline_reward + terms.tolerance)
        if value > top:
            best, top = k, value
        cross = _product(image, offer.menu, k, task.coords)
        learned = cross * cross * terms.nominal / (1.0 + terms.nominal * form[k])
        if learned > gain:
            teacher, gain = k, learned
    stuck = gain < form[target] / (terms.agents * round_number + 1.0)
    action = best if stuck or not coin < 0.5 else teacher
    propensity = 1.0 if stuck or best == teacher else 0.5
    margin = slack[action]
    return GuardOutcome(action, target, best, 0.0, propensity, True, stuck, margin, beta, plain)


@kernel
def _policy(estimate, beta, plain, terms, task, offer, desk, image, coin, target):
    """Mix the target with a partner so that the mixture clears the floor."""
    mean, form, slack = desk[0], desk[3], desk[4]
    keep, b = 1.0 - task.alpha, offer.baseline
    partner, rho = b, task.alpha
    if offer.known:
        partner = 0
        for k in range(offer.menu.shape[1]):
            if slack[k] > slack[partner]:
                partner = k
        least = -keep * (offer.baseline_reward + terms.tolerance)  # rewards are not negative
        rho = slack[partner] / (slack[partner] - max(slack[target], least))
        if not (slack[partner] >= 0.0 and rho >= task.alpha):
            partner, rho = b, task.alpha
    elif form[target] > form[b]:
        lead, better = 0.0, b
        for k in range(offer.menu.shape[1]):
            cross = _product(image, offer.menu, k, task.coords)
            square = form[k] - 2.0 * cross + form[b]
            sure = mean[k] - mean[b] - beta * root(square)
            if sure > lead:
                better, lead = k, sure
        partner = better
    # Along (1 - r) psi_p + r psi_x - (1 - alpha) psi_b the lower bound is a + r b - beta sqrt(.).
    write_image(estimate, offer.menu, partner, task.coords, desk[5])
    pp, px = form[partner], _product(desk[5], offer.menu, target, task.coords)
    pb = _product(desk[5], offer.menu, b, task.coords)
    xb = _product(image, offer.menu, target, task.coords)
    constant = pp - 2.0 * keep * pb + keep * keep * form[b]
    linear = 2.0 * (px - keep * xb - pp + keep * pb)
    square = pp - 2.0 * px + form[target]
    start, slope = mean[partner] - keep * mean[b], mean[target] - mean[partner]
    line = (start, slope, constant, linear, square)
    margin = _along(line, beta, rho)
    if margin >= 0.0:
        rho = _largest(line, beta, rho)
        margin = _along(line, beta, rho)
    margin = max(0.0, margin)  # rewards are not negative: the mixture is safe without a bound
    if partner == target:  # certified to be worth no less than the baseline itself
        return GuardOutcome(target, target, target, 1.0, 1.0, True, False, margin, beta, plain)
    action = target if coin < rho else partner
    propensity = rho if coin < rho else 1.0 - rho
    return GuardOutcome(action, target, partner, rho, propensity, True, False, margin, beta, plain)


@kernel
def _along(line, beta, r):
    start, slope, constant, linear, square = line
    form = constant + r * (linear + r * square)
    return start + r * slope - beta * root(form)


@kernel
def _largest(line, beta, low):
    """Return the largest r in [low, 1] at which the lower bound is not negative (it is concave)."""
    if _along(line, beta, 1.0) >= 0.0:
        return 1.0
    high = 1.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if _along(line, beta, middle) >= 0.0:
            low = middle
        else:
            high = middle
    return low
