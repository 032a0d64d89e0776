"""What decisions are called, and which rewards agents take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import guardband as gb
from guardband.reasons import CHOSEN, REASONS

THETA = np.array([0.6, 0.5])
SAFE = {"alpha": 0.4, "noise": 0.05, "context_noise": 0.0}
ALGORITHMS = [gb.GuardUCB(), gb.GuardUCB(mode="policy"), gb.DiscUCB(gate="none")]


def taught(algorithm: Any, rounds: int = 1000) -> tuple[gb.Agent, list[tuple[int, gb.Decision]]]:
    """Return an agent that has learned, and its decisions with their baselines."""
    agent, rng, made = gb.Agent(2, algorithm=algorithm, **SAFE), np.random.default_rng(0), []
    for t in range(rounds):
        menu, row = rng.uniform(0.1, 0.65, (4, 2)), t % 4
        decision = agent.decide(menu, row, float(menu[row] @ THETA))
        agent.observe(decision, float(menu[decision.action] @ THETA) + rng.normal(0, 0.01))
        made.append((row, decision))
    return agent, made


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda a: a.name)
def test_learned_is_another_action_that_is_certified(algorithm: Any) -> None:
    _, made = taught(algorithm)
    kinds = {kind: [d for _, d in made if d.kind == kind] for kind in ("learned", "baseline")}
    assert len(kinds["learned"]) > 20
    for row, decision in made:
        if decision.kind == "learned":
            assert decision.action != row
            assert decision.promise == "play"
            assert decision.action in decision.safe_actions or decision.propensity == 1.0
        if decision.kind == "baseline":
            assert decision.action == row
    favourites = [d for d in kinds["baseline"] if d.reason == REASONS["itself"]]
    assert favourites, "the baseline is sometimes the best of four"


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda a: a.name)
def test_a_favourite_that_is_the_baseline_is_called_baseline(algorithm: Any) -> None:
    agent, _ = taught(algorithm)
    menu = np.array([[0.1, 0.1], [0.65, 0.65], [0.2, 0.1]])
    best = agent.decide(menu, 1, float(menu[1] @ THETA))
    assert (best.action, best.kind, best.reason) == (1, "baseline", CHOSEN["itself"])
    other = agent.decide(menu, 0, float(menu[0] @ THETA))
    assert (other.action, other.kind) == (1, "learned")


def test_nothing_is_learned_before_anything_was_observed() -> None:
    for algorithm in ALGORITHMS[:2]:
        agent = gb.Agent(2, algorithm=algorithm)
        favourite = agent.decide([[0.6, 0.6], [0.1, 0.1]], 0)  # the least known is the baseline
        assert (favourite.kind, favourite.reason) == ("baseline", REASONS["no-data"])
        twins = agent.decide([[0.5, 0.5], [0.5, 0.5]], 1)  # worth the baseline, whatever theta is
        assert (twins.kind, twins.reason) == ("baseline", REASONS["no-data"])
        assert agent.decide([[0.1, 0.1], [0.6, 0.6]], 0).kind in ("baseline", "explored")


def test_agents_learn_from_reported_rewards_too() -> None:
    anchored = gb.GuardUCB(0.3, noise=0.05, context_noise=0.0, baseline_tolerance=0, anchors=True)
    agent, menu = gb.Agent(2, algorithm=anchored), np.array([[0.6, 0.1], [0.1, 0.6], [0.6, 0.6]])
    twins = agent.decide([[0.5, 0.5], [0.5, 0.5]], 1, float(THETA @ [0.5, 0.5]))
    assert (twins.kind, twins.reason) == ("baseline", REASONS["no-data"])
    for t in range(200):  # no reward is observed
        decision = agent.decide(menu, t % 2, float(menu[t % 2] @ THETA))
    assert (decision.action, decision.kind, decision.promise) == (2, "learned", "play")
    assert decision.reason == REASONS["certified"]


def test_without_a_constraint_another_action_is_learned_and_nothing_promised() -> None:
    agent = gb.Agent(2, algorithm="dis-lin-ucb")
    other = agent.decide([[0.1, 0.1], [0.6, 0.6]], 0)
    assert (other.kind, other.promise, other.reason) == ("learned", "none", REASONS["free"])
    itself = agent.decide([[0.1, 0.1], [0.6, 0.6]], 1)
    assert (itself.kind, itself.promise, itself.reason) == ("baseline", "none", REASONS["itself"])


@pytest.mark.parametrize("algorithm", [*ALGORITHMS, gb.DisLinUCB(), gb.algorithms.LinUCB()])
def test_rewards_far_outside_are_refused(algorithm: Any) -> None:
    agent = gb.Agent(2, algorithm=algorithm, noise=0.05)
    decision = agent.decide([[0.5, 0.5]], 0, 0.5)
    for reward in (1.31, -0.31, 50.0):
        with pytest.raises(gb.InputError, match=r"6 times the stated noise.*0\.05.*Scale rewards"):
            agent.observe(decision, reward)
        with pytest.raises(gb.InputError, match="6 times the stated noise"):
            agent.observe_many([decision], [reward])
    assert agent.pending == 1
    agent.observe(decision, 1.29)
    agent.observe(agent.decide([[0.5, 0.5]], 0, 0.5), -0.29)


def test_whoever_always_plays_the_baseline_takes_any_reward() -> None:
    agent = gb.Agent(2, algorithm="baseline")
    agent.observe(agent.decide([[0.5, 0.5]], 0), 1e6)
