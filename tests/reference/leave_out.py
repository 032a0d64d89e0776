"""Slow, plain NumPy reference of Guard-UCB where one other task may send anything.

Written from the mathematics: every agent and round starts from the raw observations. The data
without a task are all other tasks' up to the last pooling and the agent's own after it.
"""

from typing import NamedTuple

import numpy as np
from reference import bounded
from reference.guard import (
    OTHERS,
    bounded_certificate,
    measured_optimism,
    reward_ranges,
    strict_choice,
    target_of,
)
from reference.guard_set import (
    Belief,
    Offer,
    certificate,
    gram_of,
    half_range_of,
    radius_of,
    slack_of,
    squared_width,
)


class Rules(NamedTuple):
    """The settings; ``sigma`` None: rewards lie in [0, 1], and weights follow Lemma V."""

    M: int
    sigma: float | None
    delta: float = 1e-3
    S: float = 1.0
    alpha: float = 0.2
    f: int = 1
    context_noise: float | None = None
    ceiling: float = 1.0


class Row(NamedTuple):
    """An observation."""

    agent: int
    round: int
    x: np.ndarray
    y: float
    w: float
    guess: float


class Choice(NamedTuple):
    """What is played, whether the target is not certified, and the weight and the prediction."""

    action: int
    conservative: bool
    refuted: bool
    w: float
    guess: float


def belief_of(rows, rules: Rules, dim: int, *, epoch=1, union=True) -> Belief:
    """Return the set of these rows; M(M-1) views of data, or M sums without a task, are counted."""
    x = np.array([row.x for row in rows]).reshape(-1, dim)
    y, w, guess = (np.array([row[i] for row in rows]) for i in (3, 4, 5))
    ridge, M = 1.0 / rules.S**2, rules.M
    radius = "empirical" if rules.sigma is None else "best"
    share = rules.delta / 2 / (1 if union else M)
    beta, _ = radius_of(
        x, y, w, guess, ridge=ridge, S=rules.S, delta=share, M=M * (M - 1), epoch=epoch,
        radius=radius, union=union,
    )  # fmt: skip
    V = gram_of(x, w, ridge)
    return Belief(np.linalg.inv(V) @ (x.T @ (w * y)), V, beta)


def beliefs_of(log, m, t_last, epoch, rules, dim) -> list[tuple[Belief, Belief | None]]:
    """Return, for each other task, agent m's view without it and the pooled sum without it."""
    found = []
    for j in range(rules.M):
        if j == m:
            continue
        pooled = [row for row in log if row.round <= t_last and row.agent != j]
        own = [row for row in log if row.round > t_last and row.agent == m]
        common = belief_of(pooled, rules, dim, union=False) if t_last else None
        found.append((belief_of(pooled + own, rules, dim, epoch=epoch), common))
    return found


def choose(log, m, t, t_last, epoch, rules: Rules, F, b, toss, points=None) -> Choice:
    """Return what agent m does in round t, from all observations so far."""
    dim, offer = F.shape[1], Offer(F, b, rules.alpha, 0.0, None)
    known = [row for row in log if row.round <= t_last or row.agent == m]
    full = belief_of(known, rules, dim, epoch=epoch)
    sets = beliefs_of(log, m, t_last, epoch, rules, dim)
    x = np.array([row.x for row in known]).reshape(-1, dim)
    y, w = (np.array([row[i] for row in known]) for i in (3, 4))
    gamma = measured_optimism(x, y, w, full.th, 1.0 / rules.S**2)
    width = full.beta * np.sqrt(squared_width(F, full.V))
    x, upper, _ = target_of(F @ full.th, width, gamma)
    action, conservative, refuted = _play(offer, x, upper, full, sets, rules, toss, t)
    return Choice(
        action, conservative, refuted, *_weigh(F[action], full, sets, rules, points, action)
    )


def _play(offer, x, upper, full, sets, rules, toss, t) -> tuple[int, bool, bool]:
    F, b = offer.F, offer.b
    if x == b:
        return b, False, False
    lead, ranges = F[x] - (1.0 - rules.alpha) * F[b], reward_ranges(offer, 0.0, rules.ceiling)
    used = []
    for view, common in sets:
        surer = common is not None and certificate(lead, *common) > certificate(lead, *view)
        used.append(common if surer else view)

    def by_range(k, belief):
        """L* of action k in a set; None: the set is empty."""
        if bounded.minimum(F[k], *belief, F, *ranges) is None:
            return None
        v = F[k] - (1.0 - rules.alpha) * F[b]
        return bounded_certificate(v, offer, belief, ranges)

    for belief in used:
        if slack_of(offer, belief)[x] >= 0.0:
            continue
        more = by_range(x, belief)
        if more is None:
            return b, True, True
        if more < 0.0:
            break
    else:
        return x, False, False
    # Of the others, the most promising ones may be certified by the range of rewards as well.
    slack = np.full(len(F), np.inf)
    tried = [k for k in np.argsort(-upper, kind="stable") if k != x][:OTHERS]
    for belief in used:
        own = slack_of(offer, belief)
        for k in tried:
            if slack[k] >= 0.0 and own[k] < 0.0:
                more = by_range(k, belief)
                if more is None:
                    return b, True, True
                own[k] = max(own[k], more)
        slack = np.minimum(slack, own)
    planned = 0.2 if rules.context_noise is None else rules.context_noise
    w0 = 1.0 / ((0.25 if rules.sigma is None else rules.sigma**2) + rules.f * planned**2)
    xu, xi, gain = strict_choice(offer, x, slack, upper, full.V, w0)
    stuck = gain < squared_width(F[x], full.V) / (rules.M * t + 1)
    return (xi if toss < 0.5 and not stuck else xu), True, False


def _weigh(psi, full, sets, rules, points, action) -> tuple[float, float]:
    """Return weight and prediction by the smallest l, the largest u and the largest spread."""
    s = 0.5 if rules.context_noise is None else rules.context_noise
    if points is not None and rules.context_noise is None:
        s = max(half_range_of(points[:, action], rules.S, view)[0] for view, _ in sets)
    sigma = 0.5 if rules.sigma is None else rules.sigma
    w, guess = 1.0 / (sigma**2 + rules.f * s**2), psi @ full.th
    if rules.sigma is not None:
        return w, guess
    ends = [_range(psi, view, rules) for view, _ in sets]
    low, high = min(end[0] for end in ends), max(end[1] for end in ends)
    possible = np.clip([low, 0.5, high], low, high)
    larger = 1.0 / (rules.f * np.max(possible * (1.0 - possible)))
    return max(w, float(larger)), float(np.clip(guess, low, high))


def _range(psi, view, rules) -> tuple[float, float]:
    low = max(0.0, certificate(psi, *view))
    high = min(1.0, rules.ceiling, rules.S * np.linalg.norm(psi), -certificate(-psi, *view))
    if low > high:
        low, high = 0.0, 1.0
    return min(low, 0.999), max(high, 0.001)
