"""One trial: every algorithm of a comparison on one world and one tape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from guardband.algorithms import Algorithm, Plan
from guardband.core.loop import simulate as simulate_stretch
from guardband.core.scene import Books, Metric, Nature, Scene, Squad, Trail, new_clock
from guardband.core.types import Floats, Ints, Mix, Rule, new_fleet, new_statistic
from guardband.problems import Forecast, Fresh, World
from guardband.sim.tape import Replay, Tape

__all__ = ["Record", "Trace", "checkpoints", "numbers_per_sync", "run_trial"]

CURVE_POINTS = 200


class Record(NamedTuple):
    """What one algorithm did in one trial."""

    totals: Floats  # (M, metrics)
    curves: Floats  # (P, M, metrics)
    syncs: Ints  # (P,) poolings up to each checkpoint
    trace: Trace | None


class Trace(NamedTuple):
    """Every round of one trial, to compare with any other implementation."""

    actions: Ints  # (T, M)
    conservative: np.ndarray  # (T, M)
    rewards: Floats  # (T, M) noise-free
    sync_rounds: Ints  # counted from 1


class Seat:
    """One algorithm at play in one trial."""

    def __init__(self, world: World, plan: Plan, judged: Floats, marks: Ints, rounds: int) -> None:
        agents, dim = len(world.tasks), world.dim
        self.terms, self.agents = plan.terms, agents
        self.scene, self.squad = _scene(world, plan), _squad(world, plan, judged)
        self.fleet, self.pooled = new_fleet(agents, dim, plan.terms.ridge), new_statistic(dim)
        self.clock = new_clock()
        self.books = Books(
            totals=np.zeros((agents, len(Metric))),
            checkpoints=marks,
            curves=np.zeros((marks.size, agents, len(Metric))),
            syncs=np.zeros(marks.size, np.int64),
        )
        self.trail = Trail(
            actions=np.zeros((rounds, agents), np.int64),
            conservative=np.zeros((rounds, agents), np.bool_),
            rewards=np.zeros((rounds, agents)),
            synced=np.zeros(rounds, np.bool_),
        )

    def record(self) -> Record:
        """Return what was written down."""
        trail = self.trail
        trace = None
        if trail.synced.size:
            rounds = np.flatnonzero(trail.synced) + 1
            trace = Trace(trail.actions, trail.conservative, trail.rewards, rounds)
        return Record(self.books.totals, self.books.curves, self.books.syncs, trace)


def run_trial(
    world: World,
    algorithms: Sequence[Algorithm],
    *,
    rounds: int,
    seed: int,
    judged: Floats,
    trace: bool = False,
    replay: Replay | None = None,
    advance: Callable[[int], None] = lambda _: None,
) -> list[Record]:
    """Run all algorithms on one world under the same draws; one record for each.

    `judged` is the alpha, per agent, by which violations are counted; `advance` is called with the
    number of rounds done and may raise to stop the trial.
    """
    facts, marks = world.facts(rounds), checkpoints(rounds)
    plans = [algorithm.plan(facts) for algorithm in algorithms]
    seats = [Seat(world, plan, judged, marks, rounds if trace else 0) for plan in plans]
    guarded = [p.terms for p in plans if p.terms.rule in (Rule.KNOWN, Rule.UNKNOWN)]
    tape = Tape(
        world,
        rounds,
        seed,
        directions=any(terms.mix != Mix.ACTION for terms in guarded),
        coins=any(terms.mix == Mix.ACTION for terms in guarded),
        replay=replay,
    )
    for draws in tape.stretches():
        for seat in seats:
            simulate_stretch(
                seat.fleet,
                seat.pooled,
                seat.terms,
                seat.squad,
                seat.scene,
                draws,
                seat.clock,
                seat.books,
                seat.trail,
            )
            advance(draws.contexts.size)
    return [seat.record() for seat in seats]


def checkpoints(rounds: int) -> Ints:
    """Return the rounds at which curves are kept: evenly spaced, the last one included."""
    points = min(rounds, CURVE_POINTS)
    return np.unique(np.ceil(np.linspace(rounds / points, rounds, points)).astype(np.int64))


def numbers_per_sync(agents: int, dim: int) -> int:
    """Return how many numbers one pooling sends: W's half and U, up and down, for every agent."""
    return 2 * agents * (dim * (dim + 1) // 2 + dim)


def _squad(world: World, plan: Plan, judged: Floats) -> Squad:
    index = np.zeros((len(world.tasks), world.dim), np.int64)
    for m, task in enumerate(world.tasks):
        index[m, : len(task)] = task
    sizes = np.array([len(task) for task in world.tasks], np.int64)
    return Squad(index, sizes, plan.alpha, plan.rho, judged)


def _scene(world: World, plan: Plan) -> Scene:
    """Lay the world out in pages; rounds with a page of their own write it to one more."""
    shape = (len(world.tasks), len(world.phi))
    gap = np.zeros(shape) if plan.gap is None else plan.gap
    if gap.shape != shape:
        raise ValueError(f"gap must have shape {shape} (agents, contexts), not {gap.shape}.")
    nature = world.nature
    pages: dict[str, Any] = {
        "menu": world.psi.transpose(0, 2, 1),
        "truth": world.phi.transpose(0, 2, 1),
        "expected": world.expected,
        "realised": world.realised,
        "best": world.best,
        "baseline": world.baseline.T,
        "baseline_reward": world.baseline_rewards,
        "gap": gap.T,
    }
    if nature is None:
        pages = {name: np.ascontiguousarray(table) for name, table in pages.items()}
    else:
        pages = {name: np.concatenate([table, table[:1]]) for name, table in pages.items()}
    forecast = isinstance(nature, Forecast)
    high = world.facts(1).reward_high if forecast else 0.0
    return Scene(
        nature=int(
            Nature.FORECAST if forecast else Nature.TABLE if nature is None else Nature.FRESH
        ),
        **pages,
        group=world.groups[1],
        theta=world.theta,
        masked=world.masked_theta,
        rank=nature.rank if isinstance(nature, Forecast) else 0,
        high=float(high or 0.0),
        spread=nature.std if isinstance(nature, Fresh) else 0.0,
        desk=np.zeros((3, world.psi.shape[1])),
    )
