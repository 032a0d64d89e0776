"""Guard-UCB's confidence set, weights and certificates, in plain NumPy; see ``guard``."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

TOLERANCE = 1e-12  # of the weight that a chance constraint must reach
TAU_FLOOR = 1e-4  # of the tolerance of the anchors
LEAST_RATE = 1e-3  # ranges of rewards reach at least this far from 0, and from 1


class Belief(NamedTuple):
    """The confidence set {v : norm(v - th)_V <= beta}."""

    th: np.ndarray
    V: np.ndarray
    beta: float


class Offer(NamedTuple):
    """One round: features (K, d), baseline, alpha, the told reward and its tau (None: unknown)."""

    F: np.ndarray
    b: int
    alpha: float
    told: float
    tau: float | None


def masked(table: np.ndarray, task: Iterable[int]) -> np.ndarray:
    """Return a copy of a feature table with the coordinates outside ``task`` set to zero."""
    inside = np.zeros(table.shape[-1], dtype=bool)
    inside[list(task)] = True
    return np.where(inside, table, 0.0)


def squared_width(v: np.ndarray, V: np.ndarray) -> np.ndarray:
    """Return v'V^-1 v along the last axis."""
    return np.maximum(0.0, np.sum((v @ np.linalg.inv(V)) * v, axis=-1))


def certificate(v: np.ndarray, th: np.ndarray, V: np.ndarray, beta: float) -> np.ndarray:
    """Return L(v) = min of v'theta over the confidence set, along the last axis (2.4)."""
    return v @ th - beta * np.sqrt(squared_width(v, V))


def gram_of(x: np.ndarray, w: np.ndarray, ridge: float) -> np.ndarray:
    """Return V = ridge I + sum w x x'."""
    return ridge * np.eye(x.shape[1]) + (x * w[:, None]).T @ x


def radius_of(x, y, w, yhat, *, ridge, S, delta, M=1, epoch=1, eps=0.0, radius="best", union=True):
    """Return beta from raw data (2.3, R2, R5), and whether it is the empirical one.

    G is the weighted squared error of the predictions ``yhat`` minus the smallest ridge loss;
    sum w y^2 cancels in it, which leaves H + U'V^-1 U. It counts as 0 where it is negative, and
    for nothing where it is so negative that no theta would be left.
    Data: features (n, d), rewards, weights, predictions made before the rewards. M agents; the
    epoch counts from 1 and grows at synchronisations; the rest as in ``simulate``.
    """
    V = gram_of(x, w, ridge)
    th = np.linalg.inv(V) @ (x.T @ (w * y))
    G = np.sum(w * (y - yhat) ** 2) - np.sum(w * (y - x @ th) ** 2) - ridge * (th @ th)
    share = delta * (0.5 if radius == "best" else 1.0)
    share *= 6.0 / (np.pi**2 * M * epoch**2) if union else 1.0
    log_term, shrink = 2.0 * np.log(1.0 / share), ridge * S**2
    total, mixture = np.sum(w), np.linalg.slogdet(V / ridge)[1]
    by_logdet = np.sqrt(mixture + log_term + shrink) + eps * np.sqrt(total)
    bias = log_term + 2.0 * eps**2 * total if eps > 0.0 else 0.0  # R5 with c = 1/2
    rest = log_term + shrink + bias
    by_data = np.sqrt(max(0.0, G) + rest)
    empirical = radius == "empirical" or (radius == "best" and by_data < by_logdet)
    empirical = empirical and -rest <= G
    return float(by_data if empirical else by_logdet), bool(empirical)


def anchored(plain: Belief, psi_b: np.ndarray, told: np.ndarray, tau: float) -> Belief | None:
    """Return the set with the baseline reports (n, d), (n,) in it, or None: alarm (2.3, R4)."""
    th, V, beta = plain
    k = beta**2 / (len(told) * max(tau, TAU_FLOOR) ** 2)
    A, a = psi_b.T @ psi_b, psi_b.T @ told
    V_k = V + k * A
    th_k = np.linalg.inv(V_k) @ (V @ th + k * a)  # V th = U
    misfit = told @ told - 2.0 * (a @ th_k) + th_k @ A @ th_k
    if (th_k - th) @ V @ (th_k - th) + k * misfit > 2.0 * beta**2:
        return None
    return Belief(th_k, V_k, float(np.sqrt(2.0) * beta))


def half_range_of(points: np.ndarray, S: float, plain: Belief) -> tuple[float, bool]:
    """Return s for support points (n, d) (2.1, R1), and whether the set gave the best bound."""
    apart = np.linalg.norm(points[:, None] - points[None, :], axis=-1).max()
    low, high = certificate(points, *plain).min(), -certificate(-points, *plain).min()
    s, by_set = min(0.5, S / 2.0 * apart), (min(1.0, high) - max(0.0, low)) / 2.0
    return max(0.0, float(min(s, by_set))), bool(by_set < s)


def by_variance(psi: np.ndarray, plain: Belief, S, ceiling, f, eps) -> tuple[float, float]:
    """Return the weight of Lemma V, 1/(f v), and the prediction it allows, for features psi."""
    mean, low = psi @ plain.th, max(0.0, certificate(psi, *plain))
    high = min(1.0, ceiling, S * np.linalg.norm(psi), -certificate(-psi, *plain))
    if low > high:
        low, high = 0.0, 1.0
    low, high = min(low, 1.0 - LEAST_RATE), max(high, LEAST_RATE)
    possible = np.clip([low - eps, 0.5, high + eps], low - eps, high + eps)
    v = np.max(possible * (1.0 - possible))
    return float(1.0 / (f * v)), float(np.clip(mean, low, high))


def slack_of(offer: Offer, belief: Belief) -> np.ndarray:
    """Return a lower bound of r_x - (1-alpha) r_b for all actions, (K,) (2.4)."""
    F, b, alpha, told, tau = offer
    slack = certificate(F - (1.0 - alpha) * F[b], *belief)
    slack = np.maximum(slack, certificate(F - F[b], *belief))  # r_b >= 0
    if tau is not None:
        floor = np.maximum(0.0, certificate(F, *belief))
        slack = np.maximum(slack, floor - (1.0 - alpha) * (told + tau))
        slack[b] = max(slack[b], alpha * max(0.0, told - tau))
    return slack


def realised_slack(points, mu, b, alpha, belief, realised) -> np.ndarray:
    """Return the slack (K,) under the realised context (4); points (n, K, d), mu (n,) > 0."""
    lows = certificate(points - (1.0 - alpha) * points[:, b, None], *belief)
    return np.array([promised(low, mu, realised) for low in lows.T])


def promised(low, mu, realised) -> float:
    """Return the least of low (n,), or the largest that holds with probability 1 - e."""
    if realised == "worst":
        return float(low.min())
    enough = 1.0 - realised[1] - TOLERANCE
    return max(float(q) for q in low if mu[low >= q].sum() >= enough)
