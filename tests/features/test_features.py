"""`gb.Features`: what it makes of rows, whatever they are given as."""

from __future__ import annotations

import copy
import json
import math
import pickle
import threading
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from reference import features as reference
from scipy import sparse

import guardband as gb

NUMBERS: dict[str, Any] = {"minutes": (5, 240, "log"), "stars": (1, 5)}
CATEGORIES = {"format": ["film", "series", "short"], "segment": [1, 2]}
CROSSES = [("format", "segment"), ("stars", "format"), ("minutes", "format", "segment")]
FEATURES = gb.Features(NUMBERS, CATEGORIES, {"embedding": 3}, CROSSES)

number = st.floats(allow_nan=False) | st.integers(-(10**6), 10**6)
row = st.fixed_dictionaries(
    {
        "minutes": number,
        "stars": number,
        "format": st.sampled_from(["film", "series", "short", "opera", ""]),
        "segment": st.integers(0, 3),
        "embedding": st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3),
    }
)
data = st.lists(row, min_size=1, max_size=6)


def frame(rows: list[dict[str, Any]], **given: Any) -> pd.DataFrame:
    return pd.DataFrame(rows, **given)


@given(data)
def test_rows_are_what_the_definition_says(rows: list[dict[str, Any]]) -> None:
    wanted = reference.table(rows, NUMBERS, CATEGORIES, {"embedding": 3}, CROSSES)
    found = FEATURES.table(rows)
    assert found.shape == (len(rows), FEATURES.dim)
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-15)


@given(data)
def test_no_row_is_longer_than_one(rows: list[dict[str, Any]]) -> None:
    assert (np.linalg.norm(FEATURES.table(rows), axis=1) <= 1.0 + 1e-12).all()


def test_a_row_can_be_as_long_as_one() -> None:
    best = {"minutes": 240, "stars": 5, "format": "film", "segment": 2, "embedding": [0, 0.6, 0.8]}
    assert np.linalg.norm(FEATURES.table([best])) == pytest.approx(1.0, abs=1e-12)


@given(data, st.randoms(use_true_random=False))
def test_rows_are_the_same_from_frames_dicts_and_columns(
    rows: list[dict[str, Any]], random: Any
) -> None:
    """In any order of the columns, with more of them, and one row at a time."""
    wanted = FEATURES.table(rows)
    names = [*rows[0]]
    random.shuffle(names)
    mixed = [{"more": "x", **{name: each[name] for name in names}} for each in rows]
    many = frame(mixed, index=[f"r{i}" for i in range(len(rows))])
    columns = {name: [each[name] for each in rows] for name in names}
    arrays = {name: np.array(values) for name, values in columns.items()}
    for same in (mixed, many, columns, arrays, dict(many.items())):
        np.testing.assert_array_equal(FEATURES.table(same), wanted)
    one_by_one = np.vstack([FEATURES.table([each]) for each in rows])
    np.testing.assert_array_equal(one_by_one, wanted)


@given(st.lists(st.tuples(*[st.integers(0, 3)] * 4), min_size=1, max_size=5))
def test_a_sparse_matrix_has_the_columns_in_order(rows: list[tuple[int, ...]]) -> None:
    features = gb.Features({"a": (0, 3)}, {"b": [0, 1, 2, 3]}, {"c": (2, 9.0)}, [("a", "b")])
    assert features.columns == ("a", "b", "c")
    dicts = [{"a": a, "b": b, "c": [c, d]} for a, b, c, d in rows]
    wanted = features.table(dicts)
    for kind in (sparse.csr_matrix, sparse.coo_array):
        np.testing.assert_array_equal(features.table(kind(np.array(rows, float))), wanted)
    blocks = {name: [each[name] for each in dicts] for name in ("a", "b")}
    blocks["c"] = sparse.csr_array(np.array([each["c"] for each in dicts], float))
    np.testing.assert_array_equal(features.table(blocks), wanted)
    single = [{**each, "c": sparse.csr_matrix(np.array([each["c"]], float))} for each in dicts]
    np.testing.assert_array_equal(features.table(single), wanted)


def test_names_and_places() -> None:
    features = gb.Features({"stars": (1, 5)}, {"format": ["film", "tv"], "user": gb.Hashed(2)})
    assert features.names == ("intercept", "stars", "format=film", "format=tv", "user#0", "user#1")
    assert features.dim == 6
    assert features.indices(["format", "intercept", "user#1", 1]) == [2, 3, 0, 5, 1]
    crossed = gb.Features(categories={"a": [1, 2], "b": ["x", "y"]}, crosses=[("a", "b")])
    assert crossed.names[5:] == ("a=1:b=x", "a=1:b=y", "a=2:b=x", "a=2:b=y")
    assert crossed.indices(["a:b"]) == [5, 6, 7, 8]
    many = gb.Features(dict.fromkeys("abcdefgh", (0, 1)))
    assert many.indices(set("abcdefgh")) == [*range(1, 9)]  # in every process
    with pytest.raises(gb.InvalidValueError, match=r"no feature 'fromat'.*Did you mean 'format'"):
        features.indices(["fromat"])


def test_without_an_intercept() -> None:
    features = gb.Features({"stars": (1, 5)}, intercept=False)
    assert features.table({"stars": [1, 3, 5]}).tolist() == [[0.0], [0.5], [1.0]]


@given(st.floats(1e-90, 1e90), st.integers(1, 40), st.floats(0.0, 1.0))
@example(1.013594338922124, 20, 0.5)  # NumPy's logarithm and Python's differ
def test_logarithms_of_close_limits_stay_between_0_and_1(low: float, ulps: int, at: float) -> None:
    high = low + ulps * math.ulp(low)
    if math.log(low) < math.log(high):
        features = gb.Features({"x": (low, high, "log")}, intercept=False)
        table = features.table({"x": [low, low + at * (high - low), high]})
        assert ((table >= 0.0) & (table <= 1.0)).all()


def test_what_does_not_fit_is_counted() -> None:
    features = gb.Features({"stars": (1, 5)}, {"format": ["film"]}, {"e": (2, 5.0)})
    rows = [
        {"stars": 7, "format": "film", "e": [3, 4]},
        {"stars": 0, "format": "opera", "e": [30, 40]},
        {"stars": math.inf, "format": "film", "e": [0, 0]},
    ]
    table = features.table(rows) * 2.0
    assert table[:, 1].tolist() == [1.0, 0.0, 1.0]
    assert table[:, 2].tolist() == [1.0, 0.0, 1.0]
    np.testing.assert_allclose(table[:, 3:], [[0.6, 0.8], [0.6, 0.8], [0, 0]], rtol=1e-12)
    counts = {"rows": 3, "unknown": {"format": 1}, "beyond": {"stars": 3, "e": 1}, "missing": {}}
    assert features.counts == counts
    with pytest.raises(gb.InvalidValueError):
        features.table([*rows, {"stars": "x", "format": "?", "e": [0, 0]}])
    assert features.counts == counts, "refused data do not count"


def test_counting_from_several_threads() -> None:
    features = gb.Features({"stars": (1, 5)})

    def work() -> None:
        for _ in range(200):
            features.table([{"stars": 9}])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert features.counts["rows"] == features.counts["beyond"]["stars"] == 800


@pytest.mark.parametrize("nothing", [None, math.nan, np.float32("nan"), pd.NA, pd.NaT])
def test_missing_values(nothing: Any) -> None:
    given: Any = ({"stars": (1, 5)}, {"format": ["film", "tv"], "user": gb.Hashed(3)}, {"e": 2})
    row = {"stars": nothing, "format": nothing, "user": nothing, "e": nothing}
    zeros = gb.Features(*given, missing="zeros")
    for data in ([row], frame([row]), {name: [value] for name, value in row.items()}):
        assert zeros.table(data)[0, 1:].tolist() == [0.0] * 8
    assert zeros.counts["missing"] == {"stars": 3, "format": 3, "user": 3, "e": 3}
    instead = {"stars": 3, "format": "tv", "user": "ann"}
    filled = gb.Features(*given, missing=instead)
    np.testing.assert_array_equal(
        filled.table([{**row, "e": [0, 1]}]), filled.table([{**instead, "e": [0, 1]}])
    )
    with pytest.raises(gb.InvalidValueError, match="column 'e', row 0: there is no value"):
        filled.table([row])


def test_masked_values_are_missing() -> None:
    features = gb.Features(
        {"n": (0, 1)}, {"c": ["x", "y"], "u": gb.Hashed(8)}, {"v": 2}, missing="zeros"
    )
    mask, large = [False, True], 2**53 + 1
    columns = {
        "n": np.ma.masked_array([0.2, 0.9], mask),
        "c": np.ma.masked_array(["x", "y"], mask),
        "u": np.ma.masked_array([large, 7], mask),
        "v": np.ma.masked_array([[0.6, 0.8], [0.1, 0.2]], [[False, False], [True, False]]),
    }
    known = {"n": 0.2, "c": "x", "u": large, "v": [0.6, 0.8]}
    wanted = features.table([known, dict.fromkeys(known)])
    for data in (
        columns,
        [{name: values[i] for name, values in columns.items()} for i in range(2)],
    ):
        np.testing.assert_array_equal(features.table(data), wanted)
    with pytest.raises(gb.InvalidValueError, match="column 'n', row 1: there is no value"):
        gb.Features({"n": (0, 1)}).table({"n": columns["n"]})


def test_whole_numbers_beside_missing_ones_stay_categories() -> None:
    """Pandas turns them into floats."""
    features = gb.Features(categories={"hour": range(24), "user": gb.Hashed(64)}, missing="zeros")
    broken = pd.DataFrame({"hour": [3, None], "user": [17, None]})
    whole = pd.DataFrame({"hour": [3], "user": ["17"]})
    np.testing.assert_array_equal(features.table(broken)[:1], features.table(whole))


IDS = [2**53 + 1, -(2**60) - 1]


@pytest.mark.parametrize("category", [gb.Hashed(64), IDS])
def test_large_whole_numbers_are_told_apart_or_refused(category: Any) -> None:
    features = gb.Features(categories={"user": category}, missing="zeros", intercept=False)
    wanted = features.table({"user": IDS})
    assert wanted.sum() == len(IDS)
    whole = pd.DataFrame({"user": pd.array([*IDS, None], dtype="Int64")})
    np.testing.assert_array_equal(features.table(whole)[:2], wanted)
    for one in IDS:
        rounded = pd.DataFrame({"user": [5, one, None]})
        with pytest.raises(gb.InvalidValueError, match=r"'user', row 1: .*2\^53.*texts.*'Int64'"):
            features.table(rounded)


def test_kinds_of_columns_that_pandas_has() -> None:
    features = gb.Features({"n": (0, 4)}, {"c": ["x", "y"]})
    wanted = features.table({"n": [1, 2], "c": ["x", "y"]})
    for n in ("Int64", "float32", "int8", object):
        for c in ("category", "string", object):
            data = pd.DataFrame({"n": [1, 2], "c": ["x", "y"]}).astype({"n": n, "c": c})
            np.testing.assert_array_equal(features.table(data), wanted)
    flags = gb.Features({"n": (0, 1)}, {"c": [True, False]})
    assert flags.table(pd.DataFrame({"n": [True], "c": [False]})).sum() == pytest.approx(3**0.5)


HASHES = {"ann": 5, "7": 2, "": 4, "Zürich": 0}  # b2sum -l 64, modulo 8


def test_buckets_are_the_same_for_ever() -> None:
    hashed = gb.Features(categories={"user": gb.Hashed(8)}, intercept=False)
    table = hashed.table({"user": [*HASHES]})
    assert table.sum(axis=1).tolist() == [1.0] * len(HASHES)
    assert dict(zip(HASHES, table.argmax(axis=1).tolist(), strict=True)) == HASHES


def test_values_with_one_text_have_one_bucket() -> None:
    hashed = gb.Features(categories={"user": gb.Hashed(1024)}, intercept=False)
    buckets = hashed.table({"user": [1, 1.0, "1", True, np.True_, "True"]}).argmax(axis=1).tolist()
    assert len(set(buckets[:3])) == len(set(buckets[3:])) == 1
    assert buckets[0] != buckets[3]


@given(data)
@settings(max_examples=25)
def test_json_keeps_everything(rows: list[dict[str, Any]]) -> None:
    text = FEATURES.to_json()
    again = gb.Features.from_json(json.dumps(json.loads(text), sort_keys=True))
    assert again == FEATURES
    assert again.to_json() == text
    assert again.names == FEATURES.names
    np.testing.assert_array_equal(again.table(rows), FEATURES.table(rows))


def test_json_keeps_what_was_stated_with_numpy() -> None:
    features = gb.Features(
        {"n": (np.int64(0), np.float32(2))},
        {"c": np.array([1, 2]), "s": np.array(["x", "y"]), "h": gb.Hashed(np.int64(3))},
        {"v": np.int64(2), "w": (np.int32(2), np.float32(0.5))},
        intercept=np.bool_(True),
        missing={"n": np.int64(1), "c": np.int64(2), "s": np.str_("y"), "h": np.int64(7)},
    )
    assert gb.Features.from_json(features.to_json()) == features
    row = {"n": None, "c": None, "s": None, "h": None, "v": [0, 1], "w": [0, 0]}
    same = {**row, "n": 1, "c": 2, "s": "y", "h": "7"}
    np.testing.assert_array_equal(features.table([row]), features.table([same]))


def test_json_keeps_treatments_and_limits_exactly() -> None:
    features = gb.Features(
        {"n": (0.1, 1 / 3)},
        {"c": [True, 2, 2.5, "x"], "u": gb.Hashed(5)},
        {"v": (2, math.pi)},
        unknown="error",
        beyond="error",
        missing={"n": 0.2, "c": "x"},
    )
    assert gb.Features.from_json(features.to_json()) == features
    assert pickle.loads(pickle.dumps(features)) == copy.deepcopy(features) == features
    assert features != gb.Features({"n": (0.1, 1 / 3)})
