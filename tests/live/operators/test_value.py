"""Values in the live system: written down, made again, explained; budgets and overrides refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from live.client.world import DIM, THETA, agent
from live.operators.journals import found

import guardband as gb
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


def test_what_live_agents_do_not_have_is_refused(tmp_path: Path) -> None:
    live, menu = agent(tmp_path), np.full((2, DIM), 0.2)
    with pytest.raises(InvalidValueError, match="which live agents do not have"):
        live.decide(menu, 0, cost=[0.0, 1.0])
    with pytest.raises(InvalidValueError, match="finite"):
        live.decide(menu, 0, value=[0.0, np.nan])
    assert live.rounds == 0
    decision = live.decide(menu, 0)
    with pytest.raises(InvalidValueError, match="take no overrides"):
        live.override(decision, action=1)
    assert isinstance(live, gb.agent.BanditAgent)
