"""Slow, plain NumPy reference of the rivals that eliminate actions in phases: DisLSB and Fed-PE.

Written from the rules of their papers, as ``rivals`` is, whose tables and draws they take.
"""

from typing import NamedTuple

import numpy as np
from reference.rivals import Trace, empty_trace, masked, widths


def design(clients, alive, tolerance=0.1):
    """Multiplicative steps to max log det of sum pi z z', one probability vector per client."""
    pi = [a / a.sum() for a in alive.astype(float)]
    while True:
        V = sum(p * np.outer(z, z) for ps, zs in zip(pi, clients, strict=True)
                for p, z in zip(ps, zs, strict=True))  # fmt: skip
        inverse = np.linalg.pinv(V, rcond=1e-12, hermitian=True)
        g = [np.array([z @ inverse @ z for z in zs]) for zs in clients]
        G = sum(gs[a].max() for gs, a in zip(g, alive, strict=True))
        if np.linalg.matrix_rank(V, tol=1e-12 * np.trace(V)) + tolerance >= G:
            return np.array(pi), G
        pi = [p * gs / (p @ gs) if p @ gs > 0 else p for p, gs in zip(pi, g, strict=True)]


class Eliminated(NamedTuple):
    """A trace, and what survived: (M, C, K), or for option B the past estimates."""

    trace: Trace
    alive: np.ndarray
    thetas: list[np.ndarray]


def dis_lsb(choose, learn, earn, theta, tasks, draws, lengths, *, option) -> Eliminated:
    """DisLSB with phases of ``lengths(l)`` rounds; option "A" or "B"."""
    (C, K, d), M = choose.shape, len(tasks)
    F = np.array([masked(choose, task) for task in tasks])  # (M, C, K, d)
    alive, thetas, trace = np.ones((M, C, K), bool), [], empty_trace(draws)
    phase, left = 0, 0
    for t, c in enumerate(draws.contexts):
        if left == 0:
            phase, left = phase + 1, lengths(phase + 1)
            seen, visits, counts = [], np.zeros((M, C)), np.zeros((M, C, K))
            mine = np.tile(np.eye(d), (M, 1, 1))
            if option == "A":
                shares = design(F.reshape(M * C, K, d), alive.reshape(M * C, K))[0]
                shares = shares.reshape(M, C, K)
        for m, task in enumerate(tasks):
            if option == "A":
                visits[m, c] += 1
                a = int(np.argmax(shares[m, c] * visits[m, c] - counts[m, c]))
                counts[m, c, a] += 1
            else:
                passes = np.ones(K, bool)
                for q, past in enumerate(thetas):
                    value = F[m, c] @ past
                    passes &= value >= value[passes].max() - 2.0 ** (1 - (q + 1))
                size = widths(F[m, c], mine[m])
                a = int(np.argmax(np.where(passes, size, -1.0)))
            x, reward = masked(learn[c, a], task), masked(earn[c, a], task) @ theta
            mine[m] += np.outer(x, x)
            seen.append((x, reward + draws.noise[t, m]))
            trace.actions[t, m], trace.rewards[t, m] = a, reward
        left -= 1
        if left == 0:
            W = sum(np.outer(x, x) for x, _ in seen)
            past = np.linalg.pinv(W, rcond=1e-12, hermitian=True) @ sum(x * y for x, y in seen)
            thetas.append(past)
            value = F @ past
            best = np.where(alive, value, -np.inf).max(axis=2, keepdims=True)
            alive &= value >= best - 2.0 ** (1 - phase)
            trace.sync_rounds.append(t + 1)
    return Eliminated(trace, alive, thetas)


def fed_pe_alpha(clients, K, arms, H, delta, d):
    """alpha^2 = min{2 ln(2 M K H / delta), 2 ln(arms H / delta) + d ln k + d}."""
    known = 2.0 * np.log(arms * H / delta)
    k = next(k for k in 1.0 + 0.1 * np.arange(1, 10**5) if k * d >= known + d * np.log(k) + d)
    return np.sqrt(min(2.0 * np.log(2.0 * clients * K * H / delta), known + d * np.log(k) + d))


def fed_pe(choose, learn, earn, theta, tasks, draws, *, sigma, delta) -> Eliminated:
    """Fed-PE with the shared parameter and one virtual client per agent and context."""
    (C, K, d), M, T = choose.shape, len(tasks), len(draws.contexts)
    F = np.array([masked(choose, task) for task in tasks])
    alpha = fed_pe_alpha(M * C, K, K * C, int(np.ceil(np.log2(T))), delta, d)
    alive, thetas, trace = np.ones((M, C, K), bool), [], empty_trace(draws)
    phase, left, leader = 0, 0, None
    for t, c in enumerate(draws.contexts):
        if left == 0:
            phase, left = phase + 1, C * 2 ** (phase + 1)
            seen, counts = [], np.zeros((M, C, K))
            pi = design(F.reshape(M * C, K, d), alive.reshape(M * C, K))[0].reshape(M, C, K)
            quotas = np.where(pi < 1e-10, 0.0, np.ceil(pi * 2**phase))
            leader = pi.argmax(axis=2) if leader is None else leader
        for m, task in enumerate(tasks):
            lack = quotas[m, c] - counts[m, c]
            a = int(np.argmax(lack)) if lack.max() > 0 else int(leader[m, c])
            counts[m, c, a] += 1
            x, reward = masked(learn[c, a], task), masked(earn[c, a], task) @ theta
            seen.append((x, reward + draws.noise[t, m]))
            trace.actions[t, m], trace.rewards[t, m] = a, reward
        left -= 1
        if left == 0:
            V = np.linalg.pinv(sum(np.outer(x, x) for x, _ in seen), rcond=1e-12, hermitian=True)
            thetas.append(V @ sum(x * y for x, y in seen))
            value = F @ thetas[-1]
            u = alpha * sigma * np.sqrt(np.einsum("mcki,ij,mckj->mck", F, V, F))
            leader = np.where(alive, value, -np.inf).argmax(axis=2)
            low = np.take_along_axis(value - u, leader[..., None], axis=2)
            alive &= value + u >= low
            trace.sync_rounds.append(t + 1)
    return Eliminated(trace, alive, thetas)
