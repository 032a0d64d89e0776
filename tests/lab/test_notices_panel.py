"""The panel of monitors: its verdicts on results made by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from lab.handmade import result, smoke

from guardband.lab.panels.notices import CASES, PANEL, alarmed, first_alarms

ROUNDS = 4_000
AGENTS = {"odd-task": 3, "liar": 4}
NEVER = np.nan


def made(noticed=None, below=None):
    """Return all runs: first alarms by problem, plays below the floor by problem and who."""
    noticed, below, runs = noticed or {}, below or {}, {}
    for name in CASES:
        for who in ("watched", "not watched"):
            agents, label = AGENTS.get(name, 1), f"{name}, {who}"
            low = np.broadcast_to(below.get((name, who), 0.0), (4, agents))
            one = result(label, rounds=ROUNDS, agents=agents, violations_realised=low)
            rounds = np.nan_to_num(np.array(noticed.get(name, [NEVER] * 4), float))
            if who == "not watched":
                rounds = np.zeros(4)
            # Of several tasks the last notices; the others never do.
            one.series.totals["noticed"] = np.zeros((4, agents))
            one.series.totals["noticed"][:, -1] = rounds
            runs[label] = one
    return runs


def verdict(ending, **given):
    (claim,) = [
        each for each in PANEL.claims(smoke(), made(**given)) if each.id == f"notices-{ending}"
    ]
    return claim


def test_the_first_alarm_is_that_of_any_task():
    runs = made(noticed={"odd-task": [50, 60, NEVER, 70]})
    odd = runs["odd-task, watched"]
    odd.series.totals["noticed"][1, 0] = 40.0
    np.testing.assert_array_equal(first_alarms(odd), [50.0, 40.0, np.nan, 70.0])
    assert alarmed(odd) == 0.75
    assert alarmed(runs["odd-task, not watched"]) == 0.0


@pytest.mark.parametrize(
    ("name", "rounds", "holds"),
    [
        ("drift-abrupt", [2_100, 2_150, 2_150, 3_900], True),  # the median, after round 2,000
        ("drift-abrupt", [2_150, 2_150, 2_152, NEVER], False),
        ("drift-abrupt", [2_001, NEVER, NEVER, NEVER], False),
        ("misfit", [400, 500, 500, NEVER], True),
        ("misfit", [400, 500, 502, NEVER], False),
    ],
)
def test_soon_is_the_median_of_all_trials(name, rounds, holds):
    claim = verdict(f"{name}-soon", noticed={name: rounds})
    assert claim.holds is holds
    assert f"{100 * np.isfinite(rounds).mean():.0f} % of the trials" in claim.detail


def test_a_shortened_run_cannot_show_how_soon():
    runs = made(noticed={"misfit": [10] * 4})
    short = runs["misfit, watched"]
    runs["misfit, watched"] = replace(short, run=replace(short.run, horizon=10 * ROUNDS))
    (claim,) = [each for each in PANEL.claims(smoke(), runs) if each.id == "notices-misfit-soon"]
    assert claim.holds is None


@pytest.mark.parametrize(("below", "holds"), [(5.0, True), (5.01, False)])
def test_few_is_five_plays_on_average(below, holds):
    spread = below + np.array([[-3.0], [3.0], [-1.0], [1.0]])
    claim = verdict("few", below={("drift-abrupt", "watched"): spread})
    assert claim.holds is holds


@pytest.mark.parametrize(
    ("watched", "unwatched", "holds"),
    [
        ([1, 2, 1, 2], [9, 8, 9, 8], True),
        ([9, 8, 9, 8], [1, 2, 1, 2], False),
        ([0, 9, 0, 9], [9, 1, 9, 1], None),  # 0.5 fewer, with an error of 4.9
        ([3, 3, 3, 3], [3, 3, 3, 3], None),
    ],
)
@pytest.mark.parametrize("name", ["drift-abrupt", "odd-task", "misfit"])
def test_fewer_is_by_two_standard_errors(name, watched, unwatched, holds):
    below = {
        (name, who): np.array(rows, float)[:, None]
        for who, rows in (("watched", watched), ("not watched", unwatched))
    }
    assert verdict(f"{name}-fewer", below=below).holds is holds


@pytest.mark.parametrize(
    ("watched", "holds"), [([0, 0, 1, 99], True), ([0, 1, 1, 0], False), ([0, 0, 0, 0], True)]
)
def test_what_the_liar_itself_plays_is_not_held_against_monitors(watched, holds):
    rows = {"watched": np.array(watched, float), "not watched": np.array([0, 1, 0, 0], float)}
    assert verdict("liar-honest", below={("liar", w): r for w, r in rows.items()}).holds is holds
