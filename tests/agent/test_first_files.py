"""Fleets that earlier versions saved go on as they went on there."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import guardband as gb

FIXTURES = Path(__file__).parent / "fixtures"
THETA = np.array([0.5, 0.3, 0.4])
TASKS = {"movies": [0, 1, 2], "tv": [0, 2]}


@pytest.mark.parametrize("file", ["fleet-v1-guard", "fleet-v1-disc", "fleet-v2-guard"])
def test_a_fleet_of_an_earlier_version_goes_on(file: str) -> None:
    fleet = gb.Fleet.load(FIXTURES / f"{file}.npz")
    assert [agent.pending for agent in fleet.values()] == [1, 1]
    expected = json.loads((FIXTURES / f"{file}.json").read_text())
    rng, seen = np.random.default_rng(2), []
    for t in range(30):
        for name, agent in fleet.items():
            own = np.isin(np.arange(3), TASKS[name])
            menu, row = rng.uniform(0.1, 0.55, (4, 3)) * own, t % 4
            made = agent.decide(menu, row, float(menu[row] @ THETA) if t % 3 else None)
            seen.append([made.action, made.propensity, made.mean, made.lower])
            noise = 0.01 * rng.standard_normal()
            agent.observe(made.id, float(menu[made.action] @ THETA) + noise)
    np.testing.assert_allclose(seen, expected, rtol=1e-9)
