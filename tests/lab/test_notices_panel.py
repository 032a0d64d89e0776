"""The panel of monitors: its verdicts on results made by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from lab.handmade import result, smoke

from guardband.lab.panels.notices import (
    ALONE,
    CASES,
    NOTHING,
    PANEL,
    POOLED,
    OthersAlone,
    alarmed,
    first_alarms,
)
from guardband.problems import OddTask
from guardband.sim.trial import checkpoint_rounds

ROUNDS = 4_000
AGENTS = {"odd-task": 3, "liar": 4, NOTHING: 3}
NEVER = np.nan


def made(noticed=None, below=None, regret=None, curve=None):
    """Return all runs: first alarms by problem, plays below the floor by problem and who.

    `regret` by label; `curve` of the plays of odd-task's tasks below the floor, of their mean.
    """
    noticed, below, runs = noticed or {}, below or {}, {}
    regret = {"odd-task, watched": 5.0, ALONE: 9.0, POOLED: 4.0} | (regret or {})
    for name in (*CASES, NOTHING):
        for who in ("watched", "not watched"):
            agents, label = AGENTS.get(name, 1), f"{name}, {who}"
            low = np.broadcast_to(below.get((name, who), 0.0), (4, agents))
            lost = np.broadcast_to(regret.get(label, 10.0), (4, agents))
            drawn = {"violations_realised": curve} if curve is not None else None
            one = result(
                label,
                rounds=ROUNDS,
                agents=agents,
                curves=drawn if label == "odd-task, watched" else None,
                violations_realised=low,
                regret=lost,
            )
            rounds = np.nan_to_num(np.array(noticed.get(name, [NEVER] * 4), float))
            if who == "not watched":
                rounds = np.zeros(4)
            # Of several tasks the last notices; the others never do.
            one.series.totals["noticed"] = np.zeros((4, agents))
            one.series.totals["noticed"][:, -1] = rounds
            runs[label] = one
    for label in (ALONE, POOLED):
        lost = np.broadcast_to(regret[label], (4, 3))
        runs[label] = result(label, rounds=ROUNDS, agents=3, regret=lost)
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


def late_curve(before, after):
    """Return (4, P): so many plays below the floor up to round 100, and so many more after it."""
    rounds = checkpoint_rounds(ROUNDS)
    return np.where(rounds <= 100, before, before + np.array(after, float)[:, None])


@pytest.mark.parametrize(
    ("after", "holds"),
    [([0, 0, 0, 0], True), ([1, 0, 0, 0], True), ([2, 1, 1, 2], False)],
)
def test_late_plays_of_the_odd_task_are_those_after_round_100(after, holds):
    claim = verdict("odd-task-late", curve=late_curve(7.0, after))
    assert claim.holds is holds
    assert f"{3 * np.mean(after):g} of 11,700" in claim.detail  # curves are means of three tasks


@pytest.mark.parametrize(
    ("own", "holds"),
    [
        ([4.9, 4.8, 4.9, 4.8], True),  # alone 9, pooled 4: up to 5 keeps 80 %
        ([5.2, 5.1, 5.1, 5.2], False),
        ([4.0, 6.0, 4.0, 6.0], None),
    ],
)
def test_others_keep_four_fifths_of_the_gain(own, holds):
    rows = np.array(own)[:, None] + [0.0, 0.0, 99.0]  # the odd task's own regret does not count
    assert verdict("odd-task-kept", regret={"odd-task, watched": rows}).holds is holds


@pytest.mark.parametrize(("watched", "holds"), [(10.0, True), (10.4, True), (10.6, False)])
def test_monitors_cost_a_twentieth_at_most(watched, holds):
    assert verdict("cheap", regret={f"{NOTHING}, watched": watched}).holds is holds


def test_without_the_odd_task_all_others_have_the_same_menus_and_rewards():
    worlds = [kind().build(3) for kind in (OddTask, OthersAlone)]
    (plain,), (other,) = (list(world.chunks(50, 10**6)) for world in worlds)
    np.testing.assert_array_equal(plain.menu[:2], other.menu[:2])
    np.testing.assert_array_equal(plain.expected[:, :2], other.expected[:, :2])
    np.testing.assert_array_equal(plain.baseline, other.baseline)
    assert plain.menu[2].all()
    for nothing in (other.menu[2], other.truth[2], other.expected[:, 2], other.realised[:, 2]):
        assert not nothing.any()
