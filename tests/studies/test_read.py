"""Reading logs: what is found in the columns, and what is refused by name and row."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from studies.examples import ROLES, shop

import guardband as gb
from guardband.studies.config import StudyConfig, read_study_config
from guardband.studies.read import read_study_logs

CONFIG = StudyConfig(**ROLES, time="when")


def changed(column: str, row: int, value: Any) -> pd.DataFrame:
    frame = shop()
    values = frame[column].astype(object)
    values.iloc[row] = value
    return frame.assign(**{column: values})


def test_a_frame_a_csv_and_a_parquet_file_are_the_same_logs(tmp_path: Path) -> None:
    frame = shop()
    frame.to_csv(tmp_path / "log.csv", index=False)
    frame.to_parquet(tmp_path / "log.parquet")
    logs = read_study_logs(frame, CONFIG)
    frame.to_csv(tmp_path / "numbered.csv")  # its first column has no name
    numbered = read_study_logs(tmp_path / "numbered.csv", CONFIG)
    np.testing.assert_array_equal(numbered.played, logs.played)
    for data in (tmp_path / "log.csv", str(tmp_path / "log.parquet"), frame.to_dict("list")):
        again = read_study_logs(data, CONFIG)
        np.testing.assert_array_equal(again.played, logs.played)
        np.testing.assert_array_equal(again.rewards, frame.clicked[:200])
        assert again.times is not None
        np.testing.assert_array_equal(again.times, logs.times)
        assert again.ids is not None
        assert again.ids.tolist() == frame.request[:200].tolist()
        assert (len(again), again.left, again.total) == (200, 200, 400)


def test_what_is_found_is_said() -> None:
    logs = read_study_logs(shop(), CONFIG)
    said = " ".join(logs.notes)
    assert "all labels seen are taken to be on offer (4)" in said
    assert "the label that was played most" in said
    assert "columns of the action, since every label has one value: price." in said
    assert "columns of the round, the same for every action: segment, age." in said
    assert "Categories, and how many values they have: segment (3)." in said
    assert logs.names[:2] == ("intercept", "price")
    menu = logs.menu(7)
    expected = logs.encoder.table(
        pd.DataFrame(
            {
                "price": [{"a": 3, "b": 5, "c": 7, "d": 9}[logs.labels[i]] for i in menu.labels],
                "segment": shop().segment[7],
                "age": shop().age[7],
            }
        )
    )
    np.testing.assert_array_equal(menu.features, expected)


def test_the_most_played_label_that_is_on_offer_is_the_baseline() -> None:
    frame = shop()
    frame["offered"] = [
        json.dumps(["d", item] if item != "d" else ["d", "a"]) for item in frame.item
    ]
    frame.loc[3, "offered"] = json.dumps(["a", "b", "c", "d"])
    logs = read_study_logs(frame, StudyConfig(**ROLES, menu="offered"))
    plays = frame.item.value_counts()
    for row in range(20):
        offered = json.loads(frame.offered[row])
        menu = logs.menu(row)
        assert [logs.labels[code] for code in menu.labels] == offered
        assert logs.labels[menu.labels[menu.baseline]] == max(offered, key=plays.__getitem__)
        assert logs.labels[menu.labels[menu.played]] == frame.item[row]


def test_menus_may_hold_columns_of_the_pair() -> None:
    rng = np.random.default_rng(1)
    frame = shop()[["item", "clicked"]]
    scores = [{item: round(rng.random(), 3) for item in "abcd"} for _ in range(len(frame))]
    frame["menu"] = [
        json.dumps([{"item": item, "score": score} for item, score in row.items()])
        for row in scores
    ]
    config = StudyConfig(reward="clicked", action="item", menu="menu")
    logs = read_study_logs(frame, config)
    low, high = np.quantile([s for row in scores[:200] for s in row.values()], [0.001, 0.999])
    own = [row[item] for row, item in zip(scores, frame.item, strict=True)]
    features = gb.Features(numbers={"score": (low, high)})
    np.testing.assert_allclose(logs.played, features.table({"score": own[:200]}), rtol=1e-12)
    np.testing.assert_allclose(
        logs.menu(5).features, features.table({"score": list(scores[5].values())}), rtol=1e-12
    )


def test_a_table_of_actions_has_their_columns(tmp_path: Path) -> None:
    items = pd.DataFrame({"item": list("abcd"), "price": [3, 5, 7, 9]})
    items.to_csv(tmp_path / "items.csv", index=False)
    frame = shop().drop(columns="price")
    features = gb.Features(numbers={"price": (0, 10)}, categories={"segment": ["x", "y", "z"]})
    config = StudyConfig(**ROLES, features=features, actions=tmp_path / "items.csv")
    logs = read_study_logs(frame, config)
    np.testing.assert_array_equal(logs.played, features.table(shop()[:200]))
    with pytest.raises(gb.InvalidValueError, match="the table of actions has no row for 'd'"):
        read_study_logs(frame, config.updated(actions=items[:3]))


def test_columns_of_the_round_alone_are_refused() -> None:
    features = gb.Features(categories={"segment": ["x", "y", "z"]})
    with pytest.raises(gb.InvalidValueError, match="no feature tells actions apart: segment"):
        read_study_logs(shop(), StudyConfig(**ROLES, features=features))
    found = read_study_logs(shop(), StudyConfig(**ROLES, columns=["segment"]))
    assert sorted(found.names[-4:]) == ["item=a", "item=b", "item=c", "item=d"]
    items = pd.DataFrame({"cost": [3, 5, 7, 9]}, index=list("abcd"))
    told = StudyConfig(**ROLES, columns=["segment"], actions=items)
    assert "cost" in read_study_logs(shop(), told).names


def test_menus_may_be_given_as_tables() -> None:
    rng = np.random.default_rng(2)
    menus = rng.uniform(0, 0.5, (40, 3, 2))
    data = {"action": rng.integers(3, size=40), "reward": rng.random(40), "base": [1] * 40}
    logs = read_study_logs(data, StudyConfig(baseline="base", features=["u", "v"]), menus)
    np.testing.assert_array_equal(logs.menu(4).features, menus[4])
    np.testing.assert_array_equal(logs.played, menus[np.arange(20), data["action"][:20]])
    assert logs.names == ("u", "v")
    assert logs.menu(4).baseline == 1
    with pytest.raises(gb.InvalidValueError, match="column 'action', row 0: 3 is not on offer"):
        read_study_logs({**data, "action": [3] * 40}, StudyConfig(baseline="base"), menus)


BAD = [
    ("clicked", 1.5, "column 'clicked', row 17: 1.5 is not a reward between 0 and 1"),
    ("clicked", None, "column 'clicked', row 17: there is no value"),
    ("clicked", "yes", "column 'clicked', row 17: 'yes' is not a number"),
    ("clicked", 1 + 1e-12, "column 'clicked', row 17: 1.000000000001 is not a reward"),
    ("price", np.inf, "column 'price', row 17: inf is not finite"),
    ("chance", 0.0, "column 'chance', row 17: 0 is not a propensity"),
    ("chance", 1.1, "column 'chance', row 17: 1.1 is not a propensity"),
    ("item", None, "column 'item', row 17: there is no value"),
    ("request", "r3", "column 'request', row 17: the id 'r3' is that of row 3, too"),
    ("when", "soon", "column 'when', row 17: 'soon' is no time"),
    ("when", "2026-01-01 17:00:00+01:00", "column 'when', row 17: .* has a time zone"),
    ("when", "2025-01-01 17:00:00", "column 'when', row 17: it lies before the row above"),
    ("age", "old", "column 'age', row 17: 'old' is not a number, and nearly all"),
    ("chance", 1e-300, "column 'chance', row 17: 1e-300 is not a propensity.* at least 1e-09"),
    ("request", 2.5, "column 'request', row 17: 2.5 is no text or whole number"),
    ("item", "\ud800", "column 'item': the label has half of a character"),
    ("segment", "\ud800", "a feature has half of a character"),
]


@pytest.mark.parametrize(("column", "value", "what"), BAD)
def test_what_is_wrong_is_named(column: str, value: Any, what: str) -> None:
    with pytest.raises(gb.InvalidValueError, match=what):
        read_study_logs(changed(column, 17, value), CONFIG)


@pytest.mark.parametrize("end", [np.inf, -np.inf])
def test_times_are_finite(end: float) -> None:
    times = np.arange(len(shop()), dtype=float)
    times[0 if end < 0 else -1] = end
    with pytest.raises(gb.InvalidValueError, match=r"column 'when', row .*inf is no time"):
        read_study_logs(shop().assign(when=times), CONFIG)


def test_ids_may_be_whole_floats_and_no_others() -> None:
    count = len(shop())
    logs = read_study_logs(shop().assign(request=np.arange(count) + 1.0), CONFIG)
    assert logs.ids is not None
    assert logs.ids[:2].tolist() == [1, 2]
    assert isinstance(logs.ids[0].item(), int)
    with pytest.raises(gb.InvalidValueError, match=r"column 'request', row 0: .*0.5.* is no text"):
        read_study_logs(shop().assign(request=np.arange(count) + 0.5), CONFIG)


@pytest.mark.parametrize("menus", [False, True])
@pytest.mark.parametrize("baseline", [None, "old_choice"])
def test_nothing_is_found_out_from_rows_that_are_not_looked_at(
    menus: bool, baseline: str | None
) -> None:
    frame = shop().drop(columns="chance")
    frame["menu"] = [["a", "b", "c", "d", "e"]] * len(frame)
    frame["old_choice"] = "a"
    other, late = frame.copy(), np.arange(len(frame)) >= 200
    other.loc[late, "age"] *= 50
    other.loc[late, "price"] = np.arange(late.sum()) % 7  # not one price per label any more
    other.loc[late, "item"] = "e"
    other.loc[late, "segment"] = "new"
    other.loc[late, "old_choice"] = "e"
    menu = "menu" if menus else None
    config = StudyConfig("clicked", "item", menu, baseline, id="request", time="when")
    config = config.updated(columns=["age", "price", "segment"])
    one, two = (read_study_logs(each, config) for each in (frame, other))
    assert one.encoder == two.encoder
    assert (one.labels, one.notes) == (two.labels, two.notes)
    for name in ("played", "rewards", "actions", "baselines"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    for row in (0, 60, 199):
        np.testing.assert_array_equal(one.menu(row).features, two.menu(row).features)
    assert one.left == two.left == 200


def test_rows_that_are_not_looked_at_are_checked_before_anything_is_computed() -> None:
    n = 40
    frame = pd.DataFrame({"action": ["a", "b"] * 20, "reward": [0.0] * n, "x": [0.5, 0.2] * 20})
    config = StudyConfig(features=["x"])
    read_study_logs(frame, config)
    frame.loc[33, "x"] = 5.0
    with pytest.raises(gb.InvalidValueError, match="row 33: its features have length 5"):
        read_study_logs(frame, config)
    texts = frame.astype({"x": object})
    texts.loc[33, "x"] = "much"
    with pytest.raises(gb.InvalidValueError, match="column 'x', row 33: 'much' is not a number"):
        read_study_logs(texts, StudyConfig())


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_rows_of_files_are_counted_from_one(ending: str, tmp_path: Path) -> None:
    file = tmp_path / f"log.{ending}"
    frame = changed("clicked", 17, 1.5).astype({"clicked": float})
    (frame.to_csv if ending == "csv" else frame.to_parquet)(file, index=False)
    with pytest.raises(gb.InvalidValueError, match=rf"log.{ending}: column 'clicked', row 18: 1.5"):
        read_study_logs(file, CONFIG)


def test_files_that_are_cut_short_are_refused(tmp_path: Path) -> None:
    csv, parquet = tmp_path / "log.csv", tmp_path / "log.parquet"
    shop().to_csv(csv, index=False)
    csv.write_bytes(csv.read_bytes()[:-5])
    with pytest.raises(gb.InvalidValueError, match="may be cut short"):
        read_study_logs(csv, CONFIG)
    shop().to_parquet(parquet)
    parquet.write_bytes(parquet.read_bytes()[:-50])
    with pytest.raises(gb.InvalidValueError, match="no Parquet file, or it is cut short"):
        read_study_logs(parquet, CONFIG)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        read_study_logs(tmp_path / "other.csv", CONFIG)


def test_files_of_other_kinds_are_named(tmp_path: Path) -> None:
    frame, file = shop(), tmp_path / "log.csv"
    frame["segment"] = frame.segment.replace("z", "zoé")
    line = int(np.argmax(frame.segment == "zoé")) + 2  # from 1, after the header
    writers: list[tuple[Any, str]] = [
        (partial(frame.to_csv, compression="gzip"), "is compressed: unpack it"),
        (partial(frame.to_csv, encoding="utf-16"), "is in UTF-16: save it as UTF-8"),
        (partial(frame.to_csv, encoding="latin-1"), f"line {line} is not UTF-8"),
        (partial(frame.to_csv, sep=";"), "one column alone, .*: separate values by commas"),
        (frame.to_parquet, r"is a Parquet file: let its name end with \.parquet"),
    ]
    for write, what in writers:
        write(file, index=False)
        with pytest.raises(gb.InvalidValueError, match=what):
            read_study_logs(file, CONFIG)
    with pytest.raises(IsADirectoryError, match="is a folder"):
        read_study_logs(tmp_path, CONFIG)


def test_frames_of_arrow_types_are_the_same_logs() -> None:
    frame = changed("age", 5, None).astype({"age": float})
    logs = read_study_logs(frame, CONFIG)
    categories = pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))
    arrow = frame.convert_dtypes(dtype_backend="pyarrow")
    for same in (arrow, frame.convert_dtypes(), frame.astype({"segment": categories})):
        again = read_study_logs(same, CONFIG)
        assert (again.names, again.notes) == (logs.names, logs.notes)
        np.testing.assert_array_equal(again.played, logs.played)
        np.testing.assert_array_equal(logs.encoder.table(same[:200]), logs.played)


def test_several_time_zones_are_compared_in_utc_and_that_is_said() -> None:
    frame = shop()
    zones = ["+01:00", "+00:00"]
    hours = pd.date_range("2026-01-01", periods=len(frame), freq="2h").astype(str)
    frame["when"] = [f"{hour}{zones[i % 2]}" for i, hour in enumerate(hours)]
    logs = read_study_logs(frame, CONFIG)
    assert logs.times is not None
    assert np.diff(logs.times[:5]).tolist() == [3 * 3600, 3600, 3 * 3600, 3600]
    assert any("several time zones" in note for note in logs.notes)


def test_times_may_be_texts_of_numbers() -> None:
    frame = shop()
    logs = read_study_logs(frame.assign(when=[f"{10 * i}" for i in range(len(frame))]), CONFIG)
    assert logs.times is not None
    assert logs.times[:3].tolist() == [0, 10, 20]


def test_columns_must_be_there_once(tmp_path: Path) -> None:
    with pytest.raises(gb.InvalidValueError, match=r"no column 'a'.* baseline names a column"):
        read_study_logs(shop(), CONFIG.updated(baseline="a"))
    with pytest.raises(gb.InvalidValueError, match=r"no column 'click'.* Did you mean 'clicked'"):
        read_study_logs(shop(), StudyConfig(reward="click", action="item"))
    twice = pd.concat([shop(), shop()[["age"]]], axis=1)
    with pytest.raises(gb.InvalidValueError, match="there are two columns 'age': rename one"):
        read_study_logs(twice, CONFIG)
    twice.to_csv(tmp_path / "log.csv", index=False)
    with pytest.raises(gb.InvalidValueError, match="there are two columns 'age': rename one"):
        read_study_logs(tmp_path / "log.csv", CONFIG)


def test_missing_values_of_found_features_get_a_stated_treatment() -> None:
    frame = changed("segment", 17, None)
    frame.insert(0, "Unnamed: 0", range(len(frame)))
    logs = read_study_logs(frame, CONFIG)
    assert any("Missing values are taken as: segment: (missing)" in note for note in logs.notes)
    assert any("'Unnamed: 0' counts the rows and was left out" in note for note in logs.notes)
    assert logs.played[17, logs.names.index("segment=(missing)")] > 0


def test_a_settings_file_says_the_same(tmp_path: Path) -> None:
    features = gb.Features(
        numbers={"price": (0, 10)},
        categories={"segment": ["x", "y", "z"], "item": gb.Hashed(8)},
        crosses=[("price", "segment")],
    )
    (tmp_path / "study.toml").write_text(
        'reward = "clicked"\naction = "item"\nalpha = 0.2\n[features]\n'
        'crosses = [["price", "segment"]]\n[features.numbers]\nprice = [0, 10]\n'
        '[features.categories]\nsegment = ["x", "y", "z"]\nitem = {hashed = 8}\n'
    )
    config = read_study_config(tmp_path / "study.toml")
    assert (config.features, config.alpha, config.reward) == (features, 0.2, "clicked")
    (tmp_path / "study.toml").write_text('rewards = "clicked"\n')
    with pytest.raises(gb.InvalidValueError, match=r"unknown setting 'rewards'.*'reward'"):
        read_study_config(tmp_path / "study.toml")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"thetabound": 1.0}, "no setting 'thetabound'.* 'theta_bound'"),
        ({"dim": 2}, "settings has dim"),
        ({"algorithm": "disc-ucb"}, "Guard-UCB alone"),
    ],
)
def test_settings_are_checked_before_anything_is_simulated(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(gb.InvalidValueError, match=message):
        StudyConfig(settings=settings)


def test_an_empty_list_is_no_list_of_another_type() -> None:
    with pytest.raises(gb.InvalidValueError, match=r"the logs are an empty list: a study needs"):
        gb.study([], reward="clicked", action="item")
