"""Makes groups of agents from what a user states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from guardband.agent.budget import Budget
from guardband.agent.group import AgentGroup
from guardband.agent.settings import settle_algorithm, settle_dim
from guardband.algorithms import Algorithm
from guardband.features import Features

__all__ = ["make_group"]


def make_group(
    tasks: Mapping[str, Sequence[int | str] | None],
    dim: int | None,
    features: Features | None,
    algorithm: Algorithm | str | None,
    seed: int,
    budget: Budget | None = None,
    **settings: Any,
) -> AgentGroup:
    """Return agents that run an algorithm with these settings; see `settle_algorithm`.

    A task uses the features that are given by number, or by name with `features`; None: all.
    """
    size = settle_dim(dim, features)
    uses: Any = {name: range(size) if each is None else each for name, each in tasks.items()}
    if features is not None:
        uses = {name: features.indices(each) for name, each in uses.items()}
    settled, feature_bound = settle_algorithm(algorithm, **settings)
    return AgentGroup(
        uses,
        dim=size,
        algorithm=settled,
        feature_bound=feature_bound,
        horizon=settings["horizon"],
        reward_floor=settings["reward_floor"],
        seed=seed,
        features=features,
        budget=budget,
    )
