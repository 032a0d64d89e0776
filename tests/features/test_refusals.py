"""What `gb.Features` refuses, and what it says: the column, the row, the value and a remedy."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import guardband as gb

MADE: list[tuple[dict[str, Any], str]] = [
    ({}, "no features"),
    ({"numbers": {"n": (5, 5)}, "intercept": False}, "two rising numbers"),
    ({"numbers": {"n": (5, 1)}}, r"numbers\['n'\].*two rising numbers, not 5.0, 1.0"),
    ({"numbers": {"n": (0, 5, "log")}}, "above 0"),
    ({"numbers": {"n": (1e15, 1e15 + 0.125, "log")}}, "same logarithm: leave out 'log'"),
    ({"numbers": {"n": (1, 5, "lin")}}, "'log'"),
    ({"numbers": {"n": 5}}, r"give \(low, high\)"),
    ({"numbers": {"n": ("1", "5")}}, r"give \(low, high\)"),
    ({"numbers": {"n": (0, float("inf"))}}, "must be finite, below 1e100, not 0.0, inf: state the"),
    ({"numbers": {"n": (float("nan"), 1)}}, "must be finite"),
    ({"numbers": {"n": (0, float("nan"))}}, "must be finite"),
    ({"numbers": ["n"]}, "a dict by column"),
    ({"numbers": {3: (0, 1)}}, "names are texts"),
    ({"categories": {"c": "film"}}, "a list of values"),
    ({"categories": {"c": []}}, "no values"),
    ({"categories": {"c": {"x"}}}, r"categories\['c'\]: values must be a list or a .*not {'x'}"),
    ({"categories": {"c": frozenset("x")}}, "a set has another order in every process"),
    ({"numbers": {"n": (0, 1), "m": (0, 1)}, "crosses": {("n", "m")}}, "crosses must be a list"),
    ({"numbers": {"n": (0, 1), "m": (0, 1)}, "crosses": [{"n", "m"}]}, "a cross must be a list"),
    ({"categories": {"c": ["x", "x"]}}, "twice"),
    ({"categories": {"c": [1, True]}}, "twice"),
    ({"categories": {"c": ["1", 1]}}, r"categories\['c'\]: .*'1' and 1 .*all texts or all numbers"),
    ({"categories": {"c": ["x", None]}}, "not None"),
    ({"categories": {"c": [1, float("inf")]}}, "not inf"),
    ({"categories": {"c": [Fraction(1, 2)]}}, r"a text, an int or a float, not Fraction\(1, 2\)"),
    ({"categories": {"c": [0.5]}, "missing": {"c": Fraction(1, 2)}}, r"missing\['c'\]: Fraction"),
    ({"numbers": {"n": (0, 1)}, "missing": {"n": None}}, r"missing\['n'\]: None must be"),
    ({"vectors": {"v": 10**9}}, "'v' alone has 1,000,000,000"),
    (
        {"categories": {"a": gb.Hashed(999), "b": gb.Hashed(999)}, "crosses": [("a", "b")]},
        "'a:b' alone has 998,001",
    ),
    ({"categories": {"c": gb.Hashed(3), "intercept": [1]}}, "intercept"),
    ({"numbers": {"n": (0, 1)}, "intercept": "no"}, "intercept must be True or False, not 'no'"),
    ({"vectors": {"v": 0}}, "at least 1"),
    ({"vectors": {"v": 2.5}}, "whole number"),
    ({"vectors": {"v": (2, -1.0)}}, "positive"),
    ({"numbers": {"n": (0, 1)}, "categories": {"n": [1]}}, "two kinds"),
    ({"numbers": {"n": (0, 1)}, "crosses": [("n",)]}, "two or more"),
    ({"numbers": {"n": (0, 1)}, "crosses": ["n"]}, "two or more"),
    ({"numbers": {"n": (0, 1)}, "crosses": [("n", "m")]}, "'m', which is no column"),
    ({"numbers": {"n": (0, 1), "m": (0, 1)}, "crosses": [("n", "m")] * 2}, "twice"),
    ({"numbers": {"c=x": (0, 1)}, "categories": {"c": ["x"]}}, "called 'c=x'"),
    ({"numbers": {"n": (0, 1)}, "unknown": "zero"}, "Did you mean 'zeros'"),
    ({"numbers": {"n": (0, 1)}, "beyond": "cut"}, "'clip'"),
    ({"numbers": {"n": (0, 1)}, "missing": "mean"}, "'zeros'"),
    ({"numbers": {"n": (0, 1)}, "missing": {"m": 1}}, "'m', which is no column"),
    ({"numbers": {"n": (0, 1)}, "missing": {"n": 2}}, r"missing\['n'\].*between 0 and 1"),
    ({"categories": {"c": ["x"]}, "missing": {"c": "y"}}, "not listed"),
    ({"vectors": {"v": 2}, "missing": {"v": 0}}, "missing='zeros'"),
]


@pytest.mark.parametrize(("given", "message"), MADE)
def test_what_cannot_be_made(given: dict[str, Any], message: str) -> None:
    if not given:
        given = {"intercept": False}
    with pytest.raises(gb.InputError, match=message):
        gb.Features(**given)


FEATURES = gb.Features({"n": (0, 1)}, {"c": ["x", "y"], "h": [1, 2]}, {"v": 2})
GOOD = {"n": 0.5, "c": "x", "h": 1, "v": [0.0, 1.0]}
BAD: list[tuple[str, Any, str]] = [
    ("n", "0.5", "'0.5' is not a number"),
    ("n", [1], "is not a number"),
    ("n", pd.Timestamp("2026-01-01"), "is not a number"),
    ("n", pd.Timedelta("1h"), "is not a number"),
    ("n", 10**400, "is not a number"),
    ("n", None, "there is no value"),
    ("c", 3, "3 is not a text"),
    ("c", ["x"], "is not a text"),
    ("c", b"x", "is not a text"),
    ("c", None, "there is no value"),
    ("h", "1", "'1' is not a number"),
    ("h", pd.Timestamp("2026-01-01"), "is not a number"),
    ("v", [1.0], "a vector of 2 numbers"),
    ("v", [1.0, "x"], "a vector of 2 numbers"),
    ("v", 1.0, "a vector of 2 numbers"),
    ("v", [0.0, float("inf")], "not finite"),
    ("v", [0.0, float("nan")], "there is no value"),
]


@pytest.mark.parametrize(("column", "value", "message"), BAD)
def test_values_are_refused_by_column_and_row(column: str, value: Any, message: str) -> None:
    rows = [GOOD, GOOD, {**GOOD, column: value}]
    with pytest.raises(gb.InvalidValueError, match=f"column '{column}', row 2: .*{message}"):
        FEATURES.table(rows)
    kind = object if value == 10**400 else None  # pandas 2.2.2 looks for a type, and overflows
    labelled = pd.DataFrame(rows, index=["a", "b", "z"], dtype=kind)
    with pytest.raises(gb.InvalidValueError, match=f"column '{column}', row 'z': .*{message}"):
        FEATURES.table(labelled)
    with pytest.raises(gb.InvalidValueError, match=f"column '{column}', row 'third': "):
        FEATURES.table(rows, labels=["first", "second", "third"])
    columns = {name: [each[name] for each in rows] for name in GOOD}
    with pytest.raises(gb.InvalidValueError, match=f"column '{column}', row 2: .*{message}"):
        FEATURES.table(columns)


STRICT = gb.Features(
    {"n": (0, 1)}, {"c": ["x", "y"], "h": gb.Hashed(4)}, {"v": 2}, unknown="error", beyond="error"
)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("n", 1.5, "1.5 is not between 0 and 1"),
        ("c", "z", "'z' is not one of the listed"),
        ("h", 0.5, "0.5 is not a text or a whole number"),
        ("v", [3.0, 4.0], "it is not of length 1 at most"),
    ],
)
def test_treatments_can_be_errors(column: str, value: Any, message: str) -> None:
    with pytest.raises(gb.InvalidValueError, match=f"column '{column}', row 1: {message}"):
        STRICT.table([GOOD, {**GOOD, column: value}])
    assert STRICT.table([GOOD]).shape == (1, STRICT.dim)


def test_columns_that_are_not_there() -> None:
    with pytest.raises(gb.InvalidValueError, match="no column 'n'; there are c, h, v, N"):
        FEATURES.table(pd.DataFrame([GOOD]).assign(N=1).drop(columns="n"))
    with pytest.raises(gb.InvalidValueError, match="no column 'n'"):
        FEATURES.table({"c": ["x"], "h": [1], "v": [[0, 0]]})
    with pytest.raises(gb.InvalidValueError, match="row 1 has no 'n': say None"):
        FEATURES.table([GOOD, {"c": "x"}])
    twice = pd.DataFrame([[0.5, 0.5, "x", 1, [0, 0]]], columns=["n", "n", "c", "h", "v"])
    with pytest.raises(gb.InvalidValueError, match="several columns 'n'"):
        FEATURES.table(twice)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (GOOD, "a list of values for each column"),
        ({**GOOD, "n": 0.5}, "a list of values for each column"),
        ([[0.5, "x", 1]], "row 0 must be a dict"),
        ([GOOD, "x"], "row 1 must be a dict"),
        ("text", "not str"),
        (3, "not int"),
        (np.zeros((2, 3)), "not ndarray"),
        ({"n": [1, 2], "c": ["x"], "h": [1], "v": [[0, 0]]}, "differ in length"),
        (sparse.csr_matrix(np.zeros((2, 4))), r"must have 5 columns, those of n, c, h, v"),
    ],
)
def test_data_that_are_no_rows(data: Any, message: str) -> None:
    with pytest.raises(gb.InputError, match=message):
        FEATURES.table(data)


def test_descriptions_that_cannot_be_read() -> None:
    whole = json.loads(FEATURES.to_json())
    wrong: list[tuple[Any, str]] = [
        ({**whole, "version": 2}, "version 2.*upgrade"),
        ({**whole, "version": None}, "version None"),
        ({**whole, "version": True}, "version True"),
        ({**whole, "intercept": "false"}, "damaged: intercept must be True or False, not 'false'"),
        ({**whole, "numbers": whole["numbers"] * 2}, "damaged: column 'n' is listed twice"),
        (
            {**whole, "numbers": [{"name": "n", "low": 1, "high": 2, "log": "false"}]},
            "damaged: log must be True or False, not 'false'",
        ),
        ({**whole, "format": "guardband fleet"}, "does not describe features"),
        ([], "does not describe features"),
        ({**whole, "more": 1}, "damaged"),
        ({**whole, "numbers": [{"name": "n", "low": 2, "high": 1}]}, "damaged"),
        ({**whole, "numbers": [{"low": 0, "high": 1}]}, "damaged"),
        ({**whole, "numbers": 3}, "damaged"),
        ({**whole, "origin": [3]}, "damaged"),
        ({**whole, "numbers": [{"name": "n", "low": 0, "high": 1, "start": 1}]}, "damaged"),
        ({name: value for name, value in whole.items() if name != "origin"}, "damaged"),
    ]
    for data, message in wrong:
        with pytest.raises(gb.InvalidValueError, match=message):
            gb.Features.from_json(json.dumps(data))
    for text in ("{", "", None):
        with pytest.raises(gb.InvalidValueError, match="no JSON"):
            gb.Features.from_json(text)  # type: ignore[arg-type]
