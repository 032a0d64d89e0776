"""Distributions of the hidden context: finite, known by draws, or normal."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from guardband.errors import InvalidTypeError, InvalidValueError

__all__ = ["SLACK", "Array", "Discrete", "Gaussian", "Items", "Samples"]
__all__ += ["as_items", "as_numbers", "as_probabilities"]

Array = NDArray[np.float64]
Items = Sequence[Any] | NDArray[Any]

SLACK = 1e-9  # relative, for sums, symmetry, eigenvalues and affinity: far above rounding


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
        object.__setattr__(self, "contexts", as_items(contexts, "contexts"))
        object.__setattr__(self, "weights", as_probabilities(weights, len(self.contexts)))


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

    Attributes
    ----------
    root
        (p, p) with root root' = cov.

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
    root: Array = field(repr=False)  # (p, p) with root root' = cov

    def __init__(self, mean: ArrayLike, cov: ArrayLike) -> None:
        object.__setattr__(self, "mean", as_numbers(mean, "mean", "p"))
        object.__setattr__(self, "cov", as_numbers(cov, "cov", "p", "p"))
        p = self.mean.size
        if self.cov.shape != (p, p):
            raise InvalidValueError(
                f"cov has shape {self.cov.shape}; a mean of length {p} needs {(p, p)}."
            )
        object.__setattr__(self, "root", _root_of(self.cov))

    def sample(self, rng: np.random.Generator, n: int) -> Array:
        """Return n independent contexts, one per row."""
        return np.asarray(self.mean + rng.standard_normal((n, self.mean.size)) @ self.root.T)


def _root_of(cov: Array) -> Array:
    """Return R with R R' = cov, or raise if `cov` is not a covariance."""
    # At unit variances, so that coordinates in small units count as much as the others.
    scale = np.sqrt(np.abs(np.diag(cov))) + (np.diag(cov) == 0.0)
    unit = cov / scale / scale[:, None]
    for i, j in np.argwhere(np.abs(unit - unit.T) > SLACK):
        seen = f"[{i}, {j}] is {cov[i, j]}, [{j}, {i}] is {cov[j, i]}"
        raise InvalidValueError(
            f"cov is not symmetric, {seen}: pass (cov + cov.T) / 2 if by rounding."
        )
    values, vectors = np.linalg.eigh(unit)
    if values[0] < -SLACK * len(cov):
        seen = f"least eigenvalue {values[0]:.3g} at unit variances"
        raise InvalidValueError(f"cov is indefinite, {seen}: raise its diagonal if by rounding")
    return np.asarray(scale[:, None] * vectors * np.sqrt(np.maximum(values, 0.0)))


def as_probabilities(weights: ArrayLike | None, n: int) -> Array:
    """Return n checked probabilities, uniform for None."""
    array = as_numbers(np.full(n, 1.0 / n) if weights is None else weights, "weights", "n")
    if array.size != n:
        raise InvalidValueError(
            f"weights has length {array.size} for {n} contexts: give one per context."
        )
    if array.min() < 0.0:
        raise InvalidValueError(
            f"weights[{array.argmin()}] is {array.min()}: probabilities are >= 0."
        )
    if abs(array.sum() - 1.0) > SLACK:
        raise InvalidValueError(
            f"weights sum to {array.sum()}, not 1: pass weights / np.sum(weights)."
        )
    return array


def as_items(values: Items, name: str) -> tuple[Any, ...]:
    """Return the items of a non-empty sequence, or copies of an array's rows."""
    # No str, mapping or frame: they would silently iterate over letters, keys or column names.
    listed = isinstance(values, Sequence | np.ndarray) and not isinstance(values, str | bytes)
    if not listed or getattr(values, "ndim", 1) == 0:
        raise InvalidTypeError(
            f"{name} is {reprlib.repr(values)}: pass a list or an array with rows."
        )
    items = tuple(values.copy() if isinstance(values, np.ndarray) else values)
    if not items:
        raise InvalidValueError(f"{name} is empty: give at least one.")
    for i, item in enumerate(items):
        if not _finite(item):
            raise InvalidValueError(
                f"{name}[{i}] is {reprlib.repr(item)}: drop or replace NaN and inf."
            )
    return items


def _finite(item: Any) -> bool:
    """Whether no number in `item` is NaN or infinite."""
    try:
        return bool(np.all(np.isfinite(item)))
    except (TypeError, ValueError):  # a string, a dict, a ragged list: left to the feature map
        return True


def as_numbers(value: ArrayLike, name: str, *axes: str) -> Array:
    """Return a locked float64 copy with one dimension per name in `axes`, all numbers finite."""
    try:
        array = np.asarray(value)
    except ValueError:
        raise InvalidValueError(f"{name} has rows of different lengths.") from None
    try:
        array = array.astype(np.float64, casting="same_kind")
    except (TypeError, ValueError):
        raise InvalidValueError(
            f"{name} must be an array of real numbers, not {reprlib.repr(value)}."
        ) from None
    if array.ndim != len(axes) or array.size == 0:
        raise InvalidValueError(
            f"{name} has shape {array.shape}: give ({', '.join(axes)}), none empty."
        )
    for at in np.argwhere(~np.isfinite(array)):
        where = at.tolist() or ""  # a single number has no position
        raise InvalidValueError(f"{name}{where} is {array[*at]}: drop or replace NaN and inf")
    array.setflags(write=False)
    return array
