"""Rounds of the formal model as the kernels read them: tables for a chunk of rounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from guardband.contexts import Discrete
from guardband.kernels.environment import NO_TABLES, RoundTables
from guardband.kernels.types import Floats, Ints
from guardband.problems import FormalRound, FormalWorld

__all__ = ["announcement", "round_tables"]


def round_tables(
    world: FormalWorld, rounds: Sequence[FormalRound], hidden: Sequence[Any], high: float
) -> RoundTables:
    """Return the tables of some rounds with their hidden contexts.

    Agents may have different numbers of actions. The tables have room for the most; the rest
    repeats an agent's last action. As ties go to the lowest index, no rule that looks for the best
    plays a repetition; one that counts or draws actions must keep to those that are `offered`.

    Parameters
    ----------
    world, rounds
        What is announced.
    hidden
        The context of each round, as `FormalWorld.context` returns it.
    high
        r_h, for the gap gate.
    """
    n, agents = len(rounds), len(world.tasks)
    offered = np.array([[len(own.psi) for own in now.features] for now in rounds])
    contexts = max(len(now.features[0].phi) for now in rounds) if world.announces_contexts else 0
    shape = (agents, n, world.dim, int(offered.max()))
    menu, truth = np.empty(shape), np.empty(shape)
    possible = np.zeros((agents, n, contexts, *shape[2:]))
    for s, (now, context) in enumerate(zip(rounds, hidden, strict=True)):
        for m, phi in enumerate(world.features_at(now, context)):
            own, k = now.features[m], offered[s, m]
            for table, features in ((menu, own.psi), (truth, phi)):
                table[m, s, :, :k] = features.T
                table[m, s, :, k:] = features[-1][:, None]
            if contexts:
                place = possible[m, s, : len(own.phi)]
                place[..., :k] = own.phi.transpose(0, 2, 1)
                place[..., k:] = own.phi[:, -1, :, None]
    expected, realised = _rewards(menu, world.theta), _rewards(truth, world.theta)
    baseline, best = np.array([now.baseline for now in rounds]), expected.argmax(axis=2)
    told = expected if world.model.told == "expected" else realised
    return RoundTables(
        menu=menu,
        truth=truth,
        contexts=possible.reshape(agents, n * contexts, *shape[2:]),
        expected=expected,
        realised=realised,
        best=best,
        baseline=baseline,
        baseline_reward=_at(told, baseline),
        gap=_at(expected, best) - high,
        offered=offered,
        thetas=world.theta[None, None],
        lies=NO_TABLES.lies,
    )


def announcement(rounds: Sequence[FormalRound]) -> tuple[Ints, Floats]:
    """Return (n, S): where the possible contexts of each round stand in the tables, their weights.

    A round with fewer contexts than another has some of weight 0.
    """
    given = [now.law.weights for now in rounds if isinstance(now.law, Discrete)]
    weights = np.zeros((len(given), max(each.size for each in given)))
    for row, each in zip(weights, given, strict=True):
        row[: each.size] = each
    return np.arange(weights.size).reshape(weights.shape), weights


def _rewards(features: Floats, theta: Floats) -> Floats:
    """Return (n, M, K): the rewards without noise."""
    return np.ascontiguousarray(np.einsum("msik,i->smk", features, theta))


def _at(rewards: Floats, rows: Ints) -> Floats:
    """Return (n, M): the reward of one row of each."""
    return np.take_along_axis(rewards, rows[:, :, None], axis=2)[:, :, 0]
