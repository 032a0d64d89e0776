"""Which actions may be played: the gate on lambda_min(V) and the pruned action set.

lambda_min(V) never falls, and never grows by more than the trace that was added since it was last
computed. Most tests are decided by these two bounds; it is computed where they leave a doubt.
"""

from __future__ import annotations

import math

from guardband.kernels._jit import kernel
from guardband.kernels.ridge import exact_eigenvalue
from guardband.kernels.types import Gate, Reason, Rule

__all__ = [
    "best_clear",
    "best_pruned",
    "eigenvalue_bounds",
    "floor_of",
    "gate_need",
    "gate_open",
    "in_pruned_set",
    "mark_pruned",
]

UNKNOWN = int(Rule.UNKNOWN)
PRINTED, GAP, NONE, SHUT = int(Gate.PRINTED), int(Gate.GAP), int(Gate.NONE), int(Gate.SHUT)
NO_BASELINE_REWARD = int(Reason.NO_BASELINE_REWARD)

# Bounds are widened by this share of the trace, far above the rounding of an exact eigenvalue.
ROUNDING = 1e-12


@kernel
def eigenvalue_bounds(estimate):
    """Return two numbers between which lambda_min(V) lies.

    last <= lambda_min(V) <= min(last + trace V - trace then, trace V / d), with the eigenvalue and
    the trace of when it was last computed; both are widened for rounding.
    """
    trace, last, then = estimate.scalars[1], estimate.scalars[2], estimate.scalars[3]
    doubt = ROUNDING * trace
    high = min(last + (trace - then), trace / estimate.theta.size)
    return last - doubt, high + doubt


@kernel
def gate_need(terms, given, beta):
    """Return what lambda_min(V) must reach; infinity where nothing would do.

    Known baseline: (2 L beta / (kappa_l + alpha r_b))^2, where the paper has kappa_l = 0 and the
    gap gate the gap; unknown: (2 (2 - alpha) L beta / (alpha r_l))^2 (eq. UBR_2), both added
    likewise.
    """
    alpha = given.alpha
    if terms.gate == NONE:
        return 0.0
    if terms.gate == SHUT:
        return math.inf
    if terms.rule == UNKNOWN:
        margin = alpha * terms.reward_floor
        reach = 2.0 * (2.0 - alpha) * terms.feature_bound * beta
    else:
        margin = alpha * given.baseline_reward
        reach = 2.0 * terms.feature_bound * beta
    margin += terms.kappa
    if terms.gate == GAP:
        margin += given.gap
    if not margin > 0.0:
        return math.inf
    ratio = reach / margin
    return ratio * ratio


@kernel
def gate_open(state, pooled, ridge, need):
    """Tell whether lambda_min(V) >= need."""
    low, high = eigenvalue_bounds(state.estimate)
    if low >= need:
        return True
    if not high >= need:
        return False
    return exact_eigenvalue(state, pooled, ridge) >= need


@kernel
def floor_of(terms, given, upper):
    """Return (1 - alpha) times the baseline's reward, or times its upper bound where unknown.

    `upper` (K,) are the upper bounds of all actions.
    """
    if terms.rule == UNKNOWN:
        return (1.0 - given.alpha) * upper[given.baseline]
    return (1.0 - given.alpha) * given.baseline_reward


@kernel
def best_pruned(state, pooled, terms, beta, floor, scores):
    """Return the action of the pruned set with the largest upper bound, or -1 if it is empty.

    In it are the actions with psi'theta-hat >= L beta / sqrt(lambda_min(V)) + floor (eq. prun2 and,
    with the unknown baseline's floor, UBR_1); ties go to the lowest index.
    """
    mean, upper = scores.mean, scores.upper
    reach = terms.feature_bound * beta
    low, high = eigenvalue_bounds(state.estimate)
    surely = reach / math.sqrt(low) + floor if low > 0.0 else math.inf
    hardly = reach / math.sqrt(high) + floor
    best = _best_above(mean, upper, -math.inf)
    if best >= 0 and mean[best] >= surely:
        return best  # the most promising action of all is in it
    best = _best_above(mean, upper, surely)
    doubt = False
    for k in range(mean.size):
        if hardly <= mean[k] < surely and (best < 0 or upper[k] >= upper[best]):
            doubt = True  # whether k is in it would change the choice
            break
    if doubt:
        least = exact_eigenvalue(state, pooled, terms.ridge)
        best = _best_above(mean, upper, reach / math.sqrt(least) + floor)
    return best


@kernel
def _best_above(mean, upper, threshold):
    """Return the lowest index of the largest upper bound among means >= threshold, or -1.

    `mean` and `upper` are (K,).
    """
    best = -1
    top = -math.inf
    for k in range(mean.size):
        if upper[k] > top and mean[k] >= threshold:
            best, top = k, upper[k]
    return best


@kernel
def in_pruned_set(state, pooled, terms, beta, floor, scores, k):
    """Tell whether action k is in the pruned set, as `best_pruned` defines it."""
    mean, reach = scores.mean[k], terms.feature_bound * beta
    low, high = eigenvalue_bounds(state.estimate)
    if low > 0.0 and mean >= reach / math.sqrt(low) + floor:
        return True
    if mean < reach / math.sqrt(high) + floor:
        return False
    return mean >= reach / math.sqrt(exact_eigenvalue(state, pooled, terms.ridge)) + floor


@kernel
def best_clear(score, scores, floor):
    """Return the action of the largest score whose lower bound clears the floor, or -1; score (K,).

    The lower bound is that of the whole ellipsoid, psi'theta-hat - beta norm(psi)_{V^-1}, as far
    below the mean as the upper bound is above; ties go to the lowest index.
    """
    mean, upper = scores.mean, scores.upper
    best = -1
    top = -math.inf
    for k in range(mean.size):
        if score[k] > top and 2.0 * mean[k] - upper[k] >= floor:
            best, top = k, score[k]
    return best


@kernel
def mark_pruned(state, pooled, terms, beta, floor, scores, allowed):
    """Set allowed (K,) for the actions of the pruned set, see `best_pruned`; return how many."""
    mean = scores.mean
    reach = terms.feature_bound * beta
    low, high = eigenvalue_bounds(state.estimate)
    surely = reach / math.sqrt(low) + floor if low > 0.0 else math.inf
    hardly = reach / math.sqrt(high) + floor
    for k in range(mean.size):
        if hardly <= mean[k] < surely:
            least = exact_eigenvalue(state, pooled, terms.ridge)
            surely = reach / math.sqrt(least) + floor
            break
    count = 0
    for k in range(mean.size):
        allowed[k] = mean[k] >= surely
        count += allowed[k]
    return count
