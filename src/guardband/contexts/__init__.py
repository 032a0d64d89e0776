"""Distributions over the hidden context, and the features an agent may expect under them.

The context c of a round is hidden; only its distribution mu is known. Agents therefore work with
psi(x) = E_{c ~ mu} phi(x, c). How far phi(x, c) strays from psi(x) acts as noise on the reward.
"""

from guardband.contexts.distributions import Discrete, Gaussian, Samples
from guardband.contexts.features import (
    difference_covariance,
    expected_features,
    expected_table,
    feature_support,
    half_range,
)

__all__ = [
    "Discrete",
    "Gaussian",
    "Samples",
    "difference_covariance",
    "expected_features",
    "expected_table",
    "feature_support",
    "half_range",
]
