"""What every named problem promises."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import guardband as gb
from guardband.problems import (
    PROBLEMS,
    ChangingWorld,
    Forecast,
    ForecastFormal,
    GaussianNoise,
    NamedProblem,
    StudentNoise,
    Tabular,
    World,
    problem,
)

SMALL: dict[str, dict[str, Any]] = {"lastfm": {"contexts": 60, "actions": 50}}
MASKED_MAY_BE_NEGATIVE = {"synthetic-a", "toy"}
# What seeds decide, where it is not all of phi.
DRAWN: dict[str, Callable[[World], np.ndarray]] = {
    "categories": lambda world: world.theta,
    "routing": lambda world: world.phi[:, 0, 4],  # the difficulty
}


def small(name: str, **settings: Any) -> NamedProblem:
    if name in ("clicks", "categories", "routing") and "baseline" in settings:
        settings["rank"] = settings.pop("baseline")
    return problem(name, **{**SMALL.get(name, {}), **settings})


def arrays(world: World) -> list[np.ndarray]:
    return [world.phi, world.psi, world.theta, world.baseline]


CHANGING = {name for name in PROBLEMS if isinstance(problem(name).build(0), ChangingWorld)}


@pytest.fixture(params=[name for name in PROBLEMS if name not in CHANGING])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_shapes_are_the_sizes(name: str) -> None:
    made = small(name)
    world, sizes = made.build(3), made.sizes
    shape = (sizes["contexts"], sizes["actions"], sizes["features"])
    assert world.phi.shape == world.psi.shape == shape
    assert world.theta.shape == shape[2:]
    assert world.baseline.shape == (sizes["agents"], sizes["contexts"]) == (made.agents, shape[0])
    assert len(world.tasks) == sizes["agents"]
    assert all(array.flags.c_contiguous for array in arrays(world))


def test_the_same_seed_gives_the_same_world(name: str) -> None:
    for one, two in zip(arrays(small(name).build(5)), arrays(small(name).build(5)), strict=True):
        assert_array_equal(one, two)


def test_trials_differ_unless_the_seed_is_fixed(name: str) -> None:
    if name == "toy":
        pytest.skip("there is one toy world")
    made = small(name)
    drawn = DRAWN.get(name, lambda world: world.phi)
    assert (drawn(made.build(1)) != drawn(made.build(2))).mean() > 0.5
    fixed = replace(made, seed=1)
    for one, two in zip(arrays(fixed.build(7)), arrays(made.build(1)), strict=True):
        assert_array_equal(one, two)


def test_rewards_lie_in_zero_to_one(name: str) -> None:
    world = small(name, agents=4).build(11)
    whole = world.phi @ world.theta
    if name == "toy":  # the paper's numbers, which its own assumptions exclude
        assert whole.min() == pytest.approx(-(1 / 10) * 2 + 1.0)
        return
    assert whole.min() >= 0
    assert whole.max() <= 1 + 1e-12
    if name not in MASKED_MAY_BE_NEGATIVE:
        assert world.realised.min() >= 0


@pytest.mark.parametrize("seed", range(5))
def test_lengths_stay_within_the_declared_bounds(name: str, seed: int) -> None:
    made = small(name)
    world, assumed = made.build(seed), made.assumptions()
    assert np.linalg.norm(world.psi, axis=2).max() <= assumed["feature_bound"] * (1 + 1e-12)
    assert np.linalg.norm(world.theta) <= assumed["theta_bound"] * (1 + 1e-12)
    assert assumed["theta_bound"] >= 1


def test_assumptions_start_any_algorithm_without_a_warning(name: str) -> None:
    made = small(name)
    settings: dict[str, Any] = dict(made.assumptions())
    assert settings.pop("rounds") >= 4_000
    alpha = settings.pop("alpha")
    guard = gb.GuardUCB(
        alpha,
        noise=settings["noise"],
        theta_bound=settings["theta_bound"],
        context_noise=made.context_noise,
    )
    algorithms = [gb.DiscUCB(alpha, **settings), gb.DisLinUCB(**settings)]
    if name != "toy":  # its rewards leave [0, 1], and Guard-UCB says so
        algorithms.append(guard)
    results = gb.simulate(made, algorithms, rounds=50, progress=False)
    assert results.problem == name
    assert np.isfinite(results["disc-ucb"].regret).all()


def test_assumed_noise_covers_the_given_noise(name: str) -> None:
    assert small(name, reward_std=3.0).assumptions()["noise"] == 3.0
    assert small(name, reward_std=3.0).reward_noise == GaussianNoise(3.0)
    heavy = StudentNoise(std=0.2, df=4.0)
    assert small(name, reward_std=heavy).build(0).reward_noise is heavy


def test_masks_cycle_over_ten_agents(name: str) -> None:
    made = small(name, agents=10)
    tasks = made.build(2).tasks
    assert len(tasks) == 10
    if isinstance(made, ForecastFormal):
        assert tasks[0] == tuple(range(made.features))
        assert all(
            made.features - len(task) in range(1, made.features // 2 + 1) for task in tasks[1:]
        )
    else:
        cycles = {"movielens": 4, "lastfm": 4, "toy": 3}
        cycle = cycles.get(name, 3 if name.startswith("synthetic") else 1)
        assert len(set(tasks)) == cycle
        assert tasks == (tasks[:cycle] * 10)[:10]


def test_the_baseline_has_its_rank(name: str) -> None:
    made = small(name, baseline=3, agents=3)
    world = made.build(4)
    if isinstance(world.nature, Forecast):
        assert world.nature.rank == 3
        return
    mine = world.realised[:, world.groups[1], :]
    own = np.take_along_axis(mine, world.baseline.T[:, :, None], axis=2)
    assert ((mine > own).sum(axis=2) <= 2).all()
    assert ((mine >= own).sum(axis=2) >= 3).all()


@pytest.mark.parametrize("name", list(PROBLEMS))
def test_every_problem_says_what_it_is(name: str) -> None:
    kind = PROBLEMS[name]
    assert kind.name == name
    assert 20 < len(kind.about) < 80
    assert kind.__doc__ is not None
    assert "Parameters" in kind.__doc__
    assert hash(kind()) == hash(kind())


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"agents": 0}, ValueError, "agents must be at least 1, not 0"),
        ({"agents": 1.5}, TypeError, "agents must be a whole number, not 1.5"),
        (
            {"reward_std": -0.1},
            ValueError,
            "reward_std must be zero or a positive number, not -0.1",
        ),
        ({"reward_std": "loud"}, TypeError, "StudentNoise.*not 'loud'"),
        ({"baseline": 5000}, ValueError, "baseline is rank 5000, .* from 1 .the best. to"),
        ({"baseline": 0}, ValueError, "baseline must be at least 1, not 0"),
        ({"seed": -1}, ValueError, "seed must be at least 0, not -1"),
        ({"agnts": 3}, TypeError, "no setting 'agnts'; it has .* Did you mean 'agents'"),
    ],
)
def test_wrong_settings_are_named(
    name: str, settings: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        small(name, **settings)


def test_a_wrong_name_gets_the_nearest_one() -> None:
    with pytest.raises(ValueError, match=r"no problem 'movielense'; .* Did you mean 'movielens'"):
        problem("movielense")


def test_a_file_is_said_to_be_one() -> None:
    with pytest.raises(ValueError, match=r"'my\.csv' is a file, .* gb\.problems\.from_file"):
        problem("my.csv")


def test_tables_from_arrays_keep_the_same_contract() -> None:
    phi = np.full((2, 3, 4), 0.75)
    made = Tabular(phi, 2 * phi, [1.0, 1.0, 0.0, 0.0], tasks=[[0], [1, 3]], reward_std=0.3)
    assert made.sizes == {"agents": 2, "contexts": 2, "actions": 3, "features": 4}
    assumed = made.assumptions()
    assert assumed["feature_bound"] == 3.0
    assert assumed["theta_bound"] == pytest.approx(2**0.5)
    assert assumed["noise"] == 0.3
