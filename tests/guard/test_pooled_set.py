"""Pooled data as one process: the set at delta / 2 without a union, and adversaries that pool."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from guard.attack import Attack, failures

import guardband as gb
from guardband.facts import Facts
from guardband.kernels.state import view_of

TASKS = {"a": [0, 1, 2], "b": [0, 1], "c": [1, 2]}
THETA = np.array([0.5, 0.4, 0.3])


def play(fleet: gb.Fleet, rounds: int, seed: int = 0) -> list[gb.Decision]:
    rng, made = np.random.default_rng(seed), []
    for _ in range(rounds):
        for name, uses in TASKS.items():
            menu = rng.uniform(0.0, 0.57, (6, 3))
            worth = menu[:, uses] @ THETA[uses]
            d = fleet[name].decide(menu, int(np.argsort(worth)[2]))
            fleet[name].observe(d, float(np.clip(worth[d.action] + rng.normal(0, 0.05), 0, 1)))
            made.append(d)
    return made


@pytest.mark.parametrize("noise", [None, 0.3])
def test_the_set_is_that_of_its_definition(noise: float | None) -> None:
    fleet = gb.Fleet(TASKS, dim=3, alpha=0.3, noise=noise, delta=0.01)
    play(fleet, 60)
    engine = fleet._group.engine
    shared = view_of(engine.group, len(TASKS))
    assert fleet.poolings > 1
    W, U, (n, _, H, *_) = shared.own
    V = np.eye(3) + W
    theta = np.linalg.solve(V, U)
    G = max(0.0, H + U @ theta)
    radii, growth = (1, G) if noise is None else (2, min(G, np.linalg.slogdet(V)[1]))
    square = growth + 2 * math.log(radii / 0.005) + 1.0
    assert n > 50
    np.testing.assert_allclose(shared.estimate.theta, theta, rtol=1e-9)
    np.testing.assert_allclose(shared.estimate.inverse, np.linalg.inv(V), rtol=1e-9)
    assert shared.estimate.scalars[2] == pytest.approx(math.sqrt(square), rel=1e-6)


def test_it_certifies_where_it_is_surer_and_says_so() -> None:
    made = play(gb.Fleet(TASKS, dim=3, alpha=0.2, context_noise=0.05), 300)
    assert "pooled" in {d.certificate for d in made}
    assert all(d.promise == "play" for d in made if d.certificate == "pooled")


def test_who_has_one() -> None:
    """Several agents that pool in this process; each of the two sets has half of delta."""

    def terms(facts: Facts, **settings: Any) -> Any:
        return gb.GuardUCB(delta=0.01, **settings).plan(facts).terms

    three, one = Facts(((0, 1),) * 3, 2), Facts(((0, 1),), 2)
    for facts, settings in (
        (one, {}),
        (Facts(((0, 1),), 2, size=3), {}),  # agents elsewhere
        (three, {"share": False}),
        (three, {"pooled_set": False}),
        (three, {"radius": "paper"}),
    ):
        assert math.isnan(terms(facts, **settings).pooled_confidence)
    both, alone = terms(three), terms(three, pooled_set=False)
    assert both.confidence == pytest.approx(alone.confidence + 2 * math.log(2))
    assert both.pooled_confidence == pytest.approx(2 * math.log(1 / 0.005))


def test_a_saved_fleet_goes_on_as_if_nothing_had_happened(tmp_path: Path) -> None:
    fleet = gb.Fleet(TASKS, dim=3, alpha=0.2, context_noise=0.05)
    play(fleet, 80)
    loaded = gb.Fleet.load(fleet.save(tmp_path / "fleet.npz"))
    one, other = play(fleet, 80, seed=1), play(loaded, 80, seed=1)
    assert [d[:12] for d in one] == [d[:12] for d in other]
    assert "pooled" in {d.certificate for d in one}


# ---- under attack --------------------------------------------------------------------------------


SHORT = {3: {0.005: 1500, 0.05: 300, 0.5: 200}, 50: {0.005: 200, 0.05: 60, 0.5: 40}}  # rounds


@pytest.mark.slow
@pytest.mark.parametrize("shared_context", [True, False])
@pytest.mark.parametrize("agents", SHORT)
@pytest.mark.parametrize(
    ("rate", "noise"), [(0.005, None), (0.05, None), (0.5, None), (0.5, 0.5)], ids=str
)
def test_theta_stays_in_both_sets(
    rate: float, noise: float | None, agents: int, shared_context: bool
) -> None:
    """Features, predictions and order are the adversary's, and they pool after every round."""
    given: dict[str, Any] = {"agents": agents, "rounds": SHORT[agents][rate], "noise": noise}
    for features, prediction, reward in ((0, 3, 0), (2, 0, 2), (0, 2, 1)):
        runs = 1000 if prediction == 3 else 100
        attack = Attack(features, prediction, reward, 3)
        given |= {"shared_context": shared_context, "runs": runs}
        assert failures(attack, rate=rate, dim=2, **given) <= 0.2


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.5, None])
@pytest.mark.parametrize("pooling", [1, 3])
def test_late_rewards_with_contexts_of_their_own(pooling: int, noise: float | None) -> None:
    given: dict[str, Any] = {"agents": 3, "rounds": 200, "shared_context": False, "noise": noise}
    assert failures(Attack(0, 3, 0, pooling, 20), rate=0.5, dim=2, **given) <= 0.2


@pytest.mark.slow
@pytest.mark.parametrize("agents", [3, 50])
def test_controls_fail(agents: int) -> None:
    """Weights three times too large; shared contexts taken for independent ones; data left out."""
    given: dict[str, Any] = {"rate": 0.5, "dim": 2, "agents": agents, "rounds": 200, "runs": 300}
    attack = Attack(0, 3, 0, 3)
    assert failures(attack, inflate=3.0, shared_context=False, **given) > 0.2
    assert failures(attack, sharing=1.0, **given) > 0.2
    assert failures(Attack(0, 0, 0, 4), shared_context=False, **given) > 0.2


@pytest.mark.parametrize("noise", [0.5, None])
def test_no_promise_is_broken(noise: float | None) -> None:
    problem = gb.problem("clicks", agents=4, rate=0.4, ads=6, dim=4, rank=3)
    modes = [gb.GuardUCB(0.1, noise=noise, mode=mode, delta=0.2) for mode in ("strict", "policy")]
    strict, policy = gb.simulate(problem, modes, rounds=3_000, trials=10).series
    assert strict.violations_expected.sum() == policy.totals["violations_policy"].sum() == 0
    assert strict.totals["outside"].sum() == 0
