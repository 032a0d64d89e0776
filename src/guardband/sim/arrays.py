"""A world as the kernels read it: for all agents, or for one of them by itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from guardband.algorithms import Plan
from guardband.errors import InvalidValueError
from guardband.kernels.environment import (
    NO_TABLES,
    Draws,
    EnvironmentArrays,
    Fabricated,
    Nature,
    RoundTables,
    Sight,
    TaskTable,
)
from guardband.kernels.state import new_scratch
from guardband.kernels.types import Floats, Ints, Realised
from guardband.problems import (
    MOST_ROUNDS,
    AnyWorld,
    ChangingWorld,
    Forecast,
    FormalWorld,
    Fresh,
    World,
)

__all__ = ["draws_of", "environment_of", "features_of", "in_rounds", "task_table", "world_of"]


def task_table(world: AnyWorld, judged: Floats) -> TaskTable:
    """Return the tasks of all agents."""
    index = np.zeros((len(world.tasks), world.dim), np.int64)
    for m, task in enumerate(world.tasks):
        index[m, : len(task)] = task
    sizes = np.array([len(task) for task in world.tasks], np.int64)
    return TaskTable(np.arange(sizes.size, dtype=np.int64), index, sizes, judged)


def environment_of(world: AnyWorld, plan: Plan) -> EnvironmentArrays:
    """Return the world as tables: a slot per context, and one for a round that draws its own."""
    _check_contexts_are_known(world, plan)
    if isinstance(world, FormalWorld | ChangingWorld):
        return _blank_environment(world, plan)
    assert isinstance(world, World)
    shape = (len(world.tasks), len(world.phi))
    gap = np.zeros(shape) if plan.gap is None else plan.gap
    if gap.shape != shape:
        raise InvalidValueError(f"gap must have shape {shape} (agents, contexts), not {gap.shape}.")
    nature = world.nature
    tables: dict[str, Any] = {
        "menu": world.menu,
        "truth": world.truth,
        "expected": world.expected,
        "realised": world.realised,
        "best": world.best,
        "baseline": world.baseline.T,
        "baseline_reward": world.baseline_rewards,
        "gap": gap.T,
        "offered": np.full(shape[::-1], world.shape[1]),
    }
    if world.values is not None:
        tables["values"] = np.repeat(world.values, shape[1] // len(world.values), axis=0)
    if world.costs is not None:
        tables["costs"] = np.repeat(world.costs, shape[1] // len(world.costs), axis=0)
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
        fabricated=_fabricated(world),
        thetas=world.theta[None, None],
        lies=NO_TABLES.lies,
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


def _blank_environment(world: FormalWorld | ChangingWorld, plan: Plan) -> EnvironmentArrays:
    """Return an environment without tables: every chunk of rounds brings its own."""
    agents, dim = len(world.tasks), world.dim
    tables = NO_TABLES._asdict()
    if plan.gap is not None:
        tables["gap"] = plan.gap.T
    for name in ("values", "costs"):  # the same in every round of a chunk
        given = getattr(world, name, None)
        if given is not None:
            tables[name] = np.tile(given, (MOST_ROUNDS, 1))
    return EnvironmentArrays(
        nature=int(Nature.TABLE),
        **tables,
        fabricated=_fabricated(world),
        group=np.arange(agents),
        theta=world.theta,
        masked=np.zeros((agents, dim)),
        rank=0,
        high=0.0,
        context_std=0.0,
        covariance=np.zeros((agents, 1, dim, dim)),
        scratch=new_scratch(0),
        sight=plan.sight,
        binary=world.binary,
    )


def _fabricated(world: AnyWorld) -> Fabricated:
    """Return what an agent of the world makes up."""
    if isinstance(world, ChangingWorld):
        return world.fabricated
    return Fabricated(np.zeros((world.dim, world.dim)), np.zeros(world.dim), 0.0, 0.0, 0.0)


def in_rounds(env: EnvironmentArrays, draws: Draws, gap: Floats) -> EnvironmentArrays:
    """Return the environment in a chunk of rounds: with the chunk's own tables, if it has some.

    `gap` is what the plan says of it: nothing, or NaN where it is the round's own.
    """
    tables = draws.tables._asdict()
    if not draws.tables.offered.size:
        return env
    if gap.size:
        tables["gap"] = np.where(np.isnan(gap), tables["gap"], gap)
    scratch = new_scratch(draws.tables.menu.shape[3], draws.support.shape[1])
    return env._replace(**tables, scratch=scratch)


def _check_contexts_are_known(world: AnyWorld, plan: Plan) -> None:
    """Refuse a promise about the realised context where no context is announced."""
    realised, nature = plan.terms.realised, getattr(world, "nature", None)
    fresh = isinstance(nature, Fresh) and realised == Realised.CHANCE
    if realised != Realised.NONE and not fresh and not world.announces_contexts:
        raise InvalidValueError(
            "realised=... needs the possible contexts of each round, which only a forecast "
            "announces (of a Gaussian, one with samples=...); ('chance', eps) is content with "
            "nature='fresh', whose covariances are known."
        )


def features_of(world: AnyWorld, sight: int) -> tuple[Floats, Ints]:
    """Return (G, C, K, d) features, by which agents choose, of each distinct task, and the groups.

    They are psi, or phi where agents see it, with zeros outside the task.
    """
    if isinstance(world, FormalWorld | ChangingWorld):  # nothing is known beforehand
        agents = len(world.tasks)
        return np.zeros((agents, 0, 0, world.dim)), np.arange(agents)
    assert isinstance(world, World)
    table = world.phi if sight == Sight.OBSERVED else world.psi
    tasks, group = world.groups
    features = np.zeros((len(tasks), *table.shape))
    for g, task in enumerate(tasks):
        features[g][..., list(task)] = table[..., list(task)]
    return features, group


def world_of(world: AnyWorld, agent: int) -> AnyWorld:
    """Return the world as one agent's task has it, in the task's own coordinates."""
    task = list(world.tasks[agent])
    if isinstance(world, FormalWorld | ChangingWorld):
        return replace(world, theta=world.theta[task], tasks=(tuple(range(len(task))),))
    assert isinstance(world, World)
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

    def own(array: Any) -> Any:
        """Cut the agent's axis; draws that all agents have in common have only one entry."""
        k = min(agent, max(array.shape[1] - 1, 0))
        return np.ascontiguousarray(array[:, k : k + 1])

    def cut(array: Floats) -> Floats:
        return np.ascontiguousarray(array[:, :, list(task)]) if array.size else array

    tables = draws.tables
    if tables.offered.size:
        mine: dict[str, Any] = {name: own(table) for name, table in tables._asdict().items()}
        for name in ("menu", "truth", "contexts"):
            mine[name] = cut(getattr(tables, name)[agent : agent + 1])
        mine["thetas"] = cut(mine["thetas"])
        tables = RoundTables(**mine)
    return draws._replace(
        tables=tables,
        noise=own(draws.noise),
        coin=own(draws.coin),
        zeta=cut(own(draws.zeta)),
        normal=cut(own(draws.normal)),
        fresh=cut(draws.fresh),
    )
