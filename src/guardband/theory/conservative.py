"""The paper's bounds on the number of conservative rounds: L5, L6, L7 and unknown_thm.

They do not bound it. `L7` follows from `L6` with a = 2 M rho (1 - rho), b = 32 M rho^2 (1 - rho)^2
log(d / delta) and c = (2 beta / (alpha r_l))^2 - (lambda + M T). `L6` needs c > 0 and b >= 4ac,
together 0 < c <= 4 rho (1 - rho) log(d / delta) <= log(d / delta): a window of fewer than
log(d / delta) / M horizons. For longer ones c < 0, and the printed upper bound drops a term that
grows like T (see `L7_upper`); for shorter ones the root is of a negative number.
"""

# ruff: noqa: N802 - functions have the labels of the paper's source for names

from __future__ import annotations

import math
from dataclasses import replace

from guardband.checks import check_not_negative, check_positive
from guardband.theory.setting import Bound, Setting, root

__all__ = [
    "L5",
    "L6_lower",
    "L6_of_L7",
    "L6_upper",
    "L7_lower",
    "L7_upper",
    "unknown_thm_lower",
    "unknown_thm_upper",
    "window",
]

WINDOW = "0 < (2 beta / (alpha r_l))^2 - (lambda + M T) <= 4 rho (1-rho) log(d / delta)"


def L5(given: Setting, *, conservative: float, unknown: bool = False) -> Bound:
    """Return Lemma `L5`: a bound from above on lambda_min(V) after N conservative rounds.

    (lambda + M T) + 2 M rho (rho - 1) N + sqrt(32 M rho^2 (1 - rho)^2 N log(d / delta)), with
    probability 1 - delta. For d >= 2 it is always vacuous: 2 rho (1 - rho) <= 1/2, so it is at
    least lambda + M T / 2, and lambda_min(V) <= trace(V) / d = lambda + M T / d whatever happens.
    """
    n, rho = check_not_negative("conservative", conservative), given.mixed(unknown=unknown)
    M, mixed = given.agents, rho * (1.0 - rho)
    loss = -2.0 * M * mixed * n
    chance = math.sqrt(32.0 * M * mixed**2 * n * math.log(given.dim / given.level))
    most = given.ridge + given.observations
    return Bound(
        "L5",
        "lambda_min(V) after T rounds",
        most + loss + chance,
        given.feature_bound <= 1.0 and n <= given.horizon,
        "features no longer than 1, N <= T",
        trivial=given.reach(),
        terms={"lambda + M T": most, "conservative": loss, "chance": chance},
    )


def L6_lower(a: float, b: float, c: float) -> Bound:
    """Return Lemma `L6`: the least x with a x + c <= sqrt(b x).

    (b - 2ac - sqrt(b^2 - 4abc)) / (2 a^2). It needs b >= 4ac (else there is no such x); the
    paper's proof of `L7` asks for b >= 2ac only.
    """
    return _lemma6(a, b, c, -1.0)


def L6_upper(a: float, b: float, c: float) -> Bound:
    """Return Lemma `L6`: the largest x with a x + c <= sqrt(b x).

    (b - 2ac + sqrt(b^2 - 4abc)) / (2 a^2). Right for c < 0, too.
    """
    return _lemma6(a, b, c, 1.0)


def L6_of_L7(given: Setting) -> tuple[Bound, Bound]:
    """Return Lemma `L6`, lower and upper, with the a, b and c that the proof of `L7` puts in.

    x is the number of conservative rounds there, so that it lies between 0 and T anyway. NaN where
    rho is 0, which makes a = b = 0, and where the baseline may be worth nothing.
    """
    p, T = _Parts(given, None, unknown=False), float(given.horizon)
    known = {"a": p.a, "b": p.b, "c": p.c}
    if p.mixed <= 0.0 or not math.isfinite(p.c):
        none = Bound("L6", "", math.nan, False, "a, b, c > 0 and b >= 4ac")
        low, high = replace(none, side="lower"), none
    else:
        low, high = L6_lower(p.a, p.b, p.c), L6_upper(p.a, p.b, p.c)
    what = "x, a x + c <= sqrt(b x), at "
    return (
        replace(low, what=what + "least", trivial=0.0, most=T, terms=known),
        replace(high, what=what + "most", trivial=T, terms=known),
    )


def L7_lower(given: Setting, *, beta: float | None = None) -> Bound:
    """Return Theorem `L7`: at least this many conservative rounds.

    (4/M) log(d/delta) - G / (2 M rho (1-rho)) - sqrt((16/M^2) log^2(d/delta) - 4 G log(d/delta) /
    (M^2 rho (1-rho))) with G = (2 beta_0 / (alpha r_l))^2 - (lambda + M T) and
    beta_0 = sigma sqrt(2 log(1/delta)) + sqrt(lambda).

    `beta` is beta_tau of the condition, by default its bound at T. See `L7_upper` for what is
    wrong.
    """
    return _lower(given, "L7", beta, unknown=False)


def L7_upper(given: Setting, *, beta: float | None = None) -> Bound:
    """Return Theorem `L7`: at most this many conservative rounds.

    sqrt((4 sqrt(6) log(d/delta) / M)^2 - 16 G log(d/delta) / (M^2 rho (1-rho))), G and beta_0 as in
    `L7_lower`, under T <= ((2 beta_tau / (alpha r_l))^2 - lambda) / M.

    What does not hold: (1) the gate opens at r_b, and r_b >= r_l makes what it needs smaller than
    (2 beta / (alpha r_l))^2, not larger; (2) the condition says c >= 0 and `L6` needs b >= 4ac,
    together the window of the module's head; (3) beta_0 in place of beta_tau makes c smaller, down
    to c < 0, where sqrt(4b^2 - 16abc + 8a^2c^2) <= sqrt(6b^2 - 16abc) is false once b < 2a|c|; what
    `L6` gives there is at least T / (2 rho (1-rho)) - ..., no less than about 2 T (`exact`);
    (4) if the gate never opens there is no tau, and all T rounds are conservative.
    """
    return _upper(given, "L7", beta, unknown=False)


def unknown_thm_lower(given: Setting, *, beta: float | None = None) -> Bound:
    """Return Theorem `unknown_thm`: `L7_lower` with (2 (2-alpha) beta_0 / (alpha r_l))^2 in G."""
    return _lower(given, "unknown_thm", beta, unknown=True)


def unknown_thm_upper(given: Setting, *, beta: float | None = None) -> Bound:
    """Return Theorem `unknown_thm`: `L7_upper` with (2 (2-alpha) beta_0 / (alpha r_l))^2 in G.

    The statement leaves the condition on T out; the proof is that of `L7`, and so is the
    condition here.
    """
    return _upper(given, "unknown_thm", beta, unknown=True)


def window(given: Setting, *, beta: float | None = None, unknown: bool = False) -> Bound:
    """Return how many rounds long the range of horizons is for which `L7` can hold.

    4 rho (1-rho) log(d/delta) / M; `terms` has its ends, for a radius that does not change.
    """
    need = given.need(given.reward_low, given.radius() if beta is None else beta, unknown=unknown)
    rho = given.mixed(unknown=unknown)
    length = 4.0 * rho * (1.0 - rho) * math.log(given.dim / given.level) / given.agents
    last = (need - given.ridge) / given.agents
    return Bound(
        "unknown_thm" if unknown else "L7",
        "rounds between the least and the largest horizon with a proof",
        length,
        last - length <= given.horizon < last,
        WINDOW,
        trivial=0.0,
        side="lower",
        terms={"first": last - length, "last": last},
    )


def _lemma6(a: float, b: float, c: float, sign: float) -> Bound:
    check_positive("a", a)
    check_positive("b", b)
    x = (b - 2.0 * a * c + sign * root(b * b - 4.0 * a * b * c)) / (2.0 * a * a)
    return Bound(
        "L6",
        "x with a x + c <= sqrt(b x)",
        x,
        b >= 4.0 * a * c and (c > 0.0 or sign > 0.0),
        "a, b, c > 0 and b >= 4ac",
        side="upper" if sign > 0.0 else "lower",
        trivial=math.inf if sign > 0.0 else 0.0,
    )


class _Parts:
    """The letters of `L7` for a setting."""

    def __init__(self, given: Setting, beta: float | None, *, unknown: bool) -> None:
        M, low = given.agents, given.reward_low
        self.mixed = (rho := given.mixed(unknown=unknown)) * (1.0 - rho)
        self.log = math.log(given.dim / given.level)
        start = given.start(printed=True)
        beta = given.radius() if beta is None else check_positive("beta", beta)
        whole = given.ridge + given.observations
        self.G = given.need(low, start, unknown=unknown) / given.feature_bound**2 - whole
        c = given.need(low, beta, unknown=unknown) / given.feature_bound**2 - whole
        self.c = c
        self.a, self.b = 2.0 * M * self.mixed, 32.0 * M * self.mixed**2 * self.log
        fits = self.mixed > 0.0 and math.isfinite(c) and given.feature_bound <= 1.0
        self.holds = fits and c > 0.0 and self.b >= 4.0 * self.a * c
        self.known = {"G": self.G, "c": c, "rho": rho, "window": 4.0 * self.mixed * self.log}


def _lower(given: Setting, label: str, beta: float | None, *, unknown: bool) -> Bound:
    p, M = _Parts(given, beta, unknown=unknown), given.agents
    value = math.nan
    if p.mixed > 0.0:
        inside = 16.0 / M**2 * p.log**2 - 4.0 * p.G * p.log / (M**2 * p.mixed)
        value = 4.0 / M * p.log - p.G / (2.0 * M * p.mixed) - root(inside)
    return Bound(
        label,
        "conservative rounds, at least",
        value,
        p.holds,
        WINDOW,
        trivial=0.0,
        side="lower",
        most=float(given.horizon),
        terms=p.known,
    )


def _upper(given: Setting, label: str, beta: float | None, *, unknown: bool) -> Bound:
    p, M = _Parts(given, beta, unknown=unknown), given.agents
    value = exact = math.nan
    if p.mixed > 0.0:
        value = root(
            (4.0 * math.sqrt(6.0) / M * p.log) ** 2 - 16.0 * p.G * p.log / (M**2 * p.mixed)
        )
        exact = L6_upper(p.a, p.b, p.G).value
    return Bound(
        label,
        "conservative rounds, at most",
        value,
        p.holds,
        WINDOW,
        trivial=float(given.horizon),
        terms=p.known | {"exact": exact},
    )
