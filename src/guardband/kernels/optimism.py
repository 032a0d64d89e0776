"""How Guard-UCB compares actions before it certifies any: an empirical share of their widths."""

from __future__ import annotations

import math

from guardband.kernels._jit import kernel
from guardband.kernels.scan import argmax
from guardband.kernels.types import OPTIMISM, REGRET_WIDTHS

__all__ = ["aim", "optimism_of"]


@kernel
def optimism_of(state, pooled, terms):
    """Return gamma, the share of the width that counts when actions are compared.

    Unless it is stated, OPTIMISM sqrt((d + sum w (y - psi'theta-hat)^2 + ridge ||theta-hat||^2) /
    n) over the n observations, at most OPTIMISM: residuals that are smaller than the weights allow
    call for less exploration.
    """
    if not math.isnan(terms.optimism):
        return terms.optimism
    own, theta = state.own, state.estimate.theta
    residuals = own.scalars[1] + pooled.scalars[1]  # sum w y^2 - U'theta-hat
    for i in range(theta.size):
        residuals -= (own.moment[i] + pooled.moment[i]) * theta[i]
    found, n = theta.size + max(residuals, 0.0), own.scalars[0] + pooled.scalars[0]
    return OPTIMISM * math.sqrt(found / n) if found < n else OPTIMISM


@kernel
def aim(scores, beta, gamma):
    """Return the target, the most promising action; write to `upper` what actions are compared by.

    That is mean + gamma beta sqrt(form). Its best action may lose the largest upper bound less its
    own lower bound, mean -+ beta sqrt(form); if that exceeds REGRET_WIDTHS beta sqrt(form), actions
    are compared by their upper bounds.
    """
    mean, upper, full = scores.mean, scores.upper, scores.part
    for k in range(upper.size):
        width = beta * math.sqrt(scores.form[k])
        upper[k] = mean[k] + gamma * width
        full[k] = mean[k] + width
    target, beyond = argmax(upper), 0
    limit = mean[target] + (REGRET_WIDTHS - 1.0) * beta * math.sqrt(scores.form[target])
    for k in range(upper.size):  # a count is a vector instruction, the search for a maximum is not
        beyond += full[k] > limit
    if beyond == 0:
        return target
    for k in range(upper.size):
        upper[k] = full[k]
    return argmax(upper)
