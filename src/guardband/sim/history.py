"""Rounds before the first: agents of a simulation learn from the logs of an earlier rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from guardband.checks import check_choice, check_whole
from guardband.engines import Advance
from guardband.errors import InvalidValueError
from guardband.kernels.environment import Draws
from guardband.kernels.history import play_history
from guardband.kernels.leave_out import pool_without
from guardband.kernels.logs import learn_rows
from guardband.kernels.state import TERMS, left_out, view
from guardband.kernels.sync import pool
from guardband.kernels.types import Terms
from guardband.problems import AnyWorld, World
from guardband.seeds import stream
from guardband.sim.draws import TrialDraws
from guardband.sim.python_policy import Competitor, is_python_policy
from guardband.sim.runners import CommonRunner

__all__ = ["History", "as_history", "check_history", "learn_history"]

RULES = ("baseline", "uniform")


class History(NamedTuple):
    """What was played before the first round."""

    rounds: int
    rule: str  # "baseline", or "uniform": any action on offer with the same probability


def as_history(value: Any) -> History | None:
    """Return n rounds of the baseline, or (n, rule); None where there are no such rounds."""
    if value is None:
        return None
    pair = isinstance(value, (tuple, list)) and len(value) == 2
    count, rule = value if pair else (value, "baseline")
    if isinstance(count, float) and count.is_integer():
        count = int(count)
    return History(check_whole("history", count), check_choice("history's rule", rule, RULES))


def check_history(
    history: History | None, algorithms: Sequence[Competitor], world: AnyWorld, rounds: int
) -> None:
    """Refuse problems that have no rounds before the first, and algorithms that cannot use them."""
    if history is None:
        return
    if not isinstance(world, World):
        raise InvalidValueError(
            "history is played before round 1, but this problem says what its rounds are like from "
            "round 1 on: leave history out, or use a problem with tables."
        )
    for algorithm in algorithms:
        python = is_python_policy(algorithm)
        if python or algorithm.plan(world.facts(rounds)).method is not None:  # type: ignore[union-attr]
            raise InvalidValueError(
                f"{algorithm.name} cannot learn from logs, since it needs to have chosen what was "
                "played, or when: leave it out, or leave history out. Guard-UCB, the paper's "
                "algorithms and DisLinUCB can."
            )
        window = getattr(algorithm, "window", None)
        if window is not None:
            raise InvalidValueError(
                f"window={window} forgets what is old, and logs are of another time: "
                "leave one of window and history out."
            )


def learn_history(
    history: History,
    world: AnyWorld,
    seed: int,
    runners: Sequence[CommonRunner],
    advance: Advance,
    share: float,
) -> None:
    """Let every runner's agents learn what one rule played, all of them the same rounds.

    The rounds come from streams of their own. Afterwards agents pool if that is due. `advance` is
    told of each runner's part of `share`.
    """
    own, uniform = int(stream(seed, "history").integers(1 << 62)), history.rule == "uniform"
    called = [False] * len(runners)
    draws = TrialDraws(world, history.rounds, own, directions=False, coins=uniform)
    for chunk in draws.chunks():
        for i, runner in enumerate(runners):
            called[i] = _learn(runner, chunk, uniform)
            advance(share * chunk.contexts.size / history.rounds / len(runners))
    for runner, call in zip(runners, called, strict=True):
        if call:
            _pool(runner)


def _learn(runner: CommonRunner, draws: Draws, uniform: bool) -> bool:
    """Learn a chunk of rounds; return whether an agent calls for a pooling after it."""
    tasks, clock = runner.tasks, runner.clock
    agents, n = tasks.size.size, draws.contexts.size
    rows, rewards = np.empty((agents, n, runner.env.theta.size)), np.empty((agents, n))
    play_history(runner.env, tasks, draws, uniform, rows, rewards)
    past, call = int(clock.ints[4]), False
    for m in range(agents):
        coords, turn = tasks.coords[m, : tasks.size[m]], (m, 1, 0.0, past, past)
        kept = np.empty(n), np.empty(n), np.empty(n)
        numbers, settings = (runner.numbers, runner.without), runner.settings[m]
        _, due = learn_rows(*numbers, settings, coords, turn, rows[m], rewards[m], *kept)
        call = call or due
    clock.ints[4] = past + n
    return call


def _pool(runner: CommonRunner) -> None:
    clock, terms = runner.clock, Terms(*map(float, runner.settings[0, :TERMS]))
    group, dim = view(runner.numbers, runner.env.theta.size), runner.env.theta.size
    if terms.tolerate:
        left = left_out(runner.without, runner.tasks.size.size, dim)
        clock.logdet[0] = pool_without(group, left, terms)
    else:
        clock.logdet[0] = pool(group, terms)
    clock.ints[1] = clock.ints[4]
    clock.ints[2] += 1
