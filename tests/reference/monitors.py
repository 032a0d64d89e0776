"""Slow, plain NumPy reference of the monitors, from their definitions and from raw data.

It keeps no sums and no inverses: every e-value is computed anew from all observations so far, by
``solve`` and ``slogdet``; mixtures over predictors and over starts are summed out as they are
defined.
"""

import math

import numpy as np

CELLS, WANDERING = 256, 1e-4
BETS, STAKES = (0.5, 1.0, 2.0), (0.1, 0.3, 0.9)


def normal(y, mean, variance, w):
    """Return the mean of exp(-w (y - m)^2 / 2) over m ~ N(mean, variance)."""
    return math.exp(-0.5 * w * (y - mean) ** 2 / (1 + w * variance)) / math.sqrt(1 + w * variance)


def ridge(xs, ys, ws, lam):
    """Return V and theta-hat of some observations."""
    V = lam * np.eye(xs.shape[1]) + (xs.T * ws) @ xs
    return V, np.linalg.solve(V, xs.T @ (ws * ys))


def cell(x):
    """Return which cell features fall into, and their mark in it."""
    u = 1e5 * sum(v * math.sqrt(2.0 + i) for i, v in enumerate(x))
    u -= math.floor(u)
    return min(int(u * CELLS), CELLS - 1), u


def predictions(xs, ys, ws, t, lam, bound):
    """Return (mean, variance) of the reward t by the three predictors, from those before it."""
    x, w = xs[t], ws[t]
    V, theta = ridge(xs[:t], ys[:t], ws[:t], lam)
    linear = (x @ theta, x @ np.linalg.solve(V, x))
    P, young = np.eye(x.size) / lam, np.zeros(x.size)
    for s in range(t):
        P = P + WANDERING * bound**2 * np.eye(x.size)
        gain = P @ xs[s] / (1 / ws[s] + xs[s] @ P @ xs[s]) if ws[s] > 0 else 0 * xs[s]
        young = young + gain * (ys[s] - xs[s] @ young)
        P = P - np.outer(gain, xs[s]) @ P
    P = P + WANDERING * bound**2 * np.eye(x.size)
    younger = (x @ young, x @ P @ x)
    # Every cell belongs to one mark; another one that falls into it takes one reward away.
    owner = {}
    for s in range(t):
        b, mark = cell(xs[s])
        own, n, total = owner.get(b, (None, 0.0, 0.0))
        if own == mark and n > 0:
            owner[b] = (mark, n + 1, total + ys[s])
        elif n <= 1:
            owner[b] = (mark, 1.0, ys[s])
        else:
            owner[b] = (own, n - 1, total * (n - 1) / n)
    b, mark = cell(x)
    own, n, total = owner.get(b, (None, 0.0, 0.0))
    seen = linear
    if own == mark and n > 0:
        prior = linear[1] + 1 / w  # how far off the linear prediction may be
        precision = n * w + 1 / prior
        seen = ((w * total + linear[0] / prior) / precision, 1 / precision)
    return linear, younger, seen


def assumptions(xs, ys, ws, *, lam=1.0, bound=1.0, bias=0.0):
    """Return (n,): the log of the e-process against one theta, after every observation."""
    half = 0.5 * ws if bias > 0 else ws
    shares, gained, found = np.full(3, 1 / 3), 0.0, []
    for t in range(len(ys)):
        density = np.array(
            [normal(ys[t], *each, half[t]) for each in predictions(xs, ys, half, t, lam, bound)]
        )
        gained += math.log(shares @ density)
        shares = shares * density / (shares @ density)
        shares = shares * (t + 1) / (t + 2) + 1 / (3 * (t + 2))
        _, theta = ridge(xs[: t + 1], ys[: t + 1], half[: t + 1], lam)
        rest = ys[: t + 1] - xs[: t + 1] @ theta
        least = half[: t + 1] @ rest**2 + lam * theta @ theta
        paid = 0.5 * bias**2 * ws[: t + 1].sum()
        found.append(gained + 0.5 * least - 0.5 * lam * bound**2 - paid)
    return np.array(found)


def certificates(ys, lowers, ws, *, bounded):
    """Return (n,): the log of the e-process against certified lower bounds, a mixture of starts."""
    found = []
    for t in range(1, len(ys) + 1):
        total = 0.0
        for i in range(3):
            if bounded:
                factor = 1 + STAKES[i] * (lowers[:t] - ys[:t]) / (1 - lowers[:t])
            else:
                factor = np.exp(
                    BETS[i] * (lowers[:t] - ys[:t]) * np.sqrt(ws[:t]) - BETS[i] ** 2 / 2
                )
            for j in range(1, t + 1):
                total += np.prod(factor[j - 1 :]) / (j * (j + 1)) / 3
        found.append(math.log(total))
    return np.array(found)


def fit(own, others, *, lam=1.0, bound=1.0, bias=0.0, guesses=None):
    """Return the log of the e-process against one theta for a task and for all others.

    Each is (xs, ys, ws). What is left of the rewards by the best parameter for all, against what
    two mixtures over parameters, one for the task and one for the others, give them. With `guesses`
    of the others' rewards, made before they came, these stand in the place of the second mixture.
    """
    half = [(xs, ys, 0.5 * ws if bias > 0 else ws) for xs, ys, ws in (own, others)]
    both = tuple(np.concatenate(parts) for parts in zip(*half, strict=True))

    def least(xs, ys, ws, lam):
        _, theta = ridge(xs, ys, ws, lam)
        return ws @ (ys - xs @ theta) ** 2 + lam * theta @ theta

    found = 0.5 * least(*both, 2 * lam) - 0.5 * 2 * lam * bound**2
    for each in half[: 1 if guesses is not None else 2]:
        V, _ = ridge(*each, lam)
        found -= 0.5 * least(*each, lam) + 0.5 * np.linalg.slogdet(V / lam)[1]
    if guesses is not None:
        found -= 0.5 * half[1][2] @ (others[1] - guesses) ** 2
    return found - 0.5 * bias**2 * sum(ws.sum() for _, _, ws in (own, others))
