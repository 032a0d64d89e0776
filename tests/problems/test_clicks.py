"""The problem `clicks`: what its parameters mean, and rewards 0 or 1 wherever they are seen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import guardband as gb
from guardband.algorithms import ALGORITHMS
from guardband.kernels.state import view
from guardband.problems import BernoulliRewards, Clicks
from guardband.seeds import stream
from guardband.sim import TrialDraws
from guardband.sim.runners import make_runner


@pytest.mark.parametrize("seed", range(5))
def test_rates_are_those_that_were_asked_for(seed: int) -> None:
    world = Clicks().build(seed)
    rates = world.expected[:, 0]
    assert np.median(rates.max(axis=1)) == pytest.approx(0.045)
    assert np.linalg.norm(world.phi, axis=2).max() == pytest.approx(1.0)
    baseline = np.take_along_axis(rates, world.baseline.T, axis=1)
    assert ((rates > baseline).sum(axis=1) == 4).all()


@pytest.mark.parametrize("rate", [0.5, 0.9, 0.99])
def test_theta_is_never_longer_than_one(rate: float) -> None:
    for seed in range(20):
        world = Clicks(rate=rate).build(seed)
        assert np.linalg.norm(world.theta) <= 1 + 1e-12
        assert np.median(world.expected[:, 0].max(axis=1)) <= rate + 1e-12
        assert world.expected.max() <= 1


def test_sizes_are_parameters() -> None:
    made = Clicks(segments=3, ads=7, dim=2, rank=7, agents=2)
    assert made.sizes == {"agents": 2, "contexts": 3, "actions": 7, "features": 2}
    assert made.build(0).tasks == ((0, 1), (0, 1))


def test_a_wrong_rate_is_named() -> None:
    with pytest.raises(ValueError, match="rate must lie strictly between 0 and 1"):
        Clicks(rate=1.0)


class Recorder:
    """Plays one advert and keeps what it sees."""

    name = "recorder"

    def __init__(self, seen: list[float]) -> None:
        self.seen = seen

    def __deepcopy__(self, memo: Any) -> Recorder:
        return self

    def choose(self, agent: int, round: int, features: Any, baseline: int, told: Any) -> int:
        return 2

    def update(self, agent: int, features: Any, action: int, reward: float) -> None:
        self.seen.append(reward)


def test_rewards_are_clicks_with_the_right_rates() -> None:
    made, seen = Clicks(segments=1, rate=0.3, seed=1), []
    gb.simulate(made, Recorder(seen), rounds=4_000)
    rate = made.build(0).expected[0, 0, 2]
    assert set(seen) == {0.0, 1.0}
    assert np.mean(seen) == pytest.approx(rate, abs=4 * np.sqrt(rate / 4_000))


def test_environments_pay_the_same_clicks() -> None:
    made, seen = Clicks(seed=1, rate=0.4), []
    gb.simulate(made, Recorder(seen), rounds=50, seed=3)
    env = gb.envs.BanditEnv(made, rounds=50, alpha=0.2)
    env.reset(seed=3)
    assert [env.step(2)[1] for _ in range(50)] == seen
    assert sum(seen) > 0


@pytest.mark.parametrize("name", ["guard-ucb", "dis-lin-ucb", "lin-ucb", "fed-lin-ucb"])
def test_compiled_learners_see_clicks(name: str) -> None:
    """With one action of length 1 the sums of w y x and of w y^2 agree if y is 0 or 1."""
    made = Clicks(segments=1, ads=1, dim=1, rank=1, rate=0.3, agents=2)
    world = made.build(1)
    plan = ALGORITHMS[name].make().plan(world.facts(300))
    runner = make_runner(world, plan, np.full(2, 0.2), np.array([300]), 0)
    for chunk in TrialDraws(world, 300, 1, directions=False, orders=True, normals=True).chunks():
        runner.play(chunk)
    group = view(runner.numbers, 1).own
    assert group.moment.sum() > 20
    assert group.scalars[:, 1].sum() == pytest.approx(group.moment.sum())


def test_draws_decide_which_rewards_are_one() -> None:
    draws = BernoulliRewards().draw(stream(1, "noise"), (1000, 2))
    assert 0 <= draws.min() < draws.max() < 1
    assert BernoulliRewards().std == 0.5
