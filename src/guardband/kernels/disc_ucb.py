"""One decision of one agent: the algorithm, for the simulator and for live agents alike."""

from __future__ import annotations

from guardband.kernels._jit import kernel
from guardband.kernels.pruning import best_clear, best_pruned, floor_of, gate_need, gate_open
from guardband.kernels.ridge import radius
from guardband.kernels.scan import scan
from guardband.kernels.types import Gate, Mix, Outcome, Reason, Rule

__all__ = ["argmax", "conserve", "decide", "optimism"]

UNKNOWN, FREE = int(Rule.UNKNOWN), int(Rule.FREE)
BASELINE, CLEAR = int(Rule.BASELINE), int(Rule.CLEAR)
ACTION, SHUT = int(Mix.ACTION), int(Gate.SHUT)
R_LEARNED, R_GATE, R_EMPTY = int(Reason.LEARNED), int(Reason.GATE), int(Reason.EMPTY)
R_NOTHING, R_NO_FLOOR = int(Reason.NO_BASELINE_REWARD), int(Reason.NO_REWARD_FLOOR)
R_FREE, R_ALWAYS = int(Reason.FREE), int(Reason.ALWAYS)


@kernel
def decide(state, pooled, terms, task, given, scratch, coin):
    """Choose for one agent and one round (Algorithm 1, lines 6 to 17).

    Changes nothing but the scratch `scratch` (3, K) and what is remembered of lambda_min(V).
    """
    if terms.rule == BASELINE:
        return Outcome(given.baseline, True, False, R_ALWAYS, 0.0, False)
    beta = radius(state.estimate, terms)
    if terms.rule == FREE:
        scan(state.estimate, beta, task.coords, given.menu, scratch)
        return Outcome(argmax(scratch[1]), False, False, R_FREE, beta, True)
    if terms.gate == SHUT:
        reason = R_NO_FLOOR
    elif terms.rule != UNKNOWN and not given.baseline_reward > 0.0:
        reason = R_NOTHING
    elif not gate_open(state, pooled, terms.ridge, gate_need(terms, task.alpha, given, beta)):
        reason = R_GATE
    else:
        scan(state.estimate, beta, task.coords, given.menu, scratch)
        floor = floor_of(terms, task.alpha, given, scratch[1])
        if terms.rule == CLEAR:
            best = best_clear(scratch[1], scratch, floor)
        else:
            best = best_pruned(state, pooled, terms, beta, floor, scratch)
        if best >= 0:
            return Outcome(best, False, False, R_LEARNED, beta, True)
        reason = R_EMPTY
    return conserve(state.estimate, beta, terms, task, given, scratch, coin, reason)


@kernel
def optimism(estimate, beta, terms, task, given, scratch, coin):
    """Choose the largest upper bound at a given radius, of all or of those that clear the floor."""
    scan(estimate, beta, task.coords, given.menu, scratch)
    if terms.rule == FREE:
        return Outcome(argmax(scratch[1]), False, False, R_FREE, beta, True)
    reason = R_NOTHING
    if given.baseline_reward > 0.0:
        best = best_clear(scratch[1], scratch, floor_of(terms, task.alpha, given, scratch[1]))
        if best >= 0:
            return Outcome(best, False, False, R_LEARNED, beta, True)
        reason = R_EMPTY
    return conserve(estimate, beta, terms, task, given, scratch, coin, reason)


@kernel
def conserve(estimate, beta, terms, task, given, scratch, coin, reason):
    """Play safe: the baseline, or what a coin puts in its place where actions are mixed."""
    if terms.mix == ACTION and coin < task.rho:
        scan(estimate, beta, task.coords, given.menu, scratch)
        best = argmax(scratch[1])
        return Outcome(best, True, best != given.baseline, reason, beta, True)
    return Outcome(given.baseline, True, False, reason, beta, reason == R_EMPTY)


@kernel
def argmax(values):
    """Return the lowest index of the largest value."""
    best, top = 0, values[0]
    for k in range(1, values.size):
        if values[k] > top:
            best, top = k, values[k]
    return best
