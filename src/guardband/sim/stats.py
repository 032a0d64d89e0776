"""Means with intervals over trials."""

from __future__ import annotations

import math

import numpy as np

from guardband.kernels.types import Floats

__all__ = ["interval_half_width", "mean_interval", "student_quantile"]


def student_quantile(df: int) -> float:
    """Return the 97.5 % quantile of Student's t with `df` degrees of freedom.

    The first ones from the table (the series is useless there), then the Cornish-Fisher series,
    right to 1e-4.
    """
    table = {1: 12.706205, 2: 4.302653, 3: 3.182446, 4: 2.776445, 5: 2.570582, 6: 2.446912}
    table |= {7: 2.364624, 8: 2.306004, 9: 2.262157, 10: 2.228139, 11: 2.200985, 12: 2.178813}
    if df in table:
        return table[df]
    z = 1.959963985
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return math.fsum(term / df**power for power, term in enumerate(terms))


def interval_half_width(samples: Floats) -> Floats:
    """Return half the width of the 95 % interval of the mean over the first axis."""
    n = samples.shape[0]
    if n < 2:
        return np.full(samples.shape[1:], np.nan)
    std: Floats = samples.std(axis=0, ddof=1)
    return student_quantile(n - 1) * std / math.sqrt(n)


def mean_interval(samples: Floats) -> tuple[float, float, float]:
    """Return mean, low and high of the 95 % interval; NaN bounds for a single sample."""
    mean = float(samples.mean())
    half = float(interval_half_width(samples))
    return mean, mean - half, mean + half
