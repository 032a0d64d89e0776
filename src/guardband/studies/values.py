"""What rules would have earned, from the logs: the logged one, the baseline and a learned one.

The learned rule plays what a linear model fitted to the first half of the rows thinks best. It is
judged on the second half, which it has not seen, and so are the others, to be compared with it. The
model of the direct method is fitted to the second half as well: a rule is what its own model
overrates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from guardband.kernels.types import Floats
from guardband.studies.estimators import (
    RuleEstimate,
    difference,
    doubly_robust,
    effective_size,
    ips,
    snips,
)
from guardband.studies.intervals import lower_mean, normal_quantile
from guardband.studies.linear import CUT, fit_linear, greedy_choices, halves
from guardband.studies.logs import Ints, StudyLogs

__all__ = ["PolicyValue", "Values", "value_policies"]

LEVEL = 0.05  # all intervals are 95 %
RIDGE = 1.0  # of the learned rule, as that of an agent with theta_bound 1
LARGEST_MENUS = 4_000_000  # entries of menus that are looked at; of more rows some are taken
FEWEST = 20.0  # effective rows
MOST_OUTSIDE = 0.05  # the share of rows of which the model knows nothing
DOUBT = 1e-3  # how improbable a mean of weights must be before the propensities are doubted
CONSTANT = "if every action was played with the one propensity that all rows have"
NO_PROPENSITY = "the logs cannot tell: they have no propensities"


@dataclass(frozen=True)
class PolicyValue:
    """One estimate of what one rule would have earned per round.

    Attributes
    ----------
    policy
        "logged", "baseline", "learned" or "learned - baseline".
    estimator
        "IPS", "SNIPS", "DM" or "DR".
    value, low, high
        The estimate, and a 95 % interval that holds for this number of rows; None: the logs cannot
        tell.
    asymptotic
        The ends of the 95 % interval for many rows.
    rows
        In how many rows the rule would have played what was played.
    effective_rows
        How many unweighted rows the weighted ones are worth.
    interval
        How the interval was made.
    because
        Why the logs cannot tell, or under which condition the interval holds.
    """

    policy: str
    estimator: str
    value: float | None
    low: float | None
    high: float | None
    asymptotic: tuple[float, float] | None
    rows: int
    effective_rows: float
    interval: str
    because: str

    def to_json(self) -> dict[str, Any]:
        """Return what `guardband study --json` has of it."""
        low, high = self.asymptotic or (None, None)
        return {
            "policy": self.policy,
            "estimator": self.estimator,
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "asymptotic_low": low,
            "asymptotic_high": high,
            "rows": self.rows,
            "effective_rows": self.effective_rows,
            "interval": self.interval,
            "because": self.because,
        }


@dataclass(frozen=True)
class Values:
    """All estimates, and what they say about learning.

    Attributes
    ----------
    estimates
        One for each rule and estimator.
    better
        Whether the learned rule earns more than the baseline: True, False, or None, the logs cannot
        tell.
    because
        That in a sentence.
    notes
        Under which assumptions.
    """

    estimates: list[PolicyValue]
    better: bool | None
    because: str
    notes: list[str]

    def of(self, policy: str, estimator: str) -> PolicyValue:
        """Return one of the estimates."""
        return next(e for e in self.estimates if (e.policy, e.estimator) == (policy, estimator))


def value_policies(logs: StudyLogs) -> Values:
    """Return what the logged rule, the baseline and a learned rule earn."""
    fitted, judged = halves(len(logs))
    rows, notes = _judged_rows(logs, judged)
    x, y = logs.played[fitted], logs.rewards[fitted]
    greedy = fit_linear(x, y, RIDGE).theta
    model = fit_linear(x, y)
    features, learned, trusted = greedy_choices(logs, greedy, rows)
    rewards, played = logs.rewards[rows], logs.actions[rows]
    seen = logs.played[rows]
    own, direct = model.values(seen), DirectMethod(seen, rewards)
    sources = {"baseline": (trusted, features[1]), "learned": (learned, features[0])}
    estimates = _logged(rewards, seen, direct)
    terms: dict[str, Floats] = {}
    if logs.propensities is None:
        for name, (labels, table) in sources.items():
            same = _alike(labels, played)
            estimates += _without_propensities(name, same, table, direct)
    else:
        chances = logs.propensities[rows]
        most, alike = 1.0 / float(logs.propensities.min()), _all_alike(logs.propensities)
        for name, (labels, table) in sources.items():
            weights = np.where(labels == played, 1.0 / chances, 0.0)
            target = model.values(table)
            found = _weighted(name, weights, rewards, target, own, most, alike)
            found.insert(2, direct.value(name, table, int((weights > 0).sum())))
            estimates += found
            terms[name] = target + weights * (rewards - own)
        estimates.append(_compare(estimates, terms, learned, trusted, most))
    better, because = _verdict(estimates, learned, trusted)
    notes.append(
        f"Judged on {len(rows):,} rows, to which the model of DM is fitted, after the {len(x):,} "
        "to which the learned rule and the model of DR were. Intervals are 95 % each, if rows are "
        "alike and independent of each other."
    )
    return Values(estimates, better, because, notes)


def _judged_rows(logs: StudyLogs, judged: slice) -> tuple[Ints, list[str]]:
    """Return the rows on which rules are judged, fewer where their menus are too long."""
    rows = np.arange(judged.start, judged.stop)
    entries = int(logs.menus.sizes(len(logs))[judged].sum())
    step = -(-entries // LARGEST_MENUS)
    if step == 1:
        return rows, []
    return rows[::step], [f"Menus are long: every {step}th row was judged."]


def _alike(labels: Ints, played: Ints) -> int:
    return int((labels == played).sum())


def _all_alike(propensities: Floats) -> bool:
    return float(propensities.max()) <= float(propensities.min()) * (1.0 + 1e-12)


def _logged(rewards: Floats, table: Floats, direct: DirectMethod) -> list[PolicyValue]:
    """Return what the logged rule earned: its weights are 1, and IPS, SNIPS and DR are one."""
    count, ones = len(rewards), np.ones(len(rewards))
    found = ips(ones, rewards, LEVEL, alike=True)
    listed = [_as_value("logged", name, found, count, count) for name in ("IPS", "SNIPS", "DR")]
    listed.insert(2, direct.value("logged", table, count))
    return listed


def _weighted(
    name: str,
    weights: Floats,
    rewards: Floats,
    target: Floats,
    own: Floats,
    most: float,
    alike: bool,
) -> list[PolicyValue]:
    """Return IPS, SNIPS and DR of a rule; `alike`: all rows have the same propensity."""
    rows, size = int((weights > 0).sum()), effective_size(weights)
    if because := _cannot_tell(weights, size, most):
        return [_unknown(name, each, rows, size, because) for each in ("IPS", "SNIPS", "DR")]
    every = ips(weights, rewards, LEVEL, alike=alike)
    ratio = snips(weights, rewards, LEVEL, most, alike=alike)
    robust = doubly_robust(weights, rewards, target, own, LEVEL, most)
    bound = _assumed(most)
    return [
        _as_value(name, "IPS", every, rows, size, CONSTANT if every.kind == "binomial" else ""),
        _as_value(name, "SNIPS", ratio, rows, size, CONSTANT if alike else bound),
        _as_value(name, "DR", robust, rows, size, bound),
    ]


def _assumed(most: float) -> str:
    """Return what intervals assume that need a bound on weights."""
    return f"if no action had a smaller propensity than these rows have, {1.0 / most:.3g}"


def _cannot_tell(weights: Floats, size: float, most: float) -> str:
    """Return why these weights tell nothing; empty if they do.

    If the logged rule can play whatever the other one plays, weights are 1 on average.
    """
    mean = float(weights.mean())
    if size < FEWEST:
        return (
            f"the logs cannot tell: what it plays was played in {int((weights > 0).sum()):,} of "
            f"{len(weights):,} rows, worth {size:.1f} unweighted ones"
        )
    if most - lower_mean(most - weights, DOUBT) < 1.0:
        return (
            f"the logs cannot tell: weights are {mean:.2f} on average instead of 1, so in some "
            "rows the logged rule never plays what this one plays"
        )
    if lower_mean(weights, DOUBT) > 1.0:
        return (
            f"the logs cannot tell: weights are {mean:.2f} on average instead of 1, so the "
            "propensities are not the probabilities with which actions were played"
        )
    return ""


class DirectMethod:
    """A linear model of rows (n, d) and their rewards (n,), and what rules earn by it.

    An estimate is a sum of these rewards with weights c that do not depend on them, for a rule that
    was found elsewhere; so Hoeffding's interval holds for independent rewards in [0, 1]:
    sqrt(sum c^2 log(2 / delta) / 2). It stands and falls with the model.
    """

    def __init__(self, rows: Floats, rewards: Floats) -> None:
        self.fit, self.rows = fit_linear(rows, rewards), rows
        gram = rows.T @ rows
        sizes, axes = np.linalg.eigh(gram)
        self.unseen = axes[:, sizes <= CUT * float(sizes[-1])]
        self.inverse = np.linalg.pinv(gram, hermitian=True)

    def value(self, name: str, table: Floats, rows: int) -> PolicyValue:
        """Return what a rule earns that plays these features (n, d), for these rows' contexts.

        Features that no fitted row has may have any reward.
        """
        outside = float((np.linalg.norm(table @ self.unseen, axis=1) > 1e-6).mean())
        if outside > MOST_OUTSIDE:
            because = (
                f"the logs cannot tell: in {outside:.0%} of the rows it plays something with "
                "features that none of the fitted rows has"
            )
            return _unknown(name, "DM", rows, float(rows), because)
        mean, values = table.mean(axis=0), table @ self.fit.theta
        value = float(values.mean())
        weights = self.rows @ (self.inverse @ mean)
        half = math.sqrt(float(weights @ weights) * math.log(2.0 / LEVEL) / 2.0) + outside
        known = max(float(mean @ self.fit.covariance @ mean), 0.0)  # rounding may make it negative
        error = math.sqrt(known + float(values.var()) / len(values))
        wide = normal_quantile(LEVEL) * error + outside
        return PolicyValue(
            name,
            "DM",
            value,
            min(max(value - half, 0.0), 1.0),
            min(max(value + half, 0.0), 1.0),
            (value - wide, value + wide),
            rows,
            float(rows),
            "model",
            "if expected rewards are linear in the features",
        )


def _without_propensities(
    name: str, rows: int, table: Floats, direct: DirectMethod
) -> list[PolicyValue]:
    found = [
        _unknown(name, each, rows, float(rows), NO_PROPENSITY) for each in ("IPS", "SNIPS", "DR")
    ]
    found.insert(2, direct.value(name, table, rows))
    return found


def _compare(
    estimates: list[PolicyValue],
    terms: dict[str, Floats],
    learned: Ints,
    trusted: Ints,
    most: float,
) -> PolicyValue:
    """Return by how much the learned rule is better, from the same rows (doubly robust)."""
    name = "learned - baseline"
    differ = int((learned != trusted).sum())
    unknown = next((e for e in estimates if e.estimator == "DR" and e.value is None), None)
    if unknown is not None:
        return _unknown(name, "DR", differ, 0.0, unknown.because)
    found = difference(terms["learned"] - terms["baseline"], LEVEL, 1.0 + 2.0 * most)
    return _as_value(name, "DR", found, differ, float(differ), _assumed(most))


def _verdict(estimates: list[PolicyValue], learned: Ints, trusted: Ints) -> tuple[bool | None, str]:
    if (learned == trusted).all():
        return False, "the learned rule plays what the baseline plays"
    apart = next((e for e in estimates if e.policy == "learned - baseline"), None)
    if apart is None:
        return None, NO_PROPENSITY
    if apart.value is None or apart.low is None or apart.high is None:
        return None, apart.because
    told = f"{apart.value:+.3g} per round, 95 % interval {apart.low:+.3g} to {apart.high:+.3g}"
    if apart.low > 0:
        return True, f"the learned rule earns more than the baseline: {told}"
    if apart.high < 0:
        return False, f"the learned rule earns less than the baseline: {told}"
    return None, f"the logs cannot tell whether the learned rule earns more: {told}"


def _as_value(
    policy: str, estimator: str, found: RuleEstimate, rows: int, size: float, because: str = ""
) -> PolicyValue:
    if found.low > found.high:
        doubt = "the logs cannot tell: propensities and what was played contradict each other"
        return _unknown(policy, estimator, rows, size, doubt)
    return PolicyValue(
        policy,
        estimator,
        found.value,
        found.low,
        found.high,
        (found.asymptotic_low, found.asymptotic_high),
        rows,
        float(size),
        found.kind,
        because,
    )


def _unknown(policy: str, estimator: str, rows: int, size: float, because: str) -> PolicyValue:
    return PolicyValue(policy, estimator, None, None, None, None, rows, size, "none", because)
