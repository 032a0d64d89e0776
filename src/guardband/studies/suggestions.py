"""Settings that the data suggest, each with how sure that is; nothing is applied by itself."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.kernels.types import Floats
from guardband.seeds import stream
from guardband.studies.linear import fit_linear, inverse_of
from guardband.studies.linearity import Linearity
from guardband.studies.logs import StudyLogs

__all__ = ["Suggestion", "suggest_settings"]

SURE, FAIRLY, UNSURE = "sure", "fairly sure", "can't tell"
DRAWS = 400
MARGIN = 1.25
CEILING = 0.5  # a larger one is not worth stating
MENUS = 2_000  # rows whose menus are looked at, fewer where these are large
NUMBERS, WORK = 5_000_000, 20_000_000_000  # in their features, n d, and in their squares, n d^2
LEAST = 1_000  # actions, whatever that takes
DARK = 0.5  # what an action's reward may be off by, from which on the rows say nothing of it
DOUBT = math.log(1e3)  # by Bernstein's inequality it is off by more once in a thousand times


@dataclass(frozen=True)
class Suggestion:
    """A setting of an agent.

    Attributes
    ----------
    name, value
        As `gb.Agent` or its algorithm take it; None: leave it out.
    sure
        "sure", "fairly sure" or "can't tell".
    because
        Where it comes from.
    """

    name: str
    value: Any
    sure: str
    because: str

    def to_json(self) -> dict[str, Any]:
        """Return what `guardband study --json` has of it."""
        return {"value": self.value, "sure": self.sure, "because": self.because}


def suggest_settings(
    logs: StudyLogs, linearity: Linearity, alpha: float, known: Mapping[str, Any], seed: int
) -> list[Suggestion]:
    """Return settings for an agent; those that are known stay as they are.

    Parameters
    ----------
    logs, linearity
        The rows, and how linear their rewards are.
    alpha
        The share of the baseline's reward that may be lost.
    known
        Settings that were stated.
    seed
        Of draws of parameters.
    """
    rng = stream(seed, "study", "settings")
    fit = fit_linear(logs.played, logs.rewards)
    inverse, _ = inverse_of(logs.played.T @ logs.played)
    plain = np.asarray(fit.variance * inverse, np.float64)
    covariance = max(fit.covariance, plain, key=np.trace)
    table = _some_on_offer(logs, rng)
    rests = ((table @ inverse) * table).sum(axis=1).clip(min=0.0)  # 1 / rows like it
    spread = np.sqrt(2.0 * fit.variance * DOUBT * rests) + DOUBT * rests
    outside = _outside(table, logs.played)
    dark = float(((spread > DARK) | outside).mean())
    found = [
        Suggestion("alpha", alpha, SURE, "it was stated; which loss is bearable is for you to say"),
        _theta_bound(fit.theta, covariance, dark, rng),
        *_ceiling(table @ fit.theta + spread, dark, linearity),
        Suggestion("noise", None, SURE, "all rewards lie in [0, 1]: nothing need be stated"),
        Suggestion(
            "context_noise",
            0.0,
            FAIRLY,
            "these columns are known when an action is chosen, as they are in the logs. If an "
            "agent will get forecasts of them, or if rounds have something hidden in common, leave "
            "it out",
        ),
        *_bias_bound(linearity),
    ]
    stated = [Suggestion(k, v, SURE, "it was stated") for k, v in known.items()]
    return [each for each in found if each.name not in known] + stated


def _some_on_offer(logs: StudyLogs, rng: np.random.Generator) -> Floats:
    """Return features of actions that were on offer in some rows, all of each row's if they fit."""
    most = max(LEAST, min(NUMBERS // logs.dim, WORK // logs.dim**2))
    rows = rng.choice(len(logs), min(MENUS, len(logs)), replace=False)
    sizes = np.cumsum(logs.menus.sizes(len(logs))[rows])
    rows = rows[: max(1, int(np.searchsorted(sizes, most, side="right")))]
    table = logs.offers(np.sort(rows)).features
    if len(table) <= most:
        return table
    found: Floats = table[rng.choice(len(table), most, replace=False)]
    return found


def _outside(table: Floats, played: Floats) -> NDArray[np.bool_]:
    """Tell which rows have a part that no row that was played has."""
    gram = played.T @ played
    sizes, axes = np.linalg.eigh(gram)
    unseen = axes[:, sizes <= 1e-9 * max(float(sizes[-1]), 1e-12)]
    found: NDArray[np.bool_] = np.linalg.norm(table @ unseen, axis=1) > 1e-6
    return found


def _theta_bound(
    theta: Floats, covariance: Floats, dark: float, rng: np.random.Generator
) -> Suggestion:
    """Return a bound on theta's length that 99 % of the parameters keep that fit the rows."""
    sizes, axes = np.linalg.eigh(covariance)
    spread = axes * np.sqrt(sizes.clip(min=0.0))
    draws = theta + rng.standard_normal((DRAWS, len(theta))) @ spread.T
    lengths = np.linalg.norm(draws, axis=1)
    value = _rounded_up(MARGIN * float(np.quantile(lengths, 0.99)))
    if dark > 0.01:
        return Suggestion(
            "theta_bound",
            max(value, 1.0),
            UNSURE,
            f"the rows say little about {dark:.0%} of what is on offer; what they say gives "
            f"{value:g}. A bound that is too small voids the promise",
        )
    loose = float(np.quantile(lengths, 0.99)) > 2.0 * float(np.linalg.norm(theta))
    if loose:
        value = max(value, 1.0)
    because = (
        f"the estimate has length {np.linalg.norm(theta):.3g}, and 99 % of the parameters that fit "
        f"the rows are shorter than {float(np.quantile(lengths, 0.99)):.3g}; "
        + ("that is a wide range, so the bound is 1 at least" if loose else "a quarter is added")
    )
    sure = UNSURE if loose else FAIRLY
    return Suggestion("theta_bound", value, sure, because)


def _ceiling(upper: Floats, dark: float, linearity: Linearity) -> list[Suggestion]:
    """Return a bound on all expected rewards, where it is far below 1."""
    value = _rounded_up(MARGIN * float(upper.max()))
    if value > CEILING or dark > 0.01:
        return []
    sure = UNSURE if linearity.good_enough is False else FAIRLY
    because = (
        f"no expected reward on offer is likely to exceed {float(upper.max()):.3g}; a quarter is "
        "added. Learning starts sooner with it; no promise holds if it is "
        "exceeded"
    )
    return [Suggestion("reward_ceiling", value, sure, because)]


def _bias_bound(linearity: Linearity) -> list[Suggestion]:
    if linearity.misfit == 0.0:
        return []
    value = _rounded_up(linearity.misfit)
    because = (
        "expected rewards are about this far from linear. The floor is kept up to twice as much, "
        "and agents learn more slowly; better features are the better remedy"
    )
    return [Suggestion("bias_bound", value, UNSURE, because)]


def _rounded_up(number: float) -> float:
    """Return the next larger number with two digits."""
    if number <= 0.0:
        return 0.01
    unit = 10.0 ** (math.floor(math.log10(number)) - 1)
    return float(f"{math.ceil(number / unit - 1e-9) * unit:.3g}")
