"""T3m: the simulation finds every seeded bug. A mutant that lives shows what it cannot see."""

from __future__ import annotations

import pytest
from live.simulation.mutants import MUTANTS
from live.simulation.simulation import simulate

PROMISES = ("acknowledged lost", "counted twice", "silent change", "no agreement")
EVENTS = 8_000
# A bit that flips where it matters is rare: first the worlds in which it did.
SEEDS = (33, 50, 2261, *range(1, 80))
# Found within a few thousand events; the others are hunted in the slow tests.
EASY = ("sent_before_it_is_safe", "own_entry_ignored", "head_is_saved_now_and_then")


def hunt(name: str, patch: pytest.MonkeyPatch) -> None:
    MUTANTS[name](patch)
    for seed in SEEDS:
        found = simulate(seed, EVENTS).failure
        if found is not None and any(promise in found for promise in PROMISES):
            return
    pytest.fail(f"{name} lives")


@pytest.mark.parametrize("name", EASY)
def test_T3_finds_the_bug_at_once(name, monkeypatch):
    hunt(name, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(MUTANTS) - set(EASY)))
def test_T3_finds_the_bug(name, monkeypatch):
    hunt(name, monkeypatch)
