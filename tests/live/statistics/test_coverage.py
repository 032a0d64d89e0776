"""T12: the truth is in the confidence sets, and what is learned is safe, whatever goes wrong.

I12: theta* in B in at least 1 - delta - 3 standard errors of the runs.
"""

from __future__ import annotations

import math

import pytest
from live.statistics.crowd import DELTA, Case, Crowd

RUNS = 100
ALLOWED = DELTA + 3.0 * math.sqrt(DELTA * (1.0 - DELTA) / RUNS)
CASES = {
    "none": Case(),
    "stale": Case(answers=0.3),
    "random loss": Case(loss=0.2),
    "outage": Case(outage=(0.3, 0.8)),
    "late": Case(late=True),
    "retract": Case(retract=0.5),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_i12_the_truth_is_in_the_set(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    crowds = [Crowd(CASES[name], seed) for seed in range(RUNS)]
    for crowd in crowds:
        crowd.run()
    outside = sum(crowd.worst > 1.0 for crowd in crowds) / RUNS
    unsafe = sum(crowd.unsafe > 0 for crowd in crowds) / RUNS
    middle = sorted(crowd.worst for crowd in crowds)[RUNS // 2]
    learned = sum(crowd.learned for crowd in crowds) / RUNS
    epochs = sum(crowd.epochs for crowd in crowds) / RUNS
    with capsys.disabled():
        print(
            f"\n{name}: outside {outside:.2f} (median distance {middle:.2f}), unsafe {unsafe:.2f}; "
            f"{learned:.0f} learned decisions, {epochs:.1f} epochs a run"
        )
    assert outside <= ALLOWED
    assert unsafe <= ALLOWED
    assert learned > 50  # it was not just the baseline
    assert epochs >= 3
