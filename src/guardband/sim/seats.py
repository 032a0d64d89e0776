"""One algorithm at play in one trial: its state, its scene, its books; one seat per loop."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from guardband.algorithms import GuardPlan, Plan
from guardband.core.guarded import DESK_ROWS
from guardband.core.guarded_loop import new_reports, simulate_guarded
from guardband.core.loop import simulate
from guardband.core.scene import Books, Draws, Metric, Nature, Scene, Squad, Trail, new_clock
from guardband.core.types import Floats, Ints, Mix, Realised, Rule, new_fleet, new_statistic
from guardband.problems import Forecast, Fresh, World

__all__ = ["GuardSeat", "PaperSeat", "Record", "Seat", "Trace", "open_seat"]


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
    """What all seats have: agents, scene and books.

    Parameters
    ----------
    world
        The trial's world.
    plan
        The algorithm, made ready for it.
    judged
        (M,): the alpha by which violations are counted.
    marks
        The rounds at which curves are kept.
    rounds
        For how many rounds every play is kept; 0: for none.
    """

    needs_directions = False
    needs_coins = False

    def __init__(self, world: World, plan: Any, judged: Floats, marks: Ints, rounds: int) -> None:
        agents, dim = len(world.tasks), world.dim
        self.terms = plan.terms
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

    def play(self, draws: Draws) -> None:
        """Play one stretch of rounds."""
        raise NotImplementedError

    def record(self) -> Record:
        """Return what was written down."""
        trail = self.trail
        trace = None
        if trail.synced.size:
            rounds = np.flatnonzero(trail.synced) + 1
            trace = Trace(trail.actions, trail.conservative, trail.rewards, rounds)
        return Record(self.books.totals, self.books.curves, self.books.syncs, trace)


class PaperSeat(Seat):
    """The paper's algorithms and their unconstrained kin."""

    def __init__(self, world: World, plan: Plan, judged: Floats, marks: Ints, rounds: int) -> None:
        super().__init__(world, plan, judged, marks, rounds)
        guarded = plan.terms.rule in (Rule.KNOWN, Rule.UNKNOWN)
        self.needs_directions = guarded and plan.terms.mix != Mix.ACTION
        self.needs_coins = guarded and plan.terms.mix == Mix.ACTION

    def play(self, draws: Draws) -> None:
        """Play one stretch of rounds."""
        simulate(
            self.fleet,
            self.pooled,
            self.terms,
            self.squad,
            self.scene,
            draws,
            self.clock,
            self.books,
            self.trail,
        )


class GuardSeat(Seat):
    """Guard-UCB."""

    needs_coins = True

    def __init__(
        self, world: World, plan: GuardPlan, judged: Floats, marks: Ints, rounds: int
    ) -> None:
        super().__init__(world, plan, judged, marks, rounds)
        support = world.nature.support if isinstance(world.nature, Forecast) else 0
        if plan.terms.realised != Realised.NONE and not support:
            raise ValueError(
                "realised=... needs the possible contexts of each round, which only a forecast "
                "announces; use it on a forecast problem, or leave it out."
            )
        self.reports = new_reports(len(world.tasks), world.dim)
        self.desk = np.zeros((DESK_ROWS, max(world.psi.shape[1], support, world.dim)))

    def play(self, draws: Draws) -> None:
        """Play one stretch of rounds."""
        simulate_guarded(
            self.fleet,
            self.pooled,
            self.reports,
            self.terms,
            self.squad,
            self.scene,
            draws,
            self.clock,
            self.books,
            self.trail,
            self.desk,
        )


SEATS: dict[type, type[Seat]] = {Plan: PaperSeat, GuardPlan: GuardSeat}


def open_seat(world: World, plan: Any, judged: Floats, marks: Ints, rounds: int) -> Seat:
    """Return the seat for a plan."""
    return SEATS[type(plan)](world, plan, judged, marks, rounds)


def _squad(world: World, plan: Any, judged: Floats) -> Squad:
    index = np.zeros((len(world.tasks), world.dim), np.int64)
    for m, task in enumerate(world.tasks):
        index[m, : len(task)] = task
    sizes = np.array([len(task) for task in world.tasks], np.int64)
    return Squad(index, sizes, plan.alpha, getattr(plan, "rho", np.zeros_like(plan.alpha)), judged)


def _scene(world: World, plan: Any) -> Scene:
    """Lay the world out in pages; rounds with a page of their own write it to one more."""
    shape = (len(world.tasks), len(world.phi))
    gap = getattr(plan, "gap", None)
    gap = np.zeros(shape) if gap is None else gap
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
    if nature is not None:
        pages = {name: np.concatenate([table, table[:1]]) for name, table in pages.items()}
    # Joining transposed tables leaves them transposed: a slower layout, and kernels of its own.
    pages = {name: np.ascontiguousarray(table) for name, table in pages.items()}
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
