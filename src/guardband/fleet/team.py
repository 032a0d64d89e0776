"""The shared ground of agents that learn together in one process."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace

from guardband.algorithms import Algorithm, DiscUcb, DiscUcbUnknown
from guardband.checks import as_index_set, check_not_negative, check_whole
from guardband.core.serve import pack_settings
from guardband.core.sync import pool
from guardband.core.types import Floats, Terms, new_fleet, new_statistic, state_of
from guardband.facts import Facts
from guardband.seeds import stream

__all__ = ["Team"]


class Team:
    """Agents in one process: their states, the pooled data, and when to pool.

    A pooling that fell due in an agent's n-th round is carried out when an agent that has n rounds
    behind it decides again. Agents that take turns thus pool between rounds, never within one: no
    decision uses a reward that was earned under the same hidden context.
    """

    def __init__(
        self,
        tasks: Mapping[str, Sequence[int]],
        *,
        dim: int,
        algorithm: Algorithm,
        horizon: int | None,
        reward_floor: float | None,
        seed: int,
    ) -> None:
        self.dim = check_whole("dim", dim)
        if not tasks:
            raise ValueError("tasks is empty: give at least one, such as {'movies': [0, 1, 2]}.")
        self.names = tuple(str(name) for name in tasks)
        self.tasks = tuple(as_index_set(f"task {n!r}", s, dim) for n, s in tasks.items())
        self.algorithm = algorithm
        self.horizon = None if horizon is None else check_whole("horizon", horizon)
        if reward_floor is not None:
            reward_floor = check_not_negative("reward_floor", reward_floor)
        self.reward_floor = reward_floor
        self.seed = check_whole("seed", seed, 0)

        facts = Facts(self.tasks, self.dim, self.horizon, reward_low=reward_floor)
        known, unknown = _both_rules(algorithm)
        plan, other = known.plan(facts), unknown.plan(facts)
        self.known: Terms = plan.terms
        self.noise = float(getattr(algorithm, "noise", math.inf))
        self.known_settings, self.unknown_settings = (
            [pack_settings(p.terms, a, r) for a, r in zip(p.alpha, p.rho, strict=True)]
            for p in (plan, other)
        )

        agents = len(self.names)
        self.lock = threading.RLock()
        self.fleet = new_fleet(agents, self.dim, self.known.ridge)
        self.states = [state_of(self.fleet, m) for m in range(agents)]
        self.pooled = new_statistic(self.dim)
        self.rounds = [0] * agents
        self.rounds_pooled = [0] * agents
        self.logdet_pooled = 0.0
        self.poolings = 0
        self.due_round: int | None = None
        self.coins = [stream(self.seed, "coin", name) for name in self.names]
        self.next_coin = [float(coins.random()) for coins in self.coins]
        self.pending: list[dict[str, tuple[Floats, float]]] = [{} for _ in self.names]

    def settle(self, agent: int) -> None:
        """Pool if it is due and `agent` has finished the round in which it fell due."""
        if self.due_round is None or self.rounds[agent] < self.due_round:
            return
        self.logdet_pooled = pool(self.fleet, self.pooled, self.known.ridge)
        self.rounds_pooled = list(self.rounds)
        self.poolings += 1
        self.due_round = None

    def call_for_pooling(self, agent: int) -> None:
        """Note that `agent` has learned enough for a pooling."""
        if self.due_round is None:
            self.due_round = self.rounds[agent]


def _both_rules(algorithm: Algorithm) -> tuple[Algorithm, Algorithm]:
    """Return the rules for rounds with and without a baseline reward."""
    if isinstance(algorithm, DiscUcb | DiscUcbUnknown):
        algorithm = replace(algorithm, mix="action")  # only real actions can be played
    if isinstance(algorithm, DiscUcb):
        shared = {f.name for f in fields(DiscUcb)} & {f.name for f in fields(DiscUcbUnknown)}
        settings = {name: getattr(algorithm, name) for name in shared - {"gate"}}
        gate = "none" if algorithm.gate == "none" else "printed"
        return algorithm, DiscUcbUnknown(gate=gate, **settings)
    return algorithm, algorithm
