"""Exploration by directions: the features that the paper's conservative rounds play."""

from __future__ import annotations

import math

from guardband.kernels._jit import kernel
from guardband.kernels.linalg import dot
from guardband.kernels.types import Mix

__all__ = ["blend"]

TASK_VECTOR = int(Mix.TASK_VECTOR)


@kernel
def blend(x, zeta, terms, given, theta, direction):
    """Turn the baseline's features x into (1 - rho) x + rho zeta; return rho zeta'theta.

    All vectors are (d,); `direction` is scratch for zeta, cut to the task and scaled to length 1.
    """
    if terms.mix == TASK_VECTOR:
        for i in range(direction.size):
            direction[i] = 0.0
        for p in range(given.coords.size):
            direction[given.coords[p]] = zeta[given.coords[p]]
        norm = math.sqrt(dot(direction, direction))
        for i in range(direction.size):
            direction[i] /= norm
    else:
        for i in range(direction.size):
            direction[i] = zeta[i]
    for i in range(x.size):
        x[i] = (1.0 - given.rho) * x[i] + given.rho * direction[i]
    return given.rho * dot(direction, theta)
