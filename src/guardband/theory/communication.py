"""How often agents pool, and how many numbers they send: the end of the proof of T1."""

from __future__ import annotations

import math

from guardband.theory.setting import Bound, Setting

__all__ = ["communication", "epochs", "trigger"]


def trigger(given: Setting) -> float:
    """Return B = T log(M T) / (d M), by which Algorithm 1 decides when to pool."""
    return given.horizon * given.log_all / (given.dim * given.agents)


def epochs(given: Setting, *, printed: bool = False) -> Bound:
    """Return the number of poolings of Algorithm 1: at most 2 ceil(sqrt(T R / B)).

    R bounds log det(V / lambda). `printed`: R = d log(M T), which makes it 2 ceil(d sqrt(M)), the
    O(M^0.5 d) of the paper, where the constant is left open; else R = d log(1 + M T L^2 / (lambda
    d)), which is proved. There are at most T poolings, one in each round.

    Epochs longer than s = sqrt(B T / R) number at most T / s. Each shorter one adds B / s to
    log det V, so that they number at most R s / B. Both are sqrt(T R / B).
    """
    R = given.dim * given.log_all if printed else given.information()
    half = math.sqrt(given.horizon * R / trigger(given)) if given.observations > 1 else math.inf
    return Bound(
        "T1, epochs",
        "poolings" + (", as printed" if printed else ""),
        2.0 * math.ceil(half) if math.isfinite(half) else math.inf,
        given.information() <= R,
        "log det(V / lambda) at most R" + (" = d log(M T)" if printed else ""),
        trivial=float(given.horizon),
        terms={"R": R, "B": trigger(given), "sqrt(T R / B)": half},
    )


def communication(given: Setting, *, printed: bool = False) -> Bound:
    """Return how many numbers are sent: poolings times 2 M (d (d+1) / 2 + d), up and down.

    The paper's O(M^1.5 d^3) is 2 d sqrt(M) poolings of M (d^2 + d) numbers each way; W is
    symmetric, so that guardband sends about half of them. `order` is M^1.5 d^3 itself.
    """
    count = epochs(given, printed=printed)
    each = given.agents * (given.dim * (given.dim + 1) + 2 * given.dim)
    return Bound(
        "T1, communication",
        "numbers sent" + (", as printed" if printed else ""),
        count.value * each,
        count.holds,
        count.condition,
        trivial=count.trivial * each,
        terms={"order": given.agents**1.5 * given.dim**3, "one pooling": float(each)},
    )
