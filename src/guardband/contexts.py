"""Distributions over the hidden context, and the features an agent may expect under them.

The context c of a round is hidden; only its distribution mu is known. Agents therefore work with
psi(x) = E_{c ~ mu} phi(x, c). How far phi(x, c) strays from psi(x) acts as noise on the reward.
"""

import reprlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Discrete", "Gaussian", "Samples"]
__all__ += ["expected_features", "expected_table", "feature_support", "half_range"]

Array = NDArray[np.float64]
FeatureMap = Callable[[Any, Any], ArrayLike]
Items = Sequence[Any] | NDArray[Any]

_SLACK = 1e-9  # relative, for sums, symmetry, eigenvalues and affinity: far above rounding


@dataclass(frozen=True, eq=False, init=False)
class Discrete:
    """A context distribution with finitely many possible contexts.

    Parameters
    ----------
    contexts
        The n possible contexts: a sequence of any objects, or an array with one per row.
    weights
        (n,) probabilities, in the order of the contexts; uniform if omitted.

    Raises
    ------
    ValueError
        If there is no context, a context is not finite, or the weights are not probabilities.

    Examples
    --------
    >>> Discrete(["rain", "sun"], [0.25, 0.75]).weights
    array([0.25, 0.75])
    """

    contexts: tuple[Any, ...]
    weights: Array

    def __init__(self, contexts: Items, weights: ArrayLike | None = None) -> None:
        object.__setattr__(self, "contexts", _items(contexts, "contexts"))
        object.__setattr__(self, "weights", _probabilities(weights, len(self.contexts)))


class Samples(Discrete):
    """A context distribution known only through n independent draws, which count equally.

    Expected features then err by the order of 1/sqrt(n), and rare contexts may be missing.

    Parameters
    ----------
    contexts
        The draws, as for `Discrete`.

    Raises
    ------
    ValueError
        As for `Discrete`.

    Examples
    --------
    >>> Samples([1.5, 0.5, 1.5, 2.5]).weights
    array([0.25, 0.25, 0.25, 0.25])
    """

    def __init__(self, contexts: Items) -> None:
        super().__init__(contexts)


@dataclass(frozen=True, eq=False, init=False)
class Gaussian:
    """A normal context distribution, for feature maps that are affine in the context.

    Parameters
    ----------
    mean
        (p,) mean of the context.
    cov
        (p, p) covariance, symmetric and positive semidefinite; it may be singular.

    Raises
    ------
    ValueError
        If a number is not finite, the shapes disagree, or `cov` is not a covariance.

    Examples
    --------
    >>> Gaussian([1.0, 2.0], [[1.0, 0.5], [0.5, 1.0]]).mean
    array([1., 2.])
    """

    mean: Array
    cov: Array

    def __init__(self, mean: ArrayLike, cov: ArrayLike) -> None:
        object.__setattr__(self, "mean", _numbers(mean, "mean", "p"))
        object.__setattr__(self, "cov", _numbers(cov, "cov", "p", "p"))
        p = self.mean.size
        if self.cov.shape != (p, p):
            raise ValueError(f"cov has shape {self.cov.shape}; a mean of length {p} needs {(p, p)}")
        _root(self.cov)


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
    table = _numbers(phi, "phi", "n", "K", "d")
    return np.asarray(np.tensordot(_probabilities(weights, len(table)), table, axes=1))


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
    and speaks only of the contexts given: draws may miss the extremes of their distribution.

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
    table, size = _numbers(phi, "phi", "n", "K", "d"), float(_numbers(bound, "bound"))
    if size <= 0.0:
        raise ValueError(f"bound is {size}: give a positive bound on the norm of theta")
    widest = np.zeros(table.shape[1])
    for i in range(1, len(table)):
        # Differences, not the expanded square, whose cancellation could fall below the true range.
        widest = np.maximum(widest, np.linalg.norm(table[:i] - table[i], axis=2).max(axis=0))
    return 0.5 * size * widest


def _features(feature_map: FeatureMap, actions: Items, law: Discrete) -> Iterator[Array]:
    """Yield, action by action, the (n, d) features at the contexts of `law`."""
    if not callable(feature_map):
        raise TypeError(f"feature_map is {reprlib.repr(feature_map)}: tables go to expected_table")
    if not isinstance(law, Discrete):
        raise TypeError(f"distribution is {reprlib.repr(law)}: pass Discrete, or draw Samples")
    shape = None
    for k, action in enumerate(_items(actions, "actions")):
        rows = []
        for j, context in enumerate(law.contexts):
            name = f"feature_map(actions[{k}], contexts[{j}])"
            rows.append(_numbers(feature_map(action, context), name, "d"))
            shape = shape or rows[0].shape
            if rows[-1].shape != shape:
                raise ValueError(f"{name} has shape {rows[-1].shape}, the first {shape}: pad it")
        yield np.stack(rows)


def _features_at_mean(feature_map: FeatureMap, actions: Items, law: Gaussian) -> Array:
    """Return phi(x, mean), after testing around the mean that phi(x, .) is affine."""
    # Generic directions, since a product of coordinates is flat along the axes; wide steps, since
    # a clipped map bends only far out.
    steps = 3.0 * np.random.default_rng(0).standard_normal((3, law.mean.size)) @ _root(law.cov).T
    probes = np.vstack([law.mean, law.mean - steps, law.mean + steps, law.mean + 2.0 * steps])
    psi: list[Array] = []
    for phi in _features(feature_map, actions, Samples(probes)):
        mean, back, ahead, far = phi[0], phi[1:4], phi[4:7], phi[7:]
        # Two midpoints: the first shows even bends such as c^2, the second odd ones such as c^3.
        bend = np.abs([(back + ahead) / 2 - mean, (mean + far) / 2 - ahead]).max()
        if bend > _SLACK * np.abs(phi).max():
            raise ValueError(
                f"feature_map is not affine in the context for actions[{len(psi)}] = "
                f"{reprlib.repr(actions[len(psi)])}, a midpoint is off by {bend:.3g}: "
                "draw contexts, rng.multivariate_normal(mean, cov, n), and use Samples"
            )
        psi.append(mean)
    return np.stack(psi)


def _root(cov: Array) -> Array:
    """Return R with R R' = cov, or raise if `cov` is not a covariance."""
    # At unit variances, so that coordinates in small units count as much as the others.
    scale = np.sqrt(np.abs(np.diag(cov))) + (np.diag(cov) == 0.0)
    unit = cov / scale / scale[:, None]
    for i, j in np.argwhere(np.abs(unit - unit.T) > _SLACK):
        seen = f"[{i}, {j}] is {cov[i, j]}, [{j}, {i}] is {cov[j, i]}"
        raise ValueError(f"cov is not symmetric, {seen}: pass (cov + cov.T) / 2 if by rounding")
    values, vectors = np.linalg.eigh(unit)
    if values[0] < -_SLACK * len(cov):
        seen = f"least eigenvalue {values[0]:.3g} at unit variances"
        raise ValueError(f"cov is indefinite, {seen}: raise its diagonal if by rounding")
    return np.asarray(scale[:, None] * vectors * np.sqrt(np.maximum(values, 0.0)))


def _probabilities(weights: ArrayLike | None, n: int) -> Array:
    """Return n checked probabilities, uniform for None."""
    array = _numbers(np.full(n, 1.0 / n) if weights is None else weights, "weights", "n")
    if array.size != n:
        raise ValueError(f"weights has length {array.size} for {n} contexts: give one per context")
    if array.min() < 0.0:
        raise ValueError(f"weights[{array.argmin()}] is {array.min()}: probabilities are >= 0")
    if abs(array.sum() - 1.0) > _SLACK:
        raise ValueError(f"weights sum to {array.sum()}, not 1: pass weights / np.sum(weights)")
    return array


def _items(values: Items, name: str) -> tuple[Any, ...]:
    """Return the items of a non-empty sequence, or copies of an array's rows."""
    # No str, mapping or frame: they would silently iterate over letters, keys or column names.
    listed = isinstance(values, Sequence | np.ndarray) and not isinstance(values, str | bytes)
    if not listed or getattr(values, "ndim", 1) == 0:
        raise TypeError(f"{name} is {reprlib.repr(values)}: pass a list or an array with rows")
    items = tuple(values.copy() if isinstance(values, np.ndarray) else values)
    if not items:
        raise ValueError(f"{name} is empty: give at least one")
    for i, item in enumerate(items):
        if not _finite(item):
            raise ValueError(f"{name}[{i}] is {reprlib.repr(item)}: drop or replace NaN and inf")
    return items


def _finite(item: Any) -> bool:
    """Whether no number in `item` is NaN or infinite."""
    try:
        return bool(np.all(np.isfinite(item)))
    except (TypeError, ValueError):  # a string, a dict, a ragged list: the feature map's business
        return True


def _numbers(value: ArrayLike, name: str, *axes: str) -> Array:
    """Return a locked float64 copy with one dimension per name in `axes`, all numbers finite."""
    try:
        array = np.asarray(value).astype(np.float64, casting="same_kind")
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} is not an array of real numbers, convert it: {error}") from None
    if array.ndim != len(axes) or array.size == 0:
        raise ValueError(f"{name} has shape {array.shape}: give ({', '.join(axes)}), none empty")
    for at in np.argwhere(~np.isfinite(array)):
        where = at.tolist() or ""  # a single number has no position
        raise ValueError(f"{name}{where} is {array[*at]}: drop or replace NaN and inf")
    array.setflags(write=False)
    return array
