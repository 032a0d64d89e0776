"""What each algorithm of a comparison promises, and the counts that test it."""

from __future__ import annotations

import numpy as np

from guardband.algorithms import ALGORITHMS
from guardband.sim import Results, Series

__all__ = [
    "below_floor",
    "is_constrained",
    "is_frozen",
    "is_policy",
    "needs_model",
    "never_left",
    "promised_counts",
    "promises",
    "uncovered",
    "violates",
]


def is_constrained(series: Series) -> bool:
    """Return whether the algorithm is held to a share of the baseline's reward."""
    return "alpha" in series.settings


def needs_model(series: Series) -> bool:
    """Return whether its promise needs what the theory assumes, as that of Guard-UCB does."""
    return series.policy.needs_model


def is_policy(series: Series) -> bool:
    """Return whether the promise is about the average over a coin, not about single plays."""
    entry = ALGORITHMS.get(series.algorithm)
    return entry is not None and bool(entry.make().randomised)


def is_frozen(results: Results) -> bool:
    """Return whether psi is phi with noise frozen into it, and so not its expectation."""
    problem = results.settings.get("problem", {})
    if not isinstance(problem, dict):
        return False
    noisy = problem.get("nature") == "frozen" and problem.get("psi_noise", 1.0) > 0
    return bool(noisy or problem.get("error", 0.0) > 0)  # `misfit` states it


def uncovered(results: Results, series: Series) -> str:
    """Return why no promise of the algorithm applies to this problem; empty where one does.

    The paper's algorithms are run by their authors on features with a frozen error, so their
    promise is taken to cover them; Guard-UCB says that it does not.
    """
    if series.label in results.uncovered:
        return results.uncovered[series.label]
    if needs_model(series) and is_frozen(results):
        return "the features that agents are given carry a fixed error"
    return ""


def promises(results: Results, series: Series) -> bool:
    """Return whether the algorithm promises at least the floor that violations are counted by."""
    judged = results.settings["alpha"]
    if judged is None or not is_constrained(series) or uncovered(results, series):
        return False
    entry = ALGORITHMS.get(series.algorithm)
    if entry is not None and entry.constraint == "cumulative":
        return False  # over all rounds together: single ones may fall
    return bool(np.all(np.array(series.settings["alpha"]) <= np.array(judged)))


def below_floor(results: Results, series: Series) -> np.ndarray:
    """Return (trials, M): the plays below the floor, in the sense that means something here.

    That is the expectation over the hidden context; where psi is phi with noise frozen into it,
    psi'theta is not an expectation, and only what was drawn counts.
    """
    if is_frozen(results):
        return np.asarray(series.violations_realised)
    return np.asarray(series.violations_expected)


def violates(results: Results, series: Series) -> bool:
    """Return whether any round of any trial fell below the floor in the sense of its promise."""
    return bool((promised_counts(results, series) > 0).any())


def promised_counts(results: Results, series: Series) -> np.ndarray:
    """Return (trials, M): the rounds that go against what the algorithm promises."""
    if is_policy(series) and not is_frozen(results):
        return np.asarray(series.totals["violations_policy"])
    if series.settings.get("realised") == "worst":
        return np.asarray(series.violations_expected + series.violations_realised)
    counts = below_floor(results, series)
    return counts if is_frozen(results) else counts - series.totals["violations_trial"]


def never_left(results: Results, series: Series) -> bool:
    """Return whether a constrained algorithm was conservative in every single round."""
    everywhere = (series.conservative == results.settings["rounds"]).all()
    return is_constrained(series) and bool(everywhere)
