"""The examples run, and earn what they say."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient

import guardband as gb
from guardband import data

EXAMPLES = Path(__file__).parents[1] / "examples"


def loaded(path: str) -> ModuleType:
    """Return an example as a module."""
    file = EXAMPLES / path
    spec = importlib.util.spec_from_file_location(f"example_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_every_example_is_listed() -> None:
    text = (EXAMPLES / "README.md").read_text()
    for path in EXAMPLES.glob("*/*"):
        if path.suffix in (".py", ".ipynb"):
            assert f"]({path.relative_to(EXAMPLES)})" in text, path


def test_the_recommender_earns_more_than_the_most_popular_film() -> None:
    recommender = loaded("recommender/recommender.py")
    found = recommender.run(recommender.made_up_ratings(0), rounds=300)
    assert found["rows"] > 3000
    assert found["gain"] > 0.09
    assert found["learned"] > 0.3
    assert found["agent"].rounds == 300


def test_made_up_tastes_come_out_of_their_ratings() -> None:
    recommender = loaded("recommender/recommender.py")
    ratings = recommender.made_up_ratings(1)
    assert set(ratings["stars"]) == {1, 2, 3, 4, 5}
    tastes = recommender.fit(ratings[::2], ratings["user"].max() + 1, ratings["film"].max() + 1)
    left = ratings[1::2]
    predicted = tastes.describe(left)["predicted"].to_numpy()
    stars = left["stars"].to_numpy()
    means = tastes.film_mean[left["film"]]
    assert ((predicted - stars) ** 2).mean() < 0.98 * ((means - stars) ** 2).mean()


@pytest.mark.slow
@pytest.mark.skipif(data.find("movielens") is None, reason="the raw ratings are not here")
@pytest.mark.parametrize("seed", [0, 1])
def test_on_real_ratings_the_first_thousand_rounds_earn_nine_percent_more(seed: int) -> None:
    recommender = loaded("recommender/recommender.py")
    assert recommender.run(recommender.read_ratings(), 1000, seed)["gain"] >= 0.09


def test_without_the_ratings_it_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GUARDBAND_DATA", str(tmp_path))
    with pytest.raises(SystemExit, match="guardband data fetch movielens"):
        loaded("recommender/recommender.py").read_ratings()


@pytest.mark.slow
def test_from_logs_of_clicks_to_an_agent(tmp_path: Path) -> None:
    clicks = loaded("clicks/clicks.py")
    found = clicks.run(tmp_path, visits=20_000, rounds=1_000)
    assert found["learned"] > 0.3
    assert found["gain"] > 0.5
    assert (tmp_path / "study.html").is_file()
    logs = clicks.old_logs(20_000, np.random.default_rng(0))
    agent = gb.Agent.from_file(tmp_path / "agent.toml")
    with pytest.raises(gb.InvalidValueError, match="row 0, with id 'v0', was looked at"):
        agent.learn(logs, logs["clicked"], ids=logs["visit"])


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*/*.ipynb")), ids=lambda file: file.stem)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Jupyter's own
def test_notebooks_run(file: Path, tmp_path: Path) -> None:
    notebook: Any = nbformat.read(file, as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells)  # they are made by running
    here: Any = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=300, resources=here).execute()
    shown = [out for cell in notebook.cells for out in cell.get("outputs", [])]
    tables = [out["data"].get("text/html", "") for out in shown if "data" in out]
    assert sum("Decision agent-" in table for table in tables) == 2
    assert any("Fleet of 2 tasks" in table for table in tables)
    assert any("over the baseline" in out.get("text", "") for out in shown)
