"""The rounds of the formal model, made one by one from functions, and the world they make up."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from guardband.contexts import Discrete, Gaussian, Samples, expected_features, feature_support
from guardband.errors import InputError, InvalidTypeError, InvalidValueError
from guardband.facts import Facts
from guardband.kernels.types import Floats, Ints
from guardband.problems.noise import RewardNoise
from guardband.problems.world import AnyWorld, Reached
from guardband.seeds import stream

__all__ = ["MOST_ROUNDS", "FormalModel", "FormalRound", "FormalWorld"]

KEPT_NUMBERS = 1 << 21  # 16 MB of features, of distributions that may come again
MOST_ROUNDS = 4096  # in one list: a round takes some kilobytes, however few its features
GLANCE = 100  # rounds that are looked at beforehand where the baseline's range is stated

Law = Discrete | Gaussian


class FormalModel(NamedTuple):
    """What `Formal` is given, checked: functions of the round, counted from 1, and numbers."""

    feature_map: Callable[[int, Any, Any], Any]
    distribution: Callable[[int], Any]  # round -> a distribution of the context
    actions: Callable[[int, int], Any]  # agent, round -> labels
    baseline: int | Callable[[int, int, Floats], int]
    told: str
    samples: int | None
    baseline_range: tuple[float, float] | None
    same_actions: bool  # whether an agent's labels are the same in all rounds


class FeatureTables(NamedTuple):
    """The features of one agent's K actions under a distribution; 0 outside its task."""

    psi: Floats  # (K, d) expected
    phi: Floats  # (n, K, d) in each possible context; of a Gaussian, one deviation off its mean


class FormalRound(NamedTuple):
    """One round before its context is drawn."""

    number: int  # from 1
    law: Law
    features: tuple[FeatureTables, ...]  # of every agent
    baseline: Ints  # (M,)


class Survey(NamedTuple):
    """What is true of all rounds that were looked at."""

    actions: int  # the most in any of them
    reached: Reached
    told: tuple[float, float] | None  # the baseline's smallest positive and largest reward
    best_told: float  # the largest psi_b'theta
    context_noise: float
    dearest: float  # the most that a baseline costs


@dataclass(frozen=True, eq=False)
class FormalWorld(AnyWorld):
    """The formal model in one trial; every round is a function of its number and the seed.

    Parameters
    ----------
    theta, tasks, reward_noise
        As for `World`.
    model
        The functions that rounds are made of.
    seed
        For contexts that are drawn: a Gaussian's, and the draws that stand for a distribution.
    values, costs
        (K,): what each action is worth, and what it costs, in all rounds; None: nothing is said.
    """

    theta: Floats
    tasks: tuple[tuple[int, ...], ...]
    reward_noise: RewardNoise
    model: FormalModel
    seed: int
    values: Floats | None = None
    costs: Floats | None = None

    @cached_property
    def shape(self) -> tuple[int, int, int]:
        """The possible contexts and actions of the first round, and the features: C, K, d."""
        first = self.round(1)
        contexts = len(first.features[0].phi) if self.announces_contexts else 1
        return contexts, max(len(own.psi) for own in first.features), self.dim

    @cached_property
    def announces_contexts(self) -> bool:
        """Whether every round has finitely many contexts, which agents are told."""
        return isinstance(self._law(1)[0], Discrete)

    @cached_property
    def mask(self) -> Floats:
        """(M, d): 1 for the features of an agent's task, else 0."""
        return np.array([np.isin(np.arange(self.dim), task) for task in self.tasks], np.float64)

    def rounds(self, count: int, numbers: int) -> Iterator[list[FormalRound]]:
        """Yield rounds 1 to `count` in lists, none much longer than so many numbers."""
        some: list[FormalRound] = []
        held = 0
        for t in range(1, count + 1):
            some.append(self.round(t))
            held += sum(own.phi.size + 2 * own.psi.size for own in some[-1].features)
            if held >= numbers or len(some) == MOST_ROUNDS or t == count:
                yield some
                some, held = [], 0

    def round(self, t: int) -> FormalRound:
        """Return round t; what the user's functions return is checked."""
        law, drawn = self._law(t)
        if isinstance(law, Discrete) != self.announces_contexts:
            raise InvalidValueError(
                f"the distribution of round {t} is a {type(law).__name__}, that of round 1 is not "
                "of its kind: agents are told which contexts are possible in all rounds or in "
                "none. State samples=..., the number of draws that stand for a Gaussian."
            )
        again = self.model.same_actions and not drawn
        make = self._kept_features if again else self._new_features
        features = tuple(self._told_where(m, t, make, law) for m in self._agents)
        for m in self._agents:
            self._told_where(m, t, self._check_worth, features[m].psi)
        rows = [self._told_where(m, t, self._baseline_in, features[m].psi) for m in self._agents]
        return FormalRound(t, law, features, np.array(rows, np.int64))

    def context(self, now: FormalRound, uniform: float) -> Any:
        """Return the hidden context of a round: which of the possible ones, or a Gaussian draw."""
        law = now.law
        if isinstance(law, Gaussian):
            return law.sample(stream(self.seed, "hidden", now.number), 1)[0]
        possible = np.flatnonzero(law.weights)
        place = int(np.searchsorted(np.cumsum(law.weights[possible]), uniform))
        return int(possible[min(place, possible.size - 1)])

    def features_at(self, now: FormalRound, context: Any) -> list[Floats]:
        """Return every agent's (K, d) true features in a context as `context` returns it."""
        if not isinstance(now.law, Gaussian):
            return [own.phi[context] for own in now.features]
        law = Discrete([context])
        return [self._told_where(m, now.number, self._new_features, law).psi for m in self._agents]

    @property
    def _agents(self) -> range:
        return range(len(self.tasks))

    def _told_where(self, m: int, t: int, make: Callable[..., Any], *given: Any) -> Any:
        """Return make(m, t, *given); an error says for which agent and round."""
        try:
            return make(m, t, *given)
        except InputError as error:
            raise type(error)(f"agent {m}, round {t}: {error}") from error
        except Exception as error:
            error.add_note(f"(a function of a Formal problem; agent {m}, round {t})")
            raise

    def _law(self, t: int) -> tuple[Law, bool]:
        """Return the distribution of round t, and whether it is draws in place of the given one."""
        given, count = self.model.distribution(t), self.model.samples
        if isinstance(given, Discrete) or (isinstance(given, Gaussian) and count is None):
            return given, False
        if not callable(getattr(given, "sample", None)):
            raise InvalidTypeError(
                f"the distribution of round {t} is {given!r}: give a gb.Discrete, gb.Samples or "
                "gb.Gaussian, or an object with sample(rng, n)."
            )
        if count is None:
            raise InvalidValueError(
                f"the distribution of round {t} is known by its draws only: state samples=..., how "
                "many stand for it in each round, such as 200."
            )
        drawn = Samples(given.sample(stream(self.seed, "samples", t), count))
        if len(drawn.contexts) != count:
            raise InvalidValueError(
                f"sample(rng, {count}) returned {len(drawn.contexts)} contexts in round {t}: "
                "return one per draw."
            )
        return drawn, True

    def _kept_features(self, m: int, t: int, law: Law) -> FeatureTables:
        """Return an agent's features under a distribution that may come again in another round."""
        return self._memory(m, law)

    @cached_property
    def _memory(self) -> Callable[[int, Law], FeatureTables]:
        size = self._new_features(0, 1, self._law(1)[0]).phi.size
        most = max(len(self.tasks), KEPT_NUMBERS // size)
        return lru_cache(most)(lambda m, law: self._new_features(m, 1, law))

    def _new_features(self, m: int, t: int, law: Law) -> FeatureTables:
        phi_of, labels = partial(self.model.feature_map, m), self.model.actions(m, t)
        if isinstance(law, Gaussian):
            psi = self._affine(phi_of, labels, law)
            around = Samples(law.mean + law.root.T)
            phi = feature_support(phi_of, labels, around)[0]
        else:
            phi, weights = feature_support(phi_of, labels, law)
            psi = np.tensordot(weights, phi, axes=1)
        if psi.shape[1] != self.mask.shape[1]:
            raise InvalidValueError(
                f"feature_map returned {psi.shape[1]} features, but theta has "
                f"{self.mask.shape[1]}: return one for each; those outside the task are not used."
            )
        masked = FeatureTables(psi * self.mask[m], phi * self.mask[m])
        for array in masked:
            array.setflags(write=False)  # they may be kept, and users' functions see them
        return masked

    def _affine(self, phi_of: Callable[[Any, Any], Any], labels: Any, law: Gaussian) -> Floats:
        try:
            return expected_features(phi_of, labels, law)
        except InvalidValueError as error:
            if "affine" not in str(error):
                raise
            raise InvalidValueError(
                f"{error}; here: state samples=..., how many draws stand for the Gaussian in each "
                "round, such as 200."
            ) from None

    def _check_worth(self, m: int, t: int, psi: Floats) -> None:
        """Refuse values or costs of more or fewer actions than an agent has."""
        for name in ("values", "costs"):
            given = getattr(self, name)
            if given is not None and given.size != len(psi):
                raise InvalidValueError(
                    f"{name} has {given.size} numbers, but there are {len(psi)} actions: give one "
                    "for each, and as many actions in every round."
                )

    def _baseline_in(self, m: int, t: int, psi: Floats) -> int:
        """Return the row of an agent's baseline."""
        rule = self.model.baseline
        if not callable(rule):
            if rule > len(psi):
                raise InvalidValueError(
                    f"baseline is rank {rule}, but there are only {len(psi)} actions: give a rank "
                    f"from 1 (the best) to {len(psi)}, or a function of (agent, round, psi)."
                )
            return int(np.argsort(-(psi @ self.theta), kind="stable")[rule - 1])
        row = rule(m, t, psi)
        try:
            chosen = operator.index(row)
        except TypeError:
            chosen = -1
        if not 0 <= chosen < len(psi):
            raise InvalidValueError(
                f"baseline returned {row!r}; it must return the number of a row of psi, 0 to "
                f"{len(psi) - 1}."
            )
        return chosen

    def reached(self, rounds: int) -> Reached:
        """Return how far features and rewards go: in all rounds, or in the first few."""
        return self._survey(rounds).reached

    def best_told(self, rounds: int) -> float:
        """Return r_h, the largest reward of the baseline that agents are told."""
        survey, stated = self._survey(rounds), self.model.baseline_range
        known = survey.told if stated is None else stated
        return survey.best_told if known is None else known[1]

    def dearest_baseline(self, rounds: int) -> float:
        """Return the most that the baseline costs in the rounds that are looked at; else 0."""
        return self._survey(rounds).dearest

    def facts(self, horizon: int) -> Facts:
        """Return what algorithms may be told; the gap is for those named oracle."""
        survey, stated = self._survey(horizon), self.model.baseline_range
        low, high = (survey.told if stated is None else stated) or (None, None)
        return Facts(
            self.tasks,
            self.dim,
            horizon,
            reward_low=low,
            reward_high=high,
            gap=np.full((len(self.tasks), 1), np.nan),  # each round has its own
            actions=survey.actions,
            context_noise=survey.context_noise,
            bounded=self.binary,
        )

    @cached_property
    def _survey(self) -> Callable[[int], Survey]:
        return lru_cache(self._look)

    def _look(self, rounds: int) -> Survey:
        """Look at the rounds beforehand: all of them, unless the baseline's range is stated."""
        if self.model.baseline_range is not None:
            rounds = min(rounds, GLANCE)
        most, longest, noise, dearest = 0, 0.0, 0.0, 0.0
        rewards, means, drawn = _Range(), _Range(), _Range()
        for now in map(self.round, range(1, rounds + 1)):
            for own, b in zip(now.features, now.baseline, strict=True):
                expected, possible = own.psi @ self.theta, own.phi @ self.theta
                most = max(most, len(expected))
                if self.costs is not None:
                    dearest = max(dearest, float(self.costs[b]))
                longest = max(longest, float(np.linalg.norm(own.psi, axis=1).max()))
                means.see(expected[b])
                if isinstance(now.law, Gaussian):
                    rewards.see(expected)
                    noise = max(noise, float(np.linalg.norm(possible - expected, axis=0).max()))
                    continue
                possible = possible[now.law.weights > 0]
                rewards.see(possible)
                drawn.see(possible[:, b])
                noise = max(noise, 0.5 * float(np.ptp(possible, axis=0).max()))
        told = means if self.model.told == "expected" else drawn
        known = (told.least_positive, told.high)
        return Survey(
            most,
            Reached(longest, rewards.low, rewards.high),
            known if np.isfinite(told.high) else None,
            means.high,
            noise,
            dearest,
        )


class _Range:
    """The range of numbers, and the smallest positive one."""

    def __init__(self) -> None:
        self.low, self.high, self._positive = np.inf, -np.inf, np.inf

    def see(self, values: Any) -> None:
        """Take some numbers in."""
        self.low = min(self.low, float(np.min(values)))
        self.high = max(self.high, float(np.max(values)))
        positive = np.min(values, where=np.greater(values, 0), initial=np.inf)
        self._positive = min(self._positive, float(positive))

    @property
    def least_positive(self) -> float:
        """The smallest positive number; the largest of all where none is positive."""
        return self._positive if np.isfinite(self._positive) else self.high
