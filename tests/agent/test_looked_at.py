"""Rows that a study has looked at: how they are known again, and what follows from using them."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import guardband as gb
from guardband.agent import LookedAt

FEATURES = gb.Features(numbers={"price": (0, 10)}, categories={"item": ["a", "b", "c"]})
MENU = pd.DataFrame({"price": [1.0, 1.0, 1.0], "item": ["a", "b", "c"]})


def log(n: int, seed: int = 0, *, prices: bool = True) -> pd.DataFrame:
    """Rows of a uniform rule; without prices there are six different ones."""
    rng = np.random.default_rng(seed)
    item = rng.choice(["a", "b", "c"], n)
    price = rng.uniform(0, 10, n) if prices else np.ones(n)
    rate = pd.Series(item).map({"a": 0.3, "b": 0.6, "c": 0.4})
    clicked = (rng.random(n) < rate).astype(float)
    return pd.DataFrame({"id": [f"r{i}" for i in range(n)], "item": item, "price": price}).assign(
        clicked=clicked
    )


def record(frame: pd.DataFrame, looked: np.ndarray, *, ids: bool = False) -> LookedAt:
    named = frame["id"].tolist() if ids else None
    table = FEATURES.table(frame)
    return LookedAt.of(table, frame["clicked"].to_numpy(), looked, named, "a test")


def agent_with(looked_at: LookedAt, **given: Any) -> gb.Agent:
    agent = gb.Agent(features=FEATURES, alpha=0.2, context_noise=0.0, **given)
    agent._group.looked_at = looked_at
    return agent


def state(agent: gb.Agent) -> np.ndarray:
    return agent._group.engine.numbers.copy()


def forms(frame: pd.DataFrame) -> dict[str, Any]:
    shuffled = frame[["clicked", "price", "id", "item"]]
    return {
        "frame": frame,
        "other columns' order": shuffled,
        "dicts": frame.to_dict("records"),
        "columns": {name: frame[name].tolist() for name in frame},
        "table": FEATURES.table(frame),
        "other bits": FEATURES.table(frame) * (1 + 2e-16),
    }


@pytest.mark.parametrize("form", list(forms(log(3))))
def test_a_row_is_known_in_whatever_form_it_comes(form: str) -> None:
    frame = log(400)
    looked = np.random.default_rng(1).random(400) < 0.5
    agent = agent_with(record(frame, looked))
    before = state(agent)
    first = int(np.flatnonzero(looked)[3])
    mixed = pd.concat([frame[~looked].iloc[:5], frame.iloc[[first]]], ignore_index=True)
    with pytest.raises(gb.InvalidValueError, match=r"row 5, .* was looked at .*reuse=True"):
        agent.learn(forms(mixed)[form], mixed["clicked"])
    assert (state(agent) == before).all()
    rest = frame[~looked]
    assert agent.learn(forms(rest)[form], rest["clicked"]).reused == 0
    assert agent.decide(MENU, baseline=0).promise != "reused"


def test_another_reward_or_other_features_are_another_row() -> None:
    frame = log(50)
    agent = agent_with(record(frame, np.ones(50, bool)))
    agent.learn(frame, 1.0 - frame["clicked"])
    agent.learn(frame.assign(price=10 - frame["price"]), frame["clicked"])


def test_ids_decide_where_study_and_rows_have_them() -> None:
    frame = log(300, prices=False)
    looked = np.arange(300) < 100
    agent = agent_with(record(frame, looked, ids=True))
    with pytest.raises(gb.InvalidValueError, match=r"row 1, with id 'r7', was looked at"):
        agent.learn(frame.iloc[[200, 7]], frame["clicked"].iloc[[200, 7]], ids=["r200", "r7"])
    rest = frame[~looked]
    agent.learn(rest, rest["clicked"], ids=rest["id"])
    march = log(900, seed=9, prices=False)  # equal rows, but new ones: their ids tell
    agent.learn(march, march["clicked"], ids=[f"march-{i}" for i in range(900)])
    with pytest.raises(gb.InvalidValueError, match="give their ids, which tell them apart"):
        agent.learn(frame[looked], frame["clicked"][looked])


# ---- using rows again ----------------------------------------------------------------------------


def test_after_reuse_promises_are_reused_and_nothing_else_changes(tmp_path: Path) -> None:
    frame = log(4000)
    looked = np.arange(4000) < 2000
    plain = gb.Agent(features=FEATURES, alpha=0.2, context_noise=0.0)
    agent = agent_with(record(frame, looked))
    assert plain.learn(frame, frame["clicked"]).reused == 0
    learned = agent.learn(frame, frame["clicked"], reuse=True)
    assert (learned.rows, learned.reused) == (4000, 2000)
    assert "2,000 of them looked at before" in str(learned)
    agent.save(tmp_path / "agent.npz")
    again = gb.Agent.load(tmp_path / "agent.npz")
    for baseline in range(3):
        one, two, three = (each.decide(MENU, baseline=baseline) for each in (plain, agent, again))
        assert one.promise in ("play", "baseline")
        expected = "reused" if one.promise == "play" else one.promise
        assert two.promise == three.promise == expected
        assert one[:10] == two[:10] == three[:10]
        assert one.certificate == two.certificate == three.certificate
    assert {plain.decide(MENU, baseline=0).promise, agent.decide(MENU, 0).promise} == {
        "play",
        "reused",
    }
    with pytest.raises(gb.InvalidValueError, match="was looked at"):
        again.learn(frame[looked], frame["clicked"][looked])


def test_promises_of_the_baseline_and_none_stay_as_they_are() -> None:
    frame = log(60)
    one = agent_with(record(frame, np.ones(60, bool)))
    one.learn(frame, frame["clicked"], reuse=True)
    assert one.decide(MENU, baseline=0).promise == "baseline"
    other = gb.Agent(features=FEATURES, algorithm="dis-lin-ucb")
    other._group.looked_at = record(frame, np.ones(60, bool))
    other.learn(frame, frame["clicked"], reuse=True)
    assert other.decide(MENU, baseline=0).promise == "none"


def test_policies_are_reused_too() -> None:
    frame = log(30)
    seen = record(frame, np.ones(30, bool))
    policy = agent_with(seen, mode="policy")
    policy.learn(frame, frame["clicked"], reuse=True)
    promises = {policy.decide(MENU, baseline=0).promise for _ in range(50)}
    assert "reused" in promises
    assert promises <= {"reused", "baseline"}


def test_trials_are_reused_too() -> None:
    rates = np.array([0.5, 0.2, 0.45, 0.8])
    menu, rng = np.hstack([np.eye(4), np.ones((4, 1))]) / np.sqrt(2.0), np.random.default_rng(0)
    rows, rewards = menu[[0] * 40], (rng.random(40) < 0.5).astype(float)
    agent = gb.Agent(dim=5, alpha=0.2, trial_budget=40.0)
    agent._group.looked_at = LookedAt.of(rows, rewards, np.ones(40, bool))
    agent.learn(rows, rewards, reuse=True)
    trials = 0
    for _ in range(600):
        decision = agent.decide(menu, baseline=0)
        agent.observe(decision, float(rng.random() < rates[decision.action]))
        assert decision.promise == ("baseline" if decision.kind == "baseline" else "reused")
        trials += decision.kind == "trial"
    assert trials > 10


def test_all_who_pool_with_such_data_promise_no_more(tmp_path: Path) -> None:
    frame = log(4000)
    fleet = gb.Fleet({"web": None, "app": None}, features=FEATURES, alpha=0.2, context_noise=0.0)
    fleet._group.looked_at = record(frame, np.ones(4000, bool))
    fresh = log(2000, seed=3)
    fleet["app"].learn(fresh, fresh["clicked"])
    fleet["app"].decide(MENU, baseline=0)
    assert fleet["app"].decide(MENU, baseline=0).promise == "play"
    fleet["web"].learn(frame, frame["clicked"], reuse=True)
    fleet.save(tmp_path / "fleet.npz")
    for each in (fleet, gb.Fleet.load(tmp_path / "fleet.npz")):
        poolings = each.poolings
        found = [agent.decide(MENU, baseline=0) for _ in range(3) for agent in each.values()]
        assert each.poolings > poolings
        assert {d.promise for d in found[2:]} == {"reused"}


def test_reuse_without_such_rows_changes_nothing() -> None:
    frame = log(3000)
    agent = agent_with(record(frame, np.arange(3000) < 10))
    rest = frame[10:]
    assert agent.learn(rest, rest["clicked"], reuse=True).reused == 0
    assert agent.decide(MENU, baseline=0).promise == "play"
    plain = gb.Agent(features=FEATURES, alpha=0.2, context_noise=0.0)
    assert plain.learn(frame, frame["clicked"], reuse=True).reused == 0


def test_rows_of_a_task_without_all_features_need_ids() -> None:
    frame = log(100)
    fleet = gb.Fleet({"web": ["price"], "app": None}, features=FEATURES, alpha=0.2)
    fleet._group.looked_at = record(frame, np.arange(100) < 50)
    few = FEATURES.table(frame)[:, FEATURES.indices(["price"])]
    with pytest.raises(gb.InvalidValueError, match="all features, such as by name"):
        fleet["web"].learn(few, frame["clicked"])
    with pytest.raises(gb.InvalidValueError, match="was looked at"):
        fleet["web"].learn(frame, frame["clicked"])
    fleet._group.looked_at = record(frame, np.arange(100) < 50, ids=True)
    fleet["web"].learn(few[50:], frame["clicked"][50:], ids=frame["id"][50:])


# ---- as bytes ------------------------------------------------------------------------------------


def test_a_record_comes_back_from_its_bytes() -> None:
    frame = log(500, prices=False)
    found = record(frame, np.arange(500) < 200, ids=True).after(7)
    again = LookedAt.from_bytes(found.to_bytes())
    for name in ("rows", "looked", "ids", "others"):
        assert (getattr(found, name) == getattr(again, name)).all()
    assert (again.count, again.split, again.learned) == (200, "a test", 7)
    assert (again.rows.size, again.ids.size, again.others.size) == (500, 200, 300)


def test_damaged_records_are_refused() -> None:
    raw = record(log(50), np.ones(50, bool)).to_bytes()
    for wrong in (b"", b"rows", raw[:-30], raw[:40] + b"x" * 20 + raw[60:]):
        with pytest.raises(gb.InvalidValueError, match="no record of rows"):
            LookedAt.from_bytes(wrong)


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("count", -4),
        ("count", 2),
        ("count", 1.0),
        ("learned", -1),
        ("learned", 2),
        ("split", 3),
        ("looked", np.array([True])),
        ("looked", np.array([1, 0])),
        ("rows", np.array([1.0, 2.0])),
        ("ids", np.array([2, 1], np.uint64)),
        ("others", np.array([[1]], np.uint64)),
    ],
)
def test_records_with_wrong_parts_are_refused(part: str, value: Any) -> None:
    good = record(log(2, prices=False).assign(item="a", clicked=1.0), np.array([True, False]))
    LookedAt.from_bytes(good.to_bytes())
    with pytest.raises(gb.InvalidValueError, match="no record of rows"):
        LookedAt.from_bytes(replace(good, **{part: value}).to_bytes())


def test_records_of_other_versions_say_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    good = record(log(2), np.ones(2, bool))
    for version, remedy in ((1, "run the study again"), (3, "upgrade guardband")):
        monkeypatch.setattr("guardband.agent.looked_at.VERSION", version)
        raw = good.to_bytes()
        monkeypatch.undo()
        with pytest.raises(gb.InvalidValueError, match=f"version {version}, .*{remedy}"):
            LookedAt.from_bytes(raw)


def test_what_does_not_fit_together_is_refused() -> None:
    table, rewards = np.zeros((3, 2)), np.zeros(3)
    for looked in (np.ones(2, bool), np.ones(3)):
        with pytest.raises(gb.InvalidValueError, match="one flag for each row"):
            LookedAt.of(table, rewards, looked)
    with pytest.raises(gb.InvalidTypeError, match="that of row 1 is None"):
        LookedAt.of(table, rewards, np.ones(3, bool), ids=["a", None, "b"])


def test_a_record_is_small() -> None:
    rng = np.random.default_rng(0)
    table, rewards = rng.uniform(0, 0.3, (100_000, 4)), rng.random(100_000)
    tracemalloc.start()
    found = LookedAt.of(table, rewards, np.arange(100_000) < 50_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(found.to_bytes()) < 50_000 * 8.5
    assert peak < 100_000 * 60
