"""A world as the kernels read it: for all agents, or for one of them by itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from guardband.algorithms import Plan
from guardband.errors import InvalidValueError
from guardband.kernels.environment import Draws, EnvironmentArrays, Nature, Sight, TaskTable
from guardband.kernels.state import new_scratch
from guardband.kernels.types import Floats, Ints, Realised
from guardband.problems import Forecast, Fresh, World

__all__ = ["draws_of", "environment_of", "features_of", "task_table", "world_of"]


def task_table(world: World, judged: Floats) -> TaskTable:
    """Return the tasks of all agents."""
    index = np.zeros((len(world.tasks), world.dim), np.int64)
    for m, task in enumerate(world.tasks):
        index[m, : len(task)] = task
    sizes = np.array([len(task) for task in world.tasks], np.int64)
    return TaskTable(np.arange(sizes.size, dtype=np.int64), index, sizes, judged)


def environment_of(world: World, plan: Plan) -> EnvironmentArrays:
    """Return the world as tables: a slot per context, and one for a round that draws its own."""
    shape = (len(world.tasks), len(world.phi))
    gap = np.zeros(shape) if plan.gap is None else plan.gap
    if gap.shape != shape:
        raise InvalidValueError(f"gap must have shape {shape} (agents, contexts), not {gap.shape}.")
    nature = world.nature
    _check_contexts_are_known(world, plan)
    tables: dict[str, Any] = {
        "menu": world.menu,
        "truth": world.truth,
        "expected": world.expected,
        "realised": world.realised,
        "best": world.best,
        "baseline": world.baseline.T,
        "baseline_reward": world.baseline_rewards,
        "gap": gap.T,
    }
    if nature is not None:
        tables = {name: np.concatenate([table, table[:1]]) for name, table in tables.items()}
    # Joining transposed tables leaves them transposed: a slower layout, and kernels of its own.
    tables = {name: np.ascontiguousarray(table) for name, table in tables.items()}
    tables |= {name: tables[name][None] for name in ("menu", "truth")}
    forecast = isinstance(nature, Forecast)
    high = world.facts(1).reward_high if forecast else 0.0
    support = nature.support if isinstance(nature, Forecast) else 0
    std = nature.std if isinstance(nature, Fresh) else 0.0
    # The covariance of phi(k) - (1 - alpha) phi(b) is the same for every action but b.
    scale = std**2 * (1.0 + (1.0 - plan.alpha) ** 2)
    return EnvironmentArrays(
        nature=int(
            Nature.FORECAST if forecast else Nature.TABLE if nature is None else Nature.FRESH
        ),
        **tables,
        contexts=tables["truth"],
        table=np.zeros(shape[0], np.int64),
        group=world.groups[1],
        theta=world.theta,
        masked=world.masked_theta,
        rank=nature.rank if isinstance(nature, Forecast) else 0,
        high=float(high or 0.0),
        context_std=std,
        covariance=scale[:, None, None, None] * np.eye(world.dim)[None, None],
        scratch=new_scratch(world.psi.shape[1], support),
        sight=plan.sight,
        binary=world.binary,
    )


def _check_contexts_are_known(world: World, plan: Plan) -> None:
    """Refuse a promise about the realised context where no context is announced."""
    realised, nature = plan.terms.realised, world.nature
    fresh = isinstance(nature, Fresh) and realised == Realised.CHANCE
    if realised != Realised.NONE and not fresh and not isinstance(nature, Forecast):
        raise InvalidValueError(
            "realised=... needs the possible contexts of each round, which only a forecast "
            "announces; ('chance', eps) is content with nature='fresh', whose covariances are "
            "known."
        )


def features_of(world: World, sight: int) -> tuple[Floats, Ints]:
    """Return (G, C, K, d) features, by which agents choose, of each distinct task, and the groups.

    They are psi, or phi where agents see it, with zeros outside the task.
    """
    table = world.phi if sight == Sight.OBSERVED else world.psi
    tasks, group = world.groups
    features = np.zeros((len(tasks), *table.shape))
    for g, task in enumerate(tasks):
        features[g][..., list(task)] = table[..., list(task)]
    return features, group


def world_of(world: World, agent: int) -> World:
    """Return the world as one agent's task has it, in the task's own coordinates."""
    task = list(world.tasks[agent])
    return replace(
        world,
        phi=np.ascontiguousarray(world.phi[:, :, task]),
        psi=np.ascontiguousarray(world.psi[:, :, task]),
        theta=world.theta[task],
        tasks=(tuple(range(len(task))),),
        baseline=world.baseline[agent : agent + 1],
    )


def draws_of(draws: Draws, agent: int, task: tuple[int, ...]) -> Draws:
    """Return one agent's share of the draws, in its task's own coordinates."""

    def own(array: Floats) -> Floats:
        """Cut the agent's axis; draws that all agents have in common have only one entry."""
        k = min(agent, max(array.shape[1] - 1, 0))
        return np.ascontiguousarray(array[:, k : k + 1])

    def cut(array: Floats) -> Floats:
        return np.ascontiguousarray(array[:, :, list(task)]) if array.size else array

    return draws._replace(
        noise=own(draws.noise),
        coin=own(draws.coin),
        zeta=cut(own(draws.zeta)),
        normal=cut(own(draws.normal)),
        fresh=cut(draws.fresh),
    )
