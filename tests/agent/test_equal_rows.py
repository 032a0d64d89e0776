"""Rows that hold the same as rows that were looked at, and rows that come under other ids."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from agent.test_looked_at import FEATURES, agent_with, log, record
from hypothesis import given, settings
from hypothesis import strategies as st

import guardband as gb
from guardband.agent import LookedAt


def chunks(size: int, rows: Any) -> list[Any]:
    return [rows[start : start + size] for start in range(0, len(rows), size)]


@pytest.mark.parametrize("split", ["blocks", "random", "first"])
@pytest.mark.parametrize("size", [1, 7, 1000, 6000])
def test_equal_rows_are_learned_as_the_rest_of_the_log(split: str, size: int) -> None:
    n, rng = np.arange(600), np.random.default_rng(2)
    frame = log(n.size, prices=False)
    looked = {
        "first": n < 300,
        "blocks": rng.random(60)[n // 10] < 0.5,
        "random": rng.random(n.size) < 0.5,
    }[split]
    looked_at = record(frame, looked)
    table, rewards = FEATURES.table(frame), frame["clicked"].to_numpy()
    now = looked_at
    for part in chunks(size, np.flatnonzero(~looked)):  # in one call or in several
        found = now.recognise(table[part], rewards[part])
        assert found.reused == 0
        now = found.after
    for again in (now, looked_at):
        for wrong in (n, n[looked], n[looked][:50], n[~looked][::-1], rng.permutation(n[looked])):
            assert again.recognise(table[wrong], rewards[wrong]).reused > 0
    new = log(300, seed=5, prices=False)  # of another month
    assert looked_at.recognise(FEATURES.table(new), new["clicked"].to_numpy()).reused > 0


@pytest.mark.parametrize("size", [1, 4, 8, 16, 50])
@pytest.mark.parametrize("shuffled", [False, True])
def test_calls_of_any_size_pass_nothing_but_the_rest(size: int, shuffled: bool) -> None:
    """Even where every refusal is ignored: what passes holds what the rest holds, in its order."""
    rng = np.random.default_rng(0)
    table = np.eye(10)[rng.integers(10, size=4000)]
    rewards = (rng.random(4000) < 0.1).astype(float)
    first = np.arange(4000) < 2000
    now = LookedAt.of(table, rewards, first)
    passed: list[int] = []
    for part in chunks(size, rng.permutation(2000) if shuffled else np.arange(2000)):
        found = now.recognise(table[part], rewards[part])
        if not found.reused:
            now = found.after
            passed += part.tolist()
    rest = slice(2000, 2000 + len(passed))
    assert (table[passed] == table[rest]).all()
    assert (rewards[passed] == rewards[rest]).all()
    assert len(passed) < (400 if size == 1 else 20)


def test_an_agent_keeps_how_far_the_rest_is_learned(tmp_path: Path) -> None:
    frame = log(400, prices=False)
    looked = np.arange(400) < 200
    agent, rest = agent_with(record(frame, looked)), frame[200:]
    agent.learn(rest[:50], rest["clicked"][:50])
    with pytest.raises(gb.InvalidValueError, match="all of it, in its order"):
        agent.learn(rest[51:], rest["clicked"][51:])
    agent.save(tmp_path / "agent.npz")
    for each in (agent, gb.Agent.load(tmp_path / "agent.npz")):
        with pytest.raises(gb.InvalidValueError, match="was looked at"):
            each.learn(rest[:50], rest["clicked"][:50])  # each once
        each.learn(rest[50:], rest["clicked"][50:])


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=60), st.data())
def test_what_passes_is_the_next_of_the_rest(values: list[int], data: Any) -> None:
    looked = np.array([data.draw(st.booleans()) for _ in values])
    table, rewards = np.array(values, float)[:, None] / 4, np.zeros(len(values))
    now = LookedAt.of(table, rewards, looked)
    seen = {value for value, each in zip(values, looked, strict=True) if each}
    left = [v for v, each in zip(values, looked, strict=True) if not each and v in seen]
    given_now = data.draw(st.lists(st.integers(0, 4), max_size=30))
    found = now.recognise(np.array(given_now, float)[:, None] / 4, np.zeros(len(given_now)))
    expected = []
    for value in given_now:  # one by one: the next of the rest, or looked at from then on
        doubtful = value in seen
        fits = doubtful and not any(expected) and left[:1] == [value]
        left = left[1:] if fits else left
        expected.append(doubtful and not fits)
    assert found.rows.tolist() == expected


# ---- ids -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("prices", [False, True])
def test_ids_are_known_in_other_spellings(prices: bool) -> None:
    frame = log(300, prices=prices).assign(id=[f"{i:06}" for i in range(300)])
    agent, looked = agent_with(record(frame, np.arange(300) < 100, ids=True)), frame[:100]
    spellings = (
        range(100),
        np.arange(100),
        [str(i) for i in range(100)],
        [f"{i}.0" for i in range(100)],
    )
    for ids in spellings:
        with pytest.raises(gb.InvalidValueError, match=r"row 0, with id .* was looked at"):
            agent.learn(looked, looked["clicked"], ids=ids)
    agent.learn(frame[100:], frame["clicked"][100:], ids=range(100, 300))


@pytest.mark.parametrize("shuffled", [False, True])
def test_looked_at_rows_under_other_ids_are_known_by_what_they_hold(shuffled: bool) -> None:
    frame = log(600)
    agent = agent_with(record(frame, np.arange(600) < 300, ids=True))
    looked = frame[:300].sample(frac=1.0, random_state=0) if shuffled else frame[:300]
    with pytest.raises(gb.InvalidValueError, match="row 0, with another id than 'x0', was looked"):
        agent.learn(looked, looked["clicked"], ids=[f"x{i}" for i in range(300)])
    both = pd.concat([log(900, seed=1), frame[:200]], ignore_index=True)
    with pytest.raises(gb.InvalidValueError, match="row 900, "):
        agent.learn(both, both["clicked"], ids=[f"x{i}" for i in range(1100)])


def test_equal_rows_under_other_ids_are_known_by_their_order() -> None:
    frame = log(600, prices=False)
    looked_at = record(frame, np.arange(600) < 300, ids=True)
    with pytest.raises(gb.InvalidValueError, match="with another id than 0, was looked"):
        agent_with(looked_at).learn(frame[:300], frame["clicked"][:300], ids=range(300))


def test_new_rows_with_ids_are_learned_whatever_they_hold() -> None:
    rng = np.random.default_rng(0)  # 400 different rows: many are in one half of the log alone
    table, rewards = np.eye(200)[rng.integers(200, size=900)], rng.integers(2, size=900) * 1.0
    looked_at = LookedAt.of(table[:600], rewards[:600], np.arange(600) < 300, [*range(600)])
    new = [f"march-{i}" for i in range(300)]
    assert looked_at.recognise(table[600:], rewards[600:], new).reused == 0
    with pytest.raises(gb.InvalidValueError, match="the ids that the study saw, or all features"):
        looked_at.recognise(None, rewards[600:], new)
