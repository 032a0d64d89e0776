import numpy as np
import pytest

from guardband.data.factorise import factorise, held_out
from guardband.data.tables import Entries


@pytest.fixture
def planted() -> Entries:
    rng = np.random.default_rng(5)
    return Entries.all_of(rng.random((60, 2)) @ rng.random((2, 40)))


def test_all_of() -> None:
    got = Entries.all_of(np.array([[1, 2, 3], [4, 5, 6]]))
    np.testing.assert_array_equal(got.rows, [0, 0, 0, 1, 1, 1])
    np.testing.assert_array_equal(got.columns, [0, 1, 2, 0, 1, 2])
    np.testing.assert_array_equal(got.values, [1, 2, 3, 4, 5, 6])
    assert got.shape == (2, 3)


def test_held_out_is_a_split(planted: Entries) -> None:
    seen, unseen = held_out(planted, share=0.25, seed=3)
    assert (len(seen.values), len(unseen.values)) == (1800, 600)
    both = np.concatenate([e.rows * 40 + e.columns for e in (seen, unseen)])
    np.testing.assert_array_equal(np.sort(both), np.arange(2400))


def test_unobserved_entries_are_completed(planted: Entries) -> None:
    seen, unseen = held_out(planted, share=0.5, seed=0)
    fit = factorise(seen, rank=2, ridge=0.0, sweeps=500, seed=0)
    assert fit.rmse(unseen) < 1e-3
    assert fit.users.shape == (60, 2)
    assert fit.items.shape == (40, 2)


def test_first_order_conditions() -> None:
    """At a minimum the slope is 0 where a factor is positive, and not negative where it is 0."""
    matrix = (np.random.default_rng(2).random((30, 20)) < 0.2).astype(float)
    fit = factorise(Entries.all_of(matrix), rank=3, ridge=0.0, sweeps=3000, seed=0)
    error = fit.users @ fit.items.T - matrix
    for factor, slope in ((fit.users, error @ fit.items), (fit.items, error.T @ fit.users)):
        assert (factor == 0).any()
        np.testing.assert_allclose(slope[factor > 0], 0, atol=1e-6)
        assert slope[factor == 0].min() > -1e-6


def test_one_sweep_by_hand() -> None:
    """One factor, two users, two items, one entry missing: the textbook formula in a loop."""
    entries = Entries(np.array([0, 0, 1]), np.array([0, 1, 0]), np.array([0.9, 0.4, 0.2]), (2, 2))
    rng = np.random.default_rng(7)
    level = np.sqrt(0.5)
    u, v = level * rng.uniform(0.5, 1.5, 2), level * rng.uniform(0.5, 1.5, 2)
    ridge, mean = 0.3, u.mean()
    u = np.array(
        [
            (0.9 * v[0] + 0.4 * v[1] + ridge * mean) / (v[0] ** 2 + v[1] ** 2 + ridge),
            (0.2 * v[0] + ridge * mean) / (v[0] ** 2 + ridge),
        ]
    )
    mean = v.mean()
    v = np.array(
        [
            (0.9 * u[0] + 0.2 * u[1] + ridge * mean) / (u[0] ** 2 + u[1] ** 2 + ridge),
            (0.4 * u[0] + ridge * mean) / (u[0] ** 2 + ridge),
        ]
    )
    got = factorise(entries, rank=1, ridge=ridge, sweeps=1, seed=7)
    np.testing.assert_allclose(got.users @ got.items.T, np.outer(u, v), rtol=1e-10)


def test_strength_is_shared_and_ordered(planted: Entries) -> None:
    fit = factorise(planted, rank=2, ridge=0.1, sweeps=50, seed=0)
    users, items = ((f**2).mean(axis=0) for f in (fit.users, fit.items))
    np.testing.assert_allclose(users, items)
    assert users[0] >= users[1]


def test_item_without_entries_is_ordinary(planted: Entries) -> None:
    wider = planted._replace(shape=(60, 41))
    fit = factorise(wider, rank=2, ridge=1.0, sweeps=50, seed=0)
    np.testing.assert_allclose(fit.items[40], fit.items[:40].mean(axis=0), rtol=0.05)
    assert np.isfinite(factorise(wider, rank=2, ridge=0.0, sweeps=50, seed=0).items).all()


def test_same_seed_same_bytes(planted: Entries) -> None:
    once, again, other = (
        factorise(planted, rank=2, ridge=0.1, sweeps=5, seed=s).users.tobytes() for s in (1, 1, 2)
    )
    assert once == again != other
