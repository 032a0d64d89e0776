"""Coins are thrown many at a time; nobody can tell."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import guardband as gb
from guardband.agent.coins import MANY, CoinStream
from guardband.seeds import stream


@pytest.mark.parametrize("count", [0, 1, MANY - 1, MANY, MANY + 1, 3 * MANY + 7])
def test_they_are_those_of_the_stream_one_by_one(count: int) -> None:
    alone, coins = stream(3, "coin", "a"), CoinStream(stream(3, "coin", "a"))
    assert [coins.random() for _ in range(count)] == [float(alone.random()) for _ in range(count)]
    np.testing.assert_equal(coins.state, alone.bit_generator.state)
    np.testing.assert_equal(coins.state, alone.bit_generator.state)  # to look changes nothing
    other = CoinStream(stream(4, "coin", "b"))
    other.random()
    other.state = coins.state
    expected = [float(alone.random()) for _ in range(2 * MANY)]
    assert [coins.random() for _ in range(2 * MANY)] == expected
    assert [other.random() for _ in range(2 * MANY)] == expected


@pytest.mark.parametrize("rounds", [1, MANY - 1, MANY, MANY + 3])
def test_a_saved_agent_goes_on_with_the_coins_that_were_thrown(rounds: int, tmp_path: Path) -> None:
    agent = gb.Agent(dim=2, alpha=0.3, mode="policy", holdback=0.2)
    menu = np.array([[0.6, 0.2], [0.1, 0.9], [0.5, 0.5]])

    def play(one: gb.Agent, many: int) -> list[tuple[int, float, str]]:
        made = []
        for _ in range(many):
            decision = one.decide(menu, 0)
            one.observe(decision, 0.3 + 0.2 * decision.action)
            made.append((decision.action, decision.propensity, decision.reason))
        return made

    play(agent, rounds)
    again = gb.Agent.load(agent.save(tmp_path / "agent.npz"))
    assert play(again, 2 * MANY) == play(agent, 2 * MANY)
