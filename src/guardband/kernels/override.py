"""What an observation of another action than the one chosen would have weighed at the decision."""

from __future__ import annotations

import math

from guardband.kernels._jit import kernel
from guardband.kernels.certify import weigh
from guardband.kernels.observe import copy_features
from guardband.kernels.ridge import prediction
from guardband.kernels.state import ALPHA, RHO, terms_of
from guardband.kernels.types import Estimate, RoundInput, Rule

__all__ = ["weigh_instead"]

GUARD = int(Rule.GUARD)


@kernel
def weigh_instead(settings, coords, menu, contexts, ids, weights, covariance, known, k, x):
    """Return the weight and the prediction of action k by what was known; writes its features to x.

    `known` are V^-1, theta-hat and the radius of the agent's own set at the decision; the others
    are as `serve` takes them.
    """
    inverse, theta, radius = known
    terms, estimate = terms_of(settings), Estimate(inverse, theta, theta[:0])
    copy_features(menu, k, coords, x)
    guess, weight = prediction(x, theta), 1.0
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
        weight, guess = weigh(estimate, radius, terms, given, k, guess)
    return weight, guess
