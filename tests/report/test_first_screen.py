"""The picture of README.md: it shows the plays that the simulator counts."""

from __future__ import annotations

import numpy as np
import pytest

import guardband as gb
from bench.first_screen import PANELS, draw, shares
from guardband.cli.config import DEFAULT_PROBLEM, DEFAULT_SETTINGS, RunConfig

CONFIG = RunConfig(trials=4)
ROUNDS = 120


@pytest.mark.parametrize("name", PANELS)
def test_plays_below_the_floor_are_those_that_are_counted(name: str) -> None:
    problem = gb.problem(DEFAULT_PROBLEM, **DEFAULT_SETTINGS)
    counted = gb.simulate(problem, [name], rounds=ROUNDS, trials=4, alpha=CONFIG.floor_alpha)
    below = shares(CONFIG.updated({}, algorithms=(name,)), ROUNDS) < 1 - CONFIG.floor_alpha - 1e-9
    (series,) = counted.series
    assert below.shape == (ROUNDS, series.violations_expected.size)
    assert np.array_equal(below.sum(axis=0), series.violations_expected.ravel())
    assert below.any() == (name != "guard-ucb")


def test_the_picture_says_how_many_are_below() -> None:
    share = np.array([[1.2, 0.89], [0.9, 1.0]])
    texts = [
        text.get_text()
        for axes in draw(dict.fromkeys(PANELS, share), 0.1).axes
        for text in axes.texts
    ]
    assert texts.count("1 of 4 plays below") == len(PANELS)
