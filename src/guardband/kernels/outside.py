"""Whether the true parameter is in an agent's confidence set, which no agent knows."""

from __future__ import annotations

from guardband.kernels._jit import kernel
from guardband.kernels.leave_out import seen_without, sums_seen

__all__ = ["outside", "outside_all", "squared_distance"]


@kernel
def outside(state, pooled, ridge, theta, beta):
    """Tell whether ||theta-hat - theta||_V > beta for the true theta (d,), unknown to agents."""
    estimate, total = state.estimate, 0.0
    for i in range(theta.size):
        off = estimate.theta[i] - theta[i]
        total += off * off
    if estimate.scalars[1] * total <= beta * beta:
        return False  # no eigenvalue of V exceeds its trace
    return squared_distance(state, pooled, ridge, theta) > beta * beta


@kernel
def squared_distance(state, pooled, ridge, theta):
    """Return ||theta-hat - theta||_V^2, V = ridge I + W_pooled + W_own."""
    estimate, total = state.estimate, 0.0
    for i in range(theta.size):
        off = estimate.theta[i] - theta[i]
        total += ridge * off * off
        for j in range(theta.size):
            entry = state.own.gram[i, j] + pooled.gram[i, j]
            total += entry * off * (estimate.theta[j] - theta[j])
    return total


@kernel
def outside_all(state, shared, left, m, ridge, theta):
    """Tell whether theta is outside all sets that leave out one other task."""
    for j in range(left.sums.scalars.shape[0]):
        if j != m:
            seen = seen_without(state, left, m, j)
            beta = seen.estimate.scalars[2]
            if not outside(seen, sums_seen(state, shared, left, j), ridge, theta, beta):
                return False
    return True
