"""Simulations with a history: agents learn what an earlier rule played before round 1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import guardband as gb
from guardband.kernels.state import TERMS, view
from guardband.kernels.types import Terms
from guardband.problems import Fresh, World
from guardband.seeds import stream
from guardband.sim.draws import TrialDraws
from guardband.sim.history import History, as_history, learn_history
from guardband.sim.runners import CommonRunner, make_runner
from guardband.sim.trial import checkpoint_rounds

PROBLEMS: dict[str, Any] = {
    "clicks": gb.problem("clicks", agents=3, rate=0.3, ads=4, segments=3, rank=2),
    "categories": gb.problem("categories", agents=1),
    "masks": gb.problem("synthetic-b", nature="fresh", psi_noise=0.1),
}
ALGORITHMS: dict[str, Any] = {
    "guard-ucb": gb.GuardUCB(0.2),
    "noise": gb.GuardUCB(0.2, noise=0.3),
    "dis-lin-ucb": gb.DisLinUCB(),
}


def runner_of(world: World, algorithm: Any) -> CommonRunner:
    agents, rounds = len(world.tasks), checkpoint_rounds(10)
    made = make_runner(world, algorithm.plan(world.facts(10)), np.full(agents, 0.2), rounds, 10)
    assert isinstance(made, CommonRunner)
    return made


def plain_logs(world: World, history: History, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (M, n, d) rows and (M, n) rewards of a history, by a loop over its draws."""
    uniform = history.rule == "uniform"
    own = int(stream(seed, "history").integers(1 << 62))
    rows, rewards = [], []
    for draws in TrialDraws(world, history.rounds, own, directions=False, coins=uniform).chunks():
        for s, c in enumerate(draws.contexts):
            std = world.nature.std if isinstance(world.nature, Fresh) else 0.0
            for m, task in enumerate(world.tasks):
                k = world.baseline[m, c]
                if uniform:
                    k = int(draws.coin[s, m] * world.shape[1])
                x = np.zeros(world.dim)
                x[list(task)] = world.psi[c, k, list(task)]
                phi = x.copy()
                if std:
                    phi[list(task)] += std * draws.fresh[s, k, list(task)]
                mean = phi @ world.theta
                noise = draws.noise[s, m]
                rows.append(x)
                rewards.append(float(noise < mean) if world.binary else mean + noise)
    shape = (history.rounds, len(world.tasks))
    return (
        np.array(rows).reshape(*shape, -1).transpose(1, 0, 2),
        np.array(rewards).reshape(shape).T,
    )


@pytest.mark.parametrize("rule", ["baseline", "uniform"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_history_is_what_agents_learn_from_its_rows(name: str, algorithm: str, rule: str) -> None:
    world, history = PROBLEMS[name].build(5), History(300, rule)
    runner = runner_of(world, ALGORITHMS[algorithm])
    learn_history(history, world, 5, [runner], lambda _: None, 1.0)
    tasks = {str(m): task for m, task in enumerate(world.tasks)}
    horizon = 10 if algorithm == "dis-lin-ucb" else None
    fleet = gb.Fleet(tasks, world.dim, algorithm=ALGORITHMS[algorithm], horizon=horizon)
    group = fleet._group
    # A problem with clicks says that rewards are bounded, which fleets take from the algorithm.
    group.engine.terms = Terms(*runner.settings[0, :TERMS])
    for row, told in zip(group.engine.known, runner.settings, strict=True):
        row[:] = told
    for m, (rows, rewards) in enumerate(zip(*plain_logs(world, history, 5), strict=True)):
        group.learn_rows(m, np.ascontiguousarray(rows), np.ascontiguousarray(rewards))
    group.settle(0)
    assert group.poolings == runner.clock.ints[2]
    found, wanted = view(runner.numbers, world.dim), group.engine.group
    if name != "masks":  # there the loop's rewards are rounded differently
        assert_array_equal(found.own.moment, wanted.own.moment)
        assert_array_equal(found.estimate.theta, wanted.estimate.theta)
    np.testing.assert_allclose(found.own.moment, wanted.own.moment, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.own.gram, wanted.own.gram, rtol=1e-9)
    assert found.own.scalars[:, 0].sum() == 300 * len(tasks)


def totals(results: gb.Results) -> list[np.ndarray]:
    return [values for series in results.series for values in series.totals.values()]


def test_the_same_numbers_whatever_the_workers_and_chunks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given: dict[str, Any] = {"rounds": 200, "trials": 3, "history": (400, "uniform"), "alpha": 0.2}
    made = [gb.GuardUCB(0.2), gb.DisLinUCB()]
    first = totals(gb.simulate(PROBLEMS["clicks"], made, workers=1, **given))
    again = [
        gb.simulate(PROBLEMS["clicks"], made, workers=2, **given),
        gb.simulate(PROBLEMS["clicks"], made, cache=tmp_path, **given),
        gb.simulate(PROBLEMS["clicks"], made, cache=tmp_path, **given),
    ]
    monkeypatch.setattr("guardband.sim.draws.CHUNK_NUMBERS", 1)
    again.append(gb.simulate(PROBLEMS["clicks"], made, **given))
    for other in again:
        for one, two in zip(first, totals(other), strict=True):
            assert_array_equal(one, two)
    given["history"] = 400
    other = gb.simulate(PROBLEMS["clicks"], made, cache=tmp_path, **given)
    assert any((a != b).any() for a, b in zip(first, totals(other), strict=True))


def test_rounds_are_drawn_as_without_a_history() -> None:
    """What the baseline earns, and regret against it, depend on the rounds' own draws alone."""
    with_logs = gb.simulate("forecast", "baseline", rounds=200, history=500, seed=3)
    without = gb.simulate("forecast", "baseline", rounds=200, seed=3)
    assert_array_equal(with_logs.series[0].regret, without.series[0].regret)


def test_a_rule_that_plays_uniformly_teaches_what_the_baseline_does_not() -> None:
    """Of `categories` only uniform logs let strict mode leave the baseline."""
    for history, gains in ((2000, False), ((100_000, "uniform"), True)):
        results = gb.simulate("categories", "guard-ucb", rounds=500, trials=2, history=history)
        series = results.series[0]
        gain = series.totals["reward"] / series.totals["baseline_reward"] - 1.0
        assert (gain > 0.5).all() if gains else (gain == 0.0).all()
        assert series.violations_expected.sum() == 0
        assert results.settings["history"] == tuple(as_history(history) or ())


class Coin:
    """A policy in plain Python."""

    name = "coin"

    def choose(self, agent: int, round: int, *given: Any) -> int:
        return 0

    def update(self, agent: int, features: Any, action: int, reward: float) -> None:
        pass


def test_algorithms_that_cannot_learn_from_rows_are_refused(problem: gb.Tabular) -> None:
    for algorithm in ("fed-pe", "dis-lsb", "fed-lin-ucb", "sclts", Coin()):
        with pytest.raises(gb.InvalidValueError, match="cannot learn from logs"):
            gb.simulate(problem, algorithm, rounds=5, history=5)


@pytest.mark.parametrize(
    ("history", "message"),
    [
        (0, "history must be"),
        (-3, "history must be"),
        (2.5, "history must be"),
        ("100", "history must be"),
        ((10, "best"), "history's rule"),
        ((10, "uniform", 3), "history must be"),
    ],
)
def test_a_wrong_history_is_named(problem: gb.Tabular, history: Any, message: str) -> None:
    with pytest.raises(gb.InputError, match=message):
        gb.simulate(problem, gb.DisLinUCB(), rounds=5, history=history)


def test_rounds_before_the_first_must_exist(problem: gb.Tabular) -> None:
    replay = gb.Replay(np.zeros(5, int), np.zeros((5, 3)), np.zeros(5), np.zeros((5, 4)))
    with pytest.raises(gb.InvalidValueError, match="a replay holds no history"):
        gb.simulate(problem, gb.DisLinUCB(), replay=replay, history=5)
    formal = gb.problems.Formal(
        lambda agent, action, context: np.array([0.3, context]),
        lambda t: gb.Discrete([0.1, 0.2]),
        theta=[0.5, 0.5],
        tasks=[[0, 1]],
        actions=[[0, 1]],
        baseline=1,
        reward_std=0.1,
    )
    with pytest.raises(gb.InvalidValueError, match="from round 1 on"):
        gb.simulate(formal, gb.DisLinUCB(), rounds=5, history=5)
