"""Off-policy estimators and intervals, row by row from their definitions; slow and plain."""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy.stats import beta

Row = tuple[float, float, float, float]  # weight, reward, q of the rule's action, q of the played


def ips(rows: Sequence[Row]) -> float:
    return sum(w * r for w, r, _, _ in rows) / len(rows)


def snips(rows: Sequence[Row]) -> float:
    return sum(w * r for w, r, _, _ in rows) / sum(w for w, _, _, _ in rows)


def direct(rows: Sequence[Row]) -> float:
    return sum(target for _, _, target, _ in rows) / len(rows)


def doubly_robust(rows: Sequence[Row]) -> float:
    return sum(target + w * (r - played) for w, r, target, played in rows) / len(rows)


def effective_size(rows: Sequence[Row]) -> float:
    return sum(w for w, *_ in rows) ** 2 / sum(w * w for w, *_ in rows)


def clopper_pearson(hits: int, count: int, delta: float) -> tuple[float, float]:
    low = 0.0 if hits == 0 else float(beta.ppf(delta / 2, hits, count - hits + 1))
    high = 1.0 if hits == count else float(beta.ppf(1 - delta / 2, hits + 1, count - hits))
    return low, high


def is_refuted(values: Sequence[float], mean: float, delta: float) -> bool:
    """Whether somebody who bets on values above `mean` ever owns 1/delta; values are >= 0."""
    wealth, total, squares = 1.0, 0.0, 0.0
    for i, value in enumerate(values):
        guess = (0.5 + total) / (1 + i)
        variance = (0.25 + squares) / (1 + i)
        bet = math.sqrt(2 * math.log(1 / delta) / (len(values) * variance))
        bet = min(bet, 0.5 / mean) if mean > 0 else bet
        wealth *= 1 + bet * (value - mean)
        if wealth >= 1 / delta:
            return True
        total += value
        squares += (value - guess) ** 2
    return False
