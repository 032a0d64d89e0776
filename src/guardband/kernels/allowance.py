"""Plays that are not certified, and what they are charged with.

Strict mode tries an action where nothing certified teaches about it; policy mode draws one by a
coin. The charge is the most that the play can cost by what is known before it, and all charges of
an agent together stay within its allowance. docs/guard-ucb-math.md has the proofs.
"""

from __future__ import annotations

import math

from guardband.kernels._jit import kernel
from guardband.kernels.bounded import least
from guardband.kernels.certify import lead_of
from guardband.kernels.types import Outcome, Reason

__all__ = ["charge_exploration", "explored", "most_lost", "try_target"]

TRIAL, SPENT = int(Reason.TRIAL), int(Reason.SPENT)


@kernel
def most_lost(known, holds, given, scores, work, k, keep):
    """Return an upper bound of (keep psi_b - psi_k)'theta over all that is known, at least 0.

    `holds` tells whether a point of the set was found: only then multipliers prove anything.
    Whatever else is known, the bound is at most keep times the baseline's largest reward less the
    smallest reward of k.
    """
    if holds:
        for p in range(given.coords.size):
            i = given.coords[p]
            work[4][i] = given.menu[i, k] - keep * given.menu[i, given.baseline]
        sure = least(known, scores, work, math.inf)
    else:
        sure = lead_of(known.estimate, known.beta, given, k, keep)
    lost = keep * known.top - known.low
    if sure > -lost:  # not where it is NaN
        lost = -sure
    return lost if lost > 0.0 else 0.0


@kernel
def try_target(state, known, holds, terms, given, scores, outcome):
    """Return a trial of the target, if the allowance covers it and waiting does not pay.

    As long as the baseline is what would be played, which teaches about itself and costs nothing,
    a trial waits until the baseline's half width is at most half of its estimated reward, and half
    of the target's half width: an unknown baseline makes every charge larger than it need be.
    """
    k, b, mean, form = outcome.target, given.baseline, scores.mean, scores.form
    width, other = known.beta * math.sqrt(form[b]), known.beta * math.sqrt(form[k])
    if outcome.action == b and not given.known and not 2.0 * width <= min(mean[b], other):
        return outcome
    charge = most_lost(known, holds, given, scores, state.work, k, 1.0 - given.alpha)
    if not state.spent[0] + charge <= terms.allowance:
        return outcome
    return Outcome(
        k, True, TRIAL, outcome.beta, outcome.plain, True, k, k, 1.0, 1.0, -charge, charge, False
    )


@kernel
def charge_exploration(state, known, holds, terms, given, scores, outcome):
    """Return a mixture with the charge of what was drawn; the reason SPENT: it must not be played.

    Drawing the target may cost psi_b'theta - psi_x'theta; the partner is certified and costs
    nothing. The mixture is refused before the coin is looked at.
    """
    k, charge, reason = outcome.target, 0.0, outcome.reason
    if outcome.partner != k:
        lost = most_lost(known, holds, given, scores, state.work, k, 1.0)
        if not state.spent[0] + lost <= terms.allowance:
            reason = SPENT
        elif outcome.action == k:
            charge = lost
    return Outcome(
        outcome.action,
        outcome.conservative,
        reason,
        outcome.beta,
        outcome.plain,
        outcome.scanned,
        k,
        outcome.partner,
        outcome.chance,
        outcome.propensity,
        outcome.margin,
        charge,
        False,
    )


@kernel
def explored(outcome):
    """Tell whether what is played is not certified: a trial, or a target that a coin drew."""
    drawn = 0.0 < outcome.chance < 1.0 and outcome.action == outcome.target != outcome.partner
    return drawn or outcome.reason == TRIAL
