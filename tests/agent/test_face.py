"""The constructors of agents and fleets: every setting by name, with its type."""

from __future__ import annotations

import inspect
from typing import Any, get_type_hints

import numpy as np
import pytest

import guardband as gb

SETTINGS = {
    "features": None,
    "alpha": None,
    "algorithm": None,
    "mode": None,
    "on_refuted": None,
    "trial_budget": None,
    "max_loss": None,
    "budget": None,
    "holdback": None,
    "on_alarm": None,
    "delta_alarm": None,
    "window": None,
    "drift": None,
    "noise": None,
    "reward_ceiling": None,
    "context_noise": None,
    "theta_bound": None,
    "feature_bound": None,
    "ridge": None,
    "delta": None,
    "horizon": None,
    "reward_floor": None,
    "seed": 0,
}
MENU = np.array([[0.5, 0.2, 0.1], [0.1, 0.6, 0.2]])


@pytest.mark.parametrize(("kind", "first"), [(gb.Agent, ["dim"]), (gb.Fleet, ["tasks", "dim"])])
def test_every_setting_is_in_the_signature_with_its_type(kind: Any, first: list[str]) -> None:
    found = inspect.signature(kind).parameters
    own = {"tolerate"} if kind is gb.Fleet else set()  # one task alone has no others
    assert [name for name in found if name not in own] == [*first, *SETTINGS]
    assert own <= set(found)
    for name in first:
        assert found[name].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
        assert found[name].default is (None if name == "dim" else inspect.Parameter.empty)
    for name, default in SETTINGS.items():
        assert found[name].kind is inspect.Parameter.KEYWORD_ONLY
        assert found[name].default == default
    hints = get_type_hints(kind.__init__)
    assert all(hints[name] is not Any for name in found)
    assert "__new__" not in vars(kind)


def test_algorithms_are_given_by_name_or_as_objects() -> None:
    for named, made in (
        ("guard-ucb", gb.GuardUCB(0.3, noise=0.2, delta=0.01)),
        ("guard-ucb-policy", gb.GuardUCB(0.3, noise=0.2, delta=0.01, mode="policy")),
        ("disc-ucb", gb.DiscUCB(0.3, noise=0.2, delta=0.01)),
    ):
        by_name = gb.Agent(3, algorithm=named, alpha=0.3, noise=0.2, delta=0.01, seed=2)
        as_object = gb.Agent(3, algorithm=made, seed=2)
        assert repr(by_name) == repr(as_object)
        for _ in range(5):
            one, other = by_name.decide(MENU, 0, 0.4), as_object.decide(MENU, 0, 0.4)
            assert one[:12] == other[:12]
            by_name.observe(one, 0.5)
            as_object.observe(other, 0.5)
    with pytest.raises(ValueError, match=r"Did you mean 'guard-ucb'"):
        gb.Agent(3, algorithm="guard-ubc")


def test_none_is_the_algorithms_own_value() -> None:
    plain = gb.Agent(3)
    said = gb.Agent(3, algorithm=gb.GuardUCB(), alpha=0.1, mode="strict", noise=None)
    assert plain.decide(MENU, 0)[:12] == said.decide(MENU, 0)[:12]


def test_modes_are_settings_of_agents() -> None:
    agent = gb.Agent(3, mode="policy", alpha=0.3)
    assert "guard-ucb-policy" in repr(agent)
    assert "guard-ucb-policy" in repr(gb.Fleet({"a": [0, 1]}, 3, mode="policy"))


def test_a_batch_of_rewards_is_learned_like_single_ones() -> None:
    many, single = gb.Agent(3, noise=0.1), gb.Agent(3, noise=0.1)
    made = [many.decide(MENU, 0) for _ in range(4)]
    for _ in made:
        single.decide(MENU, 0)
    many.observe_many([made[2], made[0].id], [0.4, 0.6])
    single.observe("agent-3", 0.4)
    single.observe("agent-1", 0.6)
    np.testing.assert_array_equal(many.theta, single.theta)
    assert many.pending == 2


def test_a_batch_with_an_error_changes_nothing() -> None:
    agent = gb.Agent(3, noise=0.1)
    made = [agent.decide(MENU, 0) for _ in range(3)]
    agent.observe(made[0], 0.5)
    before = agent.theta
    for decisions, rewards, error, words in (
        (made[1:], [0.5], ValueError, "2 decisions and 1 rewards"),
        ([made[1], made[1]], [0.5, 0.5], ValueError, "'agent-2' is in the batch twice"),
        (made[1:], [0.5, float("nan")], ValueError, "finite"),
        (made[:2], [0.5, 0.5], gb.UnknownDecisionError, "'agent-1' was observed"),
        ([made[1], "agent-9"], [0.5, 0.5], gb.UnknownDecisionError, "no decision of task"),
    ):
        with pytest.raises(error, match=words):
            agent.observe_many(decisions, rewards)
        np.testing.assert_array_equal(agent.theta, before)
        assert agent.pending == 2


@pytest.mark.usefixtures("live_system")
def test_errors_share_a_base() -> None:
    for make in (
        lambda: gb.Agent(0),
        lambda: gb.Agent(3, noise="loud"),  # type: ignore[arg-type]
        lambda: gb.GuardUCB(alpha=7),
        lambda: gb.Agent(3).observe("agent-1", 0.5),
        lambda: gb.Agent(3).decide(MENU, 9),
        lambda: gb.Agent(3, algorithm=3),  # type: ignore[arg-type]
        lambda: gb.Agent(3, algorithm=gb.GuardUCB),  # type: ignore[arg-type]
        lambda: gb.Fleet({"a": [0]}, 3)["b"],
        lambda: gb.SpaceSettings(features=["a"], agents=1, alpha=7),
        lambda: gb.SpaceSettings(features=["a"], agents=1).changed(alpha=7),
    ):
        with pytest.raises(gb.InputError):
            make()
    for name in gb.__all__:
        thing = getattr(gb, name)
        if inspect.isclass(thing) and issubclass(thing, Exception):
            assert issubclass(thing, gb.GuardbandError | Warning), name
