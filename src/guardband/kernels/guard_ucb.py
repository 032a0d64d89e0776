"""Guard-UCB: one decision of one agent."""

from __future__ import annotations

import math

from guardband.kernels._jit import kernel
from guardband.kernels.certify import anchor, guard_radius, slack_of, slacks
from guardband.kernels.linalg import root
from guardband.kernels.scan import scan_forms
from guardband.kernels.types import GuardOutcome, GuardRoundInput

__all__ = ["SCRATCH_ROWS", "guard_decide", "write_image"]

SCRATCH_ROWS = 6  # means, upper bounds, scratch, forms, slacks, values over the support
HALVINGS = 60


@kernel
def guard_decide(
    state, pooled, reports, pooled_reports, anchored, terms, task, given, scratch, turn
):
    """Choose for one agent and one round.

    `turn` is (epoch, round, coin). Changes the scratch `scratch` and `anchored`; the latter's first
    scalar remembers that the reports contradicted the observations.
    """
    epoch, _, coin = turn
    plain = guard_radius(state, pooled, terms, epoch)
    b = given.baseline
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
    given = GuardRoundInput(
        given.menu,
        given.baseline,
        given.known and anchored.scalars[0] == 0.0,
        given.baseline_reward,
        given.contexts,
        given.ids,
        given.weights,
        given.covariance,
    )
    mean, upper, form = scratch[0], scratch[1], scratch[3]
    scan_forms(estimate, task.coords, given.menu, mean, form, scratch[2])
    target = 0
    for k in range(given.menu.shape[1]):
        upper[k] = mean[k] + terms.optimism * beta * math.sqrt(form[k])
        if upper[k] > upper[target]:
            target = k
    image = state.work[1]
    write_image(estimate, given.menu, given.baseline, task.coords, image)
    slack = slack_of(estimate, beta, terms, task, given, scratch, image, target)
    if slack >= 0.0 or target == given.baseline:
        return GuardOutcome(target, target, target, 1.0, 1.0, False, False, slack, beta, plain)
    slacks(estimate, beta, terms, task, given, scratch, image)
    if terms.strict:
        return _strict(
            estimate, beta, plain, terms, task, given, scratch, state.work[2], turn, target
        )
    return _policy(estimate, beta, plain, terms, task, given, scratch, image, coin, target)


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
def _strict(estimate, beta, plain, terms, task, given, scratch, image, turn, target):
    """Play a certified action: by a fair coin the most promising, or the most informative one."""
    _, round_number, coin = turn
    upper, form, slack = scratch[1], scratch[3], scratch[4]
    b = given.baseline
    write_image(estimate, given.menu, target, task.coords, image)
    best, top, teacher, gain = b, -math.inf, b, -math.inf
    for k in range(given.menu.shape[1]):
        if k != b and not slack[k] >= 0.0:
            continue
        value = upper[k]
        if k == b and given.known:
            value = min(value, given.baseline_reward + terms.tolerance)
        if value > top:
            best, top = k, value
        cross = _product(image, given.menu, k, task.coords)
        learned = cross * cross * terms.planned_weight / (1.0 + terms.planned_weight * form[k])
        if learned > gain:
            teacher, gain = k, learned
    stuck = gain < form[target] / (terms.agents * round_number + 1.0)
    action = best if stuck or not coin < 0.5 else teacher
    propensity = 1.0 if stuck or best == teacher else 0.5
    margin = slack[action]
    return GuardOutcome(action, target, best, 0.0, propensity, True, stuck, margin, beta, plain)


@kernel
def _policy(estimate, beta, plain, terms, task, given, scratch, image, coin, target):
    """Mix the target with a partner so that the mixture clears the floor."""
    mean, form, slack = scratch[0], scratch[3], scratch[4]
    keep, b = 1.0 - task.alpha, given.baseline
    partner, rho = b, task.alpha
    if given.known:
        partner = 0
        for k in range(given.menu.shape[1]):
            if slack[k] > slack[partner]:
                partner = k
        least = -keep * (given.baseline_reward + terms.tolerance)  # rewards are not negative
        rho = slack[partner] / (slack[partner] - max(slack[target], least))
        if not (slack[partner] >= 0.0 and rho >= task.alpha):
            partner, rho = b, task.alpha
    elif form[target] > form[b]:
        lead, better = 0.0, b
        for k in range(given.menu.shape[1]):
            cross = _product(image, given.menu, k, task.coords)
            square = form[k] - 2.0 * cross + form[b]
            sure = mean[k] - mean[b] - beta * root(square)
            if sure > lead:
                better, lead = k, sure
        partner = better
    # Along (1 - r) psi_p + r psi_x - (1 - alpha) psi_b the lower bound is a + r b - beta sqrt(.).
    write_image(estimate, given.menu, partner, task.coords, scratch[5])
    pp, px = form[partner], _product(scratch[5], given.menu, target, task.coords)
    pb = _product(scratch[5], given.menu, b, task.coords)
    xb = _product(image, given.menu, target, task.coords)
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
