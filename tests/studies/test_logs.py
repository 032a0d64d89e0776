"""Menus of rows: which features the actions have that were not played."""

from __future__ import annotations

import numpy as np
import pytest

import guardband as gb
from guardband.studies.logs import LabelValues, MenuLists, StudyLogs
from guardband.studies.plain import PlainColumns, logs_of_menus


def test_an_action_has_the_value_that_was_logged_last_or_else_first() -> None:
    actions = np.array([0, 1, 0, 1, 0])
    price = LabelValues(np.array([10.0, 20.0, 11.0, 21.0, 12.0]), actions)
    rows = np.arange(5)
    assert price.of(np.zeros(5, int), rows).tolist() == [10, 10, 11, 11, 12]
    assert price.of(np.ones(5, int), rows).tolist() == [20, 20, 20, 21, 21]


def test_the_menu_of_a_row_has_its_context_and_the_actions_own_values() -> None:
    features = gb.Features(
        numbers={"price": (0, 10), "age": (0, 100)}, categories={"item": ["a", "b"]}
    )
    actions = np.array([0, 1, 1])
    price, age = np.array([1.0, 2.0, 4.0]), np.array([10.0, 20.0, 30.0])
    labels = ["a", "b"]
    logs = StudyLogs(
        encoder=features,
        rewards=np.zeros(3),
        played=features.table({"price": price, "age": age, "item": ["a", "b", "b"]}),
        actions=actions,
        labels=labels,
        baselines=np.zeros(3, int),
        menus=MenuLists(np.array([1, 0])),
        numbers=np.arange(3),
        total=5,
        context={"age": age},
        by_label={
            "price": LabelValues(price, actions),
            "item": LabelValues(np.array(labels, object)),
        },
    )
    menu = logs.menu(2)
    expected = features.table({"price": [4, 1], "age": [30, 30], "item": ["b", "a"]})
    np.testing.assert_array_equal(menu.features, expected)
    assert (menu.baseline, menu.played, menu.labels.tolist()) == (1, 0, [1, 0])
    offers = logs.offers(np.array([2, 0]))
    np.testing.assert_array_equal(offers.features[:2], expected)
    assert offers.starts.tolist() == [0, 2, 4]
    assert (offers.baselines.tolist(), offers.played.tolist()) == ([1, 3], [0, 3])
    assert logs.left == 2


def test_menus_may_be_tables_of_different_sizes() -> None:
    rng = np.random.default_rng(0)
    menus = [rng.uniform(0, 0.5, (size, 3)) for size in (2, 4, 3)]
    logs = logs_of_menus(menus, [1, 3, 0], [0.1, 0.2, 0.3], [0, 0, 2])
    np.testing.assert_array_equal(logs.menu(1).features, menus[1])
    np.testing.assert_array_equal(logs.played, [menus[0][1], menus[1][3], menus[2][0]])
    offers = logs.offers(np.array([2, 1]))
    np.testing.assert_array_equal(offers.features, np.vstack([menus[2], menus[1]]))
    assert (offers.baselines.tolist(), offers.played.tolist()) == ([2, 3], [0, 6])


def test_columns_that_are_features_already_must_be_short_numbers() -> None:
    plain = PlainColumns(["x", "y"])
    assert plain.table({"x": [0.6, 0], "y": [0.8, 1]}).tolist() == [[0.6, 0.8], [0, 1]]
    with pytest.raises(gb.InvalidValueError, match=r"row 1: its features have length 1\.414"):
        plain.table({"x": [0.6, 1], "y": [0.8, 1]})
    with pytest.raises(gb.InvalidValueError, match="column 'y', row 1: 'much' is not a number"):
        plain.table({"x": [0.6, 1], "y": [0.8, "much"]})
    with pytest.raises(gb.InvalidValueError, match="column 'y', row 0: no finite value is there"):
        plain.table({"x": [0.6, 1], "y": [None, 0.1]})
