"""How far true features stray from the expected ones, where the support is not finite."""

from __future__ import annotations

import numpy as np

from guardband.contexts import (
    Array,
    Discrete,
    FeatureMap,
    Gaussian,
    Items,
    expected_features,
    feature_support,
)

__all__ = ["difference_covariance"]


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
        cov: Array = np.einsum("kip,pq,kjq->kij", lead, distribution.cov, lead)
        return cov
    phi, weights = feature_support(feature_map, actions, distribution)
    lead = (phi - mean) - keep * (phi[:, [baseline]] - mean[[baseline]])
    spread: Array = np.einsum("n,nki,nkj->kij", weights, lead, lead)
    return spread
