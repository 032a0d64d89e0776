"""Between an agent and the kernels: one engine per kind of algorithm, the same few calls."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from guardband.agent.decision import Decision
from guardband.algorithms import DiscUCB, DiscUCBUnknown, GuardUCB
from guardband.errors import InvalidValueError
from guardband.facts import Facts
from guardband.kernels.guard_ucb import SCRATCH_ROWS
from guardband.kernels.guarded_loop import Reports, new_reports
from guardband.kernels.serve import REPORT_SIZE, RHO, learn, pack_settings, serve
from guardband.kernels.serve_guarded import GUARD_REPORT, guard_learn, pack_guard, serve_guarded
from guardband.kernels.sync import add_statistic, clear_statistic
from guardband.kernels.types import (
    Certificate,
    Floats,
    GuardTerms,
    Ints,
    Reason,
    State,
    Statistic,
    Terms,
    state_of,
)
from guardband.reasons import sentence

__all__ = ["Awaited", "Engine", "Request", "Verdict", "make_engine"]

CERTIFICATES = tuple(kind.name.lower() for kind in Certificate)
PAPER_CERTIFICATES = {
    "play": "pruned set",
    "policy": "mixture",
    "baseline": "baseline",
    "none": "none",
}
KINDS = ("learned", "baseline", "explored")
GUARD_CONFIDENCE = GuardTerms._fields.index("confidence")
PAPER_CONFIDENCE = Terms._fields.index("confidence")
PAPER_REASONS = tuple(reason.name.lower().replace("_", "-") for reason in Reason)
NO_PAGES, NO_WEIGHTS, NO_COVARIANCE = np.zeros((0, 0, 0)), np.zeros(0), np.zeros((0, 0, 0))


class Request(NamedTuple):
    """One round's given, checked."""

    menu: Floats  # (d, K)
    baseline: int
    reward: float | None
    pages: Floats  # (n, d, K) features in each possible context, or none
    weights: Floats  # (n,)
    covariance: Floats  # (K or 1, d, d), or none


class Awaited(NamedTuple):
    """What must be remembered of a decision until its reward comes."""

    x: Floats
    guess: float
    weight: float
    conservative: bool


class Verdict(NamedTuple):
    """What the kernels decided, in the words of a `Decision`."""

    action: int
    kind: str
    reason: str  # a code of guardband.reasons
    mean: float
    width: float
    floor: float
    propensity: float
    margin: float
    promise: str
    certificate: str
    kept: NDArray[np.bool_]
    awaited: Awaited

    def named(self, name: str, reason: str | None = None) -> Decision:
        """Return the decision that the user sees, with its id and its reason as a sentence.

        The baseline needs no certificate: that it is the baseline is what is promised about it.
        """
        itself = self.promise == "play" and self.certificate == "baseline"
        return Decision(
            name,
            self.action,
            self.kind,
            sentence(self.reason) if reason is None else reason,
            self.mean,
            self.mean - self.width,
            self.mean + self.width,
            self.floor,
            self.propensity,
            self.margin,
            "baseline" if itself else self.promise,
            self.certificate,
            self.kept,
        )


def chosen_words(reason: str, *, itself: bool, known: bool) -> tuple[str, str]:
    """Return the kind and the reason of an action that the algorithm preferred.

    Parameters
    ----------
    reason
        Why, if the action was learned.
    itself
        Whether the action is the baseline.
    known
        Whether there were data to learn from.
    """
    if known and not itself:
        return "learned", reason
    return "baseline", "itself" if known else "no-data"


class Engine(Protocol):
    """What an agent asks of its algorithm."""

    ridge: float
    terms: Any

    def check(self, request: Request) -> None:
        """Raise if the request lacks something; before anything is changed."""

    def decide(self, m: int, request: Request, epoch: int, turn: int, coin: float) -> Verdict:
        """Decide for agent m in its `turn`-th round."""

    def learn(
        self, m: int, awaited: Awaited, y: float, logdet: float, since: int, now: int
    ) -> bool:
        """Learn from a reward; tell whether a pooling is due."""

    def pool(self) -> None:
        """Pool whatever the engine keeps besides the common statistics."""

    def set_confidence(self, confidence: float) -> None:
        """Let `confidence` stand for 2 log(1 / delta) from now on, in what is called epoch 1."""

    def arrays(self) -> dict[str, Any]:
        """Return what the engine keeps, for files."""


class PaperEngine:
    """DiSC-UCB and its kin."""

    def check(self, request: Request) -> None:
        """Accept every request."""

    def __init__(
        self, algorithm: Any, facts: Facts, fleet: State, pooled: Statistic, coords: list[Ints]
    ) -> None:
        known, unknown = _both_rules(algorithm)
        plans = known.plan(facts), unknown.plan(facts)
        self.known, self.unknown = (
            [pack_settings(p.terms, p.alpha[m], p.rho[m]) for m in range(len(coords))]
            for p in plans
        )
        terms = plans[0].terms
        self.terms, self.ridge, self.coords = terms, terms.ridge, coords
        if getattr(algorithm, "gate", None) == "gap":
            raise InvalidValueError(
                "gate='gap' needs the true optimum, which only a simulation knows; "
                "use gate='printed' or gate='none'."
            )
        self.pooled = pooled
        self.states = [_flat(fleet, m) for m in range(len(coords))]
        self.arguments = [(*state, *pooled) for state in self.states]

    def decide(self, m: int, request: Request, epoch: int, turn: int, coin: float) -> Verdict:
        """Decide for agent m."""
        menu, baseline, reward, *_ = request
        actions = menu.shape[1]
        scratch, kept = np.empty((3, actions)), np.empty(actions, np.bool_)
        x, report = np.empty(menu.shape[0]), np.empty(REPORT_SIZE)
        settings = self.unknown[m] if reward is None else self.known[m]
        told = 0.0 if reward is None else reward
        coords = self.coords[m]
        serve(
            *self.arguments[m],
            settings,
            coords,
            menu,
            baseline,
            told,
            coin,
            scratch,
            kept,
            x,
            report,
        )
        action, kind, reason, mean, upper, floor, propensity = report.tolist()
        if math.isnan(floor):
            promise = "none" if kind == 0 else "baseline"
        elif kind == 0:
            promise = "play"
        else:
            promise = "policy" if settings[RHO] > 0.0 else "baseline"
        words = KINDS[int(kind)], PAPER_REASONS[int(reason)]
        if kind == 0:
            known = math.isnan(floor) or self._observed(m)
            words = chosen_words(words[1], itself=action == baseline, known=known)
        return Verdict(
            int(action),
            *words,
            mean,
            upper - mean,
            floor,
            propensity,
            mean - (upper - mean) - floor,
            promise,
            PAPER_CERTIFICATES[promise],
            kept,
            Awaited(x, mean, 1.0, kind > 0),
        )

    def _observed(self, m: int) -> bool:
        """Tell whether agent m knows of any observation, its own or others'."""
        return bool(self.states[m][2][0] + self.pooled.scalars[0] > 0.0)

    def learn(
        self, m: int, awaited: Awaited, y: float, logdet: float, since: int, now: int
    ) -> bool:
        """Learn from a reward; tell whether a pooling is due."""
        due: bool = learn(
            *self.states[m], self.known[m], awaited.x, y, awaited.guess, logdet, since
        )
        return due

    def pool(self) -> None:
        """Pool nothing more."""

    def set_confidence(self, confidence: float) -> None:
        """Let `confidence` stand for 2 log(1 / delta) from now on."""
        for settings in (*self.known, *self.unknown):
            settings[PAPER_CONFIDENCE] = confidence

    def arrays(self) -> dict[str, Any]:
        """Return nothing more."""
        return {}


class GuardEngine:
    """Guard-UCB."""

    def check(self, request: Request) -> None:
        """Refuse a request that lacks what the promise needs."""
        enough = request.weights.size or (request.covariance.size and self.realised != "worst")
        if self.realised is not None and not enough:
            raise InvalidValueError(
                "realised=... certifies against the possible contexts: pass support=(n, K, dim) "
                "features and their weights to decide, see gb.feature_support; or, for a chance, "
                "covariance=..., see gb.difference_covariance."
            )

    def __init__(
        self,
        algorithm: GuardUCB,
        facts: Facts,
        fleet: State,
        pooled: Statistic,
        coords: list[Ints],
        feature_bound: float,
    ) -> None:
        plan = algorithm.plan(facts)
        self.terms, self.ridge, self.coords = plan.terms, plan.terms.ridge, coords
        self.realised = algorithm.realised
        self.alpha = plan.alpha
        self.settings = [pack_guard(plan.terms, alpha) for alpha in plan.alpha[: len(coords)]]
        self.pooled = pooled
        self.reports: Reports = new_reports(len(coords), facts.dim)
        self.states = [_flat(fleet, m) for m in range(len(coords))]
        told, pooled_told, tied = self.reports
        self.arguments = [
            (*state, *pooled, *(a[m] for a in told), *pooled_told, *(a[m] for a in tied))
            for m, state in enumerate(self.states)
        ]

    def decide(self, m: int, request: Request, epoch: int, turn: int, coin: float) -> Verdict:
        """Decide for agent m."""
        menu, baseline, reward, pages, weights, covariance = request
        dim, actions = menu.shape
        scratch = np.empty((SCRATCH_ROWS, max(actions, weights.size, dim)))
        kept, x, report = np.empty(actions, np.bool_), np.empty(dim), np.empty(GUARD_REPORT)
        numbers = np.array(
            [baseline, math.nan if reward is None else reward, epoch, turn, coin], np.float64
        )
        serve_guarded(
            *self.arguments[m],
            self.settings[m],
            self.coords[m],
            menu,
            pages,
            np.arange(weights.size),
            weights,
            covariance,
            numbers,
            scratch,
            kept,
            x,
            report,
        )
        (
            action,
            conservative,
            stuck,
            mean,
            width,
            ceiling,
            propensity,
            margin,
            weight,
            guess,
            alarm,
            _,
            certificate,
        ) = report.tolist()
        chosen = int(action)
        # Policy mode plays a target for certain if it is sure to be worth the baseline or more.
        sure = conservative and not self.terms.strict and propensity == 1.0 and chosen != baseline
        kind = "baseline" if chosen == baseline else "explored"
        if conservative:
            reason = "stuck" if stuck else "careful"
            promise = "play" if kept[chosen] or sure else "baseline"
            if not self.terms.strict and not sure:
                promise = "policy"
        else:
            reason = "certified" if kept[chosen] else "itself"
            promise = "play" if kept[chosen] else "baseline"
        if sure or (kept[chosen] and not (conservative and chosen == baseline)):
            known = self._observed(m)
            kind, reason = chosen_words(reason, itself=chosen == baseline, known=known)
        if alarm:
            reason += "+alarm"
        worth = ceiling if reward is None else reward
        return Verdict(
            chosen,
            kind,
            reason,
            mean,
            width,
            (1.0 - float(self.alpha[m])) * worth,
            propensity,
            margin,
            promise,
            "mixture" if promise == "policy" else CERTIFICATES[int(certificate)],
            kept,
            Awaited(x, guess, weight, bool(conservative)),
        )

    def _observed(self, m: int) -> bool:
        """Tell whether agent m knows of any observation, its own or others'."""
        return bool(self.states[m][2][0] + self.pooled.scalars[0] > 0.0)

    def learn(
        self, m: int, awaited: Awaited, y: float, logdet: float, since: int, now: int
    ) -> bool:
        """Learn from a reward; tell whether a pooling is due."""
        due: bool = guard_learn(
            *self.states[m],
            *self.pooled,
            self.settings[m],
            awaited.x,
            y,
            awaited.weight,
            awaited.guess,
            awaited.conservative,
            logdet,
            since,
            now,
        )
        return due

    def pool(self) -> None:
        """Pool the baseline's reported rewards."""
        for m in range(len(self.states)):
            add_statistic(self.reports.pooled, Statistic(*(a[m] for a in self.reports.own)))
        clear_statistic(self.reports.own)

    def set_confidence(self, confidence: float) -> None:
        """Let `confidence` stand for 2 log(1 / delta) from now on, in what is called epoch 1."""
        for settings in self.settings:
            settings[GUARD_CONFIDENCE] = confidence

    def arrays(self) -> dict[str, Any]:
        """Return the reports."""
        return {
            f"reports_{part}_{name}": array
            for part, values in self.reports._asdict().items()
            for name, array in values._asdict().items()
        }


def make_engine(
    algorithm: Any,
    facts: Facts,
    fleet: State,
    pooled: Statistic,
    coords: list[Ints],
    feature_bound: float,
) -> Engine:
    """Return the engine that runs `algorithm`."""
    if isinstance(algorithm, GuardUCB):
        return GuardEngine(algorithm, facts, fleet, pooled, coords, feature_bound)
    return PaperEngine(algorithm, facts, fleet, pooled, coords)


def _flat(fleet: State, m: int) -> tuple[Any, ...]:
    own, estimate, work = state_of(fleet, m)
    return (*own, *estimate, work)


def _both_rules(algorithm: Any) -> tuple[Any, Any]:
    """Return the rules for rounds with and without a baseline reward."""
    if isinstance(algorithm, DiscUCB | DiscUCBUnknown):
        algorithm = replace(algorithm, mix="action")  # only real actions can be played
    if isinstance(algorithm, DiscUCB):
        shared = {f.name for f in fields(DiscUCB)} & {f.name for f in fields(DiscUCBUnknown)}
        settings = {name: getattr(algorithm, name) for name in shared - {"gate"}}
        gate = "none" if algorithm.gate == "none" else "printed"
        return algorithm, DiscUCBUnknown(gate=gate, **settings)
    return algorithm, algorithm
