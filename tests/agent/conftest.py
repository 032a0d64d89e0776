"""An agent of every kind, for tests of what they have in common."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import guardband as gb
from guardband.agent.protocol import BanditAgent


@pytest.fixture(params=["alone", "in a fleet", "live"])
def agent(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BanditAgent]:
    rules: dict[str, Any] = {"alpha": 0.3, "noise": 0.1}
    if request.param == "alone":
        yield gb.Agent(3, **rules)
    elif request.param == "in a fleet":
        yield gb.Fleet({"agent": [0, 1, 2], "other": [0, 1]}, 3, **rules)["agent"]
    else:
        request.getfixturevalue("live_system")
        settings = gb.SpaceSettings(
            name="home",
            features=["a", "b", "c"],
            agents=2,
            contexts="per-request",
            rewards={"order": "prompt"},
            **rules,
        )
        place = f"local:{tmp_path}"
        with gb.connect(place, task="agent", settings=settings, background=False, seed=0) as live:
            yield live
