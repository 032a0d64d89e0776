"""Estimates that the server makes from the pooled sums, for display: theta, intervals, outliers.

No decision depends on them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from guardband.kernels.types import Floats
from guardband.live.protocol.space import SpaceSettings
from guardband.live.protocol.sums import Sums, add_sums, difference, forget, matrix_of

__all__ = ["ENOUGH", "ThetaEstimate", "estimate_of", "heterogeneity"]

ENOUGH = 30  # observations, and as many as there are features, on either side of a comparison


class ThetaEstimate(NamedTuple):
    """The ridge estimate from one total, and its confidence set."""

    theta: Floats  # (d,)
    inverse: Floats  # (d, d): V^-1, V = ridge I + W
    logdet: float  # log det(V / ridge)
    beta: float  # ||theta - theta*||_V <= beta with probability 1 - delta

    @property
    def halfwidth(self) -> Floats:
        """Half the width of the confidence set along each feature."""
        return self.beta * np.sqrt(np.maximum(np.diag(self.inverse), 0.0))


def estimate_of(space: SpaceSettings, total: Sums, delta: float | None = None) -> ThetaEstimate:
    """Return the estimate from a total, at the space's delta or another."""
    d, level = space.dim, space.delta if delta is None else delta
    ridge = space.penalty
    matrix = matrix_of(total)
    values, vectors = np.linalg.eigh(matrix[:d, :d])
    values = ridge + np.maximum(values, 0.0)
    inverse = (vectors / values) @ vectors.T
    logdet = float(np.log(values / ridge).sum())
    theta = inverse @ matrix[:d, d]
    growth = logdet
    if total.by_variance:  # G = H + U'V^-1 U in place of log det
        growth = max(0.0, total.surprise + float(theta @ matrix[:d, d]))
    return ThetaEstimate(theta, inverse, logdet, space.learner().beta(growth, level))


def heterogeneity(space: SpaceSettings, by_task: Mapping[str, Sums]) -> dict[str, float]:
    """Return, by task, how far its theta is from that of all others; above 1 they differ.

    T = (a - b)'(A^-1 + B^-1)^-1 (a - b) over (beta_a + beta_b)^2, with a, A from the task's own
    data and b, B from all others'. If both learn the same theta, each estimate lies within
    its radius, and (A^-1 + B^-1)^-1 is below A and below B, so the ratio is at most 1 with
    probability 1 - 2 delta. Tasks with too little data on either side are left out.
    """
    enough = max(ENOUGH, space.dim)
    everything = add_sums(space.dim, by_task.values())
    ratios = {}
    for task, sums in by_task.items():
        own, rest = forget(sums, everything.half), difference(everything, sums)
        if min(own.kept, rest.kept) < enough:
            continue
        mine, theirs = estimate_of(space, own), estimate_of(space, rest)
        gap = mine.theta - theirs.theta
        try:
            distance = float(gap @ np.linalg.solve(mine.inverse + theirs.inverse, gap))
        except np.linalg.LinAlgError:
            continue
        ratios[task] = distance / (mine.beta + theirs.beta) ** 2
    return {task: ratio for task, ratio in ratios.items() if math.isfinite(ratio)}
