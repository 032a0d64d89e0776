"""The notebook column, decision by decision, against the notebooks' formulas written out in NumPy.

Nothing here is taken from the simulator but what a notebook draws: features before noise, psi's
noise, contexts, reward noise, rho and zeta. r_l, r_h, the bound on rho, beta, the gates, the
trimmed set and pooling are computed anew, with `inv`, `det` and `eigvalsh` in every round.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import guardband as gb
from guardband.lab.panel import RunOptions
from guardband.lab.panels import PANELS
from guardband.problems.ratings import _loaded
from guardband.seeds import stream, trial_seed
from guardband.sim.draws import TrialDraws

SEED = 3
# In place of sqrt(1 + R^2), norm(theta) and the longest feature, so that gates open in the test.
SIGMA, S, L = 0.03, 0.3, 0.6
SYNTHETIC_MASKS = [(0, 1), (0,), (1,)]
RATINGS_MASKS = [tuple(k for k in range(9) if k != out) for out in (None, 8, 4, 0)]


class Rule(NamedTuple):
    """One notebook: what it runs, and how it sets r_l, r_h, rho, the gate and psi's noise."""

    panel: str
    label: str
    alpha: float
    index: int  # of the baseline, after a descending sort
    ridge: float
    gate: str
    rounds: int
    rho_alpha: float
    masks: int = 3  # over how many r_l and r_h are taken
    rho_high: float | None = None
    noise_first: bool = False
    delta: float = 1e-3

    def __str__(self) -> str:
        return f"{self.panel} {self.label}"

    @property
    def unknown(self) -> bool:
        return "UB" in self.label


GAP = "DiSC-UCB-gap-oracle"
RULES = [
    Rule("1a", GAP, 0.01, 10, 1.0, "gap", 900, 0.01),
    Rule("2a", GAP, 0.3, 10, 1.0, "gap", 300, 0.3),
    Rule("2b", f"{GAP}, α = 0.1", 0.1, 80, 1.0, "gap", 600, 0.1),
    Rule("2b", f"{GAP}, α = 0.5", 0.5, 80, 1.0, "gap", 600, 0.1),
    Rule("2c", f"{GAP}, M = 5", 0.3, 30, 1.0, "gap", 300, 0.3),
    Rule("2d", GAP, 0.5, 30, 0.1, "gap", 900, 0.5, masks=1, noise_first=True),
    Rule("2e", f"{GAP}, α = 0.1", 0.1, 40, 1.0, "gap", 600, 0.1, masks=4, noise_first=True),
    Rule("2e", f"{GAP}, α = 0.5", 0.5, 40, 1.0, "gap", 600, 0.1, masks=4, noise_first=True),
    Rule("2f", f"{GAP}, M = 5", 0.5, 40, 1.0, "gap", 300, 0.5, masks=4, noise_first=True),
    Rule(
        "2g", "DiSC-UCB", 0.7, 5, 0.05, "printed", 900, 0.7, 1, None, noise_first=True, delta=0.01
    ),
    Rule("2h", "DiSC-UCB, α = 0.9", 0.9, 5, 0.05, "printed", 300, 0.7, masks=4),
    Rule("2i", "DiSC-UCB, M = 7", 0.7, 5, 0.05, "printed", 100, 0.7, masks=4),
    Rule("3a", GAP, 0.5, 80, 0.1, "gap", 600, 0.5),
    Rule("3a", "DiSC-UCB-UB-gap-oracle", 0.5, 80, 0.1, "gap", 900, 0.5),
    Rule("3b", GAP, 0.5, 45, 0.1, "gap", 900, 0.5, 1, 1.0, noise_first=True),
    Rule("3b", "DiSC-UCB-UB-gap-oracle", 0.5, 45, 0.1, "gap", 900, 0.5, 1, 1.0, noise_first=True),
    Rule("lastfm-unknown", GAP, 0.9, 5, 0.05, "gap", 100, 0.9, masks=4, rho_high=1.0),
    Rule("lastfm-unknown", "DiSC-UCB-UB", 0.9, 5, 0.05, "printed", 100, 0.9, masks=4, rho_high=1.0),
]


def masked(table, mask):
    copy = np.zeros_like(table)
    copy[..., list(mask)] = table[..., list(mask)]
    return copy


def notebook(rule, world, draws):
    """Return conservative rounds and rewards, (T, M), by the notebooks' formulas."""
    theta, d, M = world.theta, world.theta.size, len(world.tasks)
    masks = SYNTHETIC_MASKS if d == 2 else RATINGS_MASKS
    phis = [masked(world.phi, masks[m % len(masks)]) for m in range(M)]
    psis = [masked(world.psi, masks[m % len(masks)]) for m in range(M)]
    values = [np.sort(masked(world.phi, mask) @ theta, axis=1) for mask in masks[: rule.masks]]
    meant = np.array([each[:, -rule.index] for each in values])
    r_l, r_h = meant.min(), meant.max()
    top = r_h if rule.rho_high is None else rule.rho_high
    bound = rule.rho_alpha * r_l / (np.linalg.norm(theta) + top)
    assert draws.rho.max() <= max(bound, 1e-10)
    assert draws.rho.max() > 0.95 * bound
    alpha = rule.alpha
    W_syn, U_syn = np.zeros((d, d)), np.zeros(d)
    W, U = np.zeros((M, d, d)), np.zeros((M, d))
    V_last, t_last, T = rule.ridge * np.eye(d), 0, len(draws.contexts)
    B = T * math.log(M * T) / (d * M)
    conservative, rewards = np.zeros((T, M), bool), np.zeros((T, M))
    for t, c in enumerate(draws.contexts):
        sync = False
        for i in range(M):
            phi, psi = phis[i][c], psis[i][c]
            original = phi @ theta
            optimal = original[np.argmax(psi @ theta)]
            x_b = np.argsort(-original, kind="stable")[rule.index]  # theirs leaves ties open
            r_b = original[x_b]
            V = rule.ridge * np.eye(d) + W_syn + W[i]
            theta_hat = np.linalg.inv(V) @ (U_syn + U[i])
            ratio = np.sqrt(np.linalg.det(V)) * np.linalg.det(rule.ridge * np.eye(d)) ** -0.5
            beta = SIGMA * np.sqrt(2 * np.log(ratio / (rule.delta / 2)))
            beta += np.sqrt(rule.ridge) * S
            least = np.linalg.eigvalsh(V)[0]
            widths = np.sqrt(np.einsum("kd,kd->k", psi @ np.linalg.inv(V), psi))
            upper = psi @ theta_hat + beta * widths
            floor = (1 - alpha) * (upper[x_b] if rule.unknown else r_b)
            kept = psi @ theta_hat >= beta * L / np.sqrt(least) + floor
            margin = alpha * (r_l if rule.unknown else r_b)
            if rule.gate == "gap":
                margin = (optimal - r_h) + margin
            reach = 2 * (2 - alpha) * L * beta if rule.unknown else 2 * L * beta
            with np.errstate(divide="ignore"):
                opened = least >= np.square(reach / margin)
            if kept.any() and opened:
                k = np.flatnonzero(kept)[np.argmax(upper[kept])]
                psi_new, y = psi[k], original[k]
            else:
                rho, zeta = draws.rho[t], draws.zeta[t, 0]
                psi_new = (1 - rho) * psi[x_b] + rho * zeta
                y = (1 - rho) * r_b + rho * zeta @ theta
                conservative[t, i] = True
            rewards[t, i] = y
            W[i] += np.outer(psi_new, psi_new)
            U[i] += psi_new * (y + draws.noise[t, i])
            V = rule.ridge * np.eye(d) + W_syn + W[i]
            growth = np.linalg.slogdet(V)[1] - np.linalg.slogdet(V_last)[1]
            sync |= growth * (t + 1 - t_last) >= B
        if sync:
            W_syn, U_syn = W_syn + W.sum(axis=0), U_syn + U.sum(axis=0)
            W[:], U[:] = 0, 0
            V_last, t_last = rule.ridge * np.eye(d) + W_syn, t + 1
    return conservative, rewards


def run_of(rule):
    runs = PANELS[rule.panel].runs(RunOptions(scale="paper", settings="notebook"))
    run = next(run for run in runs if run.label == rule.label)
    bounds = {"theta_bound": S, "feature_bound": L}
    quiet = replace(run.algorithm, noise=SIGMA, context_noise=0.0, **bounds)
    return replace(run, algorithm=quiet, rounds=rule.rounds, trials=1, seed=SEED)


@pytest.mark.filterwarnings("ignore::guardband.BoundWarning")
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_every_decision(rule):
    run = run_of(rule)
    assert (run.algorithm.ridge, run.algorithm.delta) == (rule.ridge, rule.delta)
    world = run.problem.build(trial_seed(SEED, 0))
    drawn = list(TrialDraws(world, rule.rounds, trial_seed(SEED, 0)).chunks())
    draws = drawn[0]._replace(
        **{
            name: np.concatenate([getattr(part, name) for part in drawn])
            for name in ("contexts", "noise", "rho", "zeta")
        }
    )
    conservative, rewards = notebook(rule, world, draws)
    found = gb.simulate(
        run.problem, run.algorithm, rounds=rule.rounds, seed=SEED, alpha=rule.alpha, trace=True
    )
    shut = rule.panel == "lastfm-unknown" and rule.unknown  # r_l is 0
    assert conservative.all() if shut else 0 < conservative.mean() < 1
    assert_array_equal(found.trace.conservative, conservative)
    assert_allclose(found.trace.rewards, rewards, atol=1e-9)


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.noise_first], ids=str)
def test_noise_is_added_before_features_are_divided_by_the_largest_reward(rule):
    """psi = (outer(user, item) + noise) / max; so it is for all algorithms of the panel."""
    runs = PANELS[rule.panel].runs(RunOptions(scale="paper", settings="notebook"))
    problem = runs[0].problem
    users, items, _ = _loaded(problem.name)
    rng = stream(SEED, "features")
    some = users[np.sort(rng.permutation(len(users))[: problem.contexts])]
    others = items[np.sort(rng.permutation(len(items))[: problem.actions])]
    phi = np.einsum("ci,kj->ckij", some, others).reshape(problem.contexts, problem.actions, 9)
    theta = np.eye(3).ravel() / np.sqrt(3)
    top = (phi @ theta).max()
    for run in runs:
        world = run.problem.build(SEED)
        noise = (world.psi - world.phi) * top / problem.psi_noise
        assert abs(noise.std() - 1) < 0.01
        assert world.phi.max() == pytest.approx(phi.max() / top)
        assert run.problem.context_noise >= problem.psi_noise / top


@pytest.mark.parametrize("name", ["2h", "2i", "lastfm-unknown"])
def test_other_notebooks_add_it_afterwards(name):
    run = PANELS[name].runs(RunOptions(scale="paper", settings="notebook"))[0]
    world = run.problem.build(SEED)
    assert (world.psi - world.phi).std() == pytest.approx(1e-3, rel=0.01)
