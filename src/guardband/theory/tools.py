"""The tools of the paper's proofs: Azuma's inequality and the elliptic potential."""

# ruff: noqa: N802 - functions have the labels of the paper's source for names

from __future__ import annotations

import math

from guardband.checks import check_fraction, check_not_negative, check_positive, check_whole
from guardband.theory.setting import Bound

__all__ = ["LT2", "Azu", "LT2_logdet"]


def Azu(*, steps: int, increment: float, delta: float) -> Bound:
    """Return `prop:Azu`: what a martingale exceeds with probability delta at most.

    Q sqrt(2 n log(1/delta)), from P(M_n - M_0 > b) <= exp(-b^2 / (2 n Q^2)).
    """
    n, Q = check_whole("steps", steps), check_not_negative("increment", increment)
    value = Q * math.sqrt(2.0 * n * math.log(1.0 / check_fraction("delta", delta)))
    return Bound(
        "prop:Azu",
        "growth of a martingale",
        value,
        True,
        "increments never longer than Q",
        trivial=n * Q if Q > 0.0 else math.inf,
    )


def LT2_logdet(*, potential: float) -> Bound:
    """Return the first line of `LT2`: log(det V_n / det V) <= the sum of norm(X_t)^2_{V^-1}."""
    value = check_not_negative("potential", potential)
    return Bound("LT2", "log(det V_n / det V)", value, True, "V positive definite")


def LT2(*, rounds: int, dim: int, trace: float, logdet: float, feature_bound: float = 1.0) -> Bound:
    """Return `LT2`: the sum over n rounds of min(1, norm(X_t)^2 in V_{t-1}^-1) is at most this.

    2 (d log((trace(V) + n L^2) / d) - log det V), for the V before the first round: with
    V = lambda I, trace = lambda d and logdet = d log(lambda). A sum of n ones is at most n.
    """
    n, d = check_whole("rounds", rounds), check_whole("dim", dim)
    L = check_positive("feature_bound", feature_bound)
    mean = (check_positive("trace", trace) + n * L**2) / d
    # det V is at most (trace / d)^d; a larger one belongs to no matrix.
    possible = logdet <= d * math.log(trace / d) + 1e-9
    return Bound(
        "LT2",
        "sum of min(1, squared norms)",
        2.0 * (d * math.log(mean) - logdet),
        possible,
        "V positive definite, vectors no longer than L",
        trivial=float(n),
    )
