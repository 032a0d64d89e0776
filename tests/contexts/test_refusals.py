"""Context distributions: every way to be refused."""

import math

import numpy as np
import pytest

from guardband.contexts import (
    Discrete,
    Gaussian,
    Samples,
    expected_features,
    expected_table,
    feature_support,
    half_range,
)

NAN, INF = math.nan, math.inf
TWO = Discrete([1.0, 2.0])


def bilinear(action, context):
    return np.outer(context, action).ravel()


class TestRefusals:
    @pytest.mark.parametrize("make", [Discrete, Samples])
    @pytest.mark.parametrize(
        ("contexts", "error", "message"),
        [
            ([], ValueError, "contexts is empty"),
            (np.empty((0, 2)), ValueError, "contexts is empty"),
            ("rain", TypeError, "contexts is 'rain': pass a list"),
            ({"rain": 0.5, "sun": 0.5}, TypeError, "contexts is {'rain'.*: pass a list"),
            (3, TypeError, "contexts is 3: pass a list"),
            (np.array(3.0), TypeError, r"contexts is array\(3"),
            ([1.0, NAN], ValueError, r"contexts\[1\] is nan"),
            ([[1.0, 2.0], [INF, 0.0]], ValueError, r"contexts\[1\] is \[inf, 0.0\]"),
            (np.array([[-INF, 0.0]]), ValueError, r"contexts\[0\] is array"),
        ],
    )
    def test_contexts(self, make, contexts, error, message):
        with pytest.raises(error, match=message):
            make(contexts)

    @pytest.mark.parametrize(
        ("weights", "message"),
        [
            ([0.5, 0.4], r"weights sum to 0.9, not 1: pass weights / np.sum\(weights\)"),
            ([0.5, 0.5 + 2e-9], "weights sum to 1.000000002"),
            ([0.0, 0.0], "weights sum to 0.0"),
            ([1.5, -0.5], r"weights\[1\] is -0.5: probabilities are >= 0"),
            ([0.5, NAN], r"weights\[1\] is nan"),
            ([INF, 0.5], r"weights\[0\] is inf"),
            ([1.0], "weights has length 1 for 2 contexts"),
            ([[0.5, 0.5]], r"weights has shape \(1, 2\): give \(n\)"),
            (0.5, r"weights has shape \(\)"),
            ([], r"weights has shape \(0,\)"),
            (["a", "b"], r"weights must be an array of real numbers, not \['a', 'b'\]\.$"),
            ([0.5, 0.5j], r"weights must be an array of real numbers, not \[0.5, 0.5j\]\.$"),
            ([[0.5], [0.2, 0.3]], r"weights has rows of different lengths\.$"),
        ],
    )
    @pytest.mark.parametrize(
        "use",
        [lambda w: Discrete([1.0, 2.0], w), lambda w: expected_table(np.ones((2, 1, 1)), w)],
        ids=["Discrete", "expected_table"],
    )
    def test_weights(self, use, weights, message):
        with pytest.raises(ValueError, match=message):
            use(weights)

    @pytest.mark.parametrize(
        ("mean", "cov", "message"),
        [
            ([], [[]], r"mean has shape \(0,\)"),
            (0.0, [[1.0]], r"mean has shape \(\): give \(p\)"),
            ([[0.0]], [[1.0]], r"mean has shape \(1, 1\)"),
            ([0.0, NAN], np.eye(2), r"mean\[1\] is nan"),
            (["a"], [[1.0]], "mean must be an array of real numbers"),
            ([0.0], 1.0, r"cov has shape \(\): give \(p, p\)"),
            ([0.0, 0.0], np.eye(3), r"cov has shape \(3, 3\); a mean of length 2 needs \(2, 2\)"),
            ([0.0, 0.0], np.ones((2, 1)), r"cov has shape \(2, 1\)"),
            ([0.0, 0.0], [[1.0, INF], [INF, 1.0]], r"cov\[0, 1\] is inf"),
            ([0.0, 0.0], [[1.0, 0.1], [0.2, 1.0]], r"\[0, 1\] is 0.1, \[1, 0\] is 0.2"),
            ([0.0, 0.0], [[1.0, 2.0], [2.0, 1.0]], "indefinite, least eigenvalue -1 "),
            ([0.0], [[-1.0]], "indefinite"),
            ([0.0, 0.0], [[0.0, 0.1], [0.1, 1.0]], "indefinite"),
            # In units of their own these two coordinates are correlated by more than 1.
            ([0.0, 0.0], [[1e12, 2.0], [2.0, 1e-12]], "indefinite"),
        ],
    )
    def test_gaussian(self, mean, cov, message):
        with pytest.raises(ValueError, match=message):
            Gaussian(mean, cov)

    @pytest.mark.parametrize("use", [expected_features, feature_support])
    @pytest.mark.parametrize(
        ("feature_map", "actions", "law", "error", "message"),
        [
            (bilinear, [], TWO, ValueError, "actions is empty"),
            (bilinear, np.empty((0, 3)), TWO, ValueError, "actions is empty"),
            (bilinear, 5, TWO, TypeError, "actions is 5: pass a list"),
            (bilinear, "tv", TWO, TypeError, "actions is 'tv'"),
            (bilinear, [1.0, NAN], TWO, ValueError, r"actions\[1\] is nan"),
            (
                np.ones((2, 1, 1)),
                [1.0],
                TWO,
                TypeError,
                "feature_map must be a function.*expected_table",
            ),
            (bilinear, [1.0], [1.0, 2.0], TypeError, r"distribution is \[1.0, 2.0\]: pass Discr"),
            (
                lambda x, c: [1.0, NAN if (x, c) == (4.0, 2.0) else 0.0],
                [3.0, 4.0],
                TWO,
                ValueError,
                r"feature_map\(actions\[1\], contexts\[1\]\)\[1\] is nan",
            ),
            (lambda x, c: [INF], [0], TWO, ValueError, r"contexts\[0\]\)\[0\] is inf"),
            (lambda x, c: [1.0] * int(c), [0], TWO, ValueError, r"\(2,\), the first \(1,\)"),
            (lambda x, c: [1.0] * x, [3, 2], TWO, ValueError, r"actions\[1\].*\(2,\), the first"),
            (lambda x, c: [], [0], TWO, ValueError, r"has shape \(0,\): give \(d\)"),
            (lambda x, c: 1.0, [0], TWO, ValueError, r"has shape \(\): give \(d\)"),
            (lambda x, c: np.eye(2), [0], TWO, ValueError, r"has shape \(2, 2\): give \(d\)"),
            (
                lambda x, c: None,
                [0],
                TWO,
                ValueError,
                "must be an array of real numbers|rows of different lengths",
            ),
            (
                lambda x, c: [[1.0], []],
                [0],
                TWO,
                ValueError,
                "must be an array of real numbers|rows of different lengths",
            ),
            (
                lambda x, c: [1j],
                [0],
                TWO,
                ValueError,
                "must be an array of real numbers|rows of different lengths",
            ),
        ],
    )
    def test_maps_actions_and_laws(self, use, feature_map, actions, law, error, message):
        with pytest.raises(error, match=message):
            use(feature_map, actions, law)

    @pytest.mark.parametrize(
        ("feature_map", "actions", "message"),
        [
            (bilinear, [], "actions is empty"),
            (lambda x, c: [NAN], [0], r"contexts\[0\]\)\[0\] is nan"),
            (lambda x, c: [1.0] * x, [1, 2], r"\(2,\), the first \(1,\)"),
            (lambda x, c: [0.0 if c[0] == 0.0 else INF], [0], r"contexts\[1\]\)\[0\] is inf"),
        ],
    )
    def test_maps_and_actions_under_a_gaussian(self, feature_map, actions, message):
        with pytest.raises(ValueError, match=message):
            expected_features(feature_map, actions, Gaussian([0.0], [[1.0]]))

    def test_support_of_a_gaussian(self):
        with pytest.raises(TypeError, match=r"distribution is Gaussian.*draw Samples"):
            feature_support(bilinear, [1.0], Gaussian([0.0], [[1.0]]))

    @pytest.mark.parametrize("use", [expected_table, half_range])
    @pytest.mark.parametrize(
        ("phi", "message"),
        [
            (np.ones((2, 3)), r"phi has shape \(2, 3\): give \(n, K, d\)"),
            (np.ones((0, 2, 3)), r"phi has shape \(0, 2, 3\)"),
            (np.ones((2, 0, 3)), r"phi has shape \(2, 0, 3\)"),
            (np.ones((2, 3, 0)), r"phi has shape \(2, 3, 0\)"),
            ([[[1.0, 2.0]], [[1.0, NAN]]], r"phi\[1, 0, 1\] is nan"),
            ([[[-INF]]], r"phi\[0, 0, 0\] is -inf"),
            ([[[1.0]], [[1.0, 2.0]]], "phi has rows of different lengths"),
        ],
    )
    def test_tables(self, use, phi, message):
        with pytest.raises(ValueError, match=message):
            use(phi)

    @pytest.mark.parametrize(
        ("bound", "message"),
        [
            (0.0, "bound is 0.0: give a positive bound"),
            (-1.0, "bound is -1.0"),
            (NAN, "bound is nan"),
            (INF, "bound is inf"),
            ([1.0, 2.0], r"bound has shape \(2,\)"),
            ("wide", "bound must be an array of real numbers"),
        ],
    )
    def test_bound(self, bound, message):
        with pytest.raises(ValueError, match=message):
            half_range(np.ones((2, 1, 1)), bound)
