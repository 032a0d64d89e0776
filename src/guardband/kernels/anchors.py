"""The baseline's reported rewards as data: an estimate that fits them as well."""

from __future__ import annotations

from guardband.kernels._jit import kernel
from guardband.kernels.linalg import copy, invert, times

__all__ = ["anchor"]


@kernel
def anchor(state, shared, terms, beta):
    """Write the estimate that also fits the baseline's reported rewards; tell if they contradict.

    k = beta^2 / (n tau^2); V_k = V + k A, theta_k = V_k^-1 (U + k a); its radius is sqrt(2) beta.
    The reports contradict the observations if J = ||theta_k - theta-hat||_V^2 + k sum (r -
    psi_b'theta_k)^2 exceeds 2 beta^2.
    """
    own, pooled, estimate, work = state.own, shared.own, state.estimate, state.work
    reports, pooled_reports, anchored = state.reports, shared.reports, state.anchored
    d = pooled.moment.size
    n = reports.scalars[0] + pooled_reports.scalars[0]
    tolerance = max(terms.tolerance, 1e-4)
    k = beta * beta / (n * tolerance * tolerance)
    matrix = work[4 : 4 + d]
    copy(pooled.gram, matrix)
    for i in range(d):
        for j in range(d):
            both = reports.gram[i, j] + pooled_reports.gram[i, j]
            matrix[i, j] += own.gram[i, j] + k * both
        matrix[i, i] += terms.ridge
        work[2, i] = own.moment[i] + pooled.moment[i]
        work[2, i] += k * (reports.moment[i] + pooled_reports.moment[i])
    invert(matrix, anchored.inverse)
    times(anchored.inverse, work[2], anchored.theta)
    strain = k * (reports.scalars[1] + pooled_reports.scalars[1])
    for i in range(d):
        shift = anchored.theta[i] - estimate.theta[i]
        a = reports.moment[i] + pooled_reports.moment[i]
        strain += terms.ridge * shift * shift - 2.0 * k * a * anchored.theta[i]
        for j in range(d):
            other = anchored.theta[j] - estimate.theta[j]
            strain += (own.gram[i, j] + pooled.gram[i, j]) * shift * other
            both = reports.gram[i, j] + pooled_reports.gram[i, j]
            strain += k * both * anchored.theta[i] * anchored.theta[j]
    return strain > 2.0 * beta * beta
