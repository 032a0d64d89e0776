"""Fleets in which one task may send anything: tolerate=1."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import guardband as gb
from guardband.kernels.types import Floats, Statistic

D, K = 3, 8
THETA = np.array([0.2, 0.4, 0.85])


def make(tasks: int = 4, **settings: object) -> gb.Fleet:
    algorithm = gb.GuardUCB(noise=0.1, context_noise=0.0, **settings)  # type: ignore[arg-type]
    return gb.Fleet({f"task{m}": None for m in range(tasks)}, dim=D, alpha=0.2, algorithm=algorithm)


def menu_of(rng: np.random.Generator) -> tuple[Floats, int]:
    """Return a menu and its baseline, the fourth best."""
    menu = np.abs(rng.standard_normal((K, D)))
    menu *= (rng.uniform(0.3, 1.0, K) / np.linalg.norm(menu, axis=1))[:, None]
    return menu, int(np.argsort(-(menu @ THETA))[3])


def play(fleet: gb.Fleet, rounds: int, seed: int = 0) -> list[gb.Decision]:
    rng, done = np.random.default_rng(seed), []
    for _ in range(rounds):
        for agent in fleet.values():
            menu, baseline = menu_of(rng)
            decision = agent.decide(menu, baseline)
            agent.observe(decision, float(menu[decision.action] @ THETA) + rng.normal(0, 0.1))
            done.append(decision)
    return done


def below(fleet: gb.Fleet, tasks: int, rounds: int, seed: int = 0) -> int:
    """Return how many plays of the first tasks are below the floor; the others lie."""
    rng, found = np.random.default_rng(seed), 0
    for _ in range(rounds):
        for m, agent in enumerate(fleet.values()):
            menu, baseline = menu_of(rng)
            decision, rewards = agent.decide(menu, baseline), menu @ THETA
            agent.observe(decision, float(rewards[decision.action]) + rng.normal(0, 0.1))
            low = rewards[decision.action] < 0.8 * rewards[baseline] - 1e-12
            found += low and m < tasks
    return found


def make_up(own: Statistic, theta: Floats, number: float, weight: float = 100.0) -> None:
    """Add so many observations of another parameter, each predicted exactly, to a task's sums."""
    gram = number * weight * np.eye(D) / D
    own.gram[...] += gram
    own.moment[...] += gram @ theta
    square = theta @ gram @ theta
    own.scalars[:4] += number, square, -square, number * weight


@pytest.mark.parametrize("number", [30, 1e4, 1e9])
def test_one_task_that_lies_puts_no_other_below_its_floor(number: float) -> None:
    for tolerate in (0, 1):
        fleet = make(
            tolerate=tolerate, delta_alarm=None
        )  # monitors notice such a liar by themselves
        make_up(fleet._group.states[3].own, THETA[::-1].copy(), number)
        found = below(fleet, 3, 150)
        assert found == 0 if tolerate else (found > 10 or number < 1e3)
    for m in range(3):
        assert any(d.kind == "learned" for d in play(fleet, 20)[m::4])  # and still they learn


def test_a_unit_error_in_logs_is_one_task_s_own() -> None:
    """Rewards that are divided by ten teach that all is as bad as the baseline."""
    fleet, rng = make(tolerate=1), np.random.default_rng(5)
    rows = rng.uniform(0.0, 0.5, (500, D))
    fleet["task3"].learn(rows, rows @ THETA / 10.0)
    assert below(fleet, 3, 150) == 0


def test_without_a_setting_nothing_changes() -> None:
    one, other = play(make(), 60), play(make(tolerate=0), 60)
    assert [d[:12] for d in one] == [d[:12] for d in other]
    assert make()._group.engine.without.size == 0


def test_one_task_alone_has_no_others() -> None:
    one, other = play(make(1), 60), play(make(1, tolerate=1), 60)
    assert [d[:12] for d in one] == [d[:12] for d in other]


def test_of_two_tasks_each_certifies_by_its_own_data() -> None:
    """Whatever the other one sends, certified is what its own data certify."""
    fleet, alone = make(2, tolerate=1), make(2, tolerate=1, share=True)
    make_up(alone._group.states[1].own, np.zeros(D), 1e6)
    rng = np.random.default_rng(3)
    for _ in range(120):
        menu, baseline = menu_of(rng)
        noise = rng.normal(0, 0.1)
        # The second tasks never play: nothing is pooled, and then all at once.
        found = [each["task0"].decide(menu, baseline) for each in (fleet, alone)]
        for each, decision in zip((fleet, alone), found, strict=True):
            reward = float(menu[decision.action] @ THETA) + noise
            each["task0"].observe(decision, reward)
    assert alone.poolings > 0
    left = alone._group.engine.left_out
    # Slot 1 leaves out the liar: what is left are the 120 plays of the first task.
    own = alone._group.states[0].own.scalars[0] + left.sums.scalars[1, 0]
    assert own == 120
    assert np.isclose(left.views.theta[0, 1], THETA, atol=0.3).all()


def test_decisions_say_so_and_bound_the_reward_in_every_set() -> None:
    fleet = make(tolerate=1)
    make_up(fleet._group.states[3].own, THETA[::-1].copy(), 1e4)
    rng, covered, learned = np.random.default_rng(1), 0, 0
    for _ in range(100):
        for agent in list(fleet.values())[:3]:
            menu, baseline = menu_of(rng)
            decision = agent.decide(menu, baseline)
            reward = float(menu[decision.action] @ THETA)
            agent.observe(decision, reward + rng.normal(0, 0.1))
            covered += decision.lower <= reward <= decision.upper
            assert decision.certified[decision.action]
            if decision.kind == "learned":
                learned += 1
                assert decision.certificate == "leave one out"
                assert decision.promise == "play"
                assert decision.margin >= 0.0
    assert covered == 300
    assert learned > 100


def test_a_saved_fleet_goes_on_as_if_nothing_had_happened(tmp_path: Path) -> None:
    fleet = make(tolerate=1)
    play(fleet, 80)
    loaded = gb.Fleet.load(fleet.save(tmp_path / "fleet.npz"))
    assert fleet.poolings > 0
    one, other = play(fleet, 80, seed=1), play(loaded, 80, seed=1)
    assert [d[:12] for d in one] == [d[:12] for d in other]


def test_an_outlook_can_be_had() -> None:
    fleet = make(tolerate=1)
    play(fleet, 5)
    assert str(fleet["task0"].outlook())


@pytest.mark.parametrize(
    "settings",
    [
        {"tolerate": 2},
        {"tolerate": 1, "mode": "policy"},
        {"tolerate": 1, "share": False},
        {"tolerate": 1, "anchors": True, "baseline_tolerance": 0.1},
        {"tolerate": 1, "trial_budget": 1.0},
        {"tolerate": 1, "radius": "paper"},
    ],
)
def test_what_is_not_proved_is_refused(settings: dict) -> None:
    with pytest.raises(gb.InvalidValueError, match="tolerate"):
        gb.GuardUCB(**settings)


def test_too_many_numbers_are_refused() -> None:
    tasks = {f"task{m}": None for m in range(100)}
    with pytest.raises(gb.InvalidValueError, match="12,250,000 numbers"):
        gb.Fleet(tasks, dim=35, tolerate=1)
    gb.Fleet({f"task{m}": None for m in range(20)}, dim=35, tolerate=1)


def test_a_fleet_takes_the_setting() -> None:
    fleet = gb.Fleet({"a": None, "b": None, "c": None}, dim=D, tolerate=1)
    assert fleet._group.algorithm.tolerate == 1


def test_values_of_the_caller_s_own_are_refused() -> None:
    fleet = gb.Fleet({"a": None, "b": None, "c": None}, dim=D, tolerate=1)
    menu, baseline = menu_of(np.random.default_rng(0))
    with pytest.raises(gb.InvalidValueError, match="tolerate=0"):
        fleet["a"].decide(menu, baseline, value=np.arange(K, dtype=float))
    assert fleet["a"].rounds == 0
