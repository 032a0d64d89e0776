"""Settings named "-tuned" are those that docs/tuning.csv records as chosen."""

from __future__ import annotations

from ast import literal_eval
from pathlib import Path

import pandas as pd
import pytest

from bench.tune import GRID, SEED, best
from guardband.algorithms import ALGORITHMS
from guardband.lab import RunOptions

RECORD = pd.read_csv(Path(__file__).parents[2] / "docs" / "tuning.csv")


@pytest.mark.parametrize("rival", GRID)
def test_the_record_says_what_was_chosen(rival: str) -> None:
    here = RECORD[RECORD["rival"] == rival]
    assert set(here["settings"]) == {repr(preset) for preset in GRID[rival]}
    (chosen,) = set(here[here["chosen"]]["settings"])
    assert chosen == best(here)
    assert ALGORITHMS[f"{rival}-tuned"].preset == literal_eval(chosen)


def test_every_tuned_setting_is_in_the_record() -> None:
    listed = {name.removesuffix("-tuned") for name in ALGORITHMS if name.endswith("-tuned")}
    assert listed == set(GRID)


def test_the_comparison_uses_other_seeds() -> None:
    assert set(RECORD["seed"]) == {SEED}
    assert RunOptions().seed != SEED
