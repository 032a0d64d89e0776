"""What agents notice, and what they do about it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import guardband as gb
from guardband.kernels.monitors import Note

STATED: dict[str, Any] = {"alpha": 0.2, "noise": 0.1, "context_noise": 0.0}
FIRST, SECOND = np.array([0.9, 0.1, 0.3]), np.array([0.1, 0.9, 0.3])


def menu_of(rng: np.random.Generator) -> np.ndarray:
    return np.abs(rng.standard_normal((6, 3))) * 0.25


def play(agent: gb.Agent, rng: np.random.Generator, theta: np.ndarray, rounds: int) -> gb.Decision:
    for _ in range(rounds):
        menu = menu_of(rng)
        menu *= np.minimum(1.0, 1.0 / np.linalg.norm(menu, axis=1))[:, None]
        decision = agent.decide(menu, baseline=int(np.argsort(menu @ theta)[3]))
        agent.observe(decision, menu[decision.action] @ theta + 0.1 * rng.standard_normal())
    return decision


def drifted(**settings: Any) -> tuple[gb.Agent, gb.Decision, np.random.Generator]:
    """Return an agent whose world has turned round, after it has noticed."""
    agent, rng = gb.Agent(dim=3, **{**STATED, **settings}), np.random.default_rng(2)
    play(agent, rng, FIRST, 300)
    assert agent.health == gb.Health(True, (), ("assumptions", "certificates"))
    for _ in range(40):
        decision = play(agent, rng, SECOND, 10)
        if not agent.health.ok:
            return agent, decision, rng
    raise AssertionError("nothing was noticed in 400 rounds")


def test_a_restart_forgets_and_learns_anew() -> None:
    agent, decision, rng = drifted()
    (alarm,) = agent.health.alarms
    assert alarm.kind in ("assumptions", "certificates")
    assert 300 < alarm.round <= 700
    assert alarm.evidence > np.log(2 * 3 / 1e-3)
    assert "an alarm was raised" in decision.reason
    assert "Something was noticed" in str(agent.health)
    assert np.linalg.norm(agent.theta - SECOND) < np.linalg.norm(agent.theta - FIRST)
    play(agent, rng, SECOND, 400)
    assert np.linalg.norm(agent.theta - SECOND) < 0.2
    assert len(agent.health.alarms) == 1
    agent.resume()
    assert agent.health.ok
    assert agent.health.alarms == (alarm,)
    assert "alarm" not in play(agent, rng, SECOND, 1).reason


def test_the_baseline_is_kept_until_a_person_resumes() -> None:
    agent, _, rng = drifted(on_alarm="baseline")
    for _ in range(100):
        decision = play(agent, rng, SECOND, 1)
        assert (decision.kind, decision.promise) == ("baseline", "baseline")
    assert "agent.resume() ends it" in decision.reason
    agent.resume()
    play(agent, rng, SECOND, 200)
    assert play(agent, rng, SECOND, 1).kind == "learned"


def test_a_warning_changes_nothing() -> None:
    agents = [gb.Agent(dim=3, algorithm=gb.GuardUCB(**STATED, **told)) for told in WARNED]
    for agent in agents:
        rng = np.random.default_rng(2)
        play(agent, rng, FIRST, 300)
        play(agent, rng, SECOND, 400)
    warned, unwatched = agents
    np.testing.assert_array_equal(warned.theta, unwatched.theta)
    assert not warned.health.ok
    kinds = [alarm.kind for alarm in warned.health.alarms]
    assert len(set(kinds)) == len(kinds)  # each kind once
    assert unwatched.health == gb.Health(True, (), ())
    assert str(unwatched.health) == "Nothing is watched."


WARNED: tuple[dict[str, Any], ...] = ({"on_alarm": "warn"}, {"delta_alarm": None})


def test_decisions_are_the_same_until_an_alarm() -> None:
    """Delta of the first start is what is stated: monitors only watch."""
    agents = [
        gb.Agent(dim=3, algorithm=gb.GuardUCB(**STATED, delta_alarm=level))
        for level in (1e-3, None)
    ]
    rngs = [np.random.default_rng(4), np.random.default_rng(4)]
    for _ in range(200):
        one, two = (play(a, r, FIRST, 1) for a, r in zip(agents, rngs, strict=True))
        assert one[:11] == two[:11]


def test_rewards_of_decisions_before_an_alarm_do_not_count() -> None:
    agent, rng = gb.Agent(dim=3, **STATED), np.random.default_rng(2)
    play(agent, rng, FIRST, 300)
    late = agent.decide(menu_of(rng), baseline=0)
    while agent.health.ok:
        play(agent, rng, SECOND, 1)
    before = agent.theta
    agent.observe(late, 0.9)
    np.testing.assert_array_equal(agent.theta, before)
    assert agent.pending == 0


def in_turns(fleet: gb.Fleet, thetas: dict[str, np.ndarray], rounds: int, seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        for name, theta in thetas.items():
            play(fleet[name], rng, theta, 1)


def apart(fleet: gb.Fleet) -> list[str]:
    return [name for m, name in enumerate(fleet) if fleet._group.states[m].watch[Note.APART] > 0]


def test_a_task_that_does_not_fit_leaves_the_pool_and_may_come_back() -> None:
    fleet = gb.Fleet(dict.fromkeys(("a", "b", "odd")), dim=3, **STATED)
    assert fleet["a"].health.watched == ("assumptions", "certificates", "fit")
    in_turns(fleet, {"a": FIRST, "b": FIRST, "odd": SECOND}, 150)
    assert apart(fleet) == ["odd"]
    (alarm,) = fleet["odd"].health.alarms
    assert alarm.kind == "fit"
    assert fleet["a"].health.ok
    assert fleet["b"].health.ok
    in_turns(fleet, {"a": FIRST, "b": FIRST, "odd": SECOND}, 150, seed=1)
    for name, theta in (("a", FIRST), ("odd", SECOND)):
        assert np.linalg.norm(fleet[name].theta - theta) < 0.15
    group = fleet._group
    own = sum(group.states[m].own.scalars[0] for m in (0, 1)) + group.pooled.scalars[0]
    assert own == 600  # all rewards of those who are left, and no others
    fleet.readmit("odd")
    assert apart(fleet) == []
    assert group.pooled.scalars[0] == 900
    with pytest.raises(gb.InvalidValueError, match="'odd' is in the pool already"):
        fleet.readmit("odd")


def test_drift_in_one_task_sends_it_away_and_drift_in_most_starts_all_anew() -> None:
    fleet = gb.Fleet(dict.fromkeys("abc"), dim=3, **STATED)
    in_turns(fleet, dict.fromkeys("abc", FIRST), 150)
    in_turns(fleet, {"a": SECOND, "b": FIRST, "c": FIRST}, 200, seed=1)
    assert not fleet["a"].health.ok
    assert "a" in apart(fleet)
    assert fleet["b"].health.ok
    in_turns(fleet, dict.fromkeys("abc", SECOND), 250, seed=2)
    assert not (fleet["b"].health.ok and fleet["c"].health.ok)
    assert apart(fleet) == []  # most have started anew: they pool again
    for name in "abc":
        assert np.linalg.norm(fleet[name].theta - SECOND) < 0.15


def test_a_saved_fleet_goes_on_as_if_nothing_had_happened(tmp_path: Path) -> None:
    thetas = {"a": FIRST, "b": FIRST, "odd": SECOND}
    fleets = [gb.Fleet(dict.fromkeys(thetas), dim=3, **STATED) for _ in range(2)]
    for fleet in fleets:
        in_turns(fleet, thetas, 60)
    fleets[1] = gb.Fleet.load(fleets[1].save(tmp_path / "fleet.npz"))
    for fleet in fleets:
        in_turns(fleet, thetas, 120, seed=1)
        in_turns(fleet, {"a": SECOND, "b": FIRST, "odd": SECOND}, 60, seed=2)
    fleets[1] = gb.Fleet.load(fleets[1].save(tmp_path / "fleet.npz"))
    for name in thetas:
        one, two = (fleet[name] for fleet in fleets)
        assert one.health == two.health
        np.testing.assert_array_equal(one.theta, two.theta)
    assert not fleets[0]["odd"].health.ok


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"on_alarm": "panic"}, "on_alarm must be one of 'restart', 'baseline', 'warn'"),
        ({"delta_alarm": 0.0}, "delta_alarm must lie strictly between 0 and 1"),
    ],
)
def test_wrong_settings_are_named(told: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        gb.Agent(dim=2, **told)
