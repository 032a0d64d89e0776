"""One decision of one agent: the algorithm, for the simulator and for live agents alike."""

from __future__ import annotations

from guardband.core._jit import kernel
from guardband.core.guard import best_kept, floor_of, gate_need, gate_open
from guardband.core.ridge import radius
from guardband.core.scan import scan
from guardband.core.types import Gate, Mix, Outcome, Reason, Rule

__all__ = ["argmax", "decide"]

KNOWN, UNKNOWN = int(Rule.KNOWN), int(Rule.UNKNOWN)
FREE, BASELINE = int(Rule.FREE), int(Rule.BASELINE)
ACTION, SHUT = int(Mix.ACTION), int(Gate.SHUT)
R_LEARNED, R_GATE, R_EMPTY = int(Reason.LEARNED), int(Reason.GATE), int(Reason.EMPTY)
R_NOTHING, R_NO_FLOOR = int(Reason.NO_BASELINE_REWARD), int(Reason.NO_REWARD_FLOOR)
R_FREE, R_ALWAYS = int(Reason.FREE), int(Reason.ALWAYS)


@kernel
def decide(state, pooled, terms, task, offer, desk, coin):
    """Choose for one agent and one round (Algorithm 1, lines 6 to 17).

    Changes nothing but the scratch `desk` (3, K) and what is remembered of lambda_min(V).
    """
    if terms.rule == BASELINE:
        return Outcome(offer.baseline, True, False, R_ALWAYS, 0.0, False)
    beta = radius(state.estimate, terms)
    if terms.rule == FREE:
        scan(state.estimate, beta, task.coords, offer.menu, desk)
        return Outcome(argmax(desk[1]), False, False, R_FREE, beta, True)
    if terms.gate == SHUT:
        reason = R_NO_FLOOR
    elif terms.rule == KNOWN and not offer.baseline_reward > 0.0:
        reason = R_NOTHING
    elif not gate_open(state, pooled, terms.ridge, gate_need(terms, task.alpha, offer, beta)):
        reason = R_GATE
    else:
        scan(state.estimate, beta, task.coords, offer.menu, desk)
        floor = floor_of(terms, task.alpha, offer, desk[1])
        best = best_kept(state, pooled, terms, beta, floor, desk)
        if best >= 0:
            return Outcome(best, False, False, R_LEARNED, beta, True)
        reason = R_EMPTY
    if terms.mix == ACTION and coin < task.rho:
        scan(state.estimate, beta, task.coords, offer.menu, desk)
        best = argmax(desk[1])
        return Outcome(best, True, best != offer.baseline, reason, beta, True)
    return Outcome(offer.baseline, True, False, reason, beta, reason == R_EMPTY)


@kernel
def argmax(values):
    """Return the lowest index of the largest value."""
    best, top = 0, values[0]
    for k in range(1, values.size):
        if values[k] > top:
            best, top = k, values[k]
    return best
