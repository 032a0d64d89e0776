"""Published numbers of rivals, in their papers' own settings."""

from __future__ import annotations

import pytest

from bench.anchors import ROFUL, roful


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
