"""Problems as the authors' notebooks play them, and the rules that differ from one to the next.

A descending sort that counts from 0 makes their baseline the next worse action, while r_l and r_h
stay those of the action that was meant, in most notebooks over the rewards of all masks. In
conservative rounds rho and zeta are drawn anew, one of each for all agents. The square in the gap
gate forgets the sign of (r_opt - r_h) + alpha r_b: where a context's optimum is far below r_h, it
opens as if it were as far above.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING

import numpy as np

from guardband.algorithms import Algorithm, Conservative
from guardband.facts import Facts
from guardband.problems import (
    LastFm,
    MovieLens,
    NoisyFeatures,
    SyntheticA,
    SyntheticB,
    SyntheticC,
    World,
)

__all__ = ["NOTEBOOKS", "NotebookRules", "NotebookWorld", "explores"]


@dataclass(frozen=True, kw_only=True)
class NotebookRules:
    """What one notebook does that the text does not say, or says otherwise.

    Attributes
    ----------
    gate, unknown_gate
        The gates of DiSC-UCB and of DiSC-UCB-UB.
    all_masks
        Whether r_l and r_h are taken over the rewards of all masks, whatever the agents' tasks;
        else over those of their tasks.
    rho_high
        What stands for r_h in the largest rho, alpha r_l / (norm(theta) + r_h); None: r_h.
    noise_first
        Whether psi's noise is added before features are divided by the largest reward.
    delta
        None: 1e-3, as usual.
    """

    gate: str = "gap"
    unknown_gate: str = "gap"
    all_masks: bool = True
    rho_high: float | None = None
    noise_first: bool = False
    delta: float | None = None


@dataclass(frozen=True, eq=False)
class NotebookWorld(World):
    """A world with the notebooks' r_l, r_h and gap, and their way to explore.

    Parameters
    ----------
    alpha
        Of the constraint.
    reward_range
        r_l and r_h.
    most_rho
        The largest rho; see `TrialDraws`.
    """

    alpha: float = field(kw_only=True)
    reward_range: tuple[float, float] = field(kw_only=True)
    most_rho: float = field(kw_only=True)

    def facts(self, horizon: int) -> Facts:
        """Return what algorithms may be told, with the notebooks' r_l, r_h and gap."""
        facts = super().facts(horizon)
        low, high = self.reward_range
        gap = facts.gap
        if gap is not None and facts.reward_high is not None:
            gap = gap + facts.reward_high - high
            share = self.alpha * self.baseline_rewards.T
            gap = np.where(gap + share < 0, -gap - 2 * share, gap)  # a square has no sign
        return replace(facts, reward_low=low, reward_high=high, gap=gap)


@dataclass(frozen=True, kw_only=True)
class _AsInNotebooks:
    """Makes a problem's worlds those of the notebooks.

    Parameters
    ----------
    alpha
        Of the constraint.
    rho_alpha
        By which rho is drawn: in panels with several alphas the smallest, for all of them.
    rho_high, all_masks
        See `NotebookRules`.
    """

    alpha: float
    rho_alpha: float
    rho_high: float | None = None
    all_masks: bool = True

    if TYPE_CHECKING:
        baseline: int
        masks: tuple[tuple[int, ...], ...]

    def _world(self, seed: int) -> World:
        world: World = super()._world(seed)  # type: ignore[misc]
        masks = [list(mask) for mask in (self.masks if self.all_masks else world.tasks)]
        rewards = [np.sort(world.phi[..., mask] @ world.theta[mask], axis=1) for mask in masks]
        meant = [each[:, 1 - self.baseline] for each in rewards]
        low, high = float(np.min(meant)), float(np.max(meant))
        reach = np.linalg.norm(world.theta) + (high if self.rho_high is None else self.rho_high)
        given = {each.name: getattr(world, each.name) for each in fields(World)}
        return NotebookWorld(
            **given,
            alpha=self.alpha,
            reward_range=(low, high),
            most_rho=self.rho_alpha * max(low, 0.0) / float(reach),
        )


@dataclass(frozen=True, kw_only=True)
class NotebookA(_AsInNotebooks, SyntheticA):
    """Synthetic A, as in the notebooks."""


@dataclass(frozen=True, kw_only=True)
class NotebookB(_AsInNotebooks, SyntheticB):
    """Synthetic B, as in the notebooks."""


@dataclass(frozen=True, kw_only=True)
class NotebookC(_AsInNotebooks, SyntheticC):
    """Synthetic C, as in the notebooks."""


@dataclass(frozen=True, kw_only=True)
class NotebookMovieLens(_AsInNotebooks, MovieLens):
    """MovieLens, as in the notebooks."""


@dataclass(frozen=True, kw_only=True)
class NotebookLastFm(_AsInNotebooks, LastFm):
    """LastFM, as in the notebooks."""


NOTEBOOKS: Mapping[str, Callable[..., NoisyFeatures]] = {
    kind.name: kind for kind in (NotebookA, NotebookB, NotebookC, NotebookMovieLens, NotebookLastFm)
}


def explores(algorithm: Algorithm) -> bool:
    """Return whether it plays (1 - rho) psi_b + rho zeta in conservative rounds."""
    return isinstance(algorithm, Conservative) and algorithm.mix != "action"
