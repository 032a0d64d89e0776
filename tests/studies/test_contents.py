"""What is said about the rows: rates, missing values, suspects."""

from __future__ import annotations

import numpy as np
import pytest
from studies.examples import ROLES, shop

from guardband.studies.config import StudyConfig
from guardband.studies.contents import look_at, spans
from guardband.studies.read import read_study_logs

CONFIG = StudyConfig(**ROLES, time="when")


def test_rates_are_means_of_the_rows_that_are_looked_at() -> None:
    frame = shop()
    found = look_at(read_study_logs(frame, CONFIG))
    seen = frame[:200]
    assert found.rows["total"] == 400
    assert found.rows["looked_at"] == found.rows["left_to_learn"] == 200
    assert found.rewards["mean"] == pytest.approx(seen.clicked.mean())
    assert found.rewards["binary"]
    for rate in found.by_action:
        own = seen.clicked[seen.item == rate.name]
        assert (rate.rows, rate.mean) == (len(own), pytest.approx(own.mean()))
        half = 1.959964 * own.std(ddof=0) / np.sqrt(len(own))
        assert rate.high - rate.mean == pytest.approx(half, rel=1e-5)
    assert sum(rate.rows for rate in found.by_time) == 200


def test_spans_of_time_are_equally_long() -> None:
    frame = shop()
    frame["when"] = np.r_[np.linspace(0, 10, 150), np.linspace(10.5, 100, 250)]
    logs = read_study_logs(frame, CONFIG)
    assert logs.times is not None
    parts = spans(logs)
    length = (logs.times[-1] - logs.times[0]) / 20
    np.testing.assert_array_equal(parts, np.minimum(logs.times // length, 19))


def test_a_column_that_holds_the_reward_is_a_suspect() -> None:
    frame = shop()
    frame["paid"] = frame.clicked * 9.99 + np.random.default_rng(0).normal(0, 0.01, len(frame))
    found = look_at(read_study_logs(frame, CONFIG))
    assert list(found.suspects) == ["paid"]
    assert "of the reward's variance" in found.suspects["paid"]


def test_a_value_that_is_there_only_after_a_click_is_a_suspect() -> None:
    frame = shop()
    frame["basket"] = np.where(frame.clicked == 1, frame.age, np.nan)
    found = look_at(read_study_logs(frame, CONFIG))
    assert "whether it is missing goes with the reward" in found.suspects["basket"]
    assert found.rows["missing"] == {"basket": int((frame.clicked[:200] == 0).sum())}


@pytest.mark.parametrize("rate", [0.2, 0.04, 0.01])
@pytest.mark.parametrize("noise", [0.0, 1.0], ids=["zero", "noise"])
def test_a_column_that_is_large_only_after_a_click_is_a_suspect(rate: float, noise: float) -> None:
    """However rare clicks are: seconds that were spent on a page, 0 or small without a click."""
    rng = np.random.default_rng(1)
    frame = shop(8_000)
    frame["clicked"] = (rng.random(8_000) < rate).astype(int)
    frame["seconds"] = np.where(frame.clicked == 1, rng.uniform(5, 60, 8_000), 0.0)
    frame["seconds"] += noise * rng.uniform(0, 4, 8_000) * (frame.clicked == 0)
    assert list(look_at(read_study_logs(frame, CONFIG)).suspects) == ["seconds"]


def test_what_merely_helps_is_no_suspect() -> None:
    assert look_at(read_study_logs(shop(4_000), CONFIG)).suspects == {}
