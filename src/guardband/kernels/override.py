"""What an observation of another action than the one chosen would have weighed at the decision."""

from __future__ import annotations

import math

from guardband.kernels._jit import kernel
from guardband.kernels.certify import declared_weight, weigh
from guardband.kernels.linalg import quadratic
from guardband.kernels.observe import copy_features
from guardband.kernels.ridge import prediction
from guardband.kernels.state import ALPHA, RHO, terms_of
from guardband.kernels.types import Estimate, RoundInput, Rule

__all__ = ["weigh_instead"]

GUARD = int(Rule.GUARD)


@kernel
def weigh_instead(settings, coords, menu, contexts, ids, weights, covariance, known, k, x):
    """Return what an observation of action k is worth, by what was known; writes its features to x.

    That is the weight, the prediction, the declared weight and the lower bound of its expected
    reward, as monitors take them. `known` are V^-1, theta-hat and the radius of the agent's own set
    at the decision; the others are as `serve` takes them.
    """
    inverse, theta, radius = known
    terms, estimate = terms_of(settings), Estimate(inverse, theta, theta[:0])
    copy_features(menu, k, coords, x)
    mean = prediction(x, theta)
    weight, guess, declared, lower = 1.0, mean, 1.0, math.nan
    if terms.rule == GUARD:
        given = RoundInput(
            menu,
            coords,
            0,
            math.nan,
            False,
            0.0,
            settings[ALPHA],
            settings[RHO],
            1,
            1,
            0.0,
            contexts,
            ids,
            weights,
            covariance,
        )
        weight, guess = weigh(estimate, radius, terms, given, k, mean)
        declared = declared_weight(terms, given, k)
        lower = mean - radius * math.sqrt(quadratic(inverse, x, coords)) - terms.bias
    return weight, guess, declared, lower
