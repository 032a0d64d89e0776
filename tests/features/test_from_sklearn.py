"""Transformers of scikit-learn, written down: the same numbers, and no scikit-learn afterwards."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

import guardband as gb

pytest.importorskip("sklearn", reason="the extra sklearn is not installed")
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    StandardScaler,
)

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "minutes": RNG.uniform(5, 240, 300),
        "stars": RNG.uniform(1, 5, 300),
        "gain": RNG.normal(0, 3, 300),
        "votes": RNG.normal(100, 20, 300),
        "format": RNG.choice(["film", "series", "short"], 300),
        "hour": RNG.integers(0, 4, 300),
        "flag": RNG.choice(["no", "yes"], 300),
    }
)
LENGTH = math.sqrt(1 + 1 + 4 + 1 + 16 + 1 + 1 + 1)  # the intercept and seven blocks


def fitted() -> ColumnTransformer:
    parts = [
        ("a", MinMaxScaler(), ["minutes"]),
        ("b", MinMaxScaler(feature_range=(-1, 2)), ["stars"]),
        ("c", make_pipeline(SimpleImputer(), StandardScaler()), ["votes"]),
        ("d", MaxAbsScaler(), ["gain"]),
        ("e", OneHotEncoder(handle_unknown="ignore"), ["format", "hour"]),
        ("f", OneHotEncoder(drop="if_binary", handle_unknown="ignore"), ["flag"]),
    ]
    return ColumnTransformer(parts, sparse_threshold=0.0).fit(FRAME)


def in_order(features: gb.Features, transformer: ColumnTransformer, data: Any) -> Any:
    """What the transformer gives, with its columns in the order of the features."""
    names = [name.split("__")[1] for name in transformer.get_feature_names_out()]
    own = [name.replace("=", "_") for name in features.names if name != "intercept"]
    return transformer.transform(data)[:, [names.index(name) for name in own]]


def test_the_table_is_what_the_transformer_gives_over_a_length() -> None:
    transformer = fitted()
    features = gb.Features.from_sklearn(transformer, limit=4)
    table = features.table(FRAME)
    wanted = in_order(features, transformer, FRAME)
    assert wanted.shape[1] == features.dim - 1
    np.testing.assert_allclose(table[:, 1:] * LENGTH, wanted, rtol=0, atol=1e-12)
    np.testing.assert_allclose(table[:, 0], 1 / LENGTH)
    assert (np.linalg.norm(table, axis=1) <= 1.0).all()


def test_unknown_missing_and_far_values() -> None:
    transformer = fitted()
    features = gb.Features.from_sklearn(transformer, limit=4)
    odd = FRAME[:3].assign(votes=[None, 1e9, 100.0], format=["opera", "film", "film"])
    found = features.table(odd)[:, 1:] * LENGTH
    wanted = in_order(features, transformer, odd.astype({"votes": float}))
    np.testing.assert_allclose(found, np.clip(wanted, None, 4.0), rtol=0, atol=1e-12)
    assert features.counts["missing"] == {"votes": 1}
    assert features.counts["beyond"] == {"votes": 1}
    assert features.counts["unknown"] == {"format": 1}


def test_it_is_written_down_with_class_version_and_columns() -> None:
    from sklearn import __version__  # noqa: PLC0415

    features = gb.Features.from_sklearn(fitted(), limit=4)
    again = gb.Features.from_json(features.to_json())
    assert again == features
    np.testing.assert_array_equal(again.table(FRAME), features.table(FRAME))
    origin = json.loads(features.to_json())["origin"]
    assert {"class": "sklearn.preprocessing.MaxAbsScaler", "version": __version__} == {
        key: value for key, value in origin[4].items() if key != "columns"
    }
    assert origin[5]["columns"] == ["format", "hour"]
    assert [each["class"].rpartition(".")[2] for each in origin[2:4]] == [
        "SimpleImputer",
        "StandardScaler",
    ]


def test_reading_it_needs_no_scikit_learn() -> None:
    text = gb.Features.from_sklearn(fitted(), limit=4).to_json()
    code = (
        "import sys, guardband as gb\n"
        "features = gb.Features.from_json(sys.stdin.read())\n"
        "assert 'sklearn' not in sys.modules and 'pandas' not in sys.modules\n"
        "print(features.dim)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=text, capture_output=True, text=True, check=True
    )
    assert int(done.stdout) == json.loads(text)["intercept"] + 4 + 3 + 4 + 1


def test_one_encoder_alone_and_dropped_columns() -> None:
    alone = gb.Features.from_sklearn(OneHotEncoder().fit(FRAME[["format"]]), intercept=False)
    assert alone.names == ("format=film", "format=series", "format=short")
    with pytest.raises(gb.InvalidValueError, match="'opera' is not one of the listed"):
        alone.table({"format": ["opera"]})
    parts = [("keep", MinMaxScaler(), ["stars"]), ("away", "drop", ["gain"])]
    some = gb.Features.from_sklearn(ColumnTransformer(parts).fit(FRAME))
    assert some.columns == ("stars",)


def test_imputers_of_pandas_own_missing_values_and_of_empty_columns() -> None:
    data = FRAME[["stars", "gain"]].astype(float).assign(empty=np.nan)[["empty", "stars", "gain"]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn says that a column is dropped
        dropping = make_pipeline(SimpleImputer(), MinMaxScaler()).fit(data)
        wanted = dropping.transform(data)
    features = gb.Features.from_sklearn(dropping, intercept=False)
    assert features.columns == ("stars", "gain")
    np.testing.assert_allclose(features.table(data) * math.sqrt(2), wanted, rtol=0, atol=1e-12)
    own = data[["stars"]].astype("Float64")
    imputer = make_pipeline(SimpleImputer(missing_values=pd.NA), MinMaxScaler()).fit(own)
    assert gb.Features.from_sklearn(imputer).columns == ("stars",)


STARS = FRAME[["stars"]]
REFUSED: list[tuple[Any, str]] = [
    (StandardScaler().fit(STARS), "StandardScaler has no limits: state limit"),
    (PCA(1).fit(STARS), "'PCA' cannot be written down"),
    (FunctionTransformer(np.log).fit(STARS), "'FunctionTransformer' cannot be written down"),
    (MinMaxScaler(), "not fitted"),
    (OneHotEncoder(), "fit it to a DataFrame"),
    (ColumnTransformer([("a", MinMaxScaler(), ["stars"])]), "not fitted"),
    (MinMaxScaler().fit(STARS.to_numpy()), "fit it to a DataFrame"),
    (MinMaxScaler().fit(STARS.assign(stars=3.0)), "'stars' has the same value"),
    (OneHotEncoder(min_frequency=9).fit(FRAME[["format"]]), "min_frequency=9"),
    (OneHotEncoder().fit(FRAME[["format"]].assign(format=None)), "a text, an int or a float"),
    (make_pipeline(StandardScaler(), MinMaxScaler()).fit(STARS), "only SimpleImputer may"),
    (make_pipeline(SimpleImputer(add_indicator=True), MinMaxScaler()).fit(STARS), "add_indicator"),
    (make_pipeline(SimpleImputer(missing_values=-1), MinMaxScaler()).fit(STARS), "replaces -1"),
    (Pipeline([("x", "passthrough")]).fit(STARS), "no step"),
    (
        ColumnTransformer([("a", MinMaxScaler(), ["stars"])], remainder="passthrough").fit(FRAME),
        "cannot be written down",
    ),
    (
        ColumnTransformer([("a", MinMaxScaler(), ["stars"])], transformer_weights={"a": 2.0}).fit(
            FRAME
        ),
        "transformer_weights",
    ),
    (
        ColumnTransformer([("a", MinMaxScaler(), ["stars"]), ("b", MaxAbsScaler(), ["stars"])]).fit(
            FRAME
        ),
        "'stars' is transformed twice",
    ),
    (
        ColumnTransformer(
            [
                ("a", OneHotEncoder(), ["format"]),
                ("b", OneHotEncoder(handle_unknown="ignore"), ["hour"]),
            ]
        ).fit(FRAME),
        "handle_unknown",
    ),
    ("MinMaxScaler", "cannot be written down"),
]


@pytest.mark.parametrize(("transformer", "message"), REFUSED)
def test_what_cannot_be_written_down_is_refused(transformer: Any, message: str) -> None:
    with pytest.raises(gb.InputError, match=message):
        gb.Features.from_sklearn(transformer)


def test_a_limit_must_be_positive() -> None:
    with pytest.raises(gb.InvalidValueError, match="limit"):
        gb.Features.from_sklearn(StandardScaler().fit(STARS), limit=-1)
