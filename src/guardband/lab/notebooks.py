"""Problems as the authors' notebooks play them: their r_l and r_h, their rho and their zeta.

A descending sort that counts from 0 makes their baseline the next worse action, while r_l and r_h
stay those of the action that was meant. In conservative rounds rho is drawn anew in each round, and
zeta is a normal vector less its own mean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING

import numpy as np

from guardband.algorithms import Algorithm, Conservative
from guardband.facts import Facts
from guardband.kernels.types import Ints
from guardband.problems import (
    LastFm,
    MovieLens,
    NoisyFeatures,
    SyntheticA,
    SyntheticB,
    SyntheticC,
    World,
    rank_baseline,
)
from guardband.sim import Exploration

__all__ = ["NOTEBOOKS", "NotebookWorld", "explores"]


@dataclass(frozen=True, eq=False)
class NotebookWorld(World):
    """A world with the notebooks' confusion of ranks, and their way to explore.

    Parameters
    ----------
    meant
        (M, C): the action that r_l and r_h are those of.
    alpha
        By which rho is drawn.
    """

    meant: Ints = field(kw_only=True)
    alpha: float = field(kw_only=True)

    def facts(self, horizon: int) -> Facts:
        """Return what algorithms may be told, with r_l and r_h of the action that was meant."""
        facts = super().facts(horizon)
        mine = self.realised[:, self.groups[1], :]
        told = np.take_along_axis(mine, self.meant.T[:, :, None], axis=2)
        low, high = float(np.min(told, where=told > 0, initial=told.max())), float(told.max())
        gap = facts.gap
        if gap is not None and facts.reward_high is not None:
            gap = gap + facts.reward_high - high
        return replace(facts, reward_low=low, reward_high=high, gap=gap)

    @property
    def exploration(self) -> Exploration:
        """Rho up to alpha r_l / (norm(theta) + r_h), and 0 where a baseline is worth nothing."""
        facts = self.facts(1)
        reach = float(np.linalg.norm(self.theta)) + (facts.reward_high or 0.0)
        most = self.alpha * max(facts.reward_low or 0.0, 0.0) / reach
        return Exploration(most, np.any(self.baseline_rewards <= 0, axis=1))


class _AsInNotebooks:
    """Makes a problem's worlds those of the notebooks."""

    if TYPE_CHECKING:
        alpha: float
        baseline: int

    def _world(self, seed: int) -> World:
        world: World = super()._world(seed)  # type: ignore[misc]
        meant = rank_baseline(world.phi, world.theta, world.tasks, self.baseline - 1)
        given = {each.name: getattr(world, each.name) for each in fields(World)}
        return NotebookWorld(**given, meant=meant, alpha=self.alpha)


@dataclass(frozen=True, kw_only=True)
class NotebookA(_AsInNotebooks, SyntheticA):
    """Synthetic A; rho is drawn by `alpha`."""

    alpha: float


@dataclass(frozen=True, kw_only=True)
class NotebookB(_AsInNotebooks, SyntheticB):
    """Synthetic B; rho is drawn by `alpha`."""

    alpha: float


@dataclass(frozen=True, kw_only=True)
class NotebookC(_AsInNotebooks, SyntheticC):
    """Synthetic C; rho is drawn by `alpha`."""

    alpha: float


@dataclass(frozen=True, kw_only=True)
class NotebookMovieLens(_AsInNotebooks, MovieLens):
    """MovieLens; rho is drawn by `alpha`."""

    alpha: float


@dataclass(frozen=True, kw_only=True)
class NotebookLastFm(_AsInNotebooks, LastFm):
    """LastFM; rho is drawn by `alpha`."""

    alpha: float


NOTEBOOKS: Mapping[str, Callable[..., NoisyFeatures]] = {
    kind.name: kind for kind in (NotebookA, NotebookB, NotebookC, NotebookMovieLens, NotebookLastFm)
}


def explores(algorithm: Algorithm) -> bool:
    """Return whether it plays (1 - rho) psi_b + rho zeta in conservative rounds."""
    return isinstance(algorithm, Conservative) and algorithm.mix != "action"
