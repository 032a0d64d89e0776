"""Off-policy estimators: their textbook formulas, and intervals that cover at their rate."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import offpolicy
from scipy.stats import norm

from guardband.studies.estimators import difference, doubly_robust, effective_size, ips, snips
from guardband.studies.intervals import (
    binomial_interval,
    lower_mean,
    lower_ratio,
    normal_quantile,
)

ROWS = st.lists(
    st.tuples(
        st.one_of(st.just(0.0), st.floats(0.1, 50)),
        st.floats(0, 1),
        st.floats(0, 1),
        st.floats(0, 1),
    ),
    min_size=2,
    max_size=40,
).filter(lambda rows: any(row[0] > 0 for row in rows))


@settings(max_examples=20, deadline=None)
@given(ROWS)
def test_estimators_are_their_textbook_formulas(rows: list[offpolicy.Row]) -> None:
    w, r, target, played = (np.array(column) for column in zip(*rows, strict=True))
    most = max(50.0, float(w.max()))
    for estimate, expected in [
        (ips(w, r, 0.05), offpolicy.ips(rows)),
        (snips(w, r, 0.05, most), offpolicy.snips(rows)),
        (doubly_robust(w, r, target, played, 0.05, most), offpolicy.doubly_robust(rows)),
    ]:
        assert estimate.value == pytest.approx(expected, abs=1e-9, rel=1e-9)
        assert 0 <= estimate.low <= 1
        assert 0 <= estimate.high <= 1
    assert effective_size(w) == pytest.approx(offpolicy.effective_size(rows), rel=1e-9)


def test_the_asymptotic_intervals_are_those_of_the_delta_method() -> None:
    rng = np.random.default_rng(0)
    w, r = rng.exponential(size=50), rng.random(50)
    z = float(norm.ppf(0.975))
    error = (w * r).std() / math.sqrt(50)
    found = ips(w, r, 0.05)
    assert found.asymptotic_high - found.value == pytest.approx(z * error, rel=1e-9)
    value = (w * r).sum() / w.sum()
    error = math.sqrt(sum((w * (r - value)) ** 2)) / w.sum()
    found = snips(w, r, 0.05, 20.0)
    assert found.value - found.asymptotic_low == pytest.approx(z * error, rel=1e-9)


@pytest.mark.parametrize(("hits", "count"), [(0, 10), (3, 10), (10, 10), (5, 2_000), (990, 1_000)])
def test_the_binomial_interval_is_clopper_and_pearsons(hits: int, count: int) -> None:
    expected = offpolicy.clopper_pearson(hits, count, 0.05)
    assert binomial_interval(hits, count, 0.05) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("delta", [0.3, 0.05, 1e-6])
def test_the_normal_quantile(delta: float) -> None:
    assert normal_quantile(delta) == pytest.approx(float(norm.ppf(1 - delta / 2)), rel=1e-9)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.one_of(st.just(0.0), st.floats(0, 20)), min_size=5, max_size=60))
def test_the_lower_bound_is_where_bets_stop_paying(values: list[float]) -> None:
    bound = lower_mean(np.array(values), 0.05)
    mean = sum(values) / len(values)
    assert 0 <= bound <= mean + 1e-9
    if bound > 1e-6:
        assert offpolicy.is_refuted(values, bound * (1 - 1e-6), 0.05)
    assert not offpolicy.is_refuted(values, bound + 1e-6 * max(1.0, mean), 0.05)


@settings(max_examples=20, deadline=None)
@given(ROWS)
def test_both_ends_are_where_bets_stop_paying(rows: list[offpolicy.Row]) -> None:
    """Each end has half of delta; terms are shifted by the least that they can be."""
    w, r, target, played = (np.array(column) for column in zip(*rows, strict=True))
    most, half = max(50.0, float(w.max())), 0.025
    terms = target + w * (r - played)
    robust = doubly_robust(w, r, target, played, 2 * half, most)
    apart = difference(terms, 2 * half, 1.0 + 2.0 * most)
    shifted = [
        (ips(w, r, 2 * half).low, w * r, 0.0),
        (1.0 - ips(w, r, 2 * half).high, w * (1.0 - r), 0.0),
        (robust.low, terms, most),
        (1.0 - robust.high, 1.0 - terms, most),
        (apart.low, terms, 1.0 + 2.0 * most),
        (-apart.high, -terms, 1.0 + 2.0 * most),
    ]
    for end, values, shift in shifted:
        above = (values + shift).tolist()
        scale = 1e-6 * max(1.0, float(np.mean(above)))
        if -1.0 < end < 1.0:  # the ends of what is possible are not where bets stop
            assert not offpolicy.is_refuted(above, end + shift + scale, half)
        if 0.0 < end < 1.0:
            assert offpolicy.is_refuted(above, end + shift - scale, half)


def test_with_weights_of_one_the_ratio_is_a_mean() -> None:
    rng = np.random.default_rng(1)
    rewards = rng.random(500)
    ones = np.ones(500)
    assert lower_ratio(ones, rewards, 0.05, 1.0) == pytest.approx(
        lower_mean(rewards, 0.05), abs=1e-9
    )


def draw(rng: np.random.Generator, rows: int, even: bool, binary: bool) -> tuple[np.ndarray, ...]:
    """Rows of a rule that knows the context; the other rule plays action 1 where x > 1/2."""
    x = rng.random(rows)
    chance = np.full(rows, 0.5) if even else 0.1 + 0.8 * x  # of action 1
    action = rng.random(rows) < chance
    propensity = np.where(action, chance, 1 - chance)
    mean = 0.05 + 0.1 * x + 0.1 * action * x
    reward = (rng.random(rows) < mean) if binary else rng.beta(2 * mean, 2 - 2 * mean)
    wanted = x > 0.5
    weights = (action == wanted) / propensity
    q = 0.1 + 0.05 * x  # a model that is wrong
    return weights, reward.astype(float), q + 0.05 * wanted, q + 0.05 * action


# E[mean] with action 1 where x > 1/2: 0.05 + 0.1 / 2 + 0.1 * E[x; x > 1/2].
TRUTH = 0.05 + 0.05 + 0.1 * (1 - 0.25) / 2


@pytest.mark.slow
@pytest.mark.parametrize("even", [True, False])
@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("rows", [50, 1_000])
def test_intervals_cover_at_their_rate(even: bool, binary: bool, rows: int) -> None:
    """In 1,000 simulations each; three standard errors are allowed."""
    level, runs, most = 0.05, 1_000, 2.0 if even else 10.0
    missed = {"ips": 0, "snips": 0, "dr": 0}
    asymptotic = dict(missed)
    rng = np.random.default_rng([rows, even, binary])
    for _ in range(runs):
        w, r, target, played = draw(rng, rows, even, binary)
        found = {
            "ips": ips(w, r, level, alike=even),
            "snips": snips(w, r, level, most, alike=even),
            "dr": doubly_robust(w, r, target, played, level, most),
        }
        for name, estimate in found.items():
            missed[name] += not estimate.low <= TRUTH <= estimate.high
            asymptotic[name] += not (estimate.asymptotic_low <= TRUTH <= estimate.asymptotic_high)
    most_missed = runs * (level + 3 * math.sqrt(level * (1 - level) / runs))
    assert max(missed.values()) <= most_missed, missed
    if rows == 1_000:  # for many rows those for many rows hold, too, and are not too wide
        assert max(asymptotic.values()) <= most_missed + 10, asymptotic
        assert min(asymptotic.values()) >= runs * level / 3, asymptotic
