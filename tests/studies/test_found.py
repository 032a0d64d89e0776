"""What is found in columns: whose they are, and what features they become."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from studies.examples import PRICES, ROLES, shop

from guardband.studies.config import StudyConfig
from guardband.studies.found import changes_within_labels
from guardband.studies.read import read_study_logs

CONFIG = StudyConfig(**ROLES, columns=["price", "segment"])
RNG = np.random.default_rng(7)
ROWS = 2_000


def one_wrong(price: pd.Series) -> pd.Series:
    return price.where(price.index != 700, 4.5)


def some_missing(price: pd.Series) -> pd.Series:
    return price.where(RNG.random(len(price)) > 0.05)


def rounded(price: pd.Series) -> pd.Series:
    return price + 1e-9 * RNG.random(len(price))


def raised_once(price: pd.Series) -> pd.Series:
    return price + np.where((price == PRICES["a"]) & (price.index > 600), 1.0, 0.0)


@pytest.mark.parametrize("change", [one_wrong, some_missing, rounded, raised_once])
def test_a_price_that_is_nearly_fixed_is_the_actions(change) -> None:  # type: ignore[no-untyped-def]
    """Other actions get their own label's price that was logged last, never the played one's."""
    frame = shop(ROWS)
    frame["price"] = change(frame.price)
    logs = read_study_logs(frame, CONFIG)
    said = " ".join(logs.notes)
    assert "columns of the round, the same for every action: segment." in said
    assert ("nearly all rows have" in said) == (change in (one_wrong, raised_once))
    for row in (0, 650, 701, 999):
        menu, before = logs.menu(row), frame[: row + 1].dropna()
        expected = []
        for code in menu.labels:
            of_label = before[before.item == logs.labels[code]].price
            first = frame[frame.item == logs.labels[code]].price.dropna().iloc[0]
            expected.append(of_label.iloc[-1] if len(of_label) else first)
        expected[menu.played] = frame.price[row]  # its own, as an agent would learn it
        table = pd.DataFrame({"price": expected, "segment": frame.segment[row]})
        np.testing.assert_array_equal(menu.features, logs.encoder.table(table))


def test_columns_of_the_round_stay_the_rounds() -> None:
    """Though some hardly ever change, and though a label may be played all day."""
    rng, rows = np.random.default_rng(3), 20_000
    day = np.arange(rows) // 100
    played_all_day = rng.integers(40, size=200)[day]
    for actions in (rng.integers(40, size=rows), played_all_day):
        columns = {
            "rare": pd.Series(rng.random(rows) < 0.001),
            "weekday": pd.Series(day % 7),
            "season": pd.Series(np.array(["spring", "summer"])[day // 100]),
            "one": pd.Series(np.full(rows, 3)),
            "none": pd.Series(np.full(rows, np.nan)),
        }
        for name, share in changes_within_labels(columns, actions).items():
            assert share > 0.5, name


def test_what_is_unclear_is_asked() -> None:
    frame = shop(ROWS)
    wrong = RNG.random(ROWS) < 0.04
    logs = read_study_logs(frame.assign(price=frame.price.where(~wrong, 4.5)), CONFIG)
    said = " ".join(logs.notes)
    assert "columns of the round, the same for every action: price, segment." in said
    assert "Is 'price' a column of the action?" in said
    assert 'action_columns = ["price"]' in said


def test_a_rule_that_plays_by_a_column_and_explores_does_not_make_it_the_actions() -> None:
    """Where it explores in 2 % of rows; where it never does, nothing can tell."""
    rng = np.random.default_rng(4)
    segment = rng.integers(3, size=20_000)
    actions = np.where(rng.random(20_000) < 0.02, rng.integers(3, size=20_000), segment)
    share = changes_within_labels({"segment": pd.Series(segment)}, actions)["segment"]
    assert share > 0.01


def test_vectors_are_compared_whole() -> None:
    actions = np.arange(100) % 4
    own = pd.Series([None if i == 8 else np.array([i % 4, 1.0]) for i in range(100)])
    other = pd.Series([[float(i), 1.0] for i in RNG.random(100)])
    found = changes_within_labels({"own": own, "other": other}, actions)
    assert found["own"] == 0.0
    assert found["other"] > 0.5


def test_ids_and_decimal_commas_are_told() -> None:
    frame = shop()
    frame["huge"] = [10**30 + i for i in range(len(frame))]
    frame["large"] = [2**63 + i * i for i in range(len(frame))]
    frame["weight"] = [f"{i % 7},5" for i in range(len(frame))]
    logs = read_study_logs(
        frame, StudyConfig(**ROLES, columns=["price", "huge", "large", "weight"])
    )
    said = " ".join(logs.notes)
    for name in ("huge", "large"):
        assert f"Column '{name}' has numbers too large to be told apart and was left out" in said
    assert "Column 'weight' has texts such as '0,5' and is taken as a category" in said
