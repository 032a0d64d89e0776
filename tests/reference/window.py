"""A window over data, from its definition: rows of the last half to whole window, and the set."""

from __future__ import annotations

import math

import numpy as np

__all__ = ["first_round", "radius", "ridge"]


def first_round(now: int, half: int) -> int:
    """Return the oldest round whose data count in round `now`.

    Rounds are cut into pieces of `half`; this piece and the one before it count.
    """
    piece = (now - 1) // half
    return max(piece - 1, 0) * half + 1


def ridge(rows: np.ndarray, rewards: np.ndarray, weight: float, lam: float) -> tuple:
    """Return V and theta-hat of rows (n, d)."""
    V = lam * np.eye(rows.shape[1]) + weight * rows.T @ rows
    return V, np.linalg.solve(V, weight * rows.T @ rewards)


def radius(V: np.ndarray, weight: float, n: int, now: int, half: int, told: dict) -> float:
    """Return the radius of one agent's set by log det, with what the world may have moved by.

    The first window has half of delta, and the k-th delta / (2 k (k - 1)); 6 / pi^2 of each is
    the share of the first epoch.
    """
    k = (now - 1) // half + 1
    share = 0.5 * told["delta"] * 6.0 / math.pi**2 / (k * (k - 1) if k > 1 else 1)
    lam, S = told["theta_bound"] ** -2, told["theta_bound"]
    growth = np.linalg.slogdet(V / lam)[1]
    moved = told["drift"] * (now - first_round(now, half))
    noise = math.sqrt(growth + 2.0 * math.log(1.0 / share))
    return noise + math.sqrt(lam) * S + moved * math.sqrt(weight * n)
