"""DisLSB and Fed-PE against their plain NumPy reference: the same draws, action by action."""

from __future__ import annotations

import math

import numpy as np
import pytest
from algorithms.small import SIGHTS, agree, sigma_of, small
from numpy.testing import assert_allclose
from reference import elimination

import guardband as gb
from guardband.algorithms import optimal_design
from guardband.algorithms.fed_pe import width_factor


@pytest.mark.parametrize("context", SIGHTS)
@pytest.mark.parametrize("option", ["A", "B"])
@pytest.mark.parametrize("d", [2, 4])
def test_dis_lsb(option: str, context: str, d: int) -> None:
    case = small(9, d=d, T=300)
    made = gb.algorithms.DisLSB(option=option, pulls=0.4 / d**2, context=context)

    def lengths(phase: int) -> int:
        return math.ceil(0.4 * 4**phase * math.log(3 * 300) / 3)

    ref = elimination.dis_lsb(
        *case.tables(context), case.theta, case.tasks, case.draws, lengths, option=option
    )
    assert len(ref.trace.sync_rounds) >= 2
    assert not ref.alive.all()
    agree(case.run(made), ref.trace)


def test_dis_lsb_with_the_rule_for_finitely_many_arms() -> None:
    case = small(10, T=400)
    made = gb.algorithms.DisLSB(pulls=None, noise=0.2, context_noise=0.1)
    sigma = math.hypot(0.2, 0.1)

    def lengths(phase: int) -> int:
        arms = 2 * 6 * 4 * 3 * phase * (phase + 1) / 0.1
        return math.ceil(4 * 2 * sigma**2 * 4**phase * math.log(arms) / 3)

    ref = elimination.dis_lsb(
        *case.tables("hidden"), case.theta, case.tasks, case.draws, lengths, option="A"
    )
    assert len(ref.trace.sync_rounds) >= 3
    agree(case.run(made), ref.trace)


@pytest.mark.parametrize("context", SIGHTS)
@pytest.mark.parametrize("d", [2, 4])
def test_fed_pe(context: str, d: int) -> None:
    case = small(11, d=d, T=300)
    made = gb.algorithms.FedPECD(noise=0.01, context_noise=0.01, context=context)
    ref = elimination.fed_pe(
        *case.tables(context),
        case.theta,
        case.tasks,
        case.draws,
        sigma=sigma_of(context, 0.01, 0.01),
        delta=0.1,
    )
    assert not ref.alive.all()
    assert len(ref.trace.sync_rounds) == 5
    agree(case.run(made), ref.trace)


def test_fed_pe_as_its_authors_wrote_it_ignores_the_hidden_context() -> None:
    case = small(12, T=300)
    ref = elimination.fed_pe(
        *case.tables("hidden"), case.theta, case.tasks, case.draws, sigma=0.03, delta=0.05
    )
    agree(case.run(gb.algorithms.FedPE(noise=0.03, delta=0.05)), ref.trace)


def test_the_width_factor() -> None:
    """The values that the authors' own constants give."""
    assert width_factor(100 * 10, 10, 17, 0.1, 3) == pytest.approx(4.91, abs=0.005)
    assert width_factor(300 * 10, 10, 15, 0.1, 2) == pytest.approx(4.62, abs=0.005)
    assert width_factor(300 * 10, 1000, 15, 0.1, 2) == pytest.approx(5.24, abs=0.005)
    assert width_factor(10**9, 1000, 15, 0.1, 2) == pytest.approx(5.60, abs=0.005)
    for clients, actions, arms, phases, delta, d in [
        (100, 10, 10, 17, 0.1, 3),
        (300, 10, 1000, 15, 0.1, 2),
        (4, 7, 28, 9, 0.01, 5),
    ]:
        got = width_factor(clients * actions, arms, phases, delta, d)
        assert got == pytest.approx(
            elimination.fed_pe_alpha(clients, actions, arms, phases, delta, d)
        )


def test_the_design(rng: np.random.Generator) -> None:
    clients = rng.normal(size=(12, 5, 3))
    alive = rng.random((12, 5)) < 0.8
    alive[:, 0] = True
    ref, value = elimination.design(clients, alive, 0.01)
    got = optimal_design(clients, alive, tolerance=0.01)
    assert_allclose(got.shares, ref, atol=1e-9)
    assert got.value == pytest.approx(value)


def test_copies_of_a_client_count_as_often(rng: np.random.Generator) -> None:
    clients = rng.normal(size=(4, 6, 3))
    copies = np.array([1.0, 3.0, 2.0, 1.0])
    short = optimal_design(clients, copies=copies, tolerance=1e-3)
    long = optimal_design(np.repeat(clients, [1, 3, 2, 1], axis=0), tolerance=1e-3)
    assert_allclose(np.repeat(short.shares, [1, 3, 2, 1], axis=0), long.shares, atol=1e-9)
    assert (short.steps, round(short.value, 9)) == (long.steps, round(long.value, 9))
