"""Guard-UCB's policy mode: a mixture of the target with a partner that clears the floor."""

from __future__ import annotations

import math

from guardband.kernels._jit import kernel
from guardband.kernels.bounded import EASE, least
from guardband.kernels.linalg import root
from guardband.kernels.scan import product, write_image
from guardband.kernels.types import Outcome, Reason

__all__ = ["mix", "mixture_of", "raise_chance"]

HALVINGS = 60
MIXTURES = 20  # mixtures that are tried
CLOSE = 1e-6  # smaller changes of the target's chance do not matter
CAREFUL = int(Reason.CAREFUL)


@kernel
def mix(estimate, beta, plain, terms, given, scores, image, other, target):
    """Mix the target with a partner so that the mixture clears the floor.

    `image` is V^-1 psi_b; `other` is scratch for that of the partner.
    """
    mean, form, slack = scores.mean, scores.form, scores.slack
    keep, b = 1.0 - given.alpha, given.baseline
    partner, rho = b, given.alpha
    if given.known:
        partner = 0
        for k in range(given.menu.shape[1]):
            if slack[k] > slack[partner]:
                partner = k
        worst = -keep * (given.baseline_reward + terms.tolerance)  # rewards are not negative
        rho = slack[partner] / (slack[partner] - max(slack[target], worst))
        if not (slack[partner] >= 0.0 and rho >= given.alpha):
            partner, rho = b, given.alpha
    elif form[target] > form[b]:
        lead, better = 0.0, b
        for k in range(given.menu.shape[1]):
            cross = product(image, given.menu, k, given.coords)
            square = form[k] - 2.0 * cross + form[b]
            sure = mean[k] - mean[b] - beta * root(square)
            if sure > lead:
                better, lead = k, sure
        partner = better
    return mixture_of(estimate, beta, plain, given, scores, image, other, target, partner, rho)


@kernel
def mixture_of(estimate, beta, plain, given, scores, image, other, target, partner, rho):
    """Mix the target with a partner, with the largest certified chance of at least rho.

    At rho itself the mixture must clear the floor. `image` and `other` are as for `mix`.
    """
    mean, form = scores.mean, scores.form
    keep, b = 1.0 - given.alpha, given.baseline
    # Along (1 - r) psi_p + r psi_x - (1 - alpha) psi_b the lower bound is a + r b - beta sqrt(.).
    write_image(estimate, given.menu, partner, given.coords, other)
    pp, px = form[partner], product(other, given.menu, target, given.coords)
    pb = product(other, given.menu, b, given.coords)
    xb = product(image, given.menu, target, given.coords)
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
        partner, rho = target, 1.0
    action = target if given.coin < rho else partner
    propensity = rho if given.coin < rho else 1.0 - rho
    return Outcome(
        action,
        True,
        CAREFUL,
        beta,
        plain,
        True,
        target,
        partner,
        rho,
        propensity,
        margin,
        0.0,
        False,
    )


@kernel
def raise_chance(known, given, scores, work, outcome):
    """Return the outcome with the largest chance of the target that is certified.

    The bound of (1 - r) psi_p + r psi_x - (1 - alpha) psi_b is concave in r, and the minimiser at
    one r bounds it from above by a line: Newton's method goes down from r = 1.
    """
    target, partner, keep = outcome.target, outcome.partner, 1.0 - given.alpha
    chance, margin, r = outcome.chance, outcome.margin, 1.0
    for _ in range(MIXTURES):
        for p in range(given.coords.size):
            i = given.coords[p]
            mixed = (1.0 - r) * given.menu[i, partner] + r * given.menu[i, target]
            work[4][i] = mixed - keep * given.menu[i, given.baseline]
        bound, start, slope = least(known, scores, work, math.inf), 0.0, 0.0
        for p in range(given.coords.size):
            i = given.coords[p]
            start += work[2][i] * (given.menu[i, partner] - keep * given.menu[i, given.baseline])
            slope += work[2][i] * (given.menu[i, target] - given.menu[i, partner])
        zero = start / -slope if slope < 0.0 else r
        if bound >= -EASE:
            chance, margin = max(chance, zero if abs(zero - r) < CLOSE else r), 0.0
        if bound >= -EASE or not chance + CLOSE < zero < r:
            break
        r = zero
    action = target if given.coin < chance else partner
    propensity = chance if given.coin < chance else 1.0 - chance
    return Outcome(
        action,
        True,
        CAREFUL,
        known.beta,
        outcome.plain,
        True,
        target,
        partner,
        chance,
        propensity,
        margin,
        0.0,
        False,
    )


@kernel
def _along(line, beta, r):
    """Return start + r slope - beta sqrt(constant + r linear + r^2 square) of a line's five."""
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
