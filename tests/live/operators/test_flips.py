"""Flipped bits and torn pages by chance: each is harmless or noticed, and none is silent."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from bench.flips import RESULTS, TARGETS, page, run


@pytest.mark.parametrize("trials", [50, pytest.param(2_000, marks=pytest.mark.slow)])
def test_no_damage_is_silent(tmp_path: Path, trials: int) -> None:
    done = run(trials, tmp_path)
    found = Counter(each.result for each in done)
    assert found["silent"] == 0
    assert set(found) <= set(RESULTS)
    assert {each.target for each in done} == set(TARGETS)
    assert sum(each.goes_on for each in done) >= trials // 20
    # A backup is needed only where a store has lost its first page, or its spaces.
    assert {each.target for each in done if each.result == "person"} <= {"store"}
    assert f"| all | {' | '.join(f'{found[result]:,}' for result in RESULTS)} |" in page(
        done, "abc"
    )
