"""The sentence about what monitors noticed."""

from __future__ import annotations

from typing import Any

import guardband as gb
from guardband.report import verdict

GUARD = gb.GuardUCB(0.2, noise=0.1, context_noise=0.0)


def said(problem: Any, rounds: int, trials: int, guard: gb.GuardUCB = GUARD) -> list[str]:
    results = gb.simulate(problem, guard, rounds=rounds, trials=trials, progress=False)
    return [sentence for sentence in verdict(results) if "noticed" in sentence]


def test_the_report_says_what_was_noticed_when_and_what_it_cost() -> None:
    (sentence,) = said("drift-abrupt", 1_000, 4)
    assert sentence.startswith("guard-ucb noticed that the world is not as assumed in ")
    assert "of 4 trials, first in median round 5" in sentence  # the change is at 500
    assert "assumptions" in sentence or "certificates" in sentence
    assert "plays were below the floor until then, and 0 after" in sentence


def test_the_report_says_whose_plays_were_below_the_floor() -> None:
    """One that lies decides by its own lies, once it is apart; all others are above the floor."""
    (sentence,) = said(gb.problem("liar", since=200, fakes=1e4), 600, 3)
    assert "fit" in sentence
    assert sentence.endswith(" after, all of task 4.")


def test_nothing_is_said_where_nothing_was_noticed() -> None:
    assert said("drift-abrupt", 40, 2) == []
    unwatched = gb.GuardUCB(0.2, noise=0.1, context_noise=0.0, delta_alarm=None)
    assert said("drift-abrupt", 1_000, 2, unwatched) == []
