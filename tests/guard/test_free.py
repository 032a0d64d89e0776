"""Guard-UCB without a constraint is Guard-UCB with nothing to keep."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import guardband as gb
from guardband.algorithms import ALGORITHMS, GuardUCBFree


@pytest.mark.parametrize(
    "settings", [{"noise": 0.1}, {"noise": 0.3, "optimism": 0.5, "share": False}], ids=str
)
@pytest.mark.parametrize("problem", ["forecast", "synthetic-b"])
def test_it_plays_what_guard_ucb_plays_if_everything_may_be_lost(
    problem: str, settings: dict[str, Any]
) -> None:
    free = GuardUCBFree(**settings)
    alone = {"pooled_set": False, "on_refuted": "ellipsoid"}
    all_lost = gb.GuardUCB(1.0, mode="policy", **alone, **settings)
    found = gb.simulate(problem, [free, all_lost], rounds=300, trials=2, alpha=0.1)
    one, other = found.series
    for metric in ("regret_expected", "reward", "outside", "violations_expected"):
        assert_array_equal(one.totals[metric], other.totals[metric], metric)
    assert_array_equal(one.sync_rounds, other.sync_rounds)
    assert not one.conservative.any()
    assert other.conservative.any()


def test_with_values_it_plays_the_most_valuable_of_all() -> None:
    """Nothing holds it back, whatever is known of rewards."""
    agent = gb.Agent(dim=3, algorithm=GuardUCBFree(noise=0.1))
    agent.learn(0.9 * np.eye(3), [0.9, 0.5, 0.1])
    for value in ([0.0, 1.0, 2.0], [3.0, 1.0, 2.0]):
        decision = agent.decide(0.9 * np.eye(3), 0, value=value)
        assert decision.action == int(np.argmax(value))


def test_it_has_no_alpha_and_checks_its_settings() -> None:
    assert "alpha" not in GuardUCBFree.settings()
    with pytest.raises(ValueError, match="theta_bound"):
        GuardUCBFree(theta_bound=-1.0)
    with pytest.raises(ValueError, match="radius"):
        GuardUCBFree(radius="round")


def test_by_name_it_is_told_what_guard_ucb_is_told() -> None:
    told = gb.problem("toy").assumptions()
    guarded, free = (ALGORITHMS[name].informed(told) for name in ("guard-ucb", "guard-ucb-free"))
    assert free.noise == told["noise"]
    for setting in GuardUCBFree.settings():
        assert getattr(free, setting) == getattr(guarded, setting)
