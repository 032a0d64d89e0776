"""Deterministic workloads, the same from version to version."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import guardband as gb
from guardband.algorithms import Algorithm
from guardband.kernels.types import Floats
from guardband.problems import Problem
from guardband.sim import TrialDraws, checkpoint_rounds, make_runner


def features(contexts: int, actions: int, dim: int) -> tuple[Floats, Floats]:
    """Return (C, K, d) non-negative features of length below one, and a parameter."""
    rng = np.random.default_rng(contexts + actions + dim)
    phi = np.abs(rng.normal(size=(contexts, actions, dim)))
    phi *= rng.uniform(0.3, 1.0, (contexts, actions, 1)) / np.linalg.norm(
        phi, axis=2, keepdims=True
    )
    return phi, np.full(dim, dim**-0.5)


def rounds_of(
    algorithm: Algorithm, actions: int, dim: int, contexts: int, rounds: int, *, quick: bool = True
) -> Callable[[], float]:
    """Return a run of the simulator's loop; it answers with the share of conservative rounds."""
    phi, theta = features(contexts, actions, dim)
    problem = gb.Tabular(phi, phi, theta, baseline=actions // 2, reward_std=0.1)
    return rounds_on(problem, algorithm, rounds, quick=quick)


def rounds_on(
    problem: Problem, algorithm: Algorithm, rounds: int, *, quick: bool = True
) -> Callable[[], float]:
    """Return the same on a problem; the share is the first agent's.

    Not `quick`: every width is computed in every round, and every round is played by itself.
    """
    world = problem.build(0)
    facts = world.facts(rounds)
    plan = algorithm.plan(facts)
    draws = list(TrialDraws(world, rounds, seed=1).chunks())

    def work() -> float:
        runner = make_runner(world, plan, np.full(facts.agents, 0.3), checkpoint_rounds(rounds), 0)
        if not quick:
            runner.widths = runner.widths._replace(reach=np.zeros(0))
            runner.before = runner.before._replace(numbers=np.zeros(0))
        for each in draws:
            runner.play(each)
        return float(runner.metrics.totals[0, 4]) / rounds

    return work


def numpy_rounds(actions: int, dim: int, contexts: int, rounds: int) -> Callable[[], None]:
    """Return the same optimistic rounds in plain NumPy with Sherman-Morrison updates."""
    phi, theta = features(contexts, actions, dim)
    rng = np.random.default_rng(1)
    noise, order = 0.1 * rng.normal(size=rounds), rng.integers(0, contexts, rounds)

    def work() -> None:
        inverse, moment, estimate, growth = np.eye(dim), np.zeros(dim), np.zeros(dim), 0.0
        for t in range(rounds):
            menu = phi[order[t]]
            beta = np.sqrt(2.0) * np.sqrt(growth + 2 * np.log(2e3)) + 1.0
            width = np.sqrt(np.einsum("kd,kd->k", menu @ inverse, menu))
            x = menu[int(np.argmax(menu @ estimate + beta * width))]
            y = x @ theta + noise[t]
            scaled = inverse @ x
            gain = 1.0 + x @ scaled
            inverse -= np.outer(scaled, scaled) / gain
            growth += np.log(gain)
            moment += y * x
            estimate = inverse @ moment

    return work


def calls(
    actions: int, dim: int, count: int, *, guard: bool = False, valued: bool = False
) -> Callable[[], None]:
    """Return decide and observe from Python, one request at a time.

    By DiSC-UCB, or by Guard-UCB, with a value of the caller's own or without.
    """
    phi, theta = features(200, actions, dim)
    rewards = (phi @ theta).tolist()
    algorithm: gb.DiscUCB | gb.GuardUCB = gb.DiscUCB(gate="none", noise=0.1, context_noise=0.1)
    if guard:
        algorithm = gb.GuardUCB(noise=0.1, context_noise=0.0)
    agent = gb.Agent(dim=dim, alpha=0.5, algorithm=algorithm)
    values = np.random.default_rng(0).random((200, actions))
    told = [{"value": value} if valued else {} for value in values]

    def work() -> None:
        for i in range(count):
            c = i % 200
            decision = agent.decide(phi[c], 0, rewards[c][0], **told[c])
            agent.observe(decision.id, rewards[c][decision.action])

    return work
