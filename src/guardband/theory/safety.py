"""The lemmas on safety: the confidence set, the gate, the conservative vector; both baselines."""

# ruff: noqa: N802 - functions have the labels of the paper's source for names

from __future__ import annotations

import math

from guardband.checks import check_not_negative, check_positive
from guardband.theory.setting import Bound, Setting

__all__ = ["L1", "L2", "L2_2_", "L3", "L3_2", "L4", "L4_2", "confidence"]

UNIT = "expected features no longer than L, rewards in [0, 1]"


def confidence(given: Setting, logdet: float | None = None) -> Bound:
    """Return Lemma `confidence`: beta, with theta in all sets with probability 1 - M delta.

    beta = sqrt(1 + sigma^2) sqrt(2 log(det(V)^(1/2) det(lambda I)^(-1/2) / (delta / 2))) +
    sqrt(lambda) S, with `logdet` = log det(V / lambda); without it, its bound after M T
    observations. The print has S = 1 and assumes independent errors: agents that act under one
    hidden context share xi, and beyond about ten of them the set is too small (docs/paper.md).
    It says nothing where M delta >= 1.
    """
    chance = 1.0 - given.agents * given.level
    beta = given.radius(logdet)
    return Bound(
        "confidence",
        "radius beta of the confidence set",
        beta,
        chance > 0.0 and (given.agents == 1 or not given.shared_context),
        "noise sigma-sub-Gaussian, length of theta at most S, M delta < 1, and errors independent "
        "between agents: those that share a hidden context share its error",
        terms={"probability": max(chance, 0.0), "start": given.start()},
    )


def L1(given: Setting, *, beta: float, lambda_min: float) -> Bound:
    """Return Lemma `L1`: |psi'(theta-hat - v)| <= L beta / sqrt(lambda_min(V)) for all v in B.

    The print has L = 1. Rewards lie in [0, 1]: a width of 1 or more says nothing. The result is
    right; the chain of norms in its proof (a matrix in a vector's norm) is not.
    """
    width = given.feature_bound * check_positive("beta", beta)
    width /= math.sqrt(check_positive("lambda_min", lambda_min))
    return Bound("L1", "half width of an expected reward", width, True, UNIT, trivial=1.0)


def L2(
    given: Setting,
    *,
    beta: float | None = None,
    lambda_min: float | None = None,
    baseline_reward: float | None = None,
) -> Bound:
    """Return Lemma `L2`: what lambda_min(V) must reach for plays to be safe, by the paper's proof.

    (2 beta / (alpha r_b))^2, here with L beta. Safe in expectation: the step from one context to
    the mean over contexts in its proof does not follow. And the pruned set is safe in expectation
    at any lambda_min(V), so the gate is not needed for it.

    By default beta is that before the first round and r_b = r_h: the easiest gate there is. It is
    vacuous, because it can never open, if it exceeds lambda + M T L^2 / d.
    """
    return _gate(
        given, "L2", "actions of the pruned set are safe", beta, lambda_min, baseline_reward
    )


def L4(
    given: Setting,
    *,
    beta: float | None = None,
    lambda_min: float | None = None,
    baseline_reward: float | None = None,
) -> Bound:
    """Return Lemma `L4`: what lambda_min(V) must reach for x* to be in the pruned set.

    The gate of `L2`. The proof needs psi_*'theta >= r_b: it holds if r_b is the baseline's
    expected reward, and may fail if agents are told the realised one.
    """
    return _gate(given, "L4", "x* is in the pruned set", beta, lambda_min, baseline_reward)


def L2_2_(given: Setting, *, beta: float | None = None, lambda_min: float | None = None) -> Bound:
    """Return Lemma `L2_2_`: the same as `L2` for an unknown baseline reward.

    lambda_min(V) > (2 (2 - alpha) beta / (alpha r_l))^2, `UBR_2`; with > here, >= in `L4_2`.
    """
    return _gate(
        given, "L2_2_", "actions of the pruned set are safe", beta, lambda_min, unknown=True
    )


def L4_2(given: Setting, *, beta: float | None = None, lambda_min: float | None = None) -> Bound:
    """Return Lemma `L4_2`: the same as `L4` for an unknown baseline reward."""
    return _gate(given, "L4_2", "x* is in the pruned set", beta, lambda_min, unknown=True)


def L3(given: Setting) -> Bound:
    """Return Lemma `L3`: the largest rho at which the conservative vector is safe.

    alpha r_l / (1 + r_h), here with S for the 1 that bounds the length of theta. Sharper and
    shorter: alpha r / (S + r) grows with r, so alpha r_l / (S + r_l) is safe too (`sharper`).
    """
    low, S = given.reward_low, given.theta_bound
    return Bound(
        "L3",
        "largest safe rho",
        given.alpha * low / (S + given.reward_high),
        low > 0.0,
        "r_l > 0, length of theta at most S, and mixed vectors can be played",
        trivial=0.0,
        side="lower",
        terms={"sharper": given.alpha * low / (S + low)},
    )


def L3_2(given: Setting) -> Bound:
    """Return Lemma `L3_2`: the same for an unknown baseline, rho < alpha r_l / 2.

    The 2 is 1 + 1, bounds on the length of theta and on r_b; here S + 1.
    """
    low, S = given.reward_low, given.theta_bound
    return Bound(
        "L3_2",
        "largest safe rho, unknown baseline",
        given.alpha * low / (S + 1.0),
        low > 0.0,
        "r_l > 0, length of theta at most S, r_b at most 1, and mixed vectors can be played",
        trivial=0.0,
        side="lower",
        terms={"sharper": given.alpha * low / (S + low)},
    )


def _gate(
    given: Setting,
    label: str,
    why: str,
    beta: float | None,
    lambda_min: float | None,
    baseline_reward: float | None = None,
    *,
    unknown: bool = False,
) -> Bound:
    """Return a gate; by default the easiest, against the most that lambda_min(V) can be."""
    least = given.start() if beta is None else check_positive("beta", beta)
    if unknown:
        reward = given.reward_low
    elif baseline_reward is None:
        reward = given.reward_high
    else:
        reward = check_not_negative("baseline_reward", baseline_reward)
    need, reach = given.need(reward, least, unknown=unknown), given.reach()
    have = reach if lambda_min is None else check_positive("lambda_min", lambda_min)
    first = max(need - given.ridge, 0.0) * given.dim / (given.agents * given.feature_bound**2)
    formula = "(2 (2-alpha) L beta / (alpha r_l))^2" if unknown else "(2 L beta / (alpha r_b))^2"
    return Bound(
        label,
        f"lambda_min(V) at which {why}",
        need,
        have >= need,
        f"lambda_min(V) >= {formula}; after M T observations it is at most lambda + M T L^2 / d",
        trivial=math.nextafter(reach, math.inf),
        terms={"reach": reach, "earliest round": first, "lambda_min": have, "beta": least},
    )
