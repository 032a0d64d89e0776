"""One round of a world: what agents are given, and what stays hidden."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from guardband.kernels.environment import Draws
from guardband.kernels.types import Floats, Ints
from guardband.problems.world import Forecast, Fresh, World

__all__ = ["Round", "round_of"]


class Round(NamedTuple):
    """What is offered in a round, and what is true in it."""

    context: int  # hidden
    psi: Floats  # (K, d) given
    phi: Floats  # (K, d) hidden
    expected: Floats  # (M, K) psi'theta of each agent's task
    realised: Floats  # (M, K) phi'theta of each agent's task
    baseline: Ints  # (M,)
    baseline_reward: Floats  # (M,) as agents are told
    support: Ints  # (S,) the contexts that are possible: with a forecast, what was announced
    weights: Floats  # (S,) their probabilities


def round_of(world: World, draws: Draws, s: int) -> Round:
    """Return round s of a chunk of draws."""
    c, nature, group = int(draws.contexts[s]), world.nature, world.groups[1]
    psi, phi = world.psi[c], world.phi[c]
    baseline, told = world.baseline[:, c], world.baseline_rewards[c]
    support, weights = np.array([c]), np.ones(1)
    if isinstance(nature, Fresh):
        phi = psi + nature.std * draws.fresh[s]
    elif isinstance(nature, Forecast):
        support, weights = draws.support[s], draws.weights[s]
        psi = np.tensordot(weights, world.phi[support], axes=1)
    expected, realised = (world.masked_theta @ table.T for table in (psi, phi))
    if isinstance(nature, Forecast):
        order = np.argsort(-expected, axis=1, kind="stable")
        baseline = order[group, nature.rank - 1]
        told = expected[group, baseline]
    return Round(c, psi, phi, expected[group], realised[group], baseline, told, support, weights)
