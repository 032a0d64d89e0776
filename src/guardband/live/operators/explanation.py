"""Why a decision took no other action: all actions, computed again in plain linear algebra.

The kernels decide; this computes the same quantities a second time, from the formulas of the
documentation, to explain a decision. An audit compares the two.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from guardband.agent import Request, Verdict
from guardband.kernels.types import OPTIMISM, REGRET_WIDTHS, Estimate, Floats, Rule
from guardband.live.client.decisions import worth_of
from guardband.live.client.replay import Rebuilt
from guardband.live.operators.range_check import slack_by_range
from guardband.reasons import CHOSEN, HELD_BACK, MEASURED, first_code

__all__ = ["Choice", "weigh"]

ROUNDING = 1e-12


class Choice(NamedTuple):
    """One action of a decision."""

    action: int
    mean: float
    lower: float
    upper: float
    slack: float  # by how much it is certain to clear the floor; negative: not certified
    score: float  # how promising it is; with values, what it is worth
    value: float | None  # to the caller, where values were given
    cost: float | None  # where there is a budget
    certified: bool
    why: str  # why it was played, or was not


class Weights(NamedTuple):
    """What every action is judged by."""

    mean: Floats
    width: Floats
    slack: Floats
    score: Floats
    lesson: Floats  # how much playing it would teach about the most promising action


def weigh(rebuilt: Rebuilt, verdict: Verdict) -> tuple[Choice, ...]:
    """Return every action of a decision with its bounds, its slack and why it was not taken."""
    by_difference = rebuilt.learner.policy.differences
    weights = _by_difference(rebuilt, verdict) if by_difference else _by_bound(rebuilt, verdict)
    words = _Words(rebuilt, verdict, weights)
    return tuple(
        Choice(
            k,
            float(weights.mean[k]),
            float(weights.mean[k] - weights.width[k]),
            float(weights.mean[k] + weights.width[k]),
            float(weights.slack[k]),
            float(weights.score[k]),
            worth_of(rebuilt.request, k),
            None if rebuilt.costs is None else float(rebuilt.costs[0][k]),
            bool(verdict.certified[k]) if words.free else bool(weights.slack[k] >= 0.0),
            words.why(k),
        )
        for k in range(weights.mean.size)
    )


def _estimates(rebuilt: Rebuilt) -> tuple[Floats, Floats, float]:
    """Return every action's features, by rows, V^-1 and beta; features not in use are zero."""
    estimate = rebuilt.learner.state.estimate
    return rebuilt.request.menu.T, estimate.inverse, rebuilt.learner.radius()


def _norms(rows: Floats, inverse: Floats) -> Floats:
    forms: Floats = np.einsum("kd,de,ke->k", rows, inverse, rows)
    return np.sqrt(np.maximum(forms, 0.0))


def _by_difference(rebuilt: Rebuilt, verdict: Verdict) -> Weights:
    """Guard-UCB: the largest of the certificates by difference, by lead and by reported reward.

    What was certified by none of them is weighed by all that is known, from its multipliers. Where
    another task may lie, the slack is the least in all sets that leave one out.
    """
    psi, inverse, beta = _estimates(rebuilt)
    terms, theta = rebuilt.learner.group.engine.terms, rebuilt.learner.state.estimate.theta
    mean, width = psi @ theta, beta * _norms(psi, inverse)
    score, sets = _scores(rebuilt, mean, width), rebuilt.learner.sets()
    slack: Floats = np.min([_slack(rebuilt, verdict, *each) for each in sets], axis=0)
    if terms.tolerate:  # the interval holds those of all sets
        reach = [
            np.abs(psi @ one.theta - mean) + radius * _norms(psi, one.inverse)
            for one, radius in sets
        ]
        width = np.max(reach, axis=0)
    if rebuilt.request.value.size or rebuilt.costs is not None:
        alpha = rebuilt.space.alpha_of(rebuilt.learner.group.names[0])
        share = psi - (1.0 - alpha) * psi[rebuilt.request.baseline]
        hope = share @ theta + beta * _norms(share, inverse) >= 0.0  # it may clear the floor
        score = np.where(hope | (slack >= 0.0), _worth(rebuilt, score), -math.inf)
    cross, forms = psi @ inverse @ psi[int(np.argmax(score))], _norms(psi, inverse) ** 2
    lesson = cross**2 * terms.planned_weight / (1.0 + terms.planned_weight * forms)
    return Weights(mean, width, slack, score, lesson)


def _worth(rebuilt: Rebuilt, score: Floats) -> Floats:
    """Return the value of every action, or its reward as hoped for, less the price of its cost."""
    request = rebuilt.request
    worth: Floats = request.value if request.value.size else score
    if rebuilt.costs is None:
        return worth
    costs, (price, room) = rebuilt.costs
    payable = costs <= room
    payable[request.baseline] = True
    return np.where(payable, worth - price * costs, -math.inf)


def _slack(rebuilt: Rebuilt, verdict: Verdict, estimate: Estimate, beta: float) -> Floats:
    """Return what one set certifies of every action."""
    psi, inverse, theta = rebuilt.request.menu.T, estimate.inverse, estimate.theta
    group, request = rebuilt.learner.group, rebuilt.request
    terms, alpha = group.engine.terms, rebuilt.space.alpha_of(group.names[0])
    b, keep = request.baseline, 1.0 - alpha
    mean, width = psi @ theta, beta * _norms(psi, inverse)
    share, lead = psi - keep * psi[b], psi - psi[b]
    slack: Floats = np.maximum(
        share @ theta - beta * _norms(share, inverse), lead @ theta - beta * _norms(lead, inverse)
    )
    slack[b] = max(slack[b], 0.0)
    if request.reward is not None and terms.tolerance >= 0.0:
        told = keep * (request.reward + terms.tolerance)
        slack = np.maximum(slack, np.maximum(0.0, mean - width) - told)
        slack[b] = max(slack[b], alpha * max(0.0, request.reward - terms.tolerance))
    if terms.use_range and verdict.certified.size == slack.size:
        more = np.flatnonzero(verdict.certified & (slack < 0.0))
        for k, proved in slack_by_range(rebuilt, estimate, beta, alpha, more).items():
            slack[k] = max(slack[k], proved)
        if verdict.reason.startswith("refuted"):
            slack[np.arange(slack.size) != b] = math.nan
    return slack


def _scores(rebuilt: Rebuilt, mean: Floats, width: Floats) -> Floats:
    """Guard-UCB: mean + gamma width, or mean + width if the best by that is too well known."""
    group, state = rebuilt.learner.group, rebuilt.learner.state
    gamma = group.engine.terms.optimism
    if math.isnan(gamma):
        own, pooled, theta = state.own, group.pooled, state.estimate.theta
        n, squares, *_ = own.scalars + pooled.scalars
        found = theta.size + max(0.0, squares - (own.moment + pooled.moment) @ theta)
        gamma = OPTIMISM * math.sqrt(min(1.0, found / max(n, 1.0)))
    score: Floats = mean + gamma * width
    target = int(np.argmax(score))
    lost = (mean + width).max() - (mean - width)[target]
    return score if lost <= REGRET_WIDTHS * width[target] else mean + width


def _by_bound(rebuilt: Rebuilt, verdict: Verdict) -> Weights:
    """DiSC-UCB and its kin: means against L beta / sqrt(lambda_min(V)) and the floor."""
    psi, inverse, beta = _estimates(rebuilt)
    learner, group = rebuilt.learner, rebuilt.learner.group
    terms = group.engine.terms
    mean, width = psi @ learner.state.estimate.theta, beta * _norms(psi, inverse)
    if math.isnan(verdict.floor):
        unknown = np.full(mean.size, math.nan)
        return Weights(mean, width, unknown, mean + width, unknown)
    gram = terms.ridge * np.eye(group.dim) + learner.state.own.gram + group.pooled.gram
    least = float(np.linalg.eigvalsh(gram)[0])
    reach = terms.feature_bound * beta / math.sqrt(least) if least > 0.0 else math.inf
    slack = mean - reach - verdict.floor
    return Weights(mean, width, slack, mean + width, np.full(mean.size, math.nan))


def _plays_certified(rebuilt: Rebuilt) -> bool:
    """Tell whether Guard-UCB chose among certified actions: strict mode, or no loss is left."""
    terms = rebuilt.learner.group.engine.terms
    return bool(terms.strict) or rebuilt.row["reason"].startswith("spent")


def _pair(rebuilt: Rebuilt, weights: Weights) -> tuple[int, int]:
    """Return the certified actions between which a careful round of Guard-UCB draws.

    Strict: the most promising one, and the one that teaches most about the most promising of all.
    Policy: the partner with which that one is mixed, twice.
    """
    group, request = rebuilt.learner.group, rebuilt.request
    terms, b, target = group.engine.terms, request.baseline, int(np.argmax(weights.score))
    told = None
    if request.reward is not None and terms.tolerance >= 0.0:
        told = request.reward + terms.tolerance
    if _plays_certified(rebuilt):
        certified = weights.slack >= 0.0
        certified[b] = True
        value = weights.score.copy()
        if told is not None:
            value[b] = min(value[b], told)
        best = int(np.argmax(np.where(certified, value, -math.inf)))
        return best, int(np.argmax(np.where(certified, weights.lesson, -math.inf)))
    alpha = rebuilt.space.alpha_of(group.names[0])
    partner = b
    if told is not None:
        safest = int(np.argmax(weights.slack))
        most = weights.slack[safest]
        short = most - max(weights.slack[target], -(1.0 - alpha) * told)
        if most >= 0.0 and short > 0.0 and most / short >= alpha:
            partner = safest
    elif weights.width[target] > weights.width[b]:
        psi, inverse, beta = _estimates(rebuilt)
        lead = weights.mean - weights.mean[b] - beta * _norms(psi - psi[b], inverse)
        partner = int(np.argmax(lead)) if lead.max() > 0.0 else b
    return partner, partner


def _own_chance(rebuilt: Rebuilt) -> float:
    """Return the probability of the action played by the agent's own coin, without a holdback."""
    row, h = rebuilt.row, rebuilt.learner.holdback
    if row["hold"] is None or row["propensity"] == 1.0:
        return float(row["propensity"])
    held = h if row["action"] == row["baseline"] else 0.0
    chance = (row["propensity"] - held) / (1.0 - h)
    return 1.0 if chance > 1.0 - ROUNDING else float(chance)


class _Words:
    """The sentences, one per action."""

    def __init__(self, rebuilt: Rebuilt, verdict: Verdict, weights: Weights) -> None:
        self.row: dict[str, Any] = rebuilt.row
        self.request: Request = rebuilt.request
        self.verdict, self.weights = verdict, weights
        self.chance = _own_chance(rebuilt)
        self.guard = rebuilt.learner.policy.differences
        terms: Any = rebuilt.learner.group.engine.terms
        self.free = not self.guard and terms.rule in (int(Rule.FREE), int(Rule.BASELINE))
        self.target = int(np.argmax(weights.score))
        self.strict = self.guard and _plays_certified(rebuilt)
        self.best, self.teacher = _pair(rebuilt, weights) if self.guard else (-1, -1)
        self.code = first_code(self.row["reason"])
        self.costs = rebuilt.costs
        self.fine = "promising" if not self.request.value.size else "valuable"
        self.most = f"the most {self.fine}"
        if self.request.value.size:
            self.most += " that may be safe"

    def why(self, k: int) -> str:
        """Return why action k was played, or was not."""
        row, played = self.row, self.verdict.action
        if k == played:
            return "played"
        if self.code in HELD_BACK | MEASURED:
            shadow = ": it is what would have been played" if row["shadow_action"] == k else ""
            return f"only the baseline was allowed ({self.code}){shadow}"
        name = "the baseline: " if k == self.request.baseline else ""
        if self.guard:
            return name + self._guarded(k)
        if self.code in CHOSEN:
            return name + self._less(k)
        if self.chance < 1.0 and k in (self.target, self.request.baseline):
            return name + self._coin()
        return f"{name}a conservative round ({row['reason']}): {self._lacking(k)}"

    def _guarded(self, k: int) -> str:
        """Return the words for Guard-UCB."""
        drawn = self.chance < 1.0
        if self._too_dear(k):
            return self._price(k)
        if not drawn and self.verdict.action == self.target:
            return self._less(k)
        if k == self.target:
            mixed = drawn and not self.strict
            return self.most + (f"; {self._coin()}" if mixed else f", but {self._lacking(k)}")
        if drawn and k in (self.best, self.teacher):
            return f"certified, and {self._role(k)}; {self._coin()}"
        return self._passed_over(k) if self.weights.slack[k] >= 0.0 else self._lacking(k)

    def _passed_over(self, k: int) -> str:
        """Return the words for a certified action between which and others no coin decided."""
        if not self.strict:
            return f"certified, but not what is mixed with {self.most}, action {self.target}"
        words = f"certified, but less {self.fine} than action {self.best}"
        if self.code == "stuck":
            return words
        return f"{words}, and it teaches less about action {self.target} than action {self.teacher}"

    def _role(self, k: int) -> str:
        if not self.strict:
            return f"mixed with {self.most}, action {self.target}"
        if k == self.best:
            return f"the most {self.fine} of those"
        return f"teaches most about {self.most}, action {self.target}"

    def _less(self, k: int) -> str:
        score, played = self.weights.score, self.verdict.action
        if score[k] == -math.inf:  # no parameter of the set lets it clear the floor
            return "it cannot clear the floor, by all that is known"
        words = (
            f"less {self.fine} than the action played: {score[k]:.6g} against {score[played]:.6g}"
        )
        if score[k] == score[played]:
            words = f"as {self.fine} as the action played ({score[k]:.6g}), and after it"
            words += " in the list" if not self.request.value.size else " by its reward or row"
        if self.free:
            return words
        if self.weights.slack[k] >= 0.0:
            return f"certified, but {words}"
        return f"{words}; {self._lacking(k)}" if score[k] <= score[played] else self._lacking(k)

    def _too_dear(self, k: int) -> bool:
        """Tell whether the budget left no room for an action."""
        if self.costs is None or k == self.request.baseline:
            return False
        costs, (_, room) = self.costs
        return bool(costs[k] > room)

    def _price(self, k: int) -> str:
        assert self.costs is not None
        costs, (_, room) = self.costs
        return f"it costs {costs[k]:.6g}, more than the {max(0.0, room):.6g} that a play may cost"

    def _lacking(self, k: int) -> str:
        slack = self.weights.slack[k]
        if math.isnan(slack):
            return "nothing can be promised about it"
        if slack >= 0.0:
            return "it would clear the floor, but the round was conservative"
        return f"not certified: it could miss the floor by {-slack:.6g}"

    def _coin(self) -> str:
        """Return the words for the other of two actions."""
        chance = 1.0 - self.chance
        return f"the coin ({self.row['coin']:.4f}) fell the other way; its chance was {chance:.4f}"
