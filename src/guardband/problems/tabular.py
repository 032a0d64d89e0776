"""A problem from arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from guardband.checks import as_array, check_choice
from guardband.errors import InvalidTypeError, InvalidValueError
from guardband.kernels.types import Ints
from guardband.problems.base import ProblemAssumptions, Sizes, check_rank
from guardband.problems.noise import RewardNoise, as_noise
from guardband.problems.world import TOLD, World, as_tasks, rank_baseline

__all__ = ["Tabular"]


class Tabular:
    """A problem from arrays: the same world in every trial, contexts uniform.

    Parameters
    ----------
    phi
        (C, K, d): true features of every context and action.
    psi
        (C, K, d): the expected features that agents are given.
    theta
        (d,): the hidden parameter.
    tasks
        One list of feature indices per agent; None: one agent that uses all features.
    baseline
        (M, C) actions; or a whole number: the rank of the baseline's action, 1 = best, by the
        agent's masked phi'theta.
    told
        Which reward of the baseline agents are told: the "realised" phi_b'theta of the round's
        context, or the "expected" psi_b'theta, which the theory assumes.
    reward_std
        The standard deviation of the rewards' Gaussian noise, or another noise model.
    values
        (K,), or (C, K): what each action is worth to the caller, known beforehand; Guard-UCB then
        plays for the value, and the reward only guards. None: the reward is what counts.
    costs
        (K,), or (C, K): what each action costs, for a budget; None: nothing.
    name
        The name in tables.

    Examples
    --------
    >>> import numpy as np
    >>> phi = np.array([[[1.0, 0.0], [0.0, 1.0]]])
    >>> problem = Tabular(phi, phi, [0.6, 0.8], tasks=[[0, 1], [0]], baseline=2)
    >>> problem.build(0).baseline_rewards
    array([[0.6, 0. ]])
    """

    about: ClassVar[str] = "a problem from arrays"

    def __init__(
        self,
        phi: Any,
        psi: Any,
        theta: Any,
        *,
        tasks: Sequence[Sequence[int]] | None = None,
        baseline: Any = 1,
        told: str = "realised",
        reward_std: float | RewardNoise = 0.0,
        values: Any = None,
        costs: Any = None,
        name: str = "tabular",
    ) -> None:
        true = as_array("phi", phi, (None, None, None))
        contexts, actions, dim = true.shape
        indices = as_tasks(tasks, dim)
        parameter = as_array("theta", theta, (dim,))
        if np.ndim(baseline) == 0:
            rank = check_rank(baseline, actions)
            chosen = rank_baseline(true, parameter, indices, rank)
        else:
            chosen = _as_actions(baseline, (len(indices), contexts), actions)
        self.name = name
        self._world = World(
            phi=true,
            psi=as_array("psi", psi, true.shape),
            theta=parameter,
            tasks=indices,
            baseline=chosen,
            reward_noise=as_noise(reward_std),
            told=check_choice("told", told, TOLD),
            values=values,
            costs=costs,
        )

    def build(self, seed: int) -> World:
        """Return the world; it does not depend on the seed."""
        return self._world

    @property
    def sizes(self) -> Sizes:
        """The numbers of agents, contexts, actions and features."""
        contexts, actions, features = self._world.phi.shape
        return {
            "agents": len(self._world.tasks),
            "contexts": contexts,
            "actions": actions,
            "features": features,
        }

    @property
    def context_noise(self) -> float | None:
        """A bound on what the hidden context adds to a reward; None: tables do not declare one."""
        return None

    def assumptions(self) -> ProblemAssumptions:
        """Return settings to start from: plain ones, and bounds that the given tables keep."""
        world = self._world
        return {
            "ridge": 1.0,
            "noise": max(world.reward_noise.std, 1e-3),  # no algorithm can be sure of none at all
            "context_noise": 1.0,
            "theta_bound": max(1.0, float(np.linalg.norm(world.theta))),
            "feature_bound": max(1.0, float(np.linalg.norm(world.psi, axis=2).max())),
            "alpha": 0.1,
            "rounds": 10_000,
        }


def _as_actions(value: Any, shape: tuple[int, int], actions: int) -> Ints:
    array = np.asarray(value)
    if array.shape != shape:
        raise InvalidValueError(
            f"baseline must have shape {shape} (agents, contexts), not {array.shape}."
        )
    if not np.issubdtype(array.dtype, np.integer):
        raise InvalidTypeError(f"baseline must hold whole numbers (actions), not {array.dtype}.")
    wrong = (array < 0) | (array >= actions)
    if wrong.any():
        raise InvalidValueError(
            f"baseline names action {array[wrong][0]}, but actions are numbered 0 to {actions - 1}."
        )
    return np.ascontiguousarray(array, dtype=np.int64)
