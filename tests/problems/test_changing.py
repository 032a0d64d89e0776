"""Worlds that are not as assumed: what moves, who differs, who lies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import guardband as gb
from guardband.kernels.environment import RoundTables
from guardband.problems import ChangingWorld, problem
from guardband.sim.draws import Replay

NAMES = ("drift-abrupt", "drift-slow", "drift-season", "odd-task", "liar")
ROUNDS = 90


def tables_of(world: ChangingWorld, rounds: int = ROUNDS, numbers: int = 1 << 20) -> RoundTables:
    parts = list(world.chunks(rounds, numbers))
    axis = {"menu": 1, "truth": 1, "contexts": 1}
    return RoundTables(
        *(
            np.concatenate([getattr(part, name) for part in parts], axis=axis.get(name, 0))
            for name in RoundTables._fields
        )
    )


def built(name: str, seed: int = 3, **settings: Any) -> ChangingWorld:
    world: ChangingWorld = problem(name, **settings).build(seed)
    return world


@pytest.mark.parametrize("name", NAMES)
def test_menus_are_as_described(name: str) -> None:
    made = problem(name)
    world = made.build(3)
    tables = tables_of(world)
    assert made.sizes["actions"] == 20
    assert tables.menu.shape == (made.agents, ROUNDS, 5, 20)
    lengths = np.linalg.norm(tables.menu, axis=2)
    assert tables.menu.min() >= 0.0
    assert 0.3 <= lengths.min() < 0.32
    assert 0.98 < lengths.max() <= 1.0
    assert_allclose(tables.expected, np.einsum("mndk,nmd->nmk", tables.menu, tables.thetas))
    assert tables.expected.min() >= 0.0
    assert tables.expected.max() <= 1.0
    own = np.take_along_axis(tables.expected, tables.baseline[:, :, None], axis=2)
    assert ((tables.expected > own).sum(axis=2) == 9).all()  # the tenth best
    assert made.reward_noise.std == 0.1
    assert made.assumptions()["alpha"] == 0.2


@pytest.mark.parametrize("name", NAMES)
def test_chunks_of_any_length_draw_the_same(name: str) -> None:
    for one, two in zip(tables_of(built(name)), tables_of(built(name), numbers=999), strict=True):
        assert_array_equal(one, two)
    other = tables_of(built(name, seed=4))
    assert (other.menu != tables_of(built(name)).menu).all()


def test_the_parameter_moves_as_the_name_says() -> None:
    abrupt = tables_of(built("drift-abrupt")).thetas[:, 0]
    first, second = abrupt[0], abrupt[-1]
    assert_array_equal(abrupt[:45], np.tile(first, (45, 1)))
    assert_array_equal(abrupt[45:], np.tile(second, (45, 1)))
    assert np.linalg.norm(first) == pytest.approx(1.0)
    assert np.linalg.norm(first - second) > 0.1
    slow = tables_of(built("drift-slow")).thetas[:, 0]
    assert_allclose(slow[-1], second)
    assert_allclose(np.diff(slow, axis=0), np.tile((second - first) / ROUNDS, (ROUNDS - 1, 1)))
    season = tables_of(built("drift-season")).thetas[:, 0]
    assert_allclose(season[[29, 59, 89]], np.tile(first, (3, 1)), atol=1e-12)
    assert_allclose(season[[14, 44, 74]], np.tile(second, (3, 1)), atol=1e-12)


def test_the_last_task_is_the_odd_one() -> None:
    thetas = tables_of(built("odd-task")).thetas
    assert thetas.shape == (ROUNDS, 3, 5)
    assert_array_equal(thetas[:, 0], thetas[:, 1])
    assert (thetas[:, 2] != thetas[:, 0]).all()


def test_a_liar_reports_rewards_of_another_parameter() -> None:
    world = built("liar", since=31, fakes=500.0)
    tables, made = tables_of(world), world.fabricated
    assert_array_equal(tables.thetas, np.broadcast_to(world.theta, tables.thetas.shape))
    assert not tables.lies[:30].any()
    assert not tables.lies[:, :3].any()
    reported = tables.expected[30:, 3] + tables.lies[30:, 3]
    assert world.false is not None
    assert_allclose(reported, np.einsum("ndk,d->nk", tables.menu[3, 30:], world.false))
    assert (made.since, made.number) == (31, 500.0)
    assert_allclose(np.linalg.solve(made.gram, made.moment), world.false)
    assert made.square == pytest.approx(world.false @ made.gram @ world.false)


def test_made_up_observations_outweigh_everybody() -> None:
    told = {"rounds": 60, "trials": 3, "progress": False}
    few = gb.simulate(problem("liar", since=20), "guard-ucb", **told)["guard-ucb"]
    many = gb.simulate(problem("liar", since=20, fakes=1e9), "guard-ucb", **told)["guard-ucb"]
    assert many.totals["outside"].mean() > few.totals["outside"].mean()


def test_features_of_a_misfit_are_off_by_the_error() -> None:
    world = problem("misfit", error=0.2).build(1)
    assert world.phi.shape == (30, 12, 4)
    assert (world.psi - world.phi).std() == pytest.approx(0.2, rel=0.1)
    assert_array_equal(problem("misfit", error=0.0).build(1).psi, world.phi)
    assert not gb.simulate("misfit", "guard-ucb", rounds=30, progress=False).uncovered


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("liar", {"since": 0}, "since must be at least 1"),
        ("liar", {"fakes": -1}, "fakes must be zero or a positive number"),
        ("misfit", {"error": -0.1}, "error must be zero or a positive number"),
        ("odd-task", {"baseline": 21}, "baseline is rank 21"),
    ],
)
def test_wrong_settings_are_named(name: str, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        problem(name, **settings)


def test_no_history_and_no_replay() -> None:
    with pytest.raises(ValueError, match="before round 1"):
        gb.simulate("drift-slow", "guard-ucb", rounds=5, history=5)
    arrays = [np.zeros((5, 1)), np.zeros(5), np.zeros((5, 5)), np.zeros((5, 1))]
    with pytest.raises(ValueError, match="draws some in each round"):
        gb.simulate("drift-slow", "guard-ucb", replay=Replay(np.zeros(5, int), *arrays))
