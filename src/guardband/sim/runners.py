"""One algorithm in one trial: its state, its environment, its metrics; one runner per loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from guardband.algorithms import Phases, Phasing, Plan, Traffic
from guardband.errors import InvalidValueError
from guardband.kernels.asynchronous import simulate_asynchronous
from guardband.kernels.environment import (
    Draws,
    EnvironmentArrays,
    Metric,
    Metrics,
    PoolingClock,
    TaskTable,
    Trace,
    new_clock,
)
from guardband.kernels.loop import simulate
from guardband.kernels.phased import simulate_phase
from guardband.kernels.purse import HORIZON, PURSE, TOTAL
from guardband.kernels.rivals import Solo, UploadRule
from guardband.kernels.shortcuts import new_before, new_widths
from guardband.kernels.solo import new_budget, simulate_solo
from guardband.kernels.state import new_group, new_left_out
from guardband.kernels.types import Floats, Ints
from guardband.problems import AnyWorld
from guardband.sim.arrays import (
    draws_of,
    environment_of,
    features_of,
    in_rounds,
    task_table,
    world_of,
)

__all__ = ["CommonRunner", "Runner", "Trace", "TrialResult", "make_runner"]

VALUES = [Metric.VALUE, Metric.BASELINE_VALUE, Metric.VALUE_REGRET]


class TrialResult(NamedTuple):
    """What one algorithm did in one trial."""

    totals: Floats  # (M, metrics)
    curves: Floats  # (P, M, metrics)
    syncs: Ints  # (P,) exchanges up to each checkpoint
    trace: Trace | None
    traffic: Traffic  # of one exchange
    seconds: float = 0.0  # of one core


class Runner(Protocol):
    """One algorithm in one trial, as the trial sees it."""

    needs: frozenset[str]  # which draws it reads beside contexts and noise: "zeta", "coin", ...

    def play(self, draws: Draws) -> None:
        """Play a chunk of rounds."""

    def record(self) -> TrialResult:
        """Return what was counted in all rounds so far."""


class CommonRunner:
    """Runs the loop that most algorithms share; those with their own loop override `_play`.

    Parameters
    ----------
    world
        The trial's world.
    plan
        The algorithm's plan for that world.
    judged
        (M,): the alpha by which violations are counted.
    checkpoints
        The rounds at which curves are kept.
    traced
        The number of rounds whose plays are recorded in the trace; 0: of none.

    Attributes
    ----------
    env, tasks, settings
        What the loop reads; see `EnvironmentArrays`, `TaskTable` and `Plan.settings`.
    numbers
        The array that holds the numbers of all agents; see `kernels.state`.
    without
        That of what they know without each task, for algorithms that need it.
    widths, before
        What it keeps to have less to do; see `kernels.shortcuts`.
    clock, metrics, trace
        What the loop counts.
    """

    def __init__(
        self, world: AnyWorld, plan: Plan, judged: Floats, checkpoints: Ints, traced: int
    ) -> None:
        agents = len(world.tasks)
        self.needs, self.traffic, self.settings = plan.streams, plan.traffic, plan.settings
        self.env, self.tasks = environment_of(world, plan), task_table(world, judged)
        self._told_gap = self.env.gap
        self.numbers = new_group(agents, world.dim, plan.terms.ridge)
        self.without = np.zeros(0)
        if plan.terms.tolerate and self.env.values.size:
            raise InvalidValueError("tolerate=1 is for problems without values of actions.")
        if plan.terms.tolerate:
            self.without = new_left_out(agents, agents, world.dim, plan.terms.ridge)
        rounds = int(checkpoints[-1]) if checkpoints.size else traced
        self.widths = new_widths(plan.terms, self.tasks, self.env, rounds)
        self.before = new_before(plan.terms, self.numbers, agents, self.env)
        self.clock = new_clock()
        self.metrics = Metrics(
            totals=np.zeros((agents, len(Metric))),
            checkpoints=checkpoints,
            curves=np.zeros((checkpoints.size, agents, len(Metric))),
            syncs=np.zeros(checkpoints.size, np.int64),
        )
        if not self.env.values.size:
            self.metrics.totals[:, VALUES] = np.nan
        if not self.env.costs.size:
            self.metrics.totals[:, Metric.COST] = np.nan
        self.trace = Trace(
            actions=np.zeros((traced, agents), np.int64),
            conservative=np.zeros((traced, agents), np.bool_),
            rewards=np.zeros((traced, agents)),
            synced=np.zeros(traced, np.bool_),
            explored=np.zeros((traced, agents), np.bool_),
        )

    def allow(self, total: float, rounds: int) -> None:
        """Give every agent a budget of its own for so many rounds; for rules that pay."""
        purses = np.zeros((len(self.tasks.size), PURSE))
        purses[:, TOTAL], purses[:, HORIZON] = total, rounds
        self.clock = self.clock._replace(purses=purses)

    @property
    def inputs(self) -> tuple[Floats, TaskTable, EnvironmentArrays]:
        """What every loop reads beside its agents and the draws."""
        return self.settings, self.tasks, self.env

    @property
    def outputs(self) -> tuple[PoolingClock, Metrics, Trace]:
        """Where every loop writes."""
        return self.clock, self.metrics, self.trace

    def play(self, draws: Draws) -> None:
        """Play a chunk of rounds."""
        self.env = in_rounds(self.env, draws, self._told_gap)
        self._play(draws)

    def _play(self, draws: Draws) -> None:
        kept = (self.numbers, self.without, self.widths, self.before)
        simulate(*kept, *self.inputs, draws, *self.outputs)

    def record(self) -> TrialResult:
        """Return what was counted in all rounds so far."""
        trace, metrics = self.trace if self.trace.synced.size else None, self.metrics
        return TrialResult(metrics.totals, metrics.curves, metrics.syncs, trace, self.traffic)


class AsynchronousRunner(CommonRunner):
    """Agents that exchange data with the server one by one, at different times."""

    def __init__(
        self, world: AnyWorld, plan: Plan, judged: Floats, checkpoints: Ints, traced: int
    ) -> None:
        super().__init__(world, plan, judged, checkpoints, traced)
        self.upload = plan.method
        self.downloaded = self.numbers.copy()

    def _play(self, draws: Draws) -> None:
        agents = (self.numbers, self.downloaded, self.upload)
        simulate_asynchronous(*agents, *self.inputs, draws, *self.outputs)


class PhasedRunner(CommonRunner):
    """Agents that follow a plan until the end of a phase, and then pool."""

    def __init__(
        self, world: AnyWorld, plan: Plan, judged: Floats, checkpoints: Ints, traced: int
    ) -> None:
        super().__init__(world, plan, judged, checkpoints, traced)
        assert isinstance(plan.method, Phasing)
        self.phases: Phases = plan.method.begin(*features_of(world, plan.sight))
        self.done = 0

    def _play(self, draws: Draws) -> None:
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
        now, _, _, passed, _ = (int(i) for i in self.clock.ints)
        self.clock.ints[2] += 1
        if self.trace.synced.size:
            self.trace.synced[now - 1] = True
        if passed and self.metrics.checkpoints[passed - 1] == now:
            self.metrics.syncs[passed - 1] = self.clock.ints[2]


class LoneRunner(CommonRunner):
    """One agent by itself: its world has no more features than its task."""

    def __init__(
        self, world: AnyWorld, plan: Plan, judged: Floats, checkpoints: Ints, traced: int
    ) -> None:
        super().__init__(world, plan, judged, checkpoints, traced)
        self.solo, self.budget = plan.method, new_budget(world.dim)

    def _play(self, draws: Draws) -> None:
        agent = (self.numbers, self.budget, self.solo)
        simulate_solo(*agent, *self.inputs, draws, *self.outputs)


class SoloRunner:
    """M independent copies of a single-task method."""

    def __init__(
        self, world: AnyWorld, plan: Plan, judged: Floats, checkpoints: Ints, traced: int
    ) -> None:
        self.needs, self.tasks = plan.streams, world.tasks
        self.agents = []
        for m in range(len(world.tasks)):
            own = slice(m, m + 1)
            gap = None if plan.gap is None else plan.gap[own]
            mine = plan._replace(alpha=plan.alpha[own], rho=plan.rho[own], gap=gap)
            self.agents.append(
                LoneRunner(world_of(world, m), mine, judged[own], checkpoints, traced)
            )

    def play(self, draws: Draws) -> None:
        """Play a chunk of rounds."""
        for m, lone in enumerate(self.agents):
            lone.play(draws_of(draws, m, self.tasks[m]))

    def record(self) -> TrialResult:
        """Return what was counted, of all agents side by side."""
        records = [lone.record() for lone in self.agents]
        traces = [record.trace for record in records if record.trace is not None]
        trace = None
        if traces:
            trace = Trace(
                np.concatenate([each.actions for each in traces], axis=1),
                np.concatenate([each.conservative for each in traces], axis=1),
                np.concatenate([each.rewards for each in traces], axis=1),
                traces[0].synced,
            )
        return records[0]._replace(
            totals=np.concatenate([record.totals for record in records]),
            curves=np.concatenate([record.curves for record in records], axis=1),
            trace=trace,
        )


RUNNERS: dict[type, Callable[..., Runner]] = {
    type(None): CommonRunner,
    Solo: SoloRunner,
    UploadRule: AsynchronousRunner,
    Phasing: PhasedRunner,
}


def make_runner(
    world: AnyWorld, plan: Plan, judged: Floats, checkpoints: Ints, traced: int
) -> Runner:
    """Return the runner for a plan: by its method, if that has a loop of its own."""
    return RUNNERS[type(plan.method)](world, plan, judged, checkpoints, traced)
