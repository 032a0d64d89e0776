"""What agents notice, and what they do about it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import guardband as gb
from guardband.kernels.alarms import _most_started_anew, doubt_of, is_look
from guardband.kernels.monitors import Note
from guardband.kernels.types import Terms

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


@pytest.mark.parametrize("before", [True, False], ids=["before it is heeded", "after"])
def test_after_a_warning_a_person_lets_monitors_watch_again(before: bool) -> None:
    agents = [gb.Agent(dim=3, algorithm=gb.GuardUCB(**STATED, **told)) for told in WARNED]
    warned, unwatched = agents
    rng, other = (np.random.default_rng(2) for _ in agents)
    notes, found = warned._group.states[0].watch, 0
    for theta in (FIRST, SECOND, FIRST):
        for _ in range(300):
            play(warned, rng, theta, 1)
            if not warned.health.ok:
                found = len(warned.health.alarms)
                if not before:
                    play(warned, rng, theta, 1)
                warned.resume()
                play(warned, rng, theta, 1)  # now it is heeded
                warned.resume()  # which says nothing new
            assert notes[Note.STARTS] == found
        play(unwatched, other, theta, warned.rounds - unwatched.rounds)
    alarms = warned.health.alarms
    assert [each.kind for each in alarms].count("assumptions") == 2
    for k, each in enumerate(alarms, 1):
        assert each.evidence >= np.log(3 * k * (k + 1) / 1e-3)
    np.testing.assert_array_equal(warned.theta, unwatched.theta)
    assert notes[Note.LEVEL] == 0  # sets have paid for nothing


def test_who_is_compared_with_data_that_monitors_forget_pays_for_it() -> None:
    fleet = gb.Fleet(dict.fromkeys("abc"), dim=3, on_alarm="warn", **STATED)
    n = 0
    while fleet["c"].health.ok:
        in_turns(fleet, {"a": FIRST, "b": FIRST, "c": SECOND}, 1, seed=n)
        n += 1
        assert n < 300
    watch = fleet._group.engine.group.watch
    for name in "cc":  # the second time says nothing new
        fleet[name].resume()
        assert watch[:3, Note.STARTS].tolist() == [1, 1, 1]
        assert watch[:3, Note.REWARDS].tolist() == [n, n, 0]


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
    agent.decide(menu_of(rng), baseline=0)  # it starts anew
    before = agent.theta
    agent.observe(late, 0.9)
    np.testing.assert_array_equal(agent.theta, before)
    assert agent.pending == 1


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
    with pytest.raises(gb.InvalidValueError, match=r"'odd' still contradicts .* forget=True"):
        fleet.readmit("odd")
    assert apart(fleet) == ["odd"]
    fleet.readmit("odd", forget=True)  # its cause is gone
    assert apart(fleet) == []
    assert group.pooled.scalars[0] == 600
    with pytest.raises(gb.InvalidValueError, match="'odd' is in the pool already"):
        fleet.readmit("odd")
    in_turns(fleet, {"a": FIRST, "b": FIRST, "odd": FIRST}, 150, seed=2)
    assert apart(fleet) == []
    assert group.pooled.scalars[0] > 900
    assert len(fleet["odd"].health.alarms) == 1


def test_whose_data_do_not_contradict_comes_back_with_them() -> None:
    fleet = gb.Fleet(dict.fromkeys("abc"), dim=3, **STATED)
    in_turns(fleet, dict.fromkeys("abc", FIRST), 100)
    in_turns(fleet, {"a": SECOND, "b": FIRST, "c": FIRST}, 100, seed=1)
    assert apart(fleet) == ["a"]
    in_turns(fleet, dict.fromkeys("abc", FIRST), 200, seed=2)  # it turned back, and is noticed
    assert len(fleet["a"].health.alarms) == 2
    alone = fleet._group.states[0].own.scalars[0]
    assert alone > 50
    fleet.readmit("a")
    assert fleet._group.pooled.scalars[0] == 800 + alone


def test_a_task_that_does_not_fit_is_noticed_when_there_is_evidence_not_when_tasks_pool() -> None:
    """By the evidence after each round, and the rounds in which it is looked at."""
    thetas, rng = {"a": FIRST, "b": FIRST, "odd": [0.8, 0.25, 0.3]}, np.random.default_rng(0)
    fleet = gb.Fleet(dict.fromkeys(thetas), dim=3, **STATED)
    group, enough_at = fleet._group, None
    while fleet["odd"].health.ok:
        for name, theta in thetas.items():
            play(fleet[name], rng, np.array(theta), 1)
        n = fleet["odd"].rounds
        assert n < 2_000
        terms = Terms(*map(float, group.engine.terms))
        evidence, enough = doubt_of(group.engine.group, 2, terms)
        if enough_at is None and evidence >= enough:
            enough_at = n
    assert enough_at is not None
    first = next(n for n in range(enough_at, 3_000) if is_look(float(n), 3))
    (alarm,) = fleet["odd"].health.alarms
    assert (alarm.kind, alarm.round) == ("fit", first)


def test_health_changes_with_the_reward_that_raised_the_alarm() -> None:
    agent, rng = gb.Agent(dim=3, **STATED), np.random.default_rng(2)
    play(agent, rng, FIRST, 300)
    notes = agent._group.states[0].watch
    while not notes[Note.PENDING]:
        assert agent.health.ok
        play(agent, rng, SECOND, 1)
    (alarm,) = agent.health.alarms
    assert alarm.round == agent.rounds
    assert alarm.evidence == notes[Note.EVIDENCE]
    decision = agent.decide(menu_of(rng), baseline=0)  # now it is heeded
    assert (notes[Note.PENDING], notes[Note.REWARDS]) == (0, 0)
    assert "an alarm was raised" in decision.reason
    assert agent.health.alarms == (alarm,)


@pytest.mark.parametrize("before", [True, False], ids=["before it is heeded", "after"])
def test_a_person_may_resume_at_once(before: bool, tmp_path: Path) -> None:
    agent, rng = gb.Agent(dim=3, on_alarm="baseline", **STATED), np.random.default_rng(2)
    play(agent, rng, FIRST, 300)
    while agent.health.ok:
        play(agent, rng, SECOND, 1)
    agent = gb.Agent.load(agent.save(tmp_path / "agent.npz"))  # which is not heeded yet
    assert not agent.health.ok
    if before:
        agent.resume()
    play(agent, rng, SECOND, 1)
    if not before:
        agent.resume()
    assert len(agent.health.alarms) == 1
    play(agent, rng, SECOND, 200)
    assert play(agent, rng, SECOND, 1).kind == "learned"


def test_drift_in_one_task_sends_it_away_and_drift_in_most_starts_all_anew() -> None:
    fleet = gb.Fleet(dict.fromkeys("abc"), dim=3, **STATED)
    in_turns(fleet, dict.fromkeys("abc", FIRST), 150)
    in_turns(fleet, {"a": SECOND, "b": FIRST, "c": FIRST}, 200, seed=1)
    assert not fleet["a"].health.ok
    assert "a" in apart(fleet)
    assert fleet["b"].health.ok
    in_turns(fleet, dict.fromkeys("abc", SECOND), 250, seed=2)
    assert apart(fleet) == []  # most have started anew: they pool again
    (last,) = (name for name in "bc" if fleet[name].health.ok)  # it followed, and says so
    (followed,) = fleet[last].health.followed
    assert followed > 350
    assert f"round {followed}: the task started anew because its pool did" in str(
        fleet[last].health
    )
    for name in "abc":
        assert np.linalg.norm(fleet[name].theta - SECOND) < 0.15


@pytest.mark.parametrize("tolerate", [0, 1])
def test_one_of_two_does_not_make_the_other_start_anew(tolerate: int) -> None:
    fleet = gb.Fleet(dict.fromkeys("ab"), dim=3, **STATED, tolerate=tolerate)
    in_turns(fleet, dict.fromkeys("ab", FIRST), 150)
    in_turns(fleet, {"a": SECOND, "b": FIRST}, 300, seed=1)
    assert not fleet["a"].health.ok
    assert apart(fleet) == ["a"]
    assert (fleet["b"].health.ok, fleet["b"].health.followed) == (True, ())
    group = fleet._group
    assert group.states[1].watch[Note.REWARDS] == 450  # it has forgotten nothing
    for name, theta in (("a", SECOND), ("b", FIRST)):
        assert np.linalg.norm(fleet[name].theta - theta) < 0.15
    in_turns(fleet, dict.fromkeys("ab", SECOND), 400, seed=2)
    assert apart(fleet) == []  # both have started anew: they pool again


@pytest.mark.parametrize("anew", range(1, 7))
def test_it_takes_more_who_started_anew_than_are_left(anew: int) -> None:
    """By the notes alone, for all ways to divide six tasks: anew, left, gone for want of fit."""
    for left in range(7 - anew):
        group = gb.Fleet(dict.fromkeys("abcdef"), dim=2, **STATED)._group
        group.engine.group.watch[:6, Note.APART] = [0] * left + [1] * (6 - left)
        group.engine.group.watch[:6, Note.ANEW] = [0] * left + [1] * anew + [0] * (6 - left - anew)
        assert _most_started_anew.plain(group.engine.group) == (anew > left)


def followed(on_alarm: str) -> tuple[gb.Fleet, list[gb.Decision]]:
    """Return three tasks of which two noticed a change, and the decisions of the third."""
    fleet = gb.Fleet(dict.fromkeys("abc"), dim=3, on_alarm=on_alarm, **STATED)
    in_turns(fleet, dict.fromkeys("abc", FIRST), 150)
    rng, said = np.random.default_rng(1), []
    for name in "ac":
        while fleet[name].health.ok:
            play(fleet[name], rng, SECOND, 1)
    for _ in range(300):
        theta = SECOND if fleet["b"].health.followed else FIRST
        said += [play(fleet["b"], rng, theta, 1)]
        for name in "ac":
            play(fleet[name], rng, SECOND, 1)
    assert fleet["b"].health.ok
    assert len(fleet["b"].health.followed) == 1
    return fleet, said


def test_who_follows_is_not_held_to_the_baseline() -> None:
    fleet, said = followed("baseline")
    # It has no alarm that a person could look at.
    assert {each.kind for each in said[-50:]} == {"learned"}
    held = [fleet._group.states[m].watch[Note.HOLD] > 0 for m in range(3)]
    assert held == [True, False, True]


def test_who_follows_says_so_until_something_is_certified() -> None:
    _, said = followed("restart")
    told = [each for each in said if "the task started anew because its pool did" in each.reason]
    assert 0 < len(told) < 200
    # Until the reward of its first learned play of this start.
    kinds = [each.kind for each in told]
    assert kinds == ["baseline"] * (len(told) - 1) + ["learned"]
    start = said.index(told[0])
    assert said[start : start + len(told)] == told


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
        ({"delta_alarm": -0.1}, "delta_alarm must lie strictly between 0 and 1"),
    ],
)
def test_wrong_settings_are_named(told: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        gb.Agent(dim=2, **told)


@pytest.mark.usefixtures("live_system")
def test_with_a_probability_of_zero_nothing_is_watched_in_agents_fleets_and_spaces() -> None:
    """None is the algorithm's own value for agents, fleets and spaces, as of every setting."""
    space = gb.SpaceSettings(features=["a", "b"], agents=2, alpha=0.2, delta_alarm=0)
    for off in (0, 0.0):
        assert gb.Agent(dim=2, delta_alarm=off).health.watched == ()
        assert gb.Fleet({"a": None, "b": None}, dim=2, delta_alarm=off)["a"].health.watched == ()
        assert gb.GuardUCB(delta_alarm=off) == gb.GuardUCB(delta_alarm=None)
    assert space.learner() == gb.GuardUCB(0.2, shared_context=True, delta_alarm=None)
    assert gb.Agent(dim=2, delta_alarm=None).health.watched == ("assumptions", "certificates")
