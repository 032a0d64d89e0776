"""As many features as a space may have: agents, messages and the coordinator, from end to end."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from live.server.driver import served

import guardband as gb
from guardband.live.operators.audit import audit, find_decision
from guardband.live.protocol.types import LARGEST_DIM


@pytest.mark.slow
def test_agents_pool_with_as_many_features_as_there_may_be(tmp_path: Path) -> None:
    d, rng = LARGEST_DIM, np.random.default_rng(0)
    assert d == 1_024
    theta = np.abs(rng.standard_normal(d))
    theta /= np.linalg.norm(theta)
    settings = gb.SpaceSettings(
        name="wide",
        features=[f"x{k}" for k in range(d)],
        agents=2,
        noise=0.1,
        contexts="per-request",
        rewards={"order": "prompt"},
    )
    with served(tmp_path / "gb") as server:
        with server.admin() as client:
            assert client.post("/v1/spaces", json=settings.as_json()).status_code == 201
        agents = [
            gb.connect(
                server.url,
                task=task,
                space="wide",
                token=server.token(space="wide", task=task),
                state_dir=tmp_path / task,
                background=False,
                seed=k,
            )
            for k, task in enumerate(("movies", "tv"))
        ]
        for _ in range(20):
            for agent in agents:
                menu = np.abs(rng.standard_normal((5, d)))
                menu *= 0.6 / np.linalg.norm(menu, axis=1)[:, None]
                decision = agent.decide(menu, 0)
                agent.observe(decision, float(menu[decision.action] @ theta))
        for agent in (*agents, *agents):
            agent.sync()
        assert [agent.counted for agent in agents] == [20, 20]
        assert max(agent.status()["observations"] for agent in agents) == 40
        told = [agent for agent in agents if agent.status()["observations"] == 40]
        pooled = told[0]._store.state.stream.pooled
        assert pooled.dim == d
        decision = told[0].decide(menu, 0)
        found = audit(decision.id, find_decision(decision.id, [tmp_path]))
        assert found.result == "same"
        for agent in agents:
            agent.close()
