"""Promises about the context that is drawn: the certificates beside those in expectation."""

from __future__ import annotations

import numpy as np
import pytest
from guard.test_certificates import NONE, decide, given_of, learned, least, scanned, terms_of
from reference import bounded, guard_set

from guardband.kernels.certify import slack_of
from guardband.kernels.types import Reason


@pytest.mark.parametrize(("realised", "share"), [("worst", 0.0), (("chance", 0.3), 0.3)])
def test_realised_certificates(realised: object, share: float) -> None:
    dim, n, alpha, beta = 2, 5, 0.2, 0.3
    terms = terms_of(1, dim, realised=realised)
    state, rng = learned(4, dim, terms, 60), np.random.default_rng(6)
    pages = np.abs(rng.normal(size=(n, dim, 6))) / 2
    weights = np.array([0.1, 0.2, 0.25, 0.45, 0.0])
    menu = np.einsum("n,ndk->dk", weights, pages)
    given = given_of(menu, 1, alpha, support=(pages, np.arange(n), weights, NONE[3]))
    scores = scanned(state, given)
    V = terms.ridge * np.eye(dim) + state.own.gram
    for k in range(6):
        leads = [least(p[:, k] - 0.8 * p[:, 1], state.estimate.theta, V, beta) for p in pages]
        got = slack_of(state.estimate, beta, terms, given, scores, state.work[1], k)
        mean = least(menu[:, k] - 0.8 * menu[:, 1], state.estimate.theta, V, beta)
        if k == 1:
            assert got == pytest.approx(max(mean, 0.0), abs=1e-6)
        elif realised == "worst":
            assert got == pytest.approx(min(*leads[:4], mean), abs=1e-6)
        elif got < mean - 1e-6:
            held = sum(w for w, lead in zip(weights, leads, strict=True) if lead >= got - 1e-6)
            above = sum(w for w, lead in zip(weights, leads, strict=True) if lead > got + 1e-6)
            assert held >= 1 - share - 1e-9 > above - 1e-9
        else:
            assert got == pytest.approx(mean, abs=1e-6)


def test_a_covariance_certificate_is_never_above_the_exact_one(rng: np.random.Generator) -> None:
    """L(E D) - k (sup over the set of the deviation), the sup found by sampling the boundary."""
    dim, alpha, beta, eps = 3, 0.2, 0.4, 0.1
    terms = terms_of(1, dim, realised=("chance", eps))
    state = learned(4, dim, terms, 80)
    menu = np.abs(rng.normal(size=(dim, 4))) / 2
    roots = rng.normal(size=(4, dim, dim)) / 10
    covariance = roots @ roots.transpose(0, 2, 1)
    given = given_of(menu, 1, alpha, support=(*NONE[:3], covariance))
    scores = scanned(state, given)
    V = terms.ridge * np.eye(dim) + state.own.gram
    ball = rng.normal(size=(4000, dim))
    ball *= beta / np.sqrt(np.einsum("ni,ij,nj->n", ball, V, ball))[:, None]
    inside = state.estimate.theta + ball
    for k in range(4):
        lead = least(menu[:, k] - 0.8 * menu[:, 1], state.estimate.theta, V, beta)
        sup = np.sqrt(np.einsum("ni,ij,nj->n", inside, covariance[k], inside)).max()
        got = slack_of(state.estimate, beta, terms, given, scores, state.work[1], k)
        if k == 1:
            continue  # the baseline is safe by definition
        exact = lead - 3.0 * sup  # Cantelli: sqrt(.9 / .1)
        assert got <= exact + 1e-9
        assert got >= lead - 3.0 * 2.0 * sup  # and not far below


@pytest.mark.parametrize("realised", ["worst", ("chance", 0.3)])
def test_they_use_all_that_is_known(realised: object) -> None:
    """The target is certified exactly where its minima over the set allow it, in every context.

    The set is what the range of rewards leaves of the ellipsoid; minima are a general solver's.
    """
    weights, b, alpha, helped, others = np.array([0.1, 0.2, 0.25, 0.45]), 1, 0.4, 0, 0
    for seed in range(300):
        dim = 2 + seed % 3
        terms = terms_of(1, dim, realised=realised)
        state, rng = learned(seed, dim, terms, 4 + seed % 40), np.random.default_rng(seed)
        heads = np.abs(rng.normal(size=(dim, 6))) / 2.5  # a context scales the features of all
        pages = heads * rng.uniform(0.7, 1.0, (4, dim, 1))
        menu = np.einsum("n,ndk->dk", weights, pages)
        given = given_of(menu, b, alpha, support=(pages, np.arange(4), weights, NONE[3]))
        outcome = decide(state, terms, given, coin=0.9)
        V, ranges = terms.ridge * np.eye(dim) + state.own.gram, (np.zeros(6), np.ones(6))
        known = (state.estimate.theta, V, outcome.beta, menu.T, *ranges)

        def promise(k, menu=menu, pages=pages, known=known) -> float:
            """Return the lead that is promised for action k, NaN where the set is empty."""
            leads = [x[:, k] - (1 - alpha) * x[:, b] for x in (menu, *pages)]
            mean, *low = (bounded.minimum(lead, *known) for lead in leads)
            if mean is None:
                return np.nan
            return min(mean, guard_set.promised(np.array(low), weights, realised))

        if outcome.target == b:
            continue
        plain = slack_of(
            state.estimate, outcome.beta, terms, given, scanned(state, given), state.work[1],
            outcome.target,
        )  # fmt: skip
        sure = promise(outcome.target)
        if outcome.reason == Reason.REFUTED:
            assert np.isnan(sure)
        elif abs(sure) > 1e-6:  # at zero, rounding decides
            assert outcome.conservative == (sure < 0.0)
            helped += plain < 0.0 < sure
        if outcome.conservative and outcome.action != b:
            others += 1
            assert promise(outcome.action) >= -1e-7
    assert helped >= 10
    assert others >= 10


def test_a_covariance_certificate_uses_all_that_is_known(rng: np.random.Generator) -> None:
    """L*(E D) must reach k deviations, of which the ellipsoid has the largest."""
    dim, b, alpha, helped = 3, 1, 0.2, 0
    terms = terms_of(1, dim, realised=("chance", 0.5))
    for seed in range(100):
        state = learned(seed, dim, terms, 30)
        menu = np.abs(rng.normal(size=(dim, 5))) / 2.5
        given = given_of(menu, b, alpha, support=(*NONE[:3], 1e-6 * np.eye(dim)[None]))
        outcome = decide(state, terms, given, coin=0.9)
        if outcome.target == b or outcome.reason == Reason.REFUTED:
            continue
        V = terms.ridge * np.eye(dim) + state.own.gram
        theta, lead = state.estimate.theta, menu[:, outcome.target] - (1 - alpha) * menu[:, b]
        inverse = np.linalg.inv(V)
        spread = np.trace(inverse @ inverse) ** 0.25  # at least the root of the largest eigenvalue
        need = 1e-3 * (np.linalg.norm(theta) + outcome.beta * spread)  # Cantelli: sqrt(.5 / .5)
        sure = bounded.minimum(
            lead, theta, V, outcome.beta, menu.T, np.zeros(5), np.ones(5)
        ) - need  # fmt: skip
        if abs(sure) > 1e-6:
            assert outcome.conservative == (sure < 0.0)
            helped += least(lead, theta, V, outcome.beta) < need < sure + need
    assert helped > 2
