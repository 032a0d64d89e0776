"""DiSC-UCB and related rules: one decision of one agent, and its description."""

from __future__ import annotations

import math

from guardband.kernels._jit import kernel
from guardband.kernels.certify import guard_radius
from guardband.kernels.pruning import (
    best_clear,
    best_pruned,
    floor_of,
    gate_need,
    gate_open,
    mark_pruned,
)
from guardband.kernels.ridge import radius
from guardband.kernels.scan import argmax, scan
from guardband.kernels.types import Certificate, Gate, Mix, Outcome, Reason, Rule

__all__ = ["choose", "conserve", "describe", "optimism", "plays", "why_shut"]

UNKNOWN, FREE = int(Rule.UNKNOWN), int(Rule.FREE)
BASELINE, CLEAR = int(Rule.BASELINE), int(Rule.CLEAR)
ACTION, SHUT = int(Mix.ACTION), int(Gate.SHUT)
R_LEARNED, R_GATE, R_EMPTY = int(Reason.LEARNED), int(Reason.GATE), int(Reason.EMPTY)
R_NOTHING, R_NO_FLOOR = int(Reason.NO_BASELINE_REWARD), int(Reason.NO_REWARD_FLOOR)
R_FREE, R_ALWAYS = int(Reason.FREE), int(Reason.ALWAYS)
NO_CERTIFICATE, BY_DEFINITION = int(Certificate.NONE), int(Certificate.BASELINE)
BY_PRUNED_SET, BY_MIXTURE = int(Certificate.PRUNED_SET), int(Certificate.MIXTURE)


@kernel
def plays(k, conservative, reason, beta, scanned):
    """Return the outcome of a rule that plays action k without a coin."""
    return Outcome(k, conservative, reason, beta, beta, scanned, k, k, 1.0, 1.0, 0.0, 0.0, False)


@kernel
def choose(state, shared, terms, given, scores):
    """Choose for one agent and one round (Algorithm 1, lines 6 to 17).

    If lambda_min(V) reaches `gate_need`: the largest psi'theta-hat + beta norm(psi)_{V^-1} of the
    pruned set, see `best_pruned`, or of the actions that clear the floor, see `best_clear`.

    `shared` is the state of what all agents pooled. Changes nothing but the scratch `scores` and
    what is remembered of lambda_min(V).
    """
    pooled = shared.own
    if terms.rule == BASELINE:
        return plays(given.baseline, True, R_ALWAYS, 0.0, False)
    if terms.weighted:
        beta = guard_radius(state, pooled, terms, given.epoch)
    else:
        beta = radius(state.estimate, terms)
    if terms.rule == FREE:
        scan(state.estimate, beta, given.coords, given.menu, scores)
        return plays(argmax(scores.upper), False, R_FREE, beta, True)
    reason = why_shut(state, pooled, terms, given, beta)
    if reason < 0:
        scan(state.estimate, beta, given.coords, given.menu, scores)
        floor = floor_of(terms, given, scores.upper)
        if terms.rule == CLEAR:
            best = best_clear(scores.upper, scores, floor)
        else:
            best = best_pruned(state, pooled, terms, beta, floor, scores)
        if best >= 0:
            return plays(best, False, R_LEARNED, beta, True)
        reason = R_EMPTY
    return conserve(state.estimate, beta, terms, given, scores, reason)


@kernel
def why_shut(state, pooled, terms, given, beta):
    """Return why an agent may not leave the baseline, whatever is on offer; -1: it may."""
    if terms.gate == SHUT:
        return R_NO_FLOOR
    if terms.rule != UNKNOWN and not given.baseline_reward > 0.0:
        return R_NOTHING
    need = gate_need(terms, given, beta)
    return -1 if gate_open(state, pooled, terms.ridge, need) else R_GATE


@kernel
def optimism(estimate, beta, terms, given, scores):
    """Choose the largest upper bound at a given radius, of all or of those that clear the floor.

    The bounds are psi'theta-hat +- beta norm(psi)_{V^-1}, see `scan` and `best_clear`.
    """
    scan(estimate, beta, given.coords, given.menu, scores)
    if terms.rule == FREE:
        return plays(argmax(scores.upper), False, R_FREE, beta, True)
    reason = R_NOTHING
    if given.baseline_reward > 0.0:
        best = best_clear(scores.upper, scores, floor_of(terms, given, scores.upper))
        if best >= 0:
            return plays(best, False, R_LEARNED, beta, True)
        reason = R_EMPTY
    return conserve(estimate, beta, terms, given, scores, reason)


@kernel
def conserve(estimate, beta, terms, given, scores, reason):
    """Play safe: the baseline; where actions are mixed, with probability rho the optimistic one."""
    b = given.baseline
    if terms.mix == ACTION and given.coin < given.rho:
        scan(estimate, beta, given.coords, given.menu, scores)
        k = argmax(scores.upper)
        return Outcome(
            k, True, reason, beta, beta, True, k, b, given.rho, given.rho, 0.0, 0.0, False
        )
    return plays(b, True, reason, beta, reason == R_EMPTY)


@kernel
def describe(state, shared, terms, given, scores, outcome, allowed):
    """Say what a decision means; sets `allowed` (K,) to the pruned set.

    Returns the width of the played action's confidence interval, the floor (NaN: there is none),
    the probability with which it was played, its margin over the floor, the certificate of what is
    promised, and whether the action itself is certified, or needs no certificate.
    """
    if not outcome.scanned:
        scan(state.estimate, outcome.beta, given.coords, given.menu, scores)
    k, b = outcome.action, given.baseline
    width = scores.upper[k] - scores.mean[k]
    if terms.rule in (FREE, BASELINE):
        for j in range(allowed.size):
            allowed[j] = terms.rule == FREE or j == b
        certificate = NO_CERTIFICATE if terms.rule == FREE else BY_DEFINITION
        return width, math.nan, 1.0, math.nan, certificate, terms.rule == FREE
    floor = floor_of(terms, given, scores.upper)
    mark_pruned(state, shared.own, terms, outcome.beta, floor, scores, allowed)
    propensity = 1.0
    if outcome.conservative and terms.mix == ACTION and argmax(scores.upper) != b:
        propensity = given.rho if k != b else 1.0 - given.rho
    certificate = BY_PRUNED_SET
    if outcome.conservative:
        certificate = BY_MIXTURE if given.rho > 0.0 else BY_DEFINITION
    margin = scores.mean[k] - width - floor
    return width, floor, propensity, margin, certificate, not outcome.conservative
