"""The coins of a group of agents: from its seed, and others in every forked process."""

from __future__ import annotations

from collections.abc import Sequence

from guardband.forks import ForkSafe
from guardband.seeds import stream

__all__ = ["Coins"]


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
        self.coins = [stream(self._seed, "coin", name, *mark) for name, mark in owners]
        self.next_coin = [float(coins.random()) for coins in self.coins]
        self.holds = [stream(self._seed, "holdback", name, *mark) for name, mark in owners]
        self.next_hold = [self.draw_hold(m) for m in range(len(owners))]

    def draw_hold(self, agent: int) -> float:
        """Return the next coin of an agent's holdback; one that holds nothing where it has none."""
        return float(self.holds[agent].random()) if self._holdback else 1.0
