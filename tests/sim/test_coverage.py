"""The confidence set covers theta as often as it says, where the model holds."""

from __future__ import annotations

import numpy as np

import guardband as gb
from guardband.agent.fleet import fleet_of
from guardband.agent.group import AgentGroup
from guardband.kernels.ridge import radius


def covers(group: AgentGroup, theta: np.ndarray) -> bool:
    """Tell whether theta lies in every agent's set, from the sums themselves."""
    for state in group.states:
        V = group.engine.terms.ridge * np.eye(group.dim) + group.pooled.gram + state.own.gram
        off = state.estimate.theta - theta
        if off @ V @ off > radius(state.estimate, group.engine.terms) ** 2:
            return False
    return True


def misses(runs: int, noise: float, told: float, ridge: float, seed: int) -> float:
    """Return the share of runs in which theta leaves some agent's set in some round.

    Agents have contexts of their own; the context shifts each reward by at most half of the
    declared context noise, the rest is Gaussian.
    """
    rng = np.random.default_rng(seed)
    theta, failed = np.array([0.5, 0.4]), 0
    tasks = {"a": [0, 1], "b": [0], "c": [1]}
    masks = {name: np.isin(range(2), task) for name, task in tasks.items()}
    for _ in range(runs):
        algorithm = gb.DisLinUCB(noise=told, context_noise=told, delta=0.2, ridge=ridge)
        group = AgentGroup(
            tasks,
            dim=2,
            algorithm=algorithm,
            feature_bound=1.0,
            horizon=None,
            reward_floor=None,
            seed=0,
        )
        fleet, held = fleet_of(group), True
        for _ in range(25):
            menu = rng.uniform(0, 0.7, (4, 2))
            for m, (name, agent) in enumerate(fleet.items()):
                decision = agent.decide(menu, 0)
                mean = float((menu[decision.action] * masks[name]) @ theta)
                reward = mean + rng.normal(0, noise) + rng.choice([-1, 1]) * noise
                # Where too little noise is told, `observe` refuses some of these rewards.
                group.learn(m, group.pending[m].pop(decision.id), reward)
            held = held and covers(group, theta)
        failed += not held
    return failed / runs


def test_coverage_over_a_thousand_runs() -> None:
    assert misses(1000, noise=0.1, told=0.1, ridge=0.1, seed=3) <= 0.2


def test_a_set_that_is_told_too_little_noise_is_seen_to_fail() -> None:
    assert misses(100, noise=0.1, told=0.01, ridge=1e-3, seed=3) > 0.5
