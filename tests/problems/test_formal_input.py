"""The formal model from functions: what it refuses, and how it says so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems.formal_functions import HEADS, TASKS, THETA, Lamps, actions, drifting, normal, phi

import guardband as gb
from guardband.problems import Formal


def test_bounds_that_are_exceeded_are_named() -> None:
    problem = Formal(phi, drifting, 3 * THETA, tasks=TASKS, actions=actions, feature_bound=0.2)
    with pytest.warns(gb.BoundWarning, match=r"feature_bound=0.2, but expected features reach"):
        gb.simulate(problem, "dis-lin-ucb", rounds=20)
    with pytest.warns(gb.BoundWarning, match=r"assumes rewards in \[0, 1\], but they reach from"):
        gb.simulate(problem, "guard-ucb", rounds=20)


GOOD: dict[str, Any] = {
    "feature_map": phi,
    "distributions": drifting,
    "theta": THETA,
    "tasks": TASKS,
    "actions": actions,
}


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"feature_map": HEADS}, TypeError, r"give a function .agent, action, context."),
        ({"theta": [1.0, np.nan]}, ValueError, r"theta\[1\] is nan"),
        ({"theta": THETA[:3], "tasks": None}, ValueError, "returned 5 features, but theta has 3"),
        ({"tasks": []}, ValueError, "tasks is empty"),
        ({"tasks": [[7]]}, ValueError, "names feature 7, but features are numbered 0 to 4"),
        ({"actions": []}, ValueError, "actions is empty: give at least one label"),
        ({"actions": "ab"}, TypeError, "actions is 'ab': give a list of labels"),
        ({"actions": [["a1"], ["a2"]]}, ValueError, "2 lists for 4 agents: give one per agent"),
        ({"actions": lambda m, t: []}, ValueError, "agent 0, round 1: actions is empty"),
        ({"distributions": []}, ValueError, "distributions ends with round 0, but round 1"),
        ({"distributions": "rain"}, TypeError, "distributions is 'rain': give a function"),
        ({"distributions": lambda t: [1, 2]}, TypeError, r"round 1 is \[1, 2\]: give a gb.Discr"),
        ({"distributions": normal}, ValueError, r"not affine in .*state samples=\.\.\., how many"),
        ({"distributions": Lamps(1)}, ValueError, r"known by its draws only: state samples=\.\.\."),
        ({"samples": 0}, ValueError, "samples must be at least 1, not 0"),
        ({"baseline": 3}, ValueError, "agent 0, round .: baseline is rank 3, .* only 2 actions"),
        ({"baseline": 0}, ValueError, "baseline must be at least 1, not 0"),
        ({"baseline": lambda m, t, psi: 99}, ValueError, "baseline returned 99; it must .* 0 to"),
        ({"baseline": lambda m, t, psi: None}, ValueError, "baseline returned None; it must"),
        ({"told": "nothing"}, ValueError, "told must be one of 'expected', 'realised'"),
        ({"reward_std": -1}, ValueError, "reward_std must be zero or a positive number"),
        ({"baseline_range": (0, 1)}, ValueError, r"\(0, 1\): give \(r_l, r_h\) with 0 < r_l"),
        ({"feature_bound": 0}, ValueError, "feature_bound must be a positive number"),
        (
            {"feature_map": lambda m, x, c: [np.inf] * 5},
            ValueError,
            r"agent 0, round 1: feature_map\(actions\[0\], contexts\[0\]\)\[0\] is inf",
        ),
    ],
)
def test_bad_input_is_named_with_a_remedy(
    settings: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words) as caught:
        gb.simulate(Formal(**{**GOOD, **settings}), gb.DisLinUCB(), rounds=3)
    assert isinstance(caught.value, gb.InputError)


def test_mistakes_in_later_rounds_say_where() -> None:
    def falls_silent(t: int) -> Any:
        return drifting(t) if t < 5 else normal(t)

    with pytest.raises(ValueError, match=r"round 5 is a Gaussian, that of round 1 is not of its"):
        gb.simulate(Formal(**{**GOOD, "distributions": falls_silent}), gb.DisLinUCB(), rounds=9)
    short = Formal(**{**GOOD, "distributions": [drifting(t) for t in range(1, 8)]})
    with pytest.raises(ValueError, match=r"ends with round 7, but round 8 is to be played"):
        gb.simulate(short, gb.DisLinUCB(), rounds=9)

    def broken(agent: int, action: str, context: Any) -> Any:
        raise ZeroDivisionError("by zero")

    with pytest.raises(ZeroDivisionError) as caught:
        Formal(**{**GOOD, "feature_map": broken})
    assert "agent 0, round 1" in caught.value.__notes__[0]


def test_replays_name_contexts_that_are_possible() -> None:
    replay = gb.Replay(np.full(4, 9), np.zeros((4, 4)), np.zeros(4), np.zeros((4, 5)))
    with pytest.raises(ValueError, match=r"replay.contexts\[0\] is 9, but round 1 has 3 contexts"):
        gb.simulate(Formal(**GOOD), gb.DisLinUCB(), replay=replay)


def test_tables_can_tell_the_expected_reward() -> None:
    rng = np.random.default_rng(0)
    phi, psi = rng.uniform(0, 1, (2, 3, 4, 2))
    for told, table in (("realised", phi), ("expected", psi)):
        world = gb.Tabular(phi, psi, [0.6, 0.4], baseline=2, told=told).build(0)
        rows = world.baseline[0]
        assert_allclose(world.baseline_rewards[:, 0], table[range(3), rows] @ [0.6, 0.4])
        assert world.facts(9).reward_high == world.baseline_rewards.max()
    with pytest.raises(ValueError, match="told must be one of 'expected', 'realised', not 'both'"):
        gb.Tabular(phi, psi, [0.6, 0.4], told="both")
    assert gb.Tabular(phi, psi, [0.6, 0.4]).build(0).told == "realised"
    with pytest.raises(TypeError, match=r"tasks must be a list or a tuple, not {\(0,\)}"):
        gb.Tabular(phi, psi, [0.6, 0.4], tasks={(0,)})


def test_environments_have_one_table_for_all() -> None:
    envs = pytest.importorskip("guardband.envs")
    with pytest.raises(ValueError, match=r"formal has actions and features of its own for each"):
        envs.FleetEnv(Formal(**GOOD), rounds=3, alpha=0.1)
