"""Numbers and lists in words, the same in the terminal, the report and the verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from guardband.sim import Results

__all__ = ["MINUS", "floor", "has_costs", "has_values", "listed", "number", "percent", "run_line"]

MINUS = "\u2212"  # as wide as a plus; a hyphen is not


def number(value: float) -> str:
    """Return a measured number with about three digits that count; a dash for NaN."""
    if math.isnan(value):
        return "–"
    if value == 0 or abs(value) >= 99.95:
        told = f"{value:,.0f}"
    elif abs(value) < 1e-3:
        told = f"{value:.1e}"
    else:
        told = f"{value:.3g}"
    return told.replace("-", MINUS)  # in exponents, too: lines break after a hyphen


def percent(share: float) -> str:
    """Return a share in percent; 0 % and 100 % are never a matter of rounding."""
    value = 100 * share
    if 0 < value < 0.1:
        return "< 0.1 %"
    if 99.9 < value < 100:
        return "> 99.9 %"
    return f"{value:.3g} %".replace("-", MINUS)


def has_values(results: Results) -> bool:
    """Return whether the problem says what actions are worth."""
    return not any(np.isnan(series.totals["value"]).any() for series in results.series)


def has_costs(results: Results) -> bool:
    """Return whether the problem says what actions cost."""
    return not any(np.isnan(series.totals["cost"]).any() for series in results.series)


def listed(names: Sequence[str], most: int = 4) -> str:
    """Return 'a, b and c'; of many, the first ones and how many more there are."""
    shown = list(names)
    if len(shown) > most:
        rest = len(shown) - most + 1
        shown = [*shown[: most - 1], f"{rest} others"]
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))


def floor(results: Results) -> str:
    """Return the reward below which a round counts as a violation."""
    alpha = results.settings["alpha"]
    if alpha and len(set(alpha)) == 1:
        return f"{100 * (1 - alpha[0]):.4g} % of the baseline's reward"
    return "(1 − alpha) of the baseline's reward"


def run_line(results: Results) -> str:
    """Return the run in one line: problem, agents, rounds, trials, seed, alpha."""
    settings = results.settings
    parts = [
        results.problem + _nature(settings),
        *(_counted(settings[what], what) for what in ("agents", "rounds", "trials")),
        f"seed {settings['seed']}",
    ]
    alpha = settings["alpha"]
    if alpha is not None:
        parts.append(f"alpha {alpha[0]:g}" if len(set(alpha)) == 1 else "alpha per agent")
    return " · ".join(parts)


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what.removesuffix('s') if count == 1 else what}"


def _nature(settings: dict[str, Any]) -> str:
    """Return ', fresh' where features are drawn anew in each round; that is not the usual case."""
    problem = settings.get("problem")
    fresh = isinstance(problem, dict) and problem.get("nature") == "fresh"
    return ", fresh" if fresh else ""
