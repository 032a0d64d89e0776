"""One algorithm in one trial: its state, its environment, its metrics; one runner per loop."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from guardband.algorithms import GuardPlan, Phases, Phasing, Plan, Traffic, packed
from guardband.kernels.asynchronous import simulate_asynchronous
from guardband.kernels.environment import (
    Clock,
    Draws,
    EnvironmentArrays,
    Metric,
    Metrics,
    TaskTable,
    TraceArrays,
    new_clock,
)
from guardband.kernels.guard_ucb import SCRATCH_ROWS
from guardband.kernels.guarded_loop import new_reports, simulate_guarded
from guardband.kernels.loop import simulate
from guardband.kernels.phased import simulate_phase
from guardband.kernels.rivals import Solo, UploadRule
from guardband.kernels.solo import new_budget, simulate_solo
from guardband.kernels.types import Floats, Ints, Realised, new_fleet, new_statistic, state_of
from guardband.problems import Forecast, Fresh, World
from guardband.sim.arrays import draws_of, environment_of, features_of, task_table, world_of

__all__ = ["CommonRunner", "GuardRunner", "Runner", "Trace", "TrialResult", "make_runner"]


class TrialResult(NamedTuple):
    """What one algorithm did in one trial."""

    totals: Floats  # (M, metrics)
    curves: Floats  # (P, M, metrics)
    syncs: Ints  # (P,) exchanges up to each checkpoint
    trace: Trace | None
    traffic: Traffic  # of one exchange
    seconds: float = 0.0  # of one core


class Trace(NamedTuple):
    """Every round of one trial, to compare with any other implementation."""

    actions: Ints  # (T, M)
    conservative: np.ndarray  # (T, M)
    rewards: Floats  # (T, M) noise-free
    sync_rounds: Ints  # counted from 1


class Runner:
    """What all runners have: agents, env and metrics.

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

    Attributes
    ----------
    needs
        Which draws it reads beside contexts and noise.
    traffic
        What one exchange between agents and server sends.
    """

    needs: frozenset[str]
    traffic: Traffic

    def __init__(self, world: World, plan: Any, judged: Floats, marks: Ints, rounds: int) -> None:
        agents, dim = len(world.tasks), world.dim
        self.terms = plan.terms
        self.env, self.tasks = environment_of(world, plan), task_table(world, plan, judged)
        self.fleet, self.pooled = new_fleet(agents, dim, plan.terms.ridge), new_statistic(dim)
        self.clock = new_clock()
        self.metrics = Metrics(
            totals=np.zeros((agents, len(Metric))),
            checkpoints=marks,
            curves=np.zeros((marks.size, agents, len(Metric))),
            syncs=np.zeros(marks.size, np.int64),
        )
        self.trace = TraceArrays(
            actions=np.zeros((rounds, agents), np.int64),
            conservative=np.zeros((rounds, agents), np.bool_),
            rewards=np.zeros((rounds, agents)),
            synced=np.zeros(rounds, np.bool_),
        )

    @property
    def inputs(self) -> tuple[Any, TaskTable, EnvironmentArrays]:
        """What every loop reads beside its agents and the draws."""
        return self.terms, self.tasks, self.env

    @property
    def outputs(self) -> tuple[Clock, Metrics, TraceArrays]:
        """Where every loop writes."""
        return self.clock, self.metrics, self.trace

    def play(self, draws: Draws) -> None:
        """Play a chunk of rounds."""
        raise NotImplementedError

    def record(self) -> TrialResult:
        """Return what was written down."""
        arrays, trace = self.trace, None
        if arrays.synced.size:
            rounds = np.flatnonzero(arrays.synced) + 1
            trace = Trace(arrays.actions, arrays.conservative, arrays.rewards, rounds)
        metrics = self.metrics
        return TrialResult(metrics.totals, metrics.curves, metrics.syncs, trace, self.traffic)


class CommonRunner(Runner):
    """The paper's algorithms and their unconstrained kin."""

    def __init__(self, world: World, plan: Plan, judged: Floats, marks: Ints, rounds: int) -> None:
        super().__init__(world, plan, judged, marks, rounds)
        self.needs, self.traffic = plan.streams, plan.traffic

    def play(self, draws: Draws) -> None:
        """Play a chunk of rounds."""
        simulate(self.fleet, self.pooled, *self.inputs, draws, *self.outputs)


class GuardRunner(Runner):
    """Guard-UCB."""

    needs = frozenset({"coin"})

    def __init__(
        self, world: World, plan: GuardPlan, judged: Floats, marks: Ints, rounds: int
    ) -> None:
        super().__init__(world, plan, judged, marks, rounds)
        support = world.nature.support if isinstance(world.nature, Forecast) else 0
        fresh = isinstance(world.nature, Fresh) and plan.terms.realised == Realised.CHANCE
        if plan.terms.realised != Realised.NONE and not support and not fresh:
            raise ValueError(
                "realised=... needs the possible contexts of each round, which only a forecast "
                "announces; ('chance', eps) is content with nature='fresh', whose covariances are "
                "known."
            )
        # The covariance of phi(k) - (1 - alpha) phi(b) is the same for every action but b.
        std = world.nature.std if isinstance(world.nature, Fresh) else 0.0
        scale = std**2 * (1.0 + (1.0 - plan.alpha) ** 2)
        self.covariance = scale[:, None, None, None] * np.eye(world.dim)[None, None]
        agents = len(world.tasks)
        numbers = packed(world.dim) + 2  # H and the sum of weights go with W and U
        if plan.terms.anchors:
            numbers += packed(world.dim) + 2
        self.traffic = Traffic(2 * agents, 2 * agents * numbers)
        self.reports = new_reports(agents, world.dim)
        self.scratch = np.zeros((SCRATCH_ROWS, max(world.psi.shape[1], support, world.dim)))

    def play(self, draws: Draws) -> None:
        """Play a chunk of rounds."""
        agents = (self.fleet, self.pooled, self.reports)
        simulate_guarded(*agents, *self.inputs, draws, *self.outputs, self.scratch, self.covariance)


class AsynchronousRunner(CommonRunner):
    """Agents that talk to the server one by one."""

    def __init__(self, world: World, plan: Plan, judged: Floats, marks: Ints, rounds: int) -> None:
        super().__init__(world, plan, judged, marks, rounds)
        self.upload = plan.method
        self.held = new_fleet(len(world.tasks), world.dim, plan.terms.ridge).estimate

    def play(self, draws: Draws) -> None:
        """Play a chunk of rounds."""
        agents = (self.fleet, self.held, self.pooled, self.upload)
        simulate_asynchronous(*agents, *self.inputs, draws, *self.outputs)


class PhasedRunner(CommonRunner):
    """Agents that follow a phase until the end of a phase, and then pool."""

    def __init__(self, world: World, plan: Plan, judged: Floats, marks: Ints, rounds: int) -> None:
        super().__init__(world, plan, judged, marks, rounds)
        assert isinstance(plan.method, Phasing)
        self.phases: Phases = plan.method.begin(*features_of(world, plan.sight))
        self.done = 0

    def play(self, draws: Draws) -> None:
        """Play a chunk of rounds; phases end within it as they may."""
        start, end = 0, draws.contexts.size
        while start < end:
            length = self.phases.length
            stop = min(end, start + length - self.done)
            simulate_phase(self.phases.phase, *self.inputs, draws, *self.outputs, start, stop)
            self.done += stop - start
            start = stop
            if self.done == length:
                self._turn()

    def _turn(self) -> None:
        self.phases.turn()
        self.done = 0
        now, _, _, passed = (int(i) for i in self.clock.ints)
        self.clock.ints[2] += 1
        if self.trace.synced.size:
            self.trace.synced[now - 1] = True
        if passed and self.metrics.checkpoints[passed - 1] == now:
            self.metrics.syncs[passed - 1] = self.clock.ints[2]


class LoneRunner(CommonRunner):
    """One agent by itself: its world has no more features than its task."""

    def __init__(self, world: World, plan: Plan, judged: Floats, marks: Ints, rounds: int) -> None:
        super().__init__(world, plan, judged, marks, rounds)
        self.solo, self.budget = plan.method, new_budget(world.dim)

    def play(self, draws: Draws) -> None:
        """Play a chunk of rounds."""
        agent = (state_of(self.fleet, 0), self.pooled, self.budget, self.solo)
        simulate_solo(*agent, *self.inputs, draws, *self.outputs)


class SoloRunner:
    """M independent copies of a single-task method."""

    def __init__(self, world: World, plan: Plan, judged: Floats, marks: Ints, rounds: int) -> None:
        self.needs, self.tasks = plan.streams, world.tasks
        self.agents = []
        for m in range(len(world.tasks)):
            own = slice(m, m + 1)
            gap = None if plan.gap is None else plan.gap[own]
            mine = plan._replace(alpha=plan.alpha[own], rho=plan.rho[own], gap=gap)
            self.agents.append(LoneRunner(world_of(world, m), mine, judged[own], marks, rounds))

    def play(self, draws: Draws) -> None:
        """Play a chunk of rounds."""
        for m, lone in enumerate(self.agents):
            lone.play(draws_of(draws, m, self.tasks[m]))

    def record(self) -> TrialResult:
        """Return what was written down, of all agents side by side."""
        records = [lone.record() for lone in self.agents]
        traces = [record.trace for record in records if record.trace is not None]
        trace = None
        if traces:
            trace = Trace(
                np.concatenate([each.actions for each in traces], axis=1),
                np.concatenate([each.conservative for each in traces], axis=1),
                np.concatenate([each.rewards for each in traces], axis=1),
                traces[0].sync_rounds,
            )
        return records[0]._replace(
            totals=np.concatenate([record.totals for record in records]),
            curves=np.concatenate([record.curves for record in records], axis=1),
            trace=trace,
        )


RUNNERS: dict[type, type[Runner | SoloRunner]] = {
    Plan: CommonRunner,
    GuardPlan: GuardRunner,
    Solo: SoloRunner,
    UploadRule: AsynchronousRunner,
    Phasing: PhasedRunner,
}


def make_runner(
    world: World, plan: Any, judged: Floats, marks: Ints, rounds: int
) -> Runner | SoloRunner:
    """Return the runner for a plan: by its method, if that has a loop of its own."""
    kind = type(getattr(plan, "method", None) or plan)
    return RUNNERS[kind](world, plan, judged, marks, rounds)
