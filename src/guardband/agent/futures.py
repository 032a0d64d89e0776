"""Possible futures of an agent: copies that go on with the menus seen lately.

A copy decides by the agent's own kernels, and rewards are exactly what one possible parameter makes
of the features played. Its time runs in leaps: what it plays on some menus counts for all rounds of
a leap, and leaps grow with the time that has passed, or that trials have taken. Nothing here is
promised; no decision uses it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from guardband.agent.engine import Engine
from guardband.agent.records import Request, Verdict
from guardband.kernels.ridge import refresh
from guardband.kernels.types import Floats

__all__ = ["FAR", "Future", "Past", "possible_parameters", "run_ahead"]

FAR = 1_000_000  # rounds beyond which nobody looks
MENUS = 32  # that stand for a leap
FIRST_LEAP, GROWTH = 16.0, 0.5  # rounds; and the share of the time so far that a later leap takes
PROJECTIONS = 200
FIT = 1e-6  # by which an expected reward of a possible parameter may leave its range
SETTLED = 0.05  # of the menus: where more ask for caution at the end, something is out of reach


class Past(NamedTuple):
    """What futures start from."""

    engine: Engine  # a copy
    agent: int  # whose future it is
    epoch: int
    rounds: int  # that it has had
    menus: Sequence[Sequence[Request]]  # the requests seen lately by each agent of the group
    names: Sequence[str] = ()  # of the features, if they have any

    @property
    def finite(self) -> bool:
        """Whether all sums that the agent decides by are finite numbers."""
        parts = (self.engine.states[self.agent].own, self.engine.pooled)
        return all(np.isfinite(array).all() for part in parts for array in part)


class Future(NamedTuple):
    """How a copy fared."""

    rounds: float  # until its first learned play; inf: none in sight
    settled: bool  # in the end the baseline itself was what it found best
    engine: Engine  # what it knew in the end
    gram: Floats  # (d, d) what it would have learned beyond the start: sum of w x x'


def possible_parameters(past: Past, count: int, rng: np.random.Generator) -> Iterator[Floats]:
    """Draw (d,) parameters that fit the observations and give menus rewards in their range.

    They come from the posterior under a normal prior of deviation S / sqrt(d) in every direction,
    the noise being what residuals say, and are moved into the range if need be.
    """
    engine, m = past.engine, past.agent
    state, pooled, terms = engine.states[m], engine.pooled, engine.terms
    dim, noise = pooled.moment.size, _noise_share(engine, m)
    precision = (state.own.gram + pooled.gram) / noise
    prior = dim / terms.theta_bound**2
    values, vectors = np.linalg.eigh(precision)
    root = vectors / np.sqrt(prior + np.maximum(values, 0.0))  # rounding makes some negative
    cov = root @ root.T
    mean = cov @ (state.own.moment + pooled.moment) / noise
    rows, low, high = _ranges(past)
    for _ in range(count):
        yield _into_range(mean + root @ rng.standard_normal(dim), rows, low, high, cov)


def _noise_share(engine: Engine, m: int) -> float:
    """Return the variance of the residuals over what the weights allow for, at most 1."""
    own, pooled, theta = engine.states[m].own, engine.pooled, engine.states[m].estimate.theta
    count = own.scalars[0] + pooled.scalars[0]
    residuals = own.scalars[1] + pooled.scalars[1] - (own.moment + pooled.moment) @ theta
    found = theta.size + max(float(residuals), 0.0)
    return found / float(count) if found < count else 1.0


def _ranges(past: Past) -> tuple[Floats, Floats, Floats]:
    """Return all features on the menus, (n, d), and between what their rewards lie, (n,) each."""
    terms = past.engine.terms
    requests = [request for seen in past.menus for request in seen]
    rows = np.concatenate([request.menu.T for request in requests])
    low, high, start = np.zeros(len(rows)), np.full(len(rows), terms.ceiling), 0
    for request in requests:
        if request.reward is not None:
            low[start + request.baseline] = request.reward - max(terms.tolerance, 0.0)
            high[start + request.baseline] = request.reward + max(terms.tolerance, 0.0)
        start += request.menu.shape[1]
    return rows, low, high


def _into_range(theta: Floats, rows: Floats, low: Floats, high: Floats, cov: Floats) -> Floats:
    """Project theta (d,) on the range that is broken most, again and again, by the metric of V."""
    for _ in range(PROJECTIONS):
        values = rows @ theta
        miss = np.maximum(low - values, values - high)
        k = int(miss.argmax())
        if miss[k] <= FIT:
            break
        image = cov @ rows[k]
        step = miss[k] / float(rows[k] @ image)
        theta = theta + (step if values[k] < low[k] else -step) * image
    return theta


def run_ahead(
    past: Past,
    theta: Floats,
    rng: np.random.Generator,
    *,
    settings: Mapping[str, float] | None = None,
    uniform: bool = False,
) -> Future:
    """Let a copy of the agent go on until its first learned play, at most FAR rounds.

    Parameters
    ----------
    past
        Where it starts.
    theta
        (d,) What rewards are made of.
    rng
        For menus and coins.
    settings
        What it has in the place of the agent's own settings, by the names of `Terms`.
    uniform
        Whether it learns from rows in which somebody else played at random, and nothing besides.
    """
    copy = _Copy(past, theta, rng, settings or {}, uniform)
    while True:
        learned, careful, gram, charges = copy.play()
        if learned or copy.now >= FAR:
            rounds = copy.now if learned else math.inf
            return Future(rounds, careful <= SETTLED, copy.engine, copy.gram)
        copy.learn(gram, charges)


class _Copy:
    """A copy of the agents of a group, of which one is looked at."""

    def __init__(
        self,
        past: Past,
        theta: Floats,
        rng: np.random.Generator,
        settings: Mapping[str, float],
        uniform: bool,
    ) -> None:
        self.past, self.theta, self.rng, self.uniform = past, theta, rng, uniform
        self.engine = past.engine.copy(settings)
        self.agents = [past.agent] if uniform else [j for j, seen in enumerate(past.menus) if seen]
        self.gram, self.now = np.zeros_like(self.engine.pooled.gram), 0.0
        self.tried = 0.0  # rounds with trials
        self.noise = _noise_share(self.engine, past.agent)
        self.volume, self.fit = self._volume_and_fit()

    def play(self) -> tuple[bool, float, Floats, dict[int, float]]:
        """Decide on some menus; return what a round teaches, and costs, on average.

        That is the sum of w x x' (d, d), and what each agent's allowance is charged; before them,
        whether the agent made a learned play, and the share of menus on which it was conservative.
        """
        m, learned, careful, gram = self.past.agent, False, 0, np.zeros_like(self.gram)
        charges = dict.fromkeys(self.agents, 0.0)
        for j in self.agents:
            seen = self.past.menus[j]
            count = MENUS if j == m else max(1, MENUS // len(self.agents))
            for i in self.rng.integers(len(seen), size=count):
                verdict = self._decide(j, seen[i])
                if j == m:
                    learned |= verdict.kind == "learned"
                    careful += verdict.awaited.conservative
                if self.uniform:
                    k = int(self.rng.integers(seen[i].menu.shape[1]))
                    verdict = self._decide(j, seen[i].only(k)._replace(reward=None))
                x, weight = verdict.awaited.x, verdict.awaited.weight
                gram += (weight / count) * np.outer(x, x)
                charges[j] += verdict.charge / count
        return learned, careful / MENUS, gram, charges

    def _decide(self, agent: int, request: Request) -> Verdict:
        turn = int(self.past.rounds + self.now) + 1
        return self.engine.decide(agent, request, self.past.epoch, turn, self.rng.random())

    def learn(self, gram: Floats, charges: Mapping[int, float]) -> None:
        """Learn from a leap of all agents, each round as `play` says; all is pooled at once."""
        tries = any(charges.values())  # charges fall with every trial: leaps begin anew
        rounds = max(FIRST_LEAP, GROWTH * (self.tried if tries else self.now))
        pooled, theta, count = self.engine.pooled, self.theta, rounds * len(self.agents)
        self.now += rounds
        self.tried += rounds * tries
        for j, charge in charges.items():
            self.engine.states[j].spent[0] += rounds * charge
        gram = rounds * gram
        self.gram += gram
        pooled.gram[...] += gram
        pooled.moment[...] += gram @ theta
        pooled.scalars[0] += count
        pooled.scalars[1] += theta @ gram @ theta + self.noise * count
        for j in self.agents:
            self.engine.rebuild(refresh, self.engine.states[j], pooled, self.engine.ridge)
        # Only noise makes predictions go wrong: G grows by its share of log det V.
        volume, fit = self._volume_and_fit()
        pooled.scalars[2] += self.fit + self.noise * (volume - self.volume) - fit
        self.engine.restore_pooled()

    def _volume_and_fit(self) -> tuple[float, float]:
        """Return log det(V / ridge) and G of the agent's view."""
        state, pooled = self.engine.states[self.past.agent], self.engine.pooled
        moment = state.own.moment + pooled.moment
        fit = state.own.scalars[2] + pooled.scalars[2] + moment @ state.estimate.theta
        return float(state.estimate.scalars[0]), float(fit)
