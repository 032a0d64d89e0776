"""Optimal designs: how often to play which action, so that every action is known equally well."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from guardband.kernels.types import Floats

__all__ = ["Design", "optimal_design"]

CUT = 1e-12  # eigenvalues below this share of the largest count as zero


class Design(NamedTuple):
    """A design, and how good it is."""

    shares: Floats  # (J, A): every client's probabilities of its actions
    value: float  # G = sum over clients of max_a z'V^+ z
    optimum: float  # what G falls to: the rank of V = sum of shares z z'
    steps: int


def optimal_design(
    features: Floats,
    alive: np.ndarray | None = None,
    copies: Floats | None = None,
    *,
    tolerance: float = 0.1,
    most_steps: int = 10_000,
) -> Design:
    """Maximise log det of sum_{j,a} shares[j, a] z z', every client on a simplex of its own.

    The multiplicative step shares *= g / (mean of g under shares), g = z'V^+ z, never lowers the
    determinant, a polynomial with coefficients >= 0 in the shares. One client is the ordinary
    G-optimal design, where G falls to d; several have a common V and G falls to its rank.

    Parameters
    ----------
    features
        (J, A, d): the vectors z of every client's actions.
    alive
        (J, A): which of them may be played; None: all.
    copies
        (J,): how many clients there are of each kind; None: one.
    tolerance
        Stops where G <= rank + tolerance.
    most_steps
        Stops here in any case.

    Examples
    --------
    >>> design = optimal_design(np.array([[[1.0, 0.0], [0.0, 1.0], [0.1, 0.1]]]), tolerance=1e-6)
    >>> design.shares.round(3).tolist(), round(design.value, 3)
    ([[0.5, 0.5, 0.0]], 2.0)
    """
    clients, actions, dim = features.shape
    allowed = np.ones((clients, actions), bool) if alive is None else alive
    weight = np.ones(clients) if copies is None else np.asarray(copies, dtype=np.float64)
    shares = allowed / allowed.sum(axis=1, keepdims=True)
    flat = features.reshape(-1, dim)
    steps = 0
    while True:
        V = (flat * (weight[:, None] * shares).reshape(-1, 1)).T @ flat
        inverse = np.linalg.pinv(V, rcond=CUT, hermitian=True)
        g = ((flat @ inverse) * flat).sum(axis=1).reshape(clients, actions)
        mean = (shares * g).sum(axis=1, keepdims=True)
        rank = float((weight * mean[:, 0]).sum())
        value = float((weight * np.where(allowed, g, 0.0).max(axis=1)).sum())
        if value <= rank + tolerance or steps == most_steps:
            return Design(shares, value, rank, steps)
        # A client whose features are all zero learns nothing from any of them.
        np.divide(shares * g, mean, out=shares, where=mean > 0.0)
        steps += 1
