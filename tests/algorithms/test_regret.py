"""Where theory promises sublinear regret, it is: on a problem that meets its assumptions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from algorithms.test_contract import told

import guardband as gb
from guardband.algorithms import ALGORITHMS
from guardband.problems import SyntheticB

ROUNDS = 20_000

# Too careful to have left the baseline by then, at least in some contexts; not a matter of regret:
# the unknown baseline's gate is far away, gap gates are told a negative lead in contexts whose
# optimum is below the largest baseline reward of all contexts, and C-SquareCB's slack of 16 takes
# longer to save for.
STILL_CONSERVATIVE = {
    "disc-ucb-unknown",
    "disc-ucb-gap-oracle",
    "disc-ucb-unknown-gap-oracle",
    "sclts-gap-oracle",
    "scl-ucb-gap-oracle",
    "c-square-cb",
}
NO_THEORY = ("-authors", "-tuned")
YARDSTICKS = {"baseline", "oracle"}


def entrants() -> dict[str, Any]:
    given = {**SyntheticB().assumptions(), "constant": "tight"}
    made = {
        name: told(entry.make(), given)
        for name, entry in ALGORITHMS.items()
        if name not in YARDSTICKS and not name.endswith(NO_THEORY)
    }
    made["dis-lsb"] = gb.algorithms.DisLSB(pulls=None, noise=0.1, constant="tight")
    made["dis-lsb B"] = gb.algorithms.DisLSB(pulls=None, noise=0.1, constant="tight", option="B")
    made["cl-ucb unknown"] = told(gb.algorithms.CLUCB(known_baseline=False), given)
    for rival in (gb.DisLinUCB(), gb.algorithms.LinUCB(), gb.algorithms.FedLinUCB()):
        guarded = gb.algorithms.Guarded(told(rival, given), 0.25)
        made[guarded.name] = guarded
    return made


@pytest.mark.slow
def test_regret_is_sublinear() -> None:
    problem, made = SyntheticB(nature="fresh", reward_std=0.1), entrants()
    results = gb.simulate(problem, list(made.values()), rounds=2 * ROUNDS, trials=4, alpha=0.25)
    half = int(np.searchsorted(results.rounds, ROUNDS))
    linear, stuck = {}, set()
    for name, series in zip(made, results.series, strict=True):
        regret = series.curves["regret_expected"].mean(axis=(0, 2))
        safe = series.curves["conservative"].mean(axis=(0, 2))
        if safe[half] > 0.5 * ROUNDS:
            stuck.add(name)
        elif not regret[-1] < 1.8 * regret[half]:
            linear[name] = regret[-1] / regret[half]
    assert not linear
    assert stuck == STILL_CONSERVATIVE
