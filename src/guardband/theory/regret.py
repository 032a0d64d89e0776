"""The paper's bounds on the regret of all agents together: prop1, ECC, T1, and unknown baselines.

Rewards lie in [0, 1], so a regret of M T is true of everything; a bound that exceeds it says
nothing. beta_T defaults to its bound after M T observations.
"""

# ruff: noqa: N802 - functions have the labels of the paper's source for names

from __future__ import annotations

import math

from guardband.checks import check_choice, check_not_negative, check_positive
from guardband.errors import InvalidValueError
from guardband.theory.conservative import (
    L7_lower,
    L7_upper,
    unknown_thm_lower,
    unknown_thm_upper,
)
from guardband.theory.setting import Bound, Setting, root

__all__ = ["ECC", "T1", "Thm1_1", "prop1", "prop1_1"]

FORMS = ("statement", "proof")
SPLIT = "N + N^c = T, features no longer than 1, and log det(V / lambda) at most d log(M T)"


def prop1(
    given: Setting,
    *,
    conservative: float,
    beta: float | None = None,
    form: str = "statement",
) -> Bound:
    """Return Theorem `prop1`: the regret, given the number of conservative rounds N^c = T - N.

    "statement": 4 beta_T sqrt(M N d log(M N)) (1 + log(M N)) + 4 sqrt(2 M N log(2/delta)) +
    M N^c (kappa_h + rho r_h + rho).
    "proof" (`R_2`): 4 beta_T sqrt(M N d log(M T)) + 4 beta_T sqrt(M T d log(M T)) log(M T) +
    sqrt(2 M N log(2/delta)) + the same third term.

    The two differ: the second terms by a factor of 4, the first by N for T; neither follows from
    the other. Both take the M agents' errors of one round for independent, but they share the
    context: Azuma's inequality over rounds gives M sqrt(2 N log(2/delta)), sqrt(M) times more.
    """
    check_choice("form", form, FORMS)
    rho = given.mixed()
    step = given.gap_high + rho * given.reward_high + rho * given.theta_bound
    return _decomposed(given, "prop1", conservative, beta, form, step)


def prop1_1(given: Setting, *, conservative: float, beta: float | None = None) -> Bound:
    """Return Theorem `prop1_1`: the same for an unknown baseline, third term (2 rho + 1 - r_l)."""
    rho = given.mixed(unknown=True)
    step = rho + rho * given.theta_bound + 1.0 - given.reward_low
    return _decomposed(given, "prop1_1", conservative, beta, "proof", step)


def ECC(given: Setting, *, rounds: float | None = None, beta: float | None = None) -> Bound:
    """Return Proposition `ECC`: the regret without a constraint (alpha = 1), N rounds of T.

    4 beta_T sqrt(M N d log(M T)) + 4 beta_T sqrt(M T d log(M T)) log(M T) +
    sqrt(2 M N log(2/delta)); N = T unless given.
    """
    n = given.horizon if rounds is None else check_not_negative("rounds", rounds)
    terms = _learning(given, n, beta, "proof")
    return Bound(
        "ECC",
        "regret of all agents, no constraint",
        math.fsum(terms.values()),
        _plain(given),
        "features no longer than 1, and log det(V / lambda) at most d log(M T)",
        float(given.observations),
        terms=terms,
    )


def T1(given: Setting, *, beta: float | None = None) -> Bound:
    """Return Theorem `T1`: the regret of DiSC-UCB, with c' and c'' of its footnote.

    4 beta_T sqrt(d c' log(M T)) + 4 beta_T sqrt(M T d log(M T)) log(M T) + sqrt(2 c' log(2/delta))
    + c'' (kappa_h + rho r_h + rho), where c' = M (T - the lower bound of `L7`) and
    c'' = M times its upper bound.

    c' is said to be O(M T). For long horizons it is about M T (1 - 1 / (2 rho (1-rho))), at most
    -M T: the bound is then the root of a negative number. For short ones c'' is.
    """
    rho = given.mixed()
    step = given.gap_high + rho * given.reward_high + rho * given.theta_bound
    low, high = L7_lower(given, beta=beta), L7_upper(given, beta=beta)
    return _combined(given, "T1", beta, low, high, step)


def Thm1_1(given: Setting, *, beta: float | None = None) -> Bound:
    """Return Theorem `Thm1_1`: `T1` for an unknown baseline; last factor (2 rho + 1 - r_l)."""
    rho = given.mixed(unknown=True)
    step = rho + rho * given.theta_bound + 1.0 - given.reward_low
    low, high = unknown_thm_lower(given, beta=beta), unknown_thm_upper(given, beta=beta)
    return _combined(given, "Thm1_1", beta, low, high, step)


def _plain(given: Setting) -> bool:
    """Tell whether what the proofs take for granted is so."""
    return given.feature_bound <= 1.0 and given.information() <= given.dim * given.log_all


def _learning(given: Setting, rounds: float, beta: float | None, form: str) -> dict[str, float]:
    """Return the terms that come from rounds in which agents play their own choice."""
    beta = given.radius() if beta is None else check_positive("beta", beta)
    M, d, log = given.agents, given.dim, given.log_all
    chance = math.sqrt(2.0 * M * rounds * math.log(2.0 / given.level))
    if form == "statement":
        own = math.log(M * rounds) if M * rounds >= 1.0 else 0.0
        learn = 4.0 * beta * math.sqrt(M * rounds * d * own) * (1.0 + own)
        return {"term 1": learn, "term 2": 4.0 * chance}
    learn = 4.0 * beta * math.sqrt(M * rounds * d * log)
    apart = 4.0 * beta * math.sqrt(given.observations * d * log) * log
    return {"term 1": learn, "term 1, between poolings": apart, "term 2": chance}


def _decomposed(
    given: Setting, label: str, conservative: float, beta: float | None, form: str, step: float
) -> Bound:
    n = check_not_negative("conservative", conservative)
    if n > given.horizon:
        raise InvalidValueError(
            f"conservative is {n:g}, but there are only {given.horizon:,} rounds: it counts the "
            "conservative rounds of one agent."
        )
    terms = _learning(given, given.horizon - n, beta, form)
    terms["term 3"] = given.agents * n * step
    return Bound(
        label,
        "regret of all agents" + (f", as in the {form}" if label == "prop1" else ""),
        math.fsum(terms.values()),
        _plain(given),
        SPLIT,
        float(given.observations),
        terms=terms,
    )


def _combined(
    given: Setting, label: str, beta: float | None, low: Bound, high: Bound, step: float
) -> Bound:
    radius = given.radius() if beta is None else beta
    own = given.agents * (given.horizon - low.value)  # c'
    careful = given.agents * high.value  # c''
    terms = {
        "term 1": 4.0 * radius * root(given.dim * own * given.log_all),
        "term 1, between poolings": 4.0
        * radius
        * math.sqrt(given.observations * given.dim * given.log_all)
        * given.log_all,
        "term 2": root(2.0 * own * math.log(2.0 / given.level)),
        "term 3": careful * step,
    }
    return Bound(
        label,
        "regret of all agents",
        math.fsum(terms.values()),
        low.holds and high.holds and own >= 0.0 and _plain(given) and given.horizon > given.agents,
        f"that of {low.label}, c' >= 0 and T > M",
        float(given.observations),
        terms=terms | {"c'": own, "c''": careful},
    )
