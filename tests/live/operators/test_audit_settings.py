"""Decisions under settings of single algorithms are made again, and come out the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live.client.world import THETA, agent, menus
from live.operators.test_audit import found


@pytest.mark.parametrize(
    "settings",
    [
        {"bias_bound": 0.02},
        {"bias_bound": 0.02, "mode": "policy"},
        {"radius": "logdet"},
        {"radius": "empirical"},
        {"radius": "paper"},
        {"optimism": 0.4},
        {"noise": None, "reward_ceiling": 0.9},
        {"baseline_tolerance": 0.05},
        {"baseline_tolerance": 0.05, "mode": "policy"},
        {"realised": ("chance", 0.3)},
        {"realised": "worst"},
        {"algorithm": "disc-ucb", "gate": "none", "context_noise": 0.05, "shares": "paper"},
        {"algorithm": "disc-ucb-unknown", "gate": "none", "reward_floor": 0.2},
        {"algorithm": "disc-ucb-unknown", "context": "observed", "reward_floor": 0.2},
        {"algorithm": "dis-lin-ucb", "alpha": None, "constant": "source"},
    ],
    ids=str,
)
def test_they_come_out_the_same(settings: dict[str, Any], tmp_path: Path) -> None:
    one = agent(tmp_path, **settings)
    for menu in menus(30):
        more: dict[str, Any] = {}
        if "realised" in settings:
            more = {"support": np.array([0.98 * menu, 1.02 * menu]), "weights": [0.5, 0.5]}
        decision = one.decide(menu, 0, float(menu[0] @ THETA), **more)
        one.observe(decision.id, float(menu[decision.action] @ THETA))
        finding = found(tmp_path / "gb", decision.id)
        assert finding.result == "same", finding.differences
    assert one.report().gauges["beta"] > 0.0
    one.close()
