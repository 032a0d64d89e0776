"""A live agent that knows it is stuck: its outlook comes from the journal, its report has it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live.client.world import agent

import guardband as gb

MENU = np.eye(3)[:2]
STATED = {"alpha": 0.1, "noise": None, "context_noise": 0.0}


def play(one: gb.LiveAgent, rounds: int, menu: np.ndarray = MENU) -> gb.Decision:
    rng = np.random.default_rng(one.rounds)
    for _ in range(rounds):
        decision = one.decide(menu, 0)
        one.observe(decision, float(rng.random() < (0.5, 0.7)[decision.action]))
    return decision


def test_the_outlook_is_that_of_an_agent_alone(tmp_path: Path) -> None:
    one = agent(tmp_path, agents=1, **STATED)
    assert str(one.outlook()) == "Can't tell yet: no menu was seen yet."
    play(one, 50)
    outlook = one.outlook()
    assert outlook.stuck is True
    assert outlook.blocked_by == ("x1",)
    assert "teaches about feature x1, so" in str(outlook)
    names = [help.name for help in outlook.helps]
    assert names == ["logs", "policy", "trial_budget", "shared_feature"]


def test_it_survives_a_restart_without_being_stored(tmp_path: Path) -> None:
    one = agent(tmp_path, agents=1, **STATED)
    play(one, 50)
    before = one.outlook()
    one.close()
    assert agent(tmp_path, agents=1, **STATED).outlook() == before


def test_reports_say_it_and_the_log_has_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one = agent(tmp_path, agents=1, **STATED)

    def report(rounds: int) -> Any:
        decision = play(one, rounds)
        one.sync()
        return one.report(), decision

    early, _ = report(50)
    assert (early.state.outlook, "stuck" in early.gauges) == ("", False)
    with caplog.at_level(logging.WARNING, "guardband.live"):
        found, _ = report(60)
        assert found.gauges["stuck"] == 1.0
        assert found.state.outlook.startswith("Stuck: no certified play teaches about feature x1")
        # Terminals and cards show it as one paragraph: the list is one sentence there.
        assert "What would help, roughly: logs, by agent.learn: " in found.state.outlook
        assert "; mode='policy': " in found.state.outlook
        assert found.state.outlook.endswith(".")
        assert not caplog.records
        _, decision = report(900)
        assert decision.reason.endswith("will be certified within 1,000,000 rounds")
        report(1_100)
        report(10)
    (record,) = caplog.records
    assert "task 'movies' made no learned play in 1,010 rounds. Stuck: " in record.getMessage()


def test_a_learned_play_ends_it(tmp_path: Path) -> None:
    one = agent(tmp_path, agents=1, **STATED)
    play(one, 120)
    one.sync()
    assert one.report().gauges["stuck"] == 1.0
    shared = np.array([[0.5, 0.0, 0.0], [0.9, 0.0, 0.0]])
    while play(one, 1, shared).kind != "learned":
        pass
    assert "stuck" not in one.report().gauges
    assert one.report().state.outlook == ""


def test_other_settings_are_looked_at_anew(tmp_path: Path) -> None:
    one = agent(tmp_path, agents=1, **STATED)
    play(one, 120)
    one.sync()
    first = one._store.watch
    one._store.state.version += 1
    one._worker._reporter._ahead.look()
    assert one._store.watch is not first
    assert one.report().gauges["stuck"] == 1.0
