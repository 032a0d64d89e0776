"""Audits of decisions between actions that are equal in everything: rounding decides."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from live.client.test_budget import MENU, RATES, start
from live.operators.journals import change, found

import guardband as gb

POLICY = {"trial_budget": None, "mode": "policy", "max_loss": 6.0}


def explored(one: gb.LiveAgent, rng: np.random.Generator) -> gb.Decision:
    """Let an agent play on until it explores; that decision gets no reward."""
    while True:
        decision = one.decide(MENU, 0)
        if decision.kind == "explored":
            return decision
        one.observe(decision.id, float(rng.random() < RATES[decision.action]))


def say_instead(one: gb.LiveAgent, decision: gb.Decision, action: int) -> None:
    """Write another action into the journal, with its features."""
    sql = "UPDATE decision SET action = ?, x = ? WHERE seq = (SELECT max(seq) FROM decision)"
    change(one, sql, action, np.ascontiguousarray(MENU[action]).tobytes())


def test_of_two_that_tie_either_comes_out_again(tmp_path: Path) -> None:
    """Nothing was observed of actions 1 and 2: which one is tried is for rounding to say."""
    one = start(tmp_path, **POLICY)
    decision = explored(one, np.random.default_rng(0))
    assert decision.action == 1  # of two that tie, the first
    assert found(tmp_path / "gb", decision.id).result == "same"
    say_instead(one, decision, 2)
    finding = found(tmp_path / "gb", decision.id)
    assert finding.result == "same", finding.differences
    assert [choice.action for choice in finding.choices if choice.why == "played"] == [2]


@pytest.mark.parametrize("told", [0, 2])
def test_others_do_not_tie(tmp_path: Path, told: int) -> None:
    """Once action 1 was observed, and the baseline always, more is known of them than of others."""
    one, rng = start(tmp_path, **POLICY), np.random.default_rng(0)
    first = explored(one, rng)
    one.observe(first.id, 1.0)
    one.sync()
    decision = explored(one, rng)
    other = told if told != decision.action else 1
    assert found(tmp_path / "gb", decision.id).result == "same"
    say_instead(one, decision, other)
    assert found(tmp_path / "gb", decision.id).result == "differs"
