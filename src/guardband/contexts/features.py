"""Features under a distribution of the context: expected, listed, and how far they vary."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from guardband.contexts.distributions import (
    SLACK,
    Array,
    Discrete,
    Gaussian,
    Items,
    Samples,
    as_items,
    as_numbers,
    as_probabilities,
)
from guardband.errors import InvalidTypeError, InvalidValueError

__all__ = ["difference_covariance", "expected_features", "expected_table", "feature_support"]
__all__ += ["half_range"]

FeatureMap = Callable[[Any, Any], ArrayLike]


def expected_features(
    feature_map: FeatureMap, actions: Items, distribution: Discrete | Gaussian
) -> Array:
    """Compute psi(x) = E phi(x, c), the features each action has on average over the context.

    `Discrete` gives the exact weighted sum, `Samples` the mean over the same draws for all actions
    and `Gaussian` phi(x, mean), which is exact if phi(x, .) is affine. That is tested at the mean
    (contexts[0] in errors) and nine points around it, to 1e-9 of the largest feature: too finely
    for a map that computes in single precision.

    Parameters
    ----------
    feature_map
        phi: takes an action and a context, returns a vector of length d.
    actions
        The K actions: a sequence of any objects, or an array with one per row.
    distribution
        `Discrete`, `Samples` or `Gaussian`: what is known about the hidden context.

    Returns
    -------
    (K, d) expected features.

    Raises
    ------
    ValueError
        If there is no action, some features are not a finite vector of the common length, or
        the distribution is `Gaussian` and the map is not affine in the context.
    TypeError
        If an argument is of another kind.

    Examples
    --------
    >>> expected_features(lambda x, c: [x, x * c], [2.0, 4.0], Discrete([0.0, 1.0], [0.25, 0.75]))
    array([[2. , 1.5],
           [4. , 3. ]])
    """
    if isinstance(distribution, Gaussian):
        return _features_at_mean(feature_map, actions, distribution)
    features = _features(feature_map, actions, distribution)
    return np.stack([distribution.weights @ phi for phi in features])


def expected_table(phi: ArrayLike, weights: ArrayLike | None = None) -> Array:
    """Average a table of features over its contexts: the fast path when phi is an array.

    Parameters
    ----------
    phi
        (n, K, d) features of each action in each context.
    weights
        (n,) probabilities of the contexts; uniform if omitted.

    Returns
    -------
    (K, d) expected features.

    Raises
    ------
    ValueError
        If `phi` is not a finite, non-empty table, or the weights are not n probabilities.

    Examples
    --------
    >>> expected_table([[[0.0, 1.0]], [[4.0, 1.0]]], [0.25, 0.75])
    array([[3., 1.]])
    """
    table = as_numbers(phi, "phi", "n", "K", "d")
    return np.asarray(np.tensordot(as_probabilities(weights, len(table)), table, axes=1))


def feature_support(
    feature_map: FeatureMap, actions: Items, distribution: Discrete
) -> tuple[Array, Array]:
    """List phi(x, c) for every action and every context of a finite support.

    Parameters
    ----------
    feature_map, actions, distribution
        As for `expected_features`, without `Gaussian`.

    Returns
    -------
    phi
        (n, K, d) features. Contexts of weight 0 are kept; `phi[weights > 0]` leaves them out.
    weights
        (n,) probabilities of the contexts.

    Raises
    ------
    ValueError, TypeError
        As for `expected_features`; a `Gaussian` is a TypeError.

    Examples
    --------
    >>> phi, weights = feature_support(lambda x, c: [x, x * c], [2.0], Samples([0.0, 3.0]))
    >>> phi[1]
    array([[2., 6.]])
    """
    phi = np.stack(list(_features(feature_map, actions, distribution)), axis=1)
    return phi, distribution.weights.copy()


def half_range(phi: ArrayLike, bound: float = 1.0) -> Array:
    """Bound half the range of phi(x, c)'theta over the contexts, for every ||theta|| <= bound.

    It is (bound/2) max_{c, c'} ||phi(x, c) - phi(x, c')||, computed in a time that grows with n^2,
    and holds only for the contexts given: draws may miss the extremes of their distribution.

    Parameters
    ----------
    phi
        (n, K, d) features, as from `feature_support`.
    bound
        Bound on the norm of theta, positive.

    Returns
    -------
    (K,) half ranges, one per action.

    Raises
    ------
    ValueError
        If `phi` is not a finite, non-empty table, or `bound` is not positive and finite.

    Examples
    --------
    >>> half_range([[[0.0, 0.0]], [[3.0, 4.0]]], bound=2.0)
    array([5.])
    """
    table, size = as_numbers(phi, "phi", "n", "K", "d"), float(as_numbers(bound, "bound"))
    if size <= 0.0:
        raise InvalidValueError(f"bound is {size}: give a positive bound on the norm of theta")
    widest = np.zeros(table.shape[1])
    for i in range(1, len(table)):
        # Differences, not the expanded square, whose cancellation could fall below the true range.
        widest = np.maximum(widest, np.linalg.norm(table[:i] - table[i], axis=2).max(axis=0))
    return 0.5 * size * widest


def difference_covariance(
    feature_map: FeatureMap,
    actions: Items,
    distribution: Discrete | Gaussian,
    baseline: int,
    alpha: float,
) -> Array:
    """Return the covariance of phi(x, c) - (1 - alpha) phi(baseline, c) for every action x.

    Parameters
    ----------
    feature_map
        (action, context) -> the length-d features; affine in the context for a `Gaussian`.
    actions
        The actions on offer.
    distribution
        The distribution of the hidden context.
    baseline
        The position of the baseline's action.
    alpha
        The share of the baseline's reward that may be lost.

    Returns
    -------
    Array
        (K, d, d).

    Examples
    --------
    >>> import numpy as np
    >>> from guardband import Gaussian
    >>> law = Gaussian([0.0], [[4.0]])
    >>> difference_covariance(lambda a, c: [a * c[0]], [1.0, 3.0], law, 0, alpha=1.0)[:, 0, 0]
    array([ 4., 36.])
    """
    keep = 1.0 - alpha
    mean = expected_features(feature_map, actions, distribution)
    if isinstance(distribution, Gaussian):
        slopes = []
        for unit in np.eye(distribution.mean.size):
            moved = Discrete([distribution.mean + unit])
            slopes.append(expected_features(feature_map, actions, moved) - mean)
        slope = np.stack(slopes, axis=2)  # (K, d, p)
        lead = slope - keep * slope[baseline]
        affine: Array = np.einsum("kip,pq,kjq->kij", lead, distribution.cov, lead)
        return affine
    phi, weights = feature_support(feature_map, actions, distribution)
    lead = (phi - mean) - keep * (phi[:, [baseline]] - mean[[baseline]])
    covariance: Array = np.einsum("n,nki,nkj->kij", weights, lead, lead)
    return covariance


def _features(feature_map: FeatureMap, actions: Items, law: Discrete) -> Iterator[Array]:
    """Yield, action by action, the (n, d) features at the contexts of `law`."""
    if not callable(feature_map):
        raise InvalidTypeError(
            f"feature_map must be a function of an action and a context, not "
            f"{reprlib.repr(feature_map)}: a table of features goes to gb.expected_table."
        )
    if not isinstance(law, Discrete):
        raise InvalidTypeError(
            f"distribution is {reprlib.repr(law)}: pass Discrete, or draw Samples."
        )
    dim = None
    for k, action in enumerate(as_items(actions, "actions")):
        rows = _as_rows([_copied(feature_map(action, c)) for c in law.contexts], k, dim)
        dim = rows.shape[1]
        yield rows


def _copied(features: ArrayLike) -> ArrayLike:
    """Return a copy: a map may return the same buffer again and again."""
    try:
        return np.array(features)
    except (TypeError, ValueError):  # refused later on, by its name
        return features


def _as_rows(found: list[ArrayLike], k: int, dim: int | None) -> Array:
    """Return the features of action k as (n, d); checked as a whole, which takes a tenth as long.

    Only where something is wrong are they checked one by one, to say which it is.
    """
    try:
        rows = np.asarray(found)
    except ValueError:  # of different lengths
        rows = np.zeros(0)
    plain = rows.ndim == 2 and rows.size > 0 and rows.dtype.kind in "biuf"
    if plain and dim in (None, rows.shape[1]) and np.isfinite(rows).all():
        return rows.astype(np.float64)
    checked: list[Array] = []
    for j, each in enumerate(found):
        name = f"feature_map(actions[{k}], contexts[{j}])"
        checked.append(as_numbers(each, name, "d"))
        wanted = (checked[0].size if dim is None else dim,)
        if checked[-1].shape != wanted:
            raise InvalidValueError(
                f"{name} has shape {checked[-1].shape}, the first {wanted}: pad it."
            )
    return np.stack(checked)


def _features_at_mean(feature_map: FeatureMap, actions: Items, law: Gaussian) -> Array:
    """Return phi(x, mean), after testing around the mean that phi(x, .) is affine."""
    # Generic directions, since a product of coordinates is flat along the axes; wide steps, since
    # a clipped map bends only far out.
    draws = np.random.default_rng(0).standard_normal((3, law.mean.size))
    steps = 3.0 * draws @ law.root.T
    probes = np.vstack([law.mean, law.mean - steps, law.mean + steps, law.mean + 2.0 * steps])
    psi: list[Array] = []
    for phi in _features(feature_map, actions, Samples(probes)):
        mean, back, ahead, far = phi[0], phi[1:4], phi[4:7], phi[7:]
        # Two midpoints: the first shows even bends such as c^2, the second odd ones such as c^3.
        bend = np.abs([(back + ahead) / 2 - mean, (mean + far) / 2 - ahead]).max()
        if bend > SLACK * np.abs(phi).max():
            raise InvalidValueError(
                f"feature_map is not affine in the context for actions[{len(psi)}] = "
                f"{reprlib.repr(actions[len(psi)])}, a midpoint is off by {bend:.3g}: "
                "draw contexts, rng.multivariate_normal(mean, cov, n), and use Samples."
            )
        psi.append(mean)
    return np.stack(psi)
