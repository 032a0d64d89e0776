"""The minimum of a linear function over an ellipsoid and a polytope, from first principles.

Slow and exact: the minimiser of v'x + norm(x - th)_V^2 / 2t over a polytope is the projection of
th - t V^-1 v on it, which nonnegative least squares find exactly (Lawson and Hanson, "least
distance programming"); t is bisected until that point is on the ellipsoid's border.
"""

import numpy as np
from scipy.optimize import nnls

TOLERANCE = 1e-8  # a minimum so close below zero is zero


def nearest(point, V, A, b):
    """Return the point of {x: A x >= b} that is nearest to ``point`` in the norm of V, or None."""
    root = np.linalg.inv(np.linalg.cholesky(V)).T  # x = point + root z, norm(z) is the distance
    rows, needed = A @ root, b - A @ point
    scale = max(1.0, np.abs(needed).max())
    E = np.vstack((rows.T, needed / scale))
    f = np.zeros(len(E))
    f[-1] = 1.0
    u, left = nnls(E, f, maxiter=50 * len(b))
    if left < 1e-9:
        return None
    r = E @ u - f
    return point - scale * root @ r[:-1] / r[-1]


def polytope(F, low, high):
    """Return A and b with {x: low <= F x <= high} = {x: A x >= b}; features of length zero out."""
    used = np.abs(F).max(axis=1) > 0.0
    return np.vstack((F[used], -F[used])), np.concatenate((low[used], -high[used]))


def minimum(v, th, V, beta, F, low, high):
    """Return the least v'x with norm(x - th)_V <= beta and low <= F x <= high, or None: no x."""
    A, b = polytope(F, low, high)

    def far(x):
        return np.sqrt(max(0.0, (x - th) @ V @ (x - th)))

    best = nearest(th, V, A, b)
    if best is None or far(best) > beta:
        return None
    pull = np.linalg.solve(V, v)
    unit = beta / max(np.sqrt(v @ pull), 1e-300)
    short, long = 0.0, 1e3 * unit
    end = nearest(th - long * pull, V, A, b)
    if end is not None and far(end) <= beta:
        return float(v @ end)
    for _ in range(100):
        middle = (short + long) / 2.0
        x = nearest(th - middle * pull, V, A, b)
        if x is not None and far(x) <= beta:
            short, best = middle, x
        else:
            long = middle
    return float(v @ best)
