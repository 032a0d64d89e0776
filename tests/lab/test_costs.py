"""What runs cost, in words and in numbers, and what outcomes count."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from lab.handmade import result

import guardband as gb
from guardband.cli.verdicts import duration
from guardband.lab.costs import agent_rounds, authors_code
from guardband.lab.panel import Claim, Run, RunOptions
from guardband.lab.panel_result import PanelResult
from guardband.lab.panels import PANELS
from guardband.lab.runs import trials_of
from guardband.sim.costs import seconds_of
from guardband.sim.trial import run_trial


def test_times_are_told_in_words() -> None:
    told = [duration(seconds) for seconds in (0.04, 3.0, 75.0, 150.0, 9_000.0, 3e6)]
    assert told == ["0.0 s", "3.0 s", "75 s", "2 min", "2 h", "35 days"]


def test_what_the_authors_code_would_need() -> None:
    """By hand: 1,000 rounds, of which a tenth is optimistic, and 1,000 that all are.

    What their notebooks do not have, they need no time for.
    """
    results = [
        result("a", rounds=1_000, name="disc-ucb", conservative=[900.0]),
        result("b", rounds=1_000, name="dis-lin-ucb", conservative=[0.0]),
        result("c", rounds=1_000, name="guard-ucb", conservative=[0.0]),
    ]
    decisions, seconds = authors_code(results)
    each = decisions / 2
    assert seconds == pytest.approx(each * (0.9 * 0.25e-3 + 0.1 * 92e-3 + 92e-3))
    assert decisions == sum(agent_rounds(one.run) for one in results[:2])


def test_more_of_anything_costs_more() -> None:
    algorithm = gb.GuardUCB(alpha=0.1)
    small = seconds_of(gb.problem("movielens"), algorithm, 1_000)
    assert seconds_of(gb.problem("movielens"), algorithm, 2_000) > small
    assert seconds_of(gb.problem("movielens", agents=5), algorithm, 1_000) > small
    assert seconds_of(gb.problem("movielens", actions=60), algorithm, 1_000) > small
    assert seconds_of(gb.problem("movielens", nature="fresh"), algorithm, 1_000) > small
    assert seconds_of(gb.problem("movielens"), gb.algorithms.Baseline(), 1_000) < small


@pytest.mark.slow
@pytest.mark.parametrize("name", ["synthetic-a", "movielens", "forecast"])
def test_estimates_are_of_the_right_size(name: str) -> None:
    """Within a factor of three where they were measured; of six here, on a machine that is busy."""
    for algorithm in (gb.GuardUCB(alpha=0.1), gb.DisLinUCB(), gb.algorithms.LinUCB()):
        problem = gb.problem(name)
        run = Run(label="x", problem=problem, algorithm=algorithm, rounds=30_000, trials=1)
        (trial,) = trials_of(run)
        run_trial(replace(trial, rounds=2), lambda _: None)
        measured = min(run_trial(trial, lambda _: None)[0].seconds for _ in range(2))
        assert 1 / 6 < seconds_of(problem, algorithm, 30_000) / measured < 6


def test_outcomes_count_their_verdicts() -> None:
    claims = tuple(Claim(str(i), "", holds, "") for i, holds in enumerate([True, None, True]))
    claims += (Claim("3", "", True, "", vacuous=True),)
    outcome: Any = PanelResult(
        panel=PANELS["1a"],
        options=RunOptions(),
        results={},
        claims=claims,
        seconds=np.nan,
        agent_rounds=0,
    )
    assert outcome.verdicts() == {
        "holds": 2,
        "holds vacuously": 1,
        "does not hold": 0,
        "inconclusive": 1,
    }
    told = outcome.as_json()["claims"]
    assert [(claim["holds"], claim["vacuous"]) for claim in told] == [
        (True, False),
        (None, False),
        (True, False),
        (True, True),
    ]
