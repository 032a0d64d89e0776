"""agent.toml: what is written is read again, and what does not fit is refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import guardband as gb
from guardband.agent import AgentFile, LookedAt, read_agent_file, write_agent_file

FEATURES = gb.Features(
    numbers={"minutes": (5, 240, "log")},
    categories={"format": ['film "noir"', "séries\\", "a\nb"], "user": gb.Hashed(4)},
    vectors={"taste": (2, 3.0)},
    crosses=[("format", "minutes")],
    missing={"minutes": 30},
)
SETTINGS: dict[str, Any] = {
    "alpha": 0.1,
    "mode": "strict",
    "trial_budget": 4.0,
    "reward_ceiling": 0.5,
    "context_noise": 0.0,
    "bias_bound": 0.01,
    "feature_bound": 1.0,
    "seed": 7,
}
COLUMNS = {"reward": "clicked", "action": "item", "features": ["minutes", "format"]}


def looked() -> LookedAt:
    rng = np.random.default_rng(0)
    table = rng.uniform(0, 0.2, (20, FEATURES.dim))
    return LookedAt.of(table, rng.random(20), np.arange(20) < 12, split="the first 12 rows")


def written(folder: Path, **given: Any) -> Path:
    parts = {"settings": SETTINGS, "features": FEATURES, "columns": COLUMNS, **given}
    return write_agent_file(folder / "agent.toml", AgentFile(**parts), "For people.\n\nTwo lines.")


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    seen = looked()
    path = written(tmp_path, looked_at=seen)
    assert path.read_text().startswith("# For people.\n#\n# Two lines.\n\n")
    found = read_agent_file(path)
    assert found.settings == SETTINGS
    assert found.columns == COLUMNS
    assert found.features == FEATURES
    assert found.looked_at is not None
    assert found.looked_at.to_bytes() == seen.to_bytes()
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "agent.looked-at.npz",
        "agent.toml",
    ]


def test_an_agent_has_all_that_the_file_states(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="`guardband study` writes"):
        gb.Agent.from_file(tmp_path / "agent.toml")
    agent = gb.Agent.from_file(written(tmp_path, looked_at=looked()))
    stated = gb.GuardUCB(
        0.1, trial_budget=4.0, reward_ceiling=0.5, context_noise=0.0, bias_bound=0.01
    )
    assert agent._group.algorithm == stated
    assert agent._group.seed == 7
    assert agent.features == FEATURES
    assert agent._group.looked_at is not None
    fleet = gb.Fleet.from_file(tmp_path / "agent.toml", {"web": ["minutes"], "app": None})
    assert fleet._group.algorithm == stated
    assert len(fleet._group.tasks[0]) == 1
    assert fleet._group.looked_at is not None


@pytest.mark.parametrize(
    ("settings", "made"),
    [
        ({}, gb.GuardUCB()),
        ({"realised": ["chance", 0.1]}, gb.GuardUCB(realised=("chance", 0.1))),
        ({"algorithm": "guard-ucb-policy"}, gb.GuardUCB(mode="policy")),
        ({"algorithm": "disc-ucb", "gate": "none", "horizon": 500}, gb.DiscUCB(gate="none")),
    ],
)
def test_algorithms_are_named_and_have_their_own_settings(
    tmp_path: Path, settings: dict[str, Any], made: Any
) -> None:
    path = written(tmp_path, settings={"dim": 3, **settings}, features=None, columns={})
    agent = gb.Agent.from_file(path)
    assert agent._group.algorithm == made
    assert agent._group.horizon == settings.get("horizon")
    assert agent._group.dim == 3
    assert agent._group.looked_at is None


def test_a_person_may_change_it(tmp_path: Path) -> None:
    path = written(tmp_path, looked_at=looked())
    path.write_text(path.read_text().replace("alpha = 0.1", "alpha = 0.25  # agreed on Monday"))
    assert gb.Agent.from_file(path)._group.algorithm.alpha == 0.25


WRONG = {
    "no toml": ("[settings", "is not valid TOML"),
    "another file": ('format = "guardband features"\nversion = 1', "describes no agent"),
    "newer": ('format = "guardband agent"\nversion = 2', "format version 2.*upgrade"),
    "no version": ('format = "guardband agent"', "format version None"),
    "a part": ('format = "guardband agent"\nversion = 1\n[setings]', "'settings'"),
    "no table": ('format = "guardband agent"\nversion = 1\nsettings = 3', "must be a table"),
    "a setting": (
        'format = "guardband agent"\nversion = 1\n[settings]\ndim = 2\nalfa = 1',
        "no setting 'alfa'.*'alpha'",
    ),
    "a value": (
        'format = "guardband agent"\nversion = 1\n[settings]\ndim = 2\nalpha = 1.5',
        "alpha must lie in",
    ),
    "a text": (
        'format = "guardband agent"\nversion = 1\n[settings]\ndim = 2\nalpha = "small"',
        "alpha",
    ),
    "an algorithm": (
        'format = "guardband agent"\nversion = 1\n[settings]\ndim = 2\nalgorithm = "guard"',
        "guard-ucb",
    ),
    "no features": ('format = "guardband agent"\nversion = 1\n[settings]', "either .* dim"),
    "features": (
        'format = "guardband agent"\nversion = 1\n[settings]\n[features]\nnumbers = []',
        "describe features",
    ),
    "a path": (
        'format = "guardband agent"\nversion = 1\n[settings]\ndim = 2\n[looked_at]\n'
        'file = "../x.npz"\nsha256 = "0"',
        "a file beside it",
    ),
    "no name": (
        'format = "guardband agent"\nversion = 1\n[settings]\ndim = 2\n[looked_at]\n'
        'file = ""\nsha256 = "0"',
        "a file beside it",
    ),
    "an odd name": (
        'format = "guardband agent"\nversion = 1\n[settings]\ndim = 2\n[looked_at]\n'
        'file = "a\\u0000b"\nsha256 = "0"',
        "a file beside it",
    ),
    "depth": ("a = " + "[" * 5000 + "]" * 5000, "nested too deep"),
    "a column": (
        'format = "guardband agent"\nversion = 1\n[settings]\ndim = 2\n[columns]\nreward = 3',
        "columns.reward must be names of columns, not 3",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_does_not_fit_is_refused_by_name(tmp_path: Path, what: str) -> None:
    text, message = WRONG[what]
    path = tmp_path / "agent.toml"
    path.write_text(text + "\n")
    with pytest.raises(gb.InvalidValueError, match=message) as caught:
        gb.Agent.from_file(path)
    assert str(path) in str(caught.value)


def test_rows_that_were_looked_at_must_be_there_and_the_same(tmp_path: Path) -> None:
    path = written(tmp_path, looked_at=looked())
    beside = tmp_path / "agent.looked-at.npz"
    raw = beside.read_bytes()
    beside.write_bytes(raw[:-1])
    with pytest.raises(gb.InvalidValueError, match="SHA-256 differs"):
        gb.Agent.from_file(path)
    beside.unlink()
    with pytest.raises(gb.InvalidValueError, match=r"cannot be read .*Copy both files"):
        gb.Agent.from_file(path)
    with pytest.raises(FileNotFoundError, match="guardband study"):
        gb.Agent.from_file(tmp_path / "none.toml")


def test_more_features_than_agents_can_have_are_refused() -> None:
    with pytest.raises(gb.InvalidValueError, match="dim must be at most 10,000, not 100,000,000"):
        gb.Agent(dim=10**8)


def test_texts_that_no_file_can_hold_are_refused(tmp_path: Path) -> None:
    features = gb.Features(categories={"item": ["a", "\ud800"]})
    with pytest.raises(gb.InvalidValueError, match="lone surrogate"):
        written(tmp_path, features=features, looked_at=looked())
    assert not list(tmp_path.iterdir())


def test_files_that_no_agent_can_have_are_not_written(tmp_path: Path) -> None:
    for settings, message in (({"alfa": 1}, "no setting 'alfa'"), ({"dim": 3}, "either")):
        with pytest.raises(gb.InvalidValueError, match=message):
            written(tmp_path, settings=settings)
    assert not list(tmp_path.iterdir())
