"""T2m: the model finds every seeded bug. A mutant that lives shows what the model cannot see."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from live.protocol.mutants_of_departures import MUTANTS  # and all others

HUNT = settings(
    max_examples=3000,
    stateful_step_count=60,
    phases=[Phase.generate],
    database=None,
    suppress_health_check=list(HealthCheck),
)
# Found within a few runs; the others are hunted in the slow tests.
EASY = ("no_version_check", "late_stream_uses_newest", "w_without_u", "own_entry_ignored")
EASY += ("nothing_is_forgotten",)


def hunt(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = MUTANTS[name](monkeypatch)
    with pytest.raises(AssertionError):
        run_state_machine_as_test(machine, settings=HUNT)


@pytest.mark.parametrize("name", EASY)
def test_T2_finds_the_bug_at_once(name, monkeypatch):
    hunt(name, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(MUTANTS) - set(EASY)))
def test_T2_finds_the_bug(name, monkeypatch):
    hunt(name, monkeypatch)
