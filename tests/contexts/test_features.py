"""Context distributions: expectations known from algebra."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal

from guardband.contexts import (
    Discrete,
    Gaussian,
    Samples,
    difference_covariance,
    expected_features,
    expected_table,
    feature_support,
    half_range,
)

# Rounded: squares of numbers near the smallest float vanish, which is not what is tested here.
NUMBERS = st.floats(-10, 10).map(lambda number: round(number, 6))
RAIN_OR_SUN = Discrete(["rain", "sun"], [0.25, 0.75])


def bilinear(action, context):
    return np.outer(context, action).ravel()


def quadratic(action, context):
    return np.outer(context, context).ravel() * action


@st.composite
def laws(draw, dim=3):
    """A Discrete over vectors, with weights that may be 0 and may be far from uniform."""
    n = draw(st.integers(1, 6))
    contexts = draw(hnp.arrays(float, (n, dim), elements=NUMBERS))
    raw = draw(hnp.arrays(float, n, elements=st.floats(0, 1)))
    raw[draw(st.integers(0, n - 1))] = 1.0
    return Discrete(contexts, raw / raw.sum())


@st.composite
def gaussians(draw, dim=3):
    """A Gaussian whose covariance may be singular and in units far apart."""
    factor = draw(hnp.arrays(float, (dim, draw(st.integers(1, 4))), elements=NUMBERS))
    units = 10.0 ** draw(hnp.arrays(float, dim, elements=st.integers(-4, 4)))
    factor *= units[:, None]
    return Gaussian(units * draw(hnp.arrays(float, dim, elements=NUMBERS)), factor @ factor.T)


ACTIONS = hnp.arrays(float, st.tuples(st.integers(1, 4), st.just(2)), elements=NUMBERS)
TABLES = hnp.arrays(
    float, st.tuples(st.integers(1, 6), st.integers(1, 4), st.integers(1, 3)), elements=NUMBERS
)


class TestExpectation:
    def test_is_the_weighted_sum_over_named_contexts(self):
        table = {("tv", "rain"): [1.0, 0.0], ("tv", "sun"): [0.0, 1.0]}
        table |= {("movie", "rain"): [4.0, 8.0], ("movie", "sun"): [0.0, -4.0]}
        psi = expected_features(lambda x, c: table[x, c], ["tv", "movie"], RAIN_OR_SUN)
        assert_array_equal(psi, [[0.25, 0.75], [1.0, -1.0]])
        assert psi.dtype == np.float64

    def test_takes_dicts_integers_and_any_sequence(self):
        law = Samples(({"hour": 8}, {"hour": 20}))
        psi = expected_features(lambda x, c: (x, x * c["hour"], True), range(2), law)
        assert_array_equal(psi, [[0, 0, 1], [1, 14, 1]])

    @given(laws(), ACTIONS)
    def test_of_a_bilinear_map_is_the_map_at_the_mean(self, law, actions):
        mean = law.weights @ np.stack(law.contexts)
        expected = [bilinear(a, mean) for a in actions]
        assert_allclose(expected_features(bilinear, actions, law), expected, atol=1e-12)

    @given(gaussians(), ACTIONS)
    def test_of_a_bilinear_map_under_a_gaussian_is_the_map_at_the_mean(self, law, actions):
        expected = [bilinear(a, law.mean) for a in actions]
        assert_array_equal(expected_features(bilinear, actions, law), expected)

    def test_of_an_affine_map_under_a_gaussian_keeps_the_constant(self):
        psi = expected_features(lambda x, c: [1.0, x + c[0]], [2.0], Gaussian([3.0], [[4.0]]))
        assert_array_equal(psi, [[1.0, 5.0]])

    def test_under_a_point_mass_needs_no_affine_map(self):
        psi = expected_features(quadratic, [1.0], Gaussian([1.0, 2.0], np.zeros((2, 2))))
        assert_array_equal(psi, [[1.0, 2.0, 2.0, 4.0]])

    def test_of_a_quadratic_map_is_the_second_moment(self):
        # E cc' = cov + mean mean'; four points at +-sqrt(2) along the axes have covariance I.
        mean = np.array([1.0, -2.0])
        law = Discrete(mean + math.sqrt(2.0) * np.vstack([np.eye(2), -np.eye(2)]))
        moment = np.eye(2) + np.outer(mean, mean)
        psi = expected_features(quadratic, [1.0, 3.0], law)
        assert_allclose(psi, [moment.ravel(), 3 * moment.ravel()], rtol=1e-14)

    @given(laws(), ACTIONS, NUMBERS, NUMBERS)
    def test_is_linear_in_the_map(self, law, actions, a, b):
        def square(x, c):
            return bilinear(x, c) ** 2

        def mix(x, c):
            return a * bilinear(x, c) + b * square(x, c)

        parts = [expected_features(f, actions, law) for f in (bilinear, square)]
        scale = 1.0 + sum(np.abs(part).max() for part in parts)
        assert_allclose(
            expected_features(mix, actions, law), a * parts[0] + b * parts[1], atol=1e-12 * scale
        )

    @given(laws(), ACTIONS, st.randoms(use_true_random=False))
    def test_ignores_the_order_of_contexts_and_follows_that_of_actions(self, law, actions, random):
        order = random.sample(range(len(law.contexts)), len(law.contexts))
        shuffled = Discrete([law.contexts[i] for i in order], law.weights[order])
        psi = expected_features(bilinear, actions, law)
        assert_allclose(expected_features(bilinear, actions[::-1], shuffled)[::-1], psi, atol=1e-12)

    @given(TABLES)
    def test_lies_between_the_extremes_of_the_support(self, phi):
        psi = expected_table(phi)
        assert np.all(psi >= phi.min(axis=0) - 1e-12)
        assert np.all(psi <= phi.max(axis=0) + 1e-12)

    def test_of_samples_is_their_mean(self):
        contexts = np.random.default_rng(3).normal(size=(7, 2))
        psi = expected_features(bilinear, np.eye(2), Samples(contexts))
        assert_allclose(psi, [bilinear(a, contexts.mean(axis=0)) for a in np.eye(2)], rtol=1e-14)

    def test_of_samples_converges(self):
        law = Gaussian([1.0, -2.0], [[2.0, 0.5], [0.5, 1.0]])
        n = 4000
        draws = np.random.default_rng(0).multivariate_normal(law.mean, law.cov, size=n)
        action = np.array([0.5, 3.0])
        gap = expected_features(bilinear, [action], Samples(draws))
        gap -= expected_features(bilinear, [action], law)
        # Entry (i, j) averages c_i a_j, whose variance is cov_ii a_j^2: five standard errors.
        errors = np.sqrt(np.outer(np.diag(law.cov), action**2).ravel() / n)
        assert np.all(np.abs(gap[0]) <= 5 * errors)

    def test_copies_what_a_map_returns_from_a_buffer_of_its_own(self):
        buffer = np.zeros(1)

        def reuse(action, context):
            buffer[0] = action * context
            return buffer

        psi = expected_features(reuse, [1.0, 2.0], Discrete([0.0, 4.0]))
        assert_array_equal(psi, [[2.0], [4.0]])


class TestSupport:
    @given(laws(), ACTIONS)
    def test_averages_to_the_expected_features(self, law, actions):
        phi, weights = feature_support(bilinear, actions, law)
        assert phi.shape == (len(law.contexts), len(actions), 6)
        psi = expected_features(bilinear, actions, law)
        assert_allclose(expected_table(phi, weights), psi, atol=1e-12)

    def test_lists_features_by_context_then_action(self):
        phi, weights = feature_support(lambda x, c: [x, c], [1.0, 2.0], Samples([3.0, 4.0]))
        assert_array_equal(phi, [[[1, 3], [2, 3]], [[1, 4], [2, 4]]])
        assert_array_equal(weights, [0.5, 0.5])

    def test_keeps_contexts_of_weight_zero_in_their_place(self):
        phi, weights = feature_support(lambda x, c: [c], [0], Discrete([5.0, 9.0], [1.0, 0.0]))
        assert_array_equal(phi[:, 0, 0], [5.0, 9.0])
        assert_array_equal(phi[weights > 0, 0, 0], [5.0])

    def test_gives_weights_that_can_be_changed_without_harm(self):
        _, weights = feature_support(lambda x, c: [1.0], [0], RAIN_OR_SUN)
        weights[:] = 0.0
        assert_array_equal(RAIN_OR_SUN.weights, [0.25, 0.75])


class TestHalfRange:
    @given(TABLES, st.floats(0.01, 100))
    def test_is_half_the_largest_distance_times_the_bound(self, phi, bound):
        n, K, _ = phi.shape
        pairs = list(itertools.product(range(n), repeat=2))
        brute = [max(math.dist(phi[i, k], phi[j, k]) for i, j in pairs) / 2 for k in range(K)]
        assert_allclose(half_range(phi, bound), bound * np.array(brute), rtol=1e-12)

    @given(TABLES, st.integers(0, 2**32 - 1))
    def test_bounds_half_the_range_of_the_reward(self, phi, seed):
        theta = np.random.default_rng(seed).normal(size=phi.shape[2])
        theta *= 2.0 / np.linalg.norm(theta)
        assert np.all(np.ptp(phi @ theta, axis=0) / 2 <= half_range(phi, bound=2.0) + 1e-9)

    def test_is_attained(self):
        phi = np.array([[[1.0, 1.0]], [[4.0, 5.0]]])
        theta = np.array([0.6, 0.8])
        assert_allclose(half_range(phi), np.ptp(phi @ theta, axis=0) / 2, rtol=1e-15)

    def test_of_a_single_context_is_zero(self):
        assert_array_equal(half_range([[[1.0], [2.0]]]), [0.0, 0.0])

    def test_survives_a_large_common_offset(self):
        assert_array_equal(half_range([[[1e9]], [[1e9 + 1.0]]]), [0.5])


class TestDistributions:
    def test_weights_are_uniform_by_default(self):
        assert_array_equal(Discrete(list("abcd")).weights, [0.25] * 4)
        assert_array_equal(Samples(np.zeros((4, 2))).weights, [0.25] * 4)

    def test_weights_may_miss_one_by_rounding(self):
        assert_array_equal(Discrete([1, 2], [0.5, 0.5 + 5e-10]).weights, [0.5, 0.5 + 5e-10])

    @pytest.mark.parametrize("law", [RAIN_OR_SUN, Samples([1.0]), Gaussian([0.0], [[1.0]])])
    def test_are_frozen(self, law):
        field = dataclasses.fields(law)[0].name
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(law, field, ())

    def test_do_not_follow_later_changes_of_their_arrays(self):
        contexts, weights, cov = np.array([[1.0], [2.0]]), np.array([0.5, 0.5]), np.eye(1)
        law, normal = Discrete(contexts, weights), Gaussian(contexts[0], cov)
        contexts[:], weights[:], cov[:] = 7.0, 7.0, 7.0
        assert_array_equal(np.stack(law.contexts), [[1.0], [2.0]])
        assert_array_equal(law.weights, [0.5, 0.5])
        assert_array_equal([normal.mean[0], normal.cov[0, 0]], [1.0, 1.0])

    def test_lock_their_numbers(self):
        with pytest.raises(ValueError, match="read-only"):
            RAIN_OR_SUN.weights[0] = 1.0

    @given(gaussians())
    def test_gaussian_accepts_any_product_of_a_factor_with_itself(self, law):
        assert law.cov.shape == (3, 3)

    def test_contexts_may_be_any_objects(self):
        assert Discrete(["a", {"b": 1}, None, [1, [2]], object]).contexts[1] == {"b": 1}


BENT = {
    "square": lambda x, c: [c[0] ** 2],
    "cube": lambda x, c: [c[0] ** 3],
    "product": lambda x, c: [c[0] * c[1]],
    "difference of squares": lambda x, c: [c[0] ** 2 - c[1] ** 2],
    "hinge": lambda x, c: [max(c[0], 0.0)],
    "clip": lambda x, c: [float(np.clip(c[0], -3.0, 3.0))],
    "wave": lambda x, c: [math.sin(c[1])],
    "one bent feature of many": lambda x, c: [1e3, c[0], c[1], c[1] ** 2],
}


class TestAffinity:
    """A Gaussian refuses maps whose mean is not the map at the mean, and other bent ones."""

    @pytest.mark.parametrize("bent", BENT.values(), ids=BENT)
    def test_refuses(self, bent):
        with pytest.raises(ValueError, match="not affine"):
            expected_features(bent, [0], Gaussian(np.zeros(2), np.eye(2)))

    def test_names_the_action_and_the_remedy(self):
        def bent_for_tv(action, context):
            return context**2 if action == "tv" else context

        law = Gaussian([1.0], [[1.0]])
        with pytest.raises(ValueError, match=r"actions\[1\] = 'tv'.*use Samples"):
            expected_features(bent_for_tv, ["movie", "tv"], law)

    def test_sees_a_bend_along_a_coordinate_in_small_units(self):
        law = Gaussian([0.0, 0.0], np.diag([1e12, 1e-12]))
        with pytest.raises(ValueError, match="not affine"):
            expected_features(lambda x, c: [(1e6 * c[1]) ** 2, 1e-6 * c[0]], [0], law)

    def test_ignores_a_bend_where_the_context_never_goes(self):
        law = Gaussian([1.0, 3.0], np.diag([1.0, 0.0]))
        psi = expected_features(lambda x, c: [c[0] * c[1] ** 2], [0], law)
        assert_array_equal(psi, [[9.0]])

    @given(gaussians(), st.integers(0, 2))
    def test_accepts_rounding(self, law, seed):
        slopes = np.random.default_rng(seed).normal(size=(4, 3))
        psi = expected_features(lambda x, c: x + slopes @ c, [0.1], law)
        assert_array_equal(psi, [0.1 + slopes @ law.mean])


def test_difference_covariance_of_gaussian_and_discrete_contexts() -> None:
    matrices = np.random.default_rng(2).normal(size=(3, 2, 2))
    cov = np.array([[0.3, 0.1], [0.1, 0.2]])
    got = difference_covariance(
        lambda a, c: matrices[a] @ c, [0, 1, 2], Gaussian([1.0, -1.0], cov), 1, 0.2
    )
    for k in range(3):
        lead = matrices[k] - 0.8 * matrices[1]
        np.testing.assert_allclose(got[k], lead @ cov @ lead.T, atol=1e-12)
    points, weights = [np.array([1.0, 0.0]), np.array([0.0, 2.0])], [0.25, 0.75]
    law = Discrete(points, weights)
    got = difference_covariance(lambda a, c: matrices[a] @ c, [0, 1, 2], law, 1, 0.2)
    values = np.array([(matrices[2] - 0.8 * matrices[1]) @ c for c in points])
    mean = np.average(values, axis=0, weights=weights)
    want = np.einsum("n,ni,nj->ij", weights, values - mean, values - mean)
    np.testing.assert_allclose(got[2], want, atol=1e-12)
