"""Sums that somebody made up: what others do with them."""

from __future__ import annotations

import numpy as np
import pytest

from guardband.live.client.learner import Learner
from guardband.live.protocol.space import SpaceSettings
from guardband.live.protocol.sums import Sums, empty_sums

SPACE = SpaceSettings(name="home", features=("a", "b", "c"), agents=2, noise=1.0)


def radius(pooled: Sums | None) -> float:
    learner = Learner(SPACE, "tv", (0, 1, 2), reward_floor=None, seed=0)
    learner.load(pooled, empty_sums(3), empty_sums(3).as_bytes())
    learner.set_level(0.25, 1, 0)
    return learner.radius()


@pytest.mark.parametrize("surprise", [-1e-3, -1.0, -30.0, -1e3, -1e9, -1e200])
def test_no_made_up_surprise_takes_the_radius_from_others(surprise: float) -> None:
    """H enters the radius that all share: below zero it must not make it smaller than at first."""
    matrix = np.diag([5.0, 5.0, 5.0, 1.0])
    made_up = Sums(20, matrix[np.triu_indices(4)], surprise, 20.0)
    assert radius(made_up) >= radius(None) * (1.0 - 1e-9)
