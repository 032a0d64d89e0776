"""Settings that the data suggest: bounds hold, and what cannot be known is said."""

from __future__ import annotations

import numpy as np
import pytest
from studies.examples import ROLES, shop

import guardband as gb
from guardband.studies.config import StudyConfig
from guardband.studies.linearity import judge_linearity
from guardband.studies.read import read_study_logs
from guardband.studies.suggestions import NUMBERS, Suggestion, suggest_settings


def suggested(data: object, config: StudyConfig, menus: object = None) -> dict[str, Suggestion]:
    logs = read_study_logs(data, config, menus)
    linear = judge_linearity(logs, config.alpha, 0)
    found = suggest_settings(logs, linear, config.alpha, config.settings, 0)
    return {each.name: each for each in found}


def worlds(seed: int, theta: np.ndarray, rows: int) -> tuple[dict[str, object], np.ndarray]:
    rng = np.random.default_rng(seed)
    menus = np.concatenate([np.ones((rows, 4, 1)), rng.random((rows, 4, 2))], axis=2) / 2
    action = rng.integers(4, size=rows)
    mean = menus[np.arange(rows), action] @ theta
    clicks = (rng.random(rows) < mean).astype(float)
    return {"action": action, "reward": clicks, "old": np.zeros(rows, int)}, menus


CONFIG = StudyConfig(baseline="old")
THETA = np.array([0.05, 0.1, 0.05])


def test_bounds_are_true_in_most_worlds_and_not_far_off() -> None:
    length, top = np.linalg.norm(THETA), THETA.sum() / 2
    held = 0
    for seed in range(40):
        found = suggested(*_given(worlds(seed, THETA, 4_000)))
        bound, ceiling = found["theta_bound"], found["reward_ceiling"]
        assert bound.sure == "fairly sure"
        held += bound.value >= length and ceiling.value >= 0.98 * top
        assert bound.value < 6 * length
        assert ceiling.value < 3 * top
    assert held >= 39


def _given(world: tuple[dict[str, object], np.ndarray]) -> tuple[object, StudyConfig, object]:
    return world[0], CONFIG, world[1]


def test_columns_that_say_the_same_do_not_swell_the_bound() -> None:
    """An intercept, two categories and their cross: 6 of 13 directions are nothing but rounding."""
    rng, rows = np.random.default_rng(1), 4_000
    offers = {"film": (95, 140), "series": (45, 50), "short": (8, 12)}
    formats = rng.choice([*offers], rows)
    data = {
        "offer": formats,
        "format": formats,
        "minutes": [rng.choice(offers[each]) for each in formats],
        "segment": rng.choice(["evening", "lunch"], rows),
        "clicked": (rng.random(rows) < 0.2).astype(float),
    }
    features = gb.Features(
        numbers={"minutes": (5, 240, "log")},
        categories={"format": [*offers], "segment": ["evening", "lunch"]},
        crosses=[("format", "segment")],
    )
    config = StudyConfig(reward="clicked", action="offer", features=features)
    logs = read_study_logs(data, config)
    shortest = np.linalg.pinv(logs.played, rcond=1e-6) @ np.full(len(logs), 0.2)
    bound = suggested(data, config)["theta_bound"].value
    assert np.linalg.norm(shortest) <= bound <= 5


def test_an_action_that_was_never_played_leaves_the_bound_open() -> None:
    data, menus = worlds(0, THETA, 1_000)
    apart = np.concatenate([menus / 2, np.zeros((1_000, 4, 1))], axis=2)
    apart[:, 3] = [0.0, 0.0, 0.0, 1.0]
    data["action"] = np.asarray(data["action"]) % 3
    found = suggested(data, CONFIG, apart)
    assert found["theta_bound"].sure == "can't tell"
    assert found["theta_bound"].value >= 1.0
    assert "reward_ceiling" not in found


def test_what_was_stated_stays() -> None:
    config = StudyConfig(**ROLES, settings={"theta_bound": 7.0, "delta": 0.01})
    found = suggested(shop(), config)
    assert (found["theta_bound"].value, found["theta_bound"].sure) == (7.0, "sure")
    assert found["delta"].value == 0.01
    assert found["noise"].value is None
    with pytest.raises(gb.InvalidValueError, match="alpha is a setting of the whole study"):
        StudyConfig(settings={"alpha": 0.3})


def test_large_menus_are_looked_at_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 400 labels with a column each, no more features are made than have been allowed for."""
    rng = np.random.default_rng(0)
    labels = [f"l{i}" for i in range(400)]
    frame = {"action": rng.choice(labels, 2_000), "reward": rng.integers(2, size=2_000) * 1.0}
    config = StudyConfig(features=gb.Features(categories={"action": labels}))
    logs = read_study_logs(frame, config)
    asked: list[int] = []
    ordinary = logs.offers
    monkeypatch.setattr(logs, "offers", lambda rows: asked.append(len(rows)) or ordinary(rows))
    linear = judge_linearity(logs, 0.1, 0)
    asked.clear()
    suggest_settings(logs, linear, 0.1, {}, 0)
    assert sum(asked) * len(logs.labels) * logs.dim <= NUMBERS
    assert sum(asked) > 1
