"""`python -m bench.anchors`: published numbers of rivals, reproduced in their papers' own settings.

ROFUL (Hutchinson et al., AISTATS 2024), figures 2a and 2b, with the scales of the package's
kernels; FedLinUCB (He et al., NeurIPS 2022), M = 15, with the downloads at zero as the authors
start them, and at lambda I as the package does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from guardband.kernels.directional import largest_scale, safe_scale

LARGEST, SAFE = np.vectorize(largest_scale), np.vectorize(safe_scale)


class Figure(NamedTuple):
    """A figure of the ROFUL paper: the range of b, and mean and deviation of R_t / sqrt(t)."""

    limits: tuple[float, float]
    found: dict[int, tuple[float, float]]


FIGURE_2A = {1_000: (1.352, 1.337), 10_000: (0.872, 1.146), 50_000: (0.649, 1.072)}
FIGURE_2B = {
    1_000: (11.81, 7.31),
    10_000: (11.85, 15.26),
    50_000: (9.05, 14.92),
    100_000: (7.35, 11.07),
}
ROFUL = {"2a": Figure((0.25, 1.0), FIGURE_2A), "2b": Figure((0.05, 0.25), FIGURE_2B)}
FED_LIN_UCB = (92.2, 9.8, 400.4)  # regret, its standard deviation, messages; 20 runs


def roful(figure: str, rounds: int, trials: int = 30) -> dict[int, tuple[float, float, float]]:
    """Return mean and deviation of R_t / sqrt(t), and the largest violation, by t.

    Unknown are the reward's theta and the constraint's a; both are observed with noise, and
    a'x <= b must hold. Actions are scaled directions. The draws are in the authors' order.
    """
    limits, found = ROFUL[figure]
    horizon, rng = max(found), np.random.default_rng(0)
    draws = [_roful_trial(rng, limits, horizon) for _ in range(trials)]
    theta, a, b, U = (np.array([draw[i] for draw in draws]) for i in range(4))
    noise = np.array([draw[4][:rounds] for draw in draws])
    S, sigma, delta, n = np.sqrt(2.0), 0.1, 0.01, np.arange(trials)
    value, cost = np.einsum("nkd,nd->nk", U, theta), np.einsum("nkd,nd->nk", U, a)
    best = (LARGEST(b[:, None], cost) * value).max(axis=1)
    V, moments = np.tile(np.eye(2), (trials, 1, 1)), np.zeros((trials, 2, 2))
    regret, worst, told = np.zeros(trials), 0.0, {}
    for t in range(rounds):
        beta = sigma * np.sqrt(2 * np.log((1 + t) / (delta / 2))) + S
        inverse = np.linalg.inv(V)
        theta_hat, a_hat = np.einsum("nij,cnj->cni", inverse, moments.transpose(1, 0, 2))
        width = beta * np.sqrt(np.einsum("nki,nij,nkj->nk", U, inverse, U))
        costs = np.einsum("nkd,nd->nk", U, a_hat)
        scale = LARGEST(b[:, None], costs - width)
        hoped = scale * (np.einsum("nkd,nd->nk", U, theta_hat) + width)
        k = hoped.argmax(axis=1)
        s = np.where(hoped[n, k] < 0, 0.0, scale[n, k])
        s = s * SAFE(b, s * (costs + width)[n, k], s, S)
        x = s[:, None] * U[n, k]
        earned, spent = (x * theta).sum(axis=1), (x * a).sum(axis=1)
        V += x[:, :, None] * x[:, None, :]
        moments[:, 0] += (earned + sigma * noise[:, t, 0])[:, None] * x
        moments[:, 1] += (spent + sigma * noise[:, t, 1])[:, None] * x
        regret += best - earned
        worst = max(worst, float((spent - b).max()))
        if t + 1 in found:
            shown = regret / np.sqrt(t + 1)
            told[t + 1] = (float(shown.mean()), float(shown.std()), worst)
    return told


def _roful_trial(
    rng: np.random.Generator, limits: tuple[float, float], horizon: int
) -> tuple[np.ndarray, ...]:
    theta, a = rng.uniform(-1, 1, 2), rng.uniform(-1, 1, 2)
    b = np.array(rng.uniform(*limits))
    while True:  # until one direction has a positive reward
        U = rng.normal(size=(10, 2))
        U /= np.linalg.norm(U, axis=1, keepdims=True)
        if (U @ theta > 0).any():
            return theta, a, b, U, rng.standard_normal((horizon, 2))


def fed_lin_ucb(start: float, runs: int = 20, rounds: int = 30_000) -> tuple[float, float, float]:
    """Return regret, its standard deviation and messages; downloads begin at `start` times I.

    One random agent of 15 acts in a round, on 25 fresh actions; a = 1, lambda = 1, beta = 0.5.
    """
    found = np.array([_fed_lin_ucb_run(start, seed, rounds) for seed in range(runs)])
    return float(found[:, 0].mean()), float(found[:, 0].std()), float(found[:, 1].mean())


def _fed_lin_ucb_run(start: float, seed: int, rounds: int) -> tuple[float, float]:
    rng, d, M, beta, growth = np.random.default_rng(seed), 15, 15, 0.5, 1.0
    theta = np.ones(d) / np.sqrt(d)
    server_V, server_U = np.eye(d), np.zeros(d)
    held_V, held_U = np.tile(start * np.eye(d), (M, 1, 1)), np.zeros((M, d))
    inverse, estimate = np.linalg.pinv(held_V), np.zeros((M, d))
    local_V, local_U = np.zeros((M, d, d)), np.zeros((M, d))
    last = np.linalg.det(held_V)  # where it is 0, rounding decides when it has grown, as in theirs
    regret = messages = 0.0
    for _ in range(rounds):
        m = rng.integers(M)
        X = rng.uniform(-1, 1, (25, d)) / np.sqrt(d)
        x = X[np.argmax(X @ estimate[m] + beta * np.sqrt(((X @ inverse[m]) * X).sum(axis=1)))]
        regret += (X @ theta).max() - x @ theta
        local_V[m] += np.outer(x, x)
        local_U[m] += (x @ theta + 0.3 * rng.normal()) * x
        if np.linalg.det(held_V[m] + local_V[m]) > (1.0 + growth) * last[m]:
            server_V, server_U = server_V + local_V[m], server_U + local_U[m]
            held_V[m], held_U[m] = server_V, server_U
            local_V[m], local_U[m] = 0.0, 0.0
            inverse[m] = np.linalg.inv(server_V)
            estimate[m] = inverse[m] @ server_U
            last[m] = np.linalg.det(server_V)
            messages += 2
    return regret, messages


def main() -> None:
    table = Table("rival", "where", "published", "here", box=None, pad_edge=False)
    for figure, (_, published) in ROFUL.items():
        for t, (mean, std, worst) in roful(figure, max(published)).items():
            told = "{:.3f} +- {:.3f}".format(*published[t])
            here = f"{mean:.3f} +- {std:.3f}, largest violation {max(worst, 0.0):.2g}"
            table.add_row("ROFUL", f"figure {figure}, R_t / sqrt(t) at {t:,}", told, here)
    told = "regret {:.1f} +- {:.1f}, {:.1f} messages"
    for start, where in ((0.0, "downloads start at 0"), (1.0, "downloads start at I, as here")):
        published = told.format(*FED_LIN_UCB) if start == 0.0 else "-"
        here = told.format(*fed_lin_ucb(start))
        table.add_row("FedLinUCB", f"M = 15, T = 30,000, {where}", published, here)
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
