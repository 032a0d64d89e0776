from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import guardband as gb
from guardband.data import factors
from guardband.problems import LastFm, MovieLens, Tabular

KINDS = {"movielens": MovieLens, "lastfm": LastFm}


@pytest.mark.parametrize("name", KINDS)
def test_features_are_scaled_products_of_shipped_factors(name: str) -> None:
    world = KINDS[name](order="items", contexts=20, actions=50).build(1)
    assert_allclose((world.phi @ world.theta).max(), 1.0)
    tables = world.phi.reshape(20, 50, 3, 3)
    users, items, _ = factors(name)
    for mine, shipped in ((tables.sum(axis=(1, 3)), users), (tables.sum(axis=(0, 2)), items)):
        cosines = mine @ shipped.T / np.linalg.norm(mine, axis=1)[:, None]
        assert_allclose((cosines / np.linalg.norm(shipped, axis=1)).max(axis=1), 1.0)
    assert (np.linalg.matrix_rank(tables, tol=1e-9) <= 1).all()


def test_all_users_and_artists_are_used_by_default() -> None:
    world = LastFm(order="items").build(7)
    users, items, _ = factors("lastfm")
    ratings = users @ items.T
    assert world.phi.shape == (741, 538, 9)
    assert_allclose(world.realised[:, 0, :], ratings / ratings.max(), atol=1e-12)


def test_the_printed_size_draws_fifty_artists() -> None:
    one, two = (LastFm(actions=50, order="items").build(seed) for seed in (1, 2))
    assert one.phi.shape == (741, 50, 9)
    assert (one.phi != two.phi).any()


@pytest.mark.parametrize("name", KINDS)
def test_theta_and_masks(name: str) -> None:
    world = KINDS[name](agents=4, contexts=10, actions=50).build(1)
    assert_allclose(world.theta, np.eye(3).ravel() / np.sqrt(3))
    assert [set(range(9)) - set(task) for task in world.tasks] == [set(), {8}, {4}, {0}]


@pytest.mark.parametrize("name", KINDS)
def test_orders(name: str) -> None:
    made = {
        order: KINDS[name](order=order, contexts=30, actions=50).build(3)
        for order in ("shuffled", "ranked", "items")
    }
    rewards = {order: world.realised[:, 0, :] for order, world in made.items()}
    assert (np.diff(rewards["ranked"], axis=1) <= 0).all()
    for order in ("shuffled", "items"):
        assert_array_equal(np.sort(rewards[order]), np.sort(rewards["ranked"]))
    # Action k is one item for all users: its features are proportional to one factor.
    item = made["items"].phi.reshape(30, 50, 3, 3).sum(axis=2)
    share = item / item.sum(axis=2, keepdims=True)
    assert_allclose(share, np.broadcast_to(share[:1], share.shape), atol=1e-9)


def test_no_baseline_of_movielens_is_worth_nothing() -> None:
    for seed in range(20):
        world = MovieLens(agents=4).build(seed)
        assert world.baseline_rewards.min() > 0.03


class TestWorthlessBaselines:
    """On Last.fm the masked 5th best artist is worth 0 for some users."""

    def test_it_happens(self) -> None:
        world = LastFm(agents=4).build(1)
        nothing = (world.baseline_rewards <= 0).sum(axis=0)
        assert nothing.tolist() == [0, 10, 66, 46]

    def test_the_reward_floor_is_the_smallest_positive_one(self) -> None:
        world = LastFm(agents=4).build(1)
        facts, told = world.facts(100), world.baseline_rewards
        assert facts.reward_low == told[told > 0].min() > 0
        assert facts.reward_high == told.max()
        (plan,) = {gb.DiscUCB(0.7).plan(facts).rho[0]}
        assert plan == pytest.approx(0.7 * facts.reward_low / (1 + told.max()))

    def test_nothing_positive_leaves_no_exploration(self) -> None:
        world = Tabular([[[0.0], [-1.0]]], [[[0.0], [-1.0]]], [1.0]).build(0)
        assert world.facts(10).reward_low == 0.0
        assert gb.DiscUCB(0.5).plan(world.facts(10)).rho.tolist() == [0.0]

    def test_agents_stay_with_a_worthless_baseline_exactly(self) -> None:
        """Mixing in any direction would fall below a floor of zero."""
        phi = np.array([[[0.0, 0.0], [0.6, 0.0]], [[0.5, 0.5], [0.9, 0.1]]])
        made = Tabular(phi, phi, [0.6, 0.8], baseline=2)
        results = gb.simulate(made, gb.DiscUCB(0.5), rounds=400, trace=True, progress=False)
        mixed = results.trace.rewards[results.trace.conservative]
        assert (mixed == 0.0).sum() > 100  # the context whose baseline is worth 0
        assert results["disc-ucb"].violations_realised.sum() == 0
        assert np.unique(mixed[mixed != 0.0]).size > 100  # elsewhere it explores


@pytest.mark.parametrize(
    ("kind", "settings", "words"),
    [
        (MovieLens, {"contexts": 944}, "contexts is 944, but movielens has 943"),
        (MovieLens, {"actions": 1683}, "actions is 1683, but movielens has 1682"),
        (LastFm, {"actions": 539}, "actions is 539, but lastfm has 538"),
        (LastFm, {"order": "best"}, "order must be one of 'shuffled', 'ranked', 'items'"),
        (MovieLens, {"actions": 10}, "baseline is rank 40, but there are only 10 actions"),
    ],
)
def test_wrong_settings_are_named(kind: Any, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        kind(**settings)
