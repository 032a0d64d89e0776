"""The coins of a group of agents: from its seed, and others in every forked process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.random import Generator

from guardband.forks import ForkSafe
from guardband.seeds import stream

__all__ = ["CoinStream", "Coins"]

MANY = 64


class CoinStream:
    """The coins of one stream of random numbers, one after another.

    They are thrown many at a time, as one alone takes three times as long; what is read, and the
    state, are as if each were thrown when it is asked for.
    """

    def __init__(self, generator: Generator) -> None:
        self._generator = generator
        self._before: Mapping[str, Any] = {}  # the state before those that are left were thrown
        self._left: list[float] = []  # the last one comes first

    def random(self) -> float:
        """Return the next coin, uniform on [0, 1)."""
        if not self._left:
            self._before = self._generator.bit_generator.state
            self._left = self._generator.random(MANY)[::-1].tolist()
        return self._left.pop()

    @property
    def state(self) -> Mapping[str, Any]:
        """Where the stream is, as NumPy says it."""
        after = self._generator.bit_generator.state
        if self._left:
            self._generator.bit_generator.state = self._before
            self._generator.random(MANY - len(self._left))
            here = self._generator.bit_generator.state
            self._generator.bit_generator.state = after
            return here
        return after

    @state.setter
    def state(self, state: Mapping[str, Any]) -> None:
        self._generator.bit_generator.state = state
        self._left = []


class Coins(ForkSafe):
    """The coins of agents, one agent's after the other's; and the lock around all they have.

    Parameters
    ----------
    names, seed
        Of the agents.
    holdback
        The probability with which a coin plays the baseline. It has coins of its own: without a
        holdback, nothing else changes.
    """

    def __init__(self, names: Sequence[str], seed: int, holdback: float) -> None:
        super().__init__(1)
        self._owners, self._seed, self._holdback, self._forks = names, seed, holdback, 0
        self._deal([()] * len(names))

    def before_fork(self) -> None:
        """Let no thread be in the middle of a round, and count the fork."""
        super().before_fork()
        self._forks += 1

    def in_child(self) -> None:
        """Throw other coins than the parent, and than every other child."""
        super().in_child()
        self._deal([(self._forks, coin) for coin in self.next_coin])

    def _deal(self, marks: Sequence[tuple[object, ...]]) -> None:
        """Take coins of these marks, and throw the first ones."""
        owners = list(zip(self._owners, marks, strict=True))
        self.coins = [self._stream("coin", name, *mark) for name, mark in owners]
        self.next_coin = [coins.random() for coins in self.coins]
        self.holds = [self._stream("holdback", name, *mark) for name, mark in owners]
        # One that holds nothing back where there is no holdback.
        self.next_hold = [coins.random() if self._holdback else 1.0 for coins in self.holds]

    def _stream(self, *names: object) -> CoinStream:
        return CoinStream(stream(self._seed, *names))

    def draw_coins(self, agent: int) -> None:
        """Go on to the next coins of an agent."""
        self.next_coin[agent] = self.coins[agent].random()
        if self._holdback:
            self.next_hold[agent] = self.holds[agent].random()
