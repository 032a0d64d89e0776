"""All random draws of a trial, made in chunks of rounds, one named random stream per quantity.

Every algorithm of a comparison gets the same draws: the same contexts, noise, directions and
coins. Chunks keep memory flat in the horizon; their length does not change what is drawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from guardband.checks import as_array
from guardband.errors import InvalidValueError
from guardband.kernels.environment import Draws
from guardband.kernels.linalg import to_unit_length
from guardband.kernels.types import Floats, Ints
from guardband.problems import (
    AnyWorld,
    ChangingWorld,
    Forecast,
    FormalRound,
    FormalWorld,
    Fresh,
    World,
)
from guardband.seeds import stream
from guardband.sim.round_tables import announcement, round_tables

__all__ = ["Replay", "TrialDraws"]

CHUNK_NUMBERS = 1 << 19  # about 4 MB of draws at a time

LEAST_RHO = 1e-10  # of those that are drawn

NO_RHO, NO_NOISE = np.zeros(0), np.zeros((0, 0, 0))
NO_SUPPORT, NO_WEIGHTS = np.zeros((1, 0), np.int64), np.zeros((1, 0))
NO_ORDER, NO_COINS = np.zeros((0, 0), np.int64), np.zeros((0, 0))


@dataclass(frozen=True)
class Replay:
    """Every random draw of a trial, from arrays; used as given.

    Parameters
    ----------
    contexts
        (T,): the context of each round. Of `gb.problems.Formal`, its number among the possible
        ones of the round; of a Gaussian, (T, p): the contexts themselves.
    reward_noise
        (T, M): the reward noise, added to the noise-free reward of what was played.
    rho
        (T,): the exploration weight of each round, the same for every agent.
    zeta
        (T, d): the exploration direction of each round, the same for every agent.
    coin
        (T, M): uniform numbers for mix="action"; it explores where the coin is below rho.
    normal
        (T, M, d): standard normal numbers for sampled parameters; an agent reads its own task's.
    order
        (T, M): the order in which asynchronous agents act; None: as they are numbered.
    hold
        (T, M): uniform numbers for the holdback; it plays the baseline where one is below it.

    Examples
    --------
    >>> import numpy as np
    >>> import guardband as gb
    >>> menu = np.array([[[0.6, 0.2], [0.1, 0.9]]])  # one context, two actions, two features
    >>> problem = gb.Tabular(menu, menu, theta=[0.5, 0.8], baseline=2)
    >>> none = np.zeros((3, 2))  # three rounds without noise and exploration
    >>> replay = gb.Replay([0, 0, 0], reward_noise=none[:, :1], rho=none[:, 0], zeta=none)
    >>> results = gb.simulate(problem, "baseline", replay=replay, trace=True)
    >>> results.trace.rewards.ravel()
    array([0.46, 0.46, 0.46])
    """

    contexts: Any
    reward_noise: Any
    rho: Any
    zeta: Any
    coin: Any = None
    normal: Any = None
    order: Any = None
    hold: Any = None


class TrialDraws:
    """The draws of one trial.

    Rho is what algorithms make it, and zeta uniform on the sphere, for each agent. Where the world
    has a `most_rho`, both are drawn in each round and the same for all agents: rho uniformly from
    (LEAST_RHO, most_rho], zeta as a normal vector less the mean of its coordinates, of length one.

    Parameters
    ----------
    world
        The trial's world.
    rounds
        How many rounds to draw.
    seed
        The trial's seed.
    directions, coins, normals, orders, holds
        Whether any algorithm needs them.
    replay
        Arrays to take the draws from instead.
    """

    def __init__(
        self,
        world: AnyWorld,
        rounds: int,
        seed: int,
        *,
        directions: bool = True,
        coins: bool = True,
        normals: bool = False,
        orders: bool = False,
        holds: bool = False,
        replay: Replay | None = None,
    ) -> None:
        self.world, self.rounds, self.seed = world, rounds, seed
        self.directions, self.coins, self.normals, self.orders = directions, coins, normals, orders
        self.holds = holds
        self._given = None
        if replay is not None:
            needs = {"coins": coins, "normals": normals, "holds": holds}
            self._given = _checked(replay, world, rounds, **needs)

    def chunks(self) -> Iterator[Draws]:
        """Yield the draws of successive rounds."""
        agents, dim = len(self.world.tasks), self.world.dim
        if self._given is not None:
            yield from self._replayed(self._given)
            return
        names = ("noise", "zeta", "coin", "normal", "order", "rho", "holdback")
        noise, zeta, coin, normal, order, weight, hold = (stream(self.seed, n) for n in names)
        most_rho: float | None = getattr(self.world, "most_rho", None)
        for nature in self._nature():
            n = nature.contexts.size
            directions, rho = nature.zeta, NO_RHO
            if self.directions:
                directions = zeta.standard_normal((n, agents if most_rho is None else 1, dim))
                if most_rho is not None:
                    directions -= directions.mean(axis=2, keepdims=True)
                    rho = most_rho - (most_rho - LEAST_RHO) * weight.random(n)
                to_unit_length(directions)
            yield nature._replace(
                noise=self.world.reward_noise.draw(noise, (n, agents)),
                zeta=directions,
                coin=coin.random((n, agents)) if self.coins else np.zeros((n, agents)),
                rho=rho,
                normal=normal.standard_normal((n, agents, dim)) if self.normals else NO_NOISE,
                order=np.argsort(order.random((n, agents)), axis=1) if self.orders else NO_ORDER,
                hold=hold.random((n, agents)) if self.holds else NO_COINS,
            )

    def _nature(self) -> Iterator[Draws]:
        """Yield chunks with contexts and features, and nothing else drawn yet."""
        world, context = self.world, stream(self.seed, "context")
        blank = Draws(
            contexts=np.zeros(0, np.int64),
            noise=NO_WEIGHTS,
            zeta=np.zeros((0, 1, world.dim)),
            coin=NO_WEIGHTS,
            rho=NO_RHO,
            fresh=NO_NOISE,
            support=NO_SUPPORT,
            weights=NO_WEIGHTS,
        )
        if isinstance(world, ChangingWorld):
            for tables in world.chunks(self.rounds, CHUNK_NUMBERS):
                yield blank._replace(contexts=np.arange(len(tables.best)), tables=tables)
            return
        if isinstance(world, FormalWorld):
            for rounds in world.rounds(self.rounds, CHUNK_NUMBERS):
                uniform = context.random(len(rounds)).tolist()
                drawn = [world.context(now, u) for now, u in zip(rounds, uniform, strict=True)]
                yield self._formal(blank, world, rounds, drawn)
            return
        assert isinstance(world, World)
        contexts, actions, dim = world.shape
        nature, agents = world.nature, len(world.tasks)
        phi, choice, chance = (stream(self.seed, name) for name in ("phi", "support", "weights"))
        width = agents * (dim + 2)
        if isinstance(nature, Fresh):
            width += actions * dim
        if isinstance(nature, Forecast):
            width += contexts + 2 * nature.support
        length = max(64, CHUNK_NUMBERS // width)
        for start in range(0, self.rounds, length):
            n = min(length, self.rounds - start)
            hidden = context.random(n)
            fresh, support, weights = NO_NOISE, NO_SUPPORT, NO_WEIGHTS
            if isinstance(nature, Fresh):
                fresh = phi.standard_normal((n, actions, dim))
            if isinstance(nature, Forecast):
                support, weights = _forecasts(choice, chance, n, contexts, nature)
                picked = _pick(support, weights, hidden)
            else:
                picked = np.minimum((hidden * contexts).astype(np.int64), contexts - 1)
            yield blank._replace(contexts=picked, fresh=fresh, support=support, weights=weights)

    def _formal(
        self, blank: Draws, world: FormalWorld, rounds: list[FormalRound], hidden: list[Any]
    ) -> Draws:
        """Return a chunk of the formal model: every round has a slot of its own in the tables."""
        tables = round_tables(world, rounds, hidden, world.best_told(self.rounds))
        slots = np.arange(len(rounds))
        if not world.announces_contexts:
            return blank._replace(contexts=slots, tables=tables)
        support, weights = announcement(rounds)
        return blank._replace(contexts=slots, support=support, weights=weights, tables=tables)

    def _replayed(self, given: Draws) -> Iterator[Draws]:
        """Yield the draws that were given; features of the formal model are made as they go."""
        world = self.world
        if not isinstance(world, FormalWorld):
            yield given
            return
        start = 0
        for rounds in world.rounds(self.rounds, CHUNK_NUMBERS):
            part = slice(start, start + len(rounds))
            start = part.stop
            hidden = list(given.contexts[part])
            for now, c in zip(rounds, hidden, strict=True):
                possible = len(now.features[0].phi)
                if world.announces_contexts and c >= possible:
                    raise InvalidValueError(
                        f"replay.contexts[{now.number - 1}] is {c}, but round {now.number} has "
                        f"{possible} contexts, numbered from 0."
                    )
            piece = given._replace(
                **{
                    name: getattr(given, name)[part]
                    for name in ("noise", "zeta", "coin", "rho", "normal", "order", "hold")
                }
            )
            yield self._formal(piece, world, rounds, hidden)


def _forecasts(
    choice: Generator, chance: Generator, rounds: int, contexts: int, nature: Forecast
) -> tuple[Ints, Floats]:
    """Draw each round's possible contexts and their probabilities."""
    # Sorting uniforms draws without replacement; gammas divided by their sum are Dirichlet.
    order = np.argsort(choice.random((rounds, contexts)), axis=1)[:, : nature.support]
    weights = chance.standard_gamma(nature.sharpness, (rounds, nature.support))
    weights /= weights.sum(axis=1, keepdims=True)
    return np.ascontiguousarray(order, dtype=np.int64), weights


def _pick(support: Ints, weights: Floats, uniform: Floats) -> Ints:
    """Draw one of each round's possible contexts."""
    column = (np.cumsum(weights, axis=1) < uniform[:, None]).sum(axis=1)
    column = np.minimum(column, support.shape[1] - 1)
    return np.take_along_axis(support, column[:, None], axis=1)[:, 0]


def _checked(
    replay: Replay, world: AnyWorld, rounds: int, *, coins: bool, normals: bool, holds: bool
) -> Draws:
    agents, dim = len(world.tasks), world.dim
    nature = world if isinstance(world, ChangingWorld) else getattr(world, "nature", None)
    if nature is not None:
        raise InvalidValueError(
            "a replay holds no features, but this problem draws some in each round "
            f"({type(nature).__name__}): replay a problem whose tables are fixed."
        )
    if coins and replay.coin is None:
        raise InvalidValueError(
            "mix='action' tosses a coin in each round: give Replay(coin=(T, M) array)."
        )
    if normals and replay.normal is None:
        raise InvalidValueError(
            "Thompson sampling needs normal draws: give Replay(normal=(T, M, d) array)."
        )
    if holds and replay.hold is None:
        raise InvalidValueError(
            "holdback=... tosses a coin in each round: give Replay(hold=(T, M) array)."
        )
    coin = np.zeros((rounds, agents)) if replay.coin is None else replay.coin
    hold = NO_COINS
    if replay.hold is not None:
        hold = as_array("replay.hold", _head(replay.hold, rounds), (rounds, agents))
    normal = NO_NOISE
    if replay.normal is not None:
        shape = (rounds, agents, dim)
        normal = as_array("replay.normal", _head(replay.normal, rounds), shape)
    return Draws(
        contexts=_as_contexts(replay.contexts, rounds, world),
        noise=as_array("replay.reward_noise", _head(replay.reward_noise, rounds), (rounds, agents)),
        zeta=as_array("replay.zeta", _head(replay.zeta, rounds), (rounds, dim))[:, None, :].copy(),
        coin=as_array("replay.coin", _head(coin, rounds), (rounds, agents)),
        rho=as_array("replay.rho", _head(replay.rho, rounds), (rounds,)),
        fresh=NO_NOISE,
        support=NO_SUPPORT,
        weights=NO_WEIGHTS,
        normal=normal,
        order=_as_order(replay.order, rounds, agents),
        hold=hold,
    )


def _head(values: Any, rounds: int) -> Floats:
    return np.asarray(values, dtype=np.float64)[:rounds]


def _as_contexts(values: Any, rounds: int, world: AnyWorld) -> Any:
    """Return the contexts of a replay: numbers, or a Gaussian's contexts themselves."""
    if isinstance(world, FormalWorld) and not world.announces_contexts:
        return as_array("replay.contexts", _head(values, rounds), (rounds, None))
    array = np.asarray(values)[:rounds]
    if array.shape != (rounds,) or not np.issubdtype(array.dtype, np.integer):
        raise InvalidValueError(
            f"replay.contexts must be {rounds} whole numbers, not {array.dtype} of shape "
            f"{array.shape}."
        )
    contexts = world.shape[0] if isinstance(world, World) else np.iinfo(np.int64).max
    if array.min() < 0 or array.max() >= contexts:
        raise InvalidValueError(
            f"replay.contexts holds {array.min()} to {array.max()}, but contexts are numbered 0 to "
            f"{contexts - 1}."
        )
    return np.ascontiguousarray(array, dtype=np.int64)


def _as_order(values: Any, rounds: int, agents: int) -> Ints:
    if values is None:
        return np.tile(np.arange(agents), (rounds, 1))
    array = np.asarray(values)[:rounds]
    if array.shape != (rounds, agents) or (np.sort(array, axis=1) != np.arange(agents)).any():
        raise InvalidValueError(
            f"replay.order must name each of the {agents} agents once in each of {rounds} rounds."
        )
    return np.ascontiguousarray(array, dtype=np.int64)
