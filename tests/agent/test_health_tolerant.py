"""Monitors of fleets in which one task may send anything: what they notice, and who is harmed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import guardband as gb
from guardband.kernels.environment import Fabricated
from guardband.kernels.lies import make_up
from guardband.kernels.monitors import Note
from guardband.kernels.types import Floats, Terms

D, K = 3, 8
THETA, OTHER = np.array([0.2, 0.4, 0.85]), np.array([0.85, 0.4, 0.2])
HONEST = ("a", "b", "c")


def make(tasks: str = "abcz", **settings: Any) -> gb.Fleet:
    told = {"alpha": 0.2, "noise": 0.1, "context_noise": 0.0, "tolerate": 1, **settings}
    return gb.Fleet(dict.fromkeys(tasks), dim=D, algorithm=gb.GuardUCB(**told))


def play(
    fleet: gb.Fleet, rounds: int, thetas: dict[str, Floats] | None = None, seed: int = 0
) -> list[tuple[str, Floats, float, gb.Decision]]:
    """Play in turns; return tasks, features, rewards and decisions. Floors are kept by THETA."""
    rng, made = np.random.default_rng(seed), []
    for _ in range(rounds):
        for name, agent in fleet.items():
            theta = (thetas or {}).get(name, THETA)
            menu = np.abs(rng.standard_normal((K, D)))
            menu *= (rng.uniform(0.3, 1.0, K) / np.linalg.norm(menu, axis=1))[:, None]
            worth = menu @ theta
            decision = agent.decide(menu, int(np.argsort(-worth)[3]))
            reward = float(worth[decision.action]) + rng.normal(0, 0.1)
            agent.observe(decision, reward)
            made.append((name, menu[decision.action], reward, decision))
    return made


def lie(fleet: gb.Fleet, number: float) -> None:
    """Let the last task make up so many observations of OTHER, in all sums that it has."""
    state, terms = fleet._group.states[-1], Terms(*map(float, fleet._group.engine.terms))
    gram = np.eye(D) / D
    made = Fabricated(gram, gram @ OTHER, float(OTHER @ gram @ OTHER), 1.0, number)
    make_up(state, fleet._group.pooled, terms, made)


def estimate(rows: list[tuple[Floats, float]]) -> Floats:
    """Return the ridge regression of rows, at the declared weight 1 / noise^2."""
    x, y = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    found: Floats = np.linalg.solve(np.eye(D) + 100.0 * x.T @ x, 100.0 * x.T @ y)
    return found


def apart(fleet: gb.Fleet) -> list[str]:
    states = fleet._group.states
    return [name for m, name in enumerate(fleet) if states[m].watch[Note.APART] > 0]


def test_all_three_watch() -> None:
    assert make()["a"].health.watched == ("assumptions", "certificates", "fit")
    assert make(delta_alarm=None)["a"].health.watched == ()


@pytest.mark.parametrize("number", [1e3, 1e9])
def test_one_that_lies_is_named_and_leaves(number: float) -> None:
    fleet = make()
    play(fleet, 60)
    lie(fleet, number)
    made = play(fleet, 60, seed=1)
    assert apart(fleet) == ["z"]
    assert fleet["z"].health.alarms[0].kind == "fit"
    assert all(fleet[name].health.ok for name in HONEST)
    late = [d for name, _, _, d in made[-80:] if name in HONEST]
    assert np.mean([d.kind == "learned" for d in late]) > 0.9


def test_sets_of_who_is_left_are_of_their_data_alone() -> None:
    fleet = make()
    made = play(fleet, 60)
    lie(fleet, 1e6)
    made += play(fleet, 40, seed=1)
    group, names = fleet._group, list(fleet)
    assert apart(fleet) == ["z"]
    group.note_pooling(group.engine.pool())
    for j, without in enumerate(names):
        rows = [(x, y) for who, x, y, _ in made if who in HONEST and who != without]
        for m in {0, 1, 2} - {j}:
            found = group.engine.left_out.views.theta[m, j]
            np.testing.assert_allclose(found, estimate(rows), rtol=1e-7)


def test_a_task_whose_world_changes_starts_anew_by_its_own_data() -> None:
    fleet = make()
    play(fleet, 100)
    made = play(fleet, 150, {"b": OTHER}, seed=1)
    assert apart(fleet) == ["b"]
    assert fleet["a"].health.ok
    np.testing.assert_allclose(fleet["a"].theta, THETA, atol=0.1)
    rows = [(x, y) for who, x, y, _ in made if who == "b"]
    n = int(fleet._group.states[1].own.scalars[0])
    assert 0 < n < 150  # not those before the alarm
    for j in (0, 2, 3):
        found = fleet._group.engine.left_out.views.theta[1, j]
        np.testing.assert_allclose(found, estimate(rows[-n:]), rtol=1e-7)


def test_certificates_are_watched_by_the_least_of_all_sets() -> None:
    fleet = make()
    play(fleet, 60)
    rng = np.random.default_rng(5)
    menu = rng.uniform(0.1, 0.5, (K, D))
    decision = fleet["a"].decide(menu, int(np.argsort(menu @ THETA)[0]))
    assert decision.kind == "learned"
    views = fleet._group.engine.left_out.views
    x = menu[decision.action]
    bounds = [
        x @ views.theta[0, j] - views.scalars[0, j, 2] * np.sqrt(x @ views.inverse[0, j] @ x)
        for j in (1, 2, 3)
    ]
    awaited = fleet._group.pending[0][decision.id]
    assert awaited.lower == pytest.approx(min(bounds))
    assert awaited.declared == pytest.approx(100.0)


def test_one_alone_cannot_make_the_other_start_anew() -> None:
    """Of two tasks one says that all is new; the other goes on with what it knows."""
    fleet = make("az")
    play(fleet, 100)
    play(fleet, 150, {"z": OTHER}, seed=1)
    assert not fleet["z"].health.ok
    assert fleet["a"].health.ok
    assert fleet._group.states[0].watch[Note.STARTS] == 0
    assert fleet._group.states[0].watch[Note.REWARDS] == 250


def test_a_baseline_kept_to_and_a_task_let_back() -> None:
    fleet = make(on_alarm="baseline")
    play(fleet, 60)
    lie(fleet, 1e4)
    play(fleet, 60, seed=1)
    made = [d for name, _, _, d in play(fleet, 10, seed=2) if name == "z"]
    assert {d.kind for d in made} == {"baseline"}
    assert all(d.promise == "baseline" for d in made)
    fleet["z"].resume()
    fleet.readmit("z")
    assert apart(fleet) == []
    group = fleet._group
    without, own = group.engine.left_out.sums.scalars[3, 0], group.states[3].watch[Note.REWARDS]
    assert group.pooled.scalars[0] == without + own > without


def test_a_saved_fleet_goes_on_as_if_nothing_had_happened(tmp_path: Path) -> None:
    fleet = make()
    play(fleet, 60)
    lie(fleet, 1e4)
    play(fleet, 60, seed=1)
    assert apart(fleet) == ["z"]
    loaded = gb.Fleet.load(fleet.save(tmp_path / "fleet.npz"))
    one, other = play(fleet, 60, seed=2), play(loaded, 60, seed=2)
    assert [made[3][:12] for made in one] == [made[3][:12] for made in other]
    assert all(fleet[n].health == loaded[n].health for n in fleet)


def test_half_of_delta_is_for_later() -> None:
    """Whoever lies can bring about that somebody leaves: that was paid for from the beginning."""
    watched, not_watched = (make(delta_alarm=level)._group.engine.terms for level in (1e-3, None))
    assert watched.confidence - not_watched.confidence == pytest.approx(2 * np.log(2))
    gap = watched.pooled_confidence - not_watched.pooled_confidence
    assert gap == pytest.approx(2 * np.log(2))
