"""Agents that take rows by name: DataFrames, dicts and sparse rows, and labels for actions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import guardband as gb

FEATURES = gb.Features({"minutes": (5, 240, "log"), "stars": (1, 5)}, {"format": ["film", "tv"]})
OFFERS = pd.DataFrame(
    {"stars": [4.2, 3.1, 4.9], "format": ["film", "tv", "film"], "minutes": [95, 45, 8]},
    index=["Heat", "Dark", "Bao"],
)
TABLE = FEATURES.table(OFFERS)
DICTS = OFFERS.to_dict("records")


def agent(**given: Any) -> gb.Agent:
    return gb.Agent(features=FEATURES, alpha=0.3, noise=0.1, **given)


def same(one: gb.Decision, other: gb.Decision) -> bool:
    fields = ("id", "action", "kind", "reason", "mean", "lower", "upper", "propensity", "margin")
    return all(getattr(one, name) == getattr(other, name) for name in fields)


def test_rows_by_name_are_decided_like_their_tables() -> None:
    """Bit by bit, however they are given."""
    named, plain = agent(), gb.Agent(FEATURES.dim, alpha=0.3, noise=0.1)
    ways = [
        (OFFERS, "Dark", None),
        (OFFERS[::-1], "Dark", None),
        (DICTS, 1, None),
        (OFFERS.to_dict("list"), 1, None),
        (DICTS, "b", ["a", "b", "c"]),
        (TABLE, 1, None),
        (TABLE, "b", ("a", "b", "c")),
    ]
    worth = np.linspace(0.1, 0.9, FEATURES.dim)
    for k in range(60):
        rows, baseline, labels = ways[k % len(ways)]
        turned = slice(None, None, -1 if k % len(ways) == 1 else 1)
        table = np.ascontiguousarray(TABLE[turned])
        one = named.decide(rows, baseline, labels=labels)
        other = plain.decide(table, 1)
        assert same(one, other)
        reward = float(np.clip(table[other.action] @ worth, 0, 1))
        named.observe(one, reward)
        plain.observe(other, reward)
        label = labels[one.action] if labels else None
        if isinstance(rows, pd.DataFrame):
            label = rows.index[one.action]
        assert (one.label, other.label) == (label, None)
    np.testing.assert_array_equal(named.theta, plain.theta)
    assert named.rounds == 60


def test_a_batch_has_labels_of_its_own() -> None:
    batch = agent().decide_many(
        [OFFERS, DICTS, TABLE], ["Bao", 0, "y"], labels=[None, None, ["x", "y", "z"]]
    )
    assert [each.label for each in batch] == ["Bao", None, "y"]
    assert [each.action for each in batch] == [2, 0, 1]
    with pytest.raises(gb.InvalidValueError, match="2 labels for 3 actions"):
        agent().decide_many([TABLE], [0], labels=[["x", "y"]])


def test_support_and_feature_maps_by_name() -> None:
    kinds = gb.Discrete(["film", "tv"], [0.5, 0.5])

    def by_name(stars: float, kind: str) -> dict[str, Any]:
        return {"stars": stars, "minutes": 60, "format": kind}

    def by_number(stars: float, kind: str) -> Any:
        return FEATURES.table([by_name(stars, kind)])[0]

    stars = [2.0, 4.0]
    one = agent().decide_from(by_name, stars, kinds, 0)
    plain = gb.Agent(FEATURES.dim, alpha=0.3, noise=0.1)
    assert same(one, plain.decide_from(by_number, stars, kinds, 0))
    tables = [pd.DataFrame([by_name(x, kind) for x in stars]) for kind in ("film", "tv")]
    mean = sum(FEATURES.table(each) for each in tables) / 2.0
    other = agent().decide(mean, 0, support=tables, weights=[0.5, 0.5])
    assert same(one, other)
    with pytest.raises(gb.InvalidTypeError, match="feature_map"):
        agent().decide_from(3, stars, kinds, 0)  # type: ignore[arg-type]


def test_tasks_of_a_fleet_use_features_by_name() -> None:
    fleet = gb.Fleet(
        {"all": None, "some": ["intercept", "format"], "few": [0, "stars", "format=tv"]},
        features=FEATURES,
        alpha=0.3,
    )
    plain = gb.Fleet({"all": range(5), "some": [0, 3, 4], "few": [0, 2, 4]}, 5, alpha=0.3)
    for name in fleet:
        assert repr(fleet[name]) == repr(plain[name])
        one, other = fleet[name].decide(OFFERS, "Heat"), plain[name].decide(TABLE, 0)
        assert same(one, other)
    with pytest.raises(gb.InvalidValueError, match=r"no feature 'fromat'.*Did you mean 'format'"):
        gb.Fleet({"a": ["fromat"]}, features=FEATURES)
    with pytest.raises(gb.InvalidTypeError, match="list of features, not 'format'"):
        gb.Fleet({"a": "format"}, features=FEATURES)


def test_logs_are_learned_by_name() -> None:
    named, plain = agent(), gb.Agent(FEATURES.dim, alpha=0.3, noise=0.1)
    logs = pd.concat([OFFERS] * 20, ignore_index=True)
    rewards = np.linspace(0.2, 0.8, len(logs))
    report = named.learn(logs, rewards, menus=[(OFFERS, "Dark"), OFFERS])
    plain.learn(FEATURES.table(logs), rewards)
    np.testing.assert_array_equal(named.theta, plain.theta)
    assert report.rows == len(logs)
    broken = logs.astype({"stars": object})
    broken.loc[7, "stars"] = "good"
    with pytest.raises(gb.InvalidValueError, match="column 'stars', row 7: 'good' is not a number"):
        named.learn(broken, rewards)
    np.testing.assert_array_equal(named.theta, plain.theta)


def test_saved_agents_keep_their_features(tmp_path: Path) -> None:
    one = agent()
    decision = one.decide(OFFERS, "Heat")
    again = gb.Agent.load(one.save(tmp_path / "agent.npz"))
    assert again.features == FEATURES
    again.observe(decision, 0.5)
    one.observe(decision, 0.5)
    assert same(again.decide(OFFERS, "Dark"), one.decide(OFFERS, "Dark"))
    fleet = gb.Fleet({"a": ["stars"]}, features=FEATURES)
    assert gb.Fleet.load(fleet.save(tmp_path / "fleet.npz"))["a"].features == FEATURES
    plain = gb.Agent(2)
    assert gb.Agent.load(plain.save(tmp_path / "plain.npz")).features is None


def test_what_does_not_fit_is_counted_where_the_agent_is() -> None:
    features = gb.Features({"stars": (1, 5)})
    one = gb.Agent(features=features)
    one.decide([{"stars": 9}, {"stars": 2}], 0)
    assert one.features is features
    assert features.counts["beyond"] == {"stars": 1}
    with pytest.raises(gb.InvalidValueError, match="baseline 5"):
        one.decide([{"stars": 9}, {"stars": 2}], 5)
    assert features.counts["rows"] == 4, "rows were read before the baseline was refused"


def test_frames_of_numbers_need_no_named_features() -> None:
    frame = pd.DataFrame({"a": [0.5, 0.1], "b": [0.2, 0.4]}, index=["x", "y"])
    numbers = frame.to_numpy()
    for rows, baseline in ((frame, "y"), (sparse.csr_matrix(numbers), 1), (numbers, 1)):
        assert gb.Agent(2).decide(rows, baseline).action == 1
    assert gb.Agent(2).decide(frame, "y").label == "y"
    with pytest.raises(gb.InvalidValueError, match=r"column 'b' has no numbers but .*gb.Features"):
        gb.Agent(2).decide(frame.assign(b="many"), "y")
    with pytest.raises(gb.InvalidTypeError, match=r"make it with features=gb.Features"):
        gb.Agent(2).decide(frame.to_dict("records"), 1)


def test_frames_with_whole_numbers_as_index_go_by_them() -> None:
    frame = OFFERS.set_axis([2, 0, 1])
    decision = agent().decide(frame, baseline=2)
    assert (decision.action, decision.label) == (0, 2)
    assert type(decision.label) is int


def test_true_and_1_are_different_labels() -> None:
    for baseline, row in ((True, 0), (np.True_, 0), (1, 1), (1.0, 1)):
        assert agent().decide(TABLE, baseline, labels=[True, 1, "x"]).action == row


@pytest.mark.parametrize(
    ("rows", "baseline", "labels", "message"),
    [
        (OFFERS, 0, None, "baseline 0 is not the label of a row: .*'Heat', 'Dark', 'Bao'"),
        (OFFERS, "Drak", None, "Did you mean 'Dark'"),
        (OFFERS.set_axis(["a", "b", "b"]), "b", None, "'b' is the label of 2 rows"),
        (OFFERS.set_axis([0, 1, 2]), True, None, "True is not the label"),
        (OFFERS.set_axis([True, False, "x"]), 1, None, r"1 is not the label.* 'x'\.$"),
        (OFFERS.set_axis([0, 1, 2]), np.True_, None, "True.* is not the label"),
        (OFFERS.set_axis(["nan", "b", "c"]), float("nan"), None, "nan cannot be told.*of its own"),
        (OFFERS.set_axis([100, 2, 3]), 10, None, r"10 is not the label.*There are 100, 2, 3\.$"),
        (OFFERS, np.array([1, 2]), None, "must be the label of a row"),
        (DICTS, "Heat", None, "the row of an action, not 'Heat'"),
        (TABLE, 0, ["a"], "1 labels for 3 actions"),
        (TABLE, 0, "abc", "labels must be a list"),
        (OFFERS.assign(stars="x"), "Dark", None, "column 'stars', row 'Heat': 'x' is not a number"),
        (OFFERS.drop(columns="stars"), "Dark", None, "no column 'stars'"),
        (OFFERS[:0], "Dark", None, "K > 0"),
        ([], 0, None, "must have shape"),
    ],
)
def test_what_is_refused_changes_nothing(
    rows: Any, baseline: Any, labels: Any, message: str
) -> None:
    one = agent()
    with pytest.raises(gb.InputError, match=message):
        one.decide(rows, baseline, labels=labels)
    assert (one.rounds, one.pending) == (0, 0)


def test_exactly_one_of_dim_and_features() -> None:
    for make in (gb.Agent, lambda **given: gb.Fleet({"a": [0]}, **given)):
        with pytest.raises(gb.InvalidTypeError, match="dim=3, or which ones, features="):
            make()
        with pytest.raises(gb.InvalidTypeError, match=r"both dim=5 and features were given"):
            make(dim=5, features=FEATURES)
        with pytest.raises(gb.InvalidTypeError, match=r"must be a gb.Features"):
            make(features=["stars"])
