"""Certificates that use the range of rewards, computed again from their multipliers.

The kernels search for the multipliers; what these prove is computed here from its definition,
see "Proposition 6" of docs/guard-ucb-math.md.
"""

from __future__ import annotations

import math

import numpy as np

from guardband.kernels.bounded import EASE, HOLDS, find_point, least
from guardband.kernels.cuts import ACTION, COUNT, MULTIPLIER, SIGN
from guardband.kernels.scan import scan_forms
from guardband.kernels.state import new_scratch, scores_of
from guardband.kernels.types import Estimate, Floats, Ints, Knowledge, Scores
from guardband.live.client.replay import Rebuilt

__all__ = ["slack_by_range"]


def slack_by_range(
    rebuilt: Rebuilt, estimate: Estimate, beta: float, alpha: float, actions: Ints
) -> dict[int, float]:
    """Return by how much each of `actions` clears the floor, by a set and the range of rewards.

    Multipliers mu >= 0 of the cuts a'theta >= b prove that (psi_k - (1 - alpha) psi_b)'theta is at
    least u'theta-hat - beta ||u||_{V^-1} + sum mu b, u = psi_k - (1 - alpha) psi_b - sum mu a.
    """
    learner, request = rebuilt.learner, rebuilt.request
    known, scores = _known(rebuilt, estimate, beta)
    work = learner.state.work.copy()
    if find_point(known, scores, work) != HOLDS:
        return {}
    proved = {}
    for k in actions:
        v = known.menu[:, k] - (1.0 - alpha) * known.menu[:, request.baseline]
        work[4][:] = v
        least(known, scores, work, 0.0)
        bound = _bound(known, scores, v)
        proved[int(k)] = 0.0 if -EASE <= bound < 0.0 else bound
    return proved


def _known(rebuilt: Rebuilt, estimate: Estimate, beta: float) -> tuple[Knowledge, Scores]:
    """Return the set, and the scores of its menu."""
    learner, request = rebuilt.learner, rebuilt.request
    terms = learner.group.engine.terms
    low, high = -terms.bias, terms.ceiling + terms.bias
    bottom, top = low, high
    if request.reward is not None and terms.tolerance >= 0.0:
        bottom = max(low, request.reward - terms.tolerance)
        top = min(high, request.reward + terms.tolerance)
    coords, b = learner.group.coords[0], request.baseline
    known = Knowledge(estimate, beta, request.menu, coords, low, high, b, bottom, top)
    actions = request.menu.shape[1]
    scores = scores_of.plain(new_scratch(actions), actions)
    scan_forms(estimate, coords, request.menu, scores.mean, scores.form)
    return known, scores


def _bound(known: Knowledge, scores: Scores, v: Floats) -> float:
    """Return what the multipliers in the scores prove about v'theta."""
    cuts = scores.cuts[:, : int(scores.cuts[COUNT, 0])]
    k, sign, mu = cuts[ACTION].astype(int), cuts[SIGN], np.maximum(cuts[MULTIPLIER], 0.0)
    low = np.where(k == known.baseline, known.bottom, known.low)
    high = np.where(k == known.baseline, known.top, known.high)
    ends = np.where(sign > 0.0, low, -high)
    u = v - known.menu[:, k] @ (mu * sign)
    form = max(0.0, float(u @ known.estimate.inverse @ u))
    return float(u @ known.estimate.theta - known.beta * math.sqrt(form) + mu @ ends)
