"""T2: the protocol under duplicates, loss, reordering, crashes, power loss, snapshots, clones,
restored coordinators, pauses and retractions, all at once; the invariants are named I1 to I7."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.cache import LRUCache
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants
from hypothesis.stateful import run_state_machine_as_test
from live.protocol.machine import Machine

QUIET = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


@pytest.fixture(autouse=True)
def the_same_runs_whatever_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hypothesis would draw numbers that occur in modules, whichever tests before have loaded."""
    nothing = Constants()
    monkeypatch.setattr(providers, "_get_local_constants", lambda: nothing)
    monkeypatch.setattr(providers, "CONSTANTS_CACHE", LRUCache(1024))


def test_I1_to_I7_hold_under_all_faults_at_once():
    quick = settings(max_examples=60, stateful_step_count=40, suppress_health_check=QUIET)
    run_state_machine_as_test(Machine, settings=quick)


@pytest.mark.slow
def test_I1_to_I7_hold_in_many_runs():
    many = settings(max_examples=2500, stateful_step_count=60, suppress_health_check=QUIET)
    run_state_machine_as_test(Machine, settings=many)
