"""What an algorithm may be told about a problem before it starts.

Whatever an algorithm knows beyond its own settings is a field here. `gap` is hidden in practice:
only the variants named "oracle" read it.
"""

from __future__ import annotations

from dataclasses import dataclass

from guardband.kernels.types import Floats

__all__ = ["Facts"]


@dataclass(frozen=True)
class Facts:
    """The facts of a problem that algorithms may use.

    Parameters
    ----------
    tasks
        One tuple of feature indices per agent.
    dim
        The number of features, d.
    horizon
        The number of rounds T, or None if it is open.
    reward_low, reward_high
        Bounds r_l <= r_b <= r_h on the baseline's reward, or None where they are not known.
    gap
        (M, C): the lead of each context's optimum over the best baseline reward, r_opt - r_h.
    actions
        K, or None where menus may have any length.
    contexts
        How many contexts there are whose expected features are known beforehand; None where
        every round brings its own.
    frozen
        Whether a context has the same true features in every round.
    context_noise
        The true standard deviation of (phi - psi)'theta, or half its range where it is bounded;
        knowledge about the problem, for constant="tight" only.
    bounded
        Whether every reward is known to lie in [0, 1].
    size
        How many agents there are, where `tasks` has only those of this process; None: no others.
    """

    tasks: tuple[tuple[int, ...], ...]
    dim: int
    horizon: int | None = None
    reward_low: float | None = None
    reward_high: float | None = None
    gap: Floats | None = None
    actions: int | None = None
    contexts: int | None = None
    frozen: bool = False
    context_noise: float | None = None
    bounded: bool = False
    size: int | None = None

    @property
    def agents(self) -> int:
        """The number of agents, M."""
        return len(self.tasks) if self.size is None else self.size
