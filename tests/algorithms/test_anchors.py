"""Published numbers of rivals, in their papers' own settings."""

from __future__ import annotations

from itertools import accumulate

import pytest

import guardband as gb
from bench.anchors import FED_LIN_UCB, ROFUL, fed_lin_ucb, roful
from guardband.facts import Facts


def test_roful_in_figure_2a() -> None:
    ((mean, std, worst),) = roful("2a", 1_000).values()
    assert (mean, std) == pytest.approx(ROFUL["2a"].found[1_000], abs=6e-4)
    assert worst <= 0.0


@pytest.mark.slow
@pytest.mark.parametrize("figure", ROFUL)
def test_roful_to_the_end_of_the_figure(figure: str) -> None:
    published = ROFUL[figure].found
    for t, (mean, std, worst) in roful(figure, max(published)).items():
        assert (mean, std) == pytest.approx(published[t], abs=6e-3)
        assert worst <= 1e-12


def test_the_phases_of_delb() -> None:
    """As in the comparison of Salgia and Zhao: d = 20, M = 10, T = 10^6; C = 600 ends none."""
    facts = Facts(tuple(tuple(range(20)) for _ in range(10)), 20, horizon=10**6)
    lengths = gb.algorithms.DisLSB(pulls=10.0)._lengths(facts, 1.0)
    ends = list(accumulate(lengths(phase) for phase in (1, 2, 3)))
    assert ends == pytest.approx([2.6e4, 1.29e5, 5.4e5], rel=0.01)
    assert gb.algorithms.DisLSB()._lengths(facts, 1.0)(1) == pytest.approx(1.55e6, rel=0.01)


@pytest.mark.slow
def test_fed_lin_ucb_as_its_authors_run_it() -> None:
    """Their 20 stored runs and 20 of ours: within three standard errors of the difference."""
    regret, std, messages = fed_lin_ucb(0.0)
    theirs, their_std, their_messages = FED_LIN_UCB
    assert abs(regret - theirs) < 3.0 * ((std**2 + their_std**2) / 20) ** 0.5
    assert messages == pytest.approx(their_messages, rel=0.03)
