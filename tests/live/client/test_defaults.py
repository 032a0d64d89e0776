"""A space that states its features and nothing else learns, once the first windows are over."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from live.client.world import AT_ONCE, Hands

import guardband as gb
from guardband.live.link.local import LocalLink

WORTH = np.array([0.2, 0.3, 0.5])


@pytest.mark.parametrize("given", [{}, {"contexts": "per-request"}], ids=str)
def test_the_defaults_of_a_space_learn(tmp_path: Path, given: dict[str, str]) -> None:
    hands, rng = Hands(), np.random.default_rng(0)
    others = []
    with gb.LiveAgent(
        LocalLink(tmp_path / "gb"),
        create=True,
        task="movies",
        state_dir=tmp_path / "movies",
        settings=gb.SpaceSettings(features=["price", "fresh", "rating"], agents=2, **given),
        background=False,
        seed=0,
        timing=AT_ONCE,
        clock=hands.clock(),
    ) as agent:
        for day in range(1, 801):
            menu = rng.uniform(0.0, 0.57, (6, 3))
            decision = agent.decide(menu, 0, round=day)
            agent.observe(decision, rng.random() < menu[decision.action] @ WORTH)
            others.append(decision.action != 0)
            hands.pass_(10.0)
            if day % 20 == 0:
                agent.sync()
        assert agent.counted == 800 - 59  # the last ten minutes wait for their windows' end
    assert np.mean(others[-300:]) > 0.15
