"""Values in the live system: written down, made again, explained."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from live.client.world import DIM, THETA, agent, journal_of, menus
from live.operators.journals import found
from typer.testing import CliRunner

import guardband as gb
from guardband.cli.app import app
from guardband.errors import InvalidValueError
from guardband.live.client.decisions import request_of
from guardband.live.client.journal import Journal


@pytest.mark.parametrize("mode", ["strict", "policy"])
def test_decisions_for_a_value_come_out_again(tmp_path: Path, mode: str) -> None:
    rng = np.random.default_rng(0)
    live = agent(tmp_path, mode=mode, on_refuted="baseline")
    for i in range(60):
        menu = np.abs(rng.standard_normal((4, DIM)))
        menu *= 0.8 / np.linalg.norm(menu, axis=1, keepdims=True)
        value = None if i % 7 == 0 else rng.random(4)
        decision = live.decide(menu, 0, value=value)
        finding = found(tmp_path / "gb", decision.id)
        assert finding.result == "same", finding.differences
        assert finding.choices[decision.action].why == "played"
        assert ("compared by the value" in decision.reason) == (value is not None)
        live.observe(decision, float(np.clip(menu[decision.action] @ THETA, 0.0, 1.0)))


def test_the_journal_keeps_values_beside_the_support(tmp_path: Path) -> None:
    live, rng = agent(tmp_path), np.random.default_rng(1)
    support, weights = 0.3 * rng.random((2, 3, DIM)), np.array([0.25, 0.75])
    menu, value = np.einsum("n,nkd->kd", weights, support), np.array([0.5, -1.0, 2.0])
    live.decide(menu, 0, support=support, weights=weights, value=value)
    live.decide(menu, 0, value=value)
    live.decide(menu, 0)
    live.close()
    journal = Journal(live.state_dir / "journal.db")
    read = [request_of(journal.decision(seq), DIM) for seq in (1, 2, 3)]
    assert [each.value.tolist() for each in read] == [value.tolist(), value.tolist(), []]
    np.testing.assert_array_equal(read[0].contexts, support.transpose(0, 2, 1))
    np.testing.assert_array_equal(read[0].weights, weights)


def test_values_and_costs_that_do_not_fit_change_nothing(tmp_path: Path) -> None:
    live, menu = agent(tmp_path), np.full((2, DIM), 0.2)
    for value in ([0.0, np.nan], [0.0], [[0.0, 1.0]]):
        with pytest.raises(InvalidValueError):
            live.decide(menu, 0, value=value)
    with pytest.raises(InvalidValueError, match="paid from a budget"):
        live.decide(menu, 0, cost=[0.0, 1.0])
    assert live.rounds == 0
    decision = live.decide(menu, 0)
    with pytest.raises(InvalidValueError, match="does not have"):
        live.observe(decision, 0.5, cost=1.0)
    assert live.pending == 1
    assert isinstance(live, gb.agent.BanditAgent)


@pytest.mark.parametrize("mode", ["strict", "policy"])
def test_live_agents_decide_as_agents_in_a_process(tmp_path: Path, mode: str) -> None:
    """To the bit: the same kernels, data and coins."""
    live = agent(tmp_path, agents=1, shares="equal", delta=1e-3, mode=mode, seed=7)
    plain = gb.Agent(dim=DIM, alpha=0.3, noise=0.1, delta=1e-3, mode=mode)
    rng, kinds = np.random.default_rng(0), set()
    for menu in menus(120):
        value = rng.random(5)
        plain._group.next_coin[0] = live._store.state.learner.coin
        one, other = live.decide(menu, 0, value=value), plain.decide(menu, 0, value=value)
        mine, its = (each._replace(id="", weighed=None, value=None) for each in (one, other))
        assert mine == its
        np.testing.assert_array_equal(one.table, other.table)
        reward = float(menu[one.action] @ THETA)
        live.observe(one, reward)
        plain.observe(other, reward)
        kinds.add(one.kind)
    assert {"learned", "baseline"} <= kinds


def test_without_a_value_nothing_of_it_is_called_or_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = agent(tmp_path)

    class Refusing:
        ready, code = True, None

        def at_once(self, *_: object) -> None:
            raise AssertionError

    monkeypatch.setattr(live._store.state.learner.group.engine, "_serve_valued", Refusing())
    for menu in menus(20):
        live.observe(live.decide(menu, 0), 0.5)
    journal = journal_of(live)
    columns = ("value", "baseline_value", "costs", "purse", "cost", "paid", "override")
    rows = journal.query(f"SELECT {', '.join(columns)} FROM decision")
    assert set(rows) == {(None,) * len(columns)}
    assert journal.query("SELECT purse FROM account") == [(None,)]
    journal.close()
    with pytest.raises(AssertionError):
        live.decide(menus(1)[0], 0, value=[0.0] * 5)


def test_conservative_rounds_are_explained_by_values(tmp_path: Path) -> None:
    live, rng = agent(tmp_path), np.random.default_rng(3)
    why: set[str] = set()
    for menu in menus(80, seed=1):
        decision = live.decide(menu, 0, value=rng.random(5))
        finding = found(tmp_path / "gb", decision.id)
        assert finding.result == "same", finding.differences
        why |= {choice.why for choice in finding.choices}
        live.observe(decision, float(menu[decision.action] @ THETA))
    told = " ".join(why)
    assert "promising" not in told
    assert "the most valuable that may be safe, but not certified" in told
    assert "less valuable than the action played" in told
    report = live.report()
    assert sum(report.reasons.values()) > 0
    assert not any("+" in code for code in report.reasons)
    assert 0.0 < report.gauges["conservative_recent"] < 1.0
    assert report.sums["valued"] == 80


def test_the_command_shows_overrides_values_and_costs(tmp_path: Path) -> None:
    live = agent(tmp_path, budget=gb.Budget(8.0, 4, max_cost=2.0))
    decision = live.decide(menus(1)[0], 0, value=[0.5, 1.0, 2.0, 3.0, 4.0])
    live.override(decision, action=3)
    live.observe(decision, 0.4, cost=0.75)
    result = CliRunner().invoke(app, ["audit", decision.id, "--state", str(tmp_path / "gb")])
    assert result.exit_code == 0, result.output
    assert "action 3 was played instead, by somebody else" in result.output
    assert "3, the baseline's 0.5" in result.output
    assert "2 charged to the budget, of which 0.75 was needed" in result.output
