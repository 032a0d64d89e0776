"""Agents that do not report the baseline's reward are not judged by their floor."""

from __future__ import annotations

from pathlib import Path

import pytest
from live.client.world import THETA, agent, live_on, menus

from guardband.live.server.alerts import SpaceFacts, TaskFacts, alerts_of


@pytest.mark.parametrize("told", [True, False])
def test_a_safe_agent_pages_neither_way(told: bool, tmp_path: Path) -> None:
    one = agent(tmp_path)
    if told:
        live_on(one, 60)
    else:
        for menu in menus(60):
            decision = one.decide(menu, 0)
            one.observe(decision.id, float(menu[decision.action] @ THETA))
    report = one.report()
    assert report.counters["untold"] == (0 if told else 60)
    again = one.report()
    assert again.counters["untold"] == report.counters["untold"]
    sums = {**report.sums, "counted": 60}
    task = TaskFacts(task="movies", counters=report.counters, sums=sums)
    assert alerts_of(SpaceFacts(space=one.settings, agents=[task])) == []
