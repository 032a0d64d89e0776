"""Slow, plain NumPy reference of the rivals.

SCLTS, SCLUCB, SEGE, CLUCB, ROFUL, C-SquareCB, MA-SCLUCB and FedLinUCB; DisLSB and Fed-PE are in
``elimination``. Written from the rules of their papers, never from the compiled kernels: every
round starts from the list of what was seen and calls ``inv``, ``eigvalsh`` and ``pinv`` anew.
Tables are (C, K, d); ``choose`` is what agents choose by and ``learn`` what they learn from (psi or
phi), ``earn`` is phi. Rounds and phases count from 1 in formulas, arrays from 0.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Trace(NamedTuple):
    """What happened, per round and agent; ``sync_rounds`` counts from 1."""

    actions: np.ndarray
    conservative: np.ndarray
    rewards: np.ndarray
    sync_rounds: list[int]


class Draws(NamedTuple):
    """All randomness: (T,), (T, M), (T,), (T, d), (T, M, d), (T, M), (T, M)."""

    contexts: np.ndarray
    noise: np.ndarray
    rho: np.ndarray
    zeta: np.ndarray
    normal: np.ndarray
    order: np.ndarray
    coin: np.ndarray


def empty_trace(draws: Draws) -> Trace:
    shape = draws.noise.shape
    return Trace(np.zeros(shape, int), np.zeros(shape, bool), np.zeros(shape), [])


def beside(traces: Sequence[Trace]) -> Trace:
    """Put the traces of agents that never talk side by side."""
    return Trace(
        *(np.concatenate(part, axis=1) for part in list(zip(*traces, strict=True))[:3]), []
    )


def ridge_fit(seen, d, ridge):
    """Return V and theta-hat of a list of (x, y)."""
    V, U = ridge * np.eye(d), np.zeros(d)
    for x, y in seen:
        V = V + np.outer(x, x)
        U = U + x * y
    return V, np.linalg.inv(V) @ U


def horizon_radius(n, d, *, sigma, level, ridge, S=1.0, L=1.0):
    """sigma sqrt(d log((1 + n L^2 / lambda) / delta')) + sqrt(lambda) S."""
    return sigma * np.sqrt(d * np.log((1.0 + n * L**2 / ridge) / level)) + np.sqrt(ridge) * S


def determinant_radius(V, *, sigma, level, ridge, S=1.0):
    """sigma sqrt(log det V - d log lambda + 2 log(1 / delta)) + sqrt(lambda) S."""
    grown = np.linalg.slogdet(V)[1] - len(V) * np.log(ridge)
    return sigma * np.sqrt(grown + 2.0 * np.log(1.0 / level)) + np.sqrt(ridge) * S


class GuardSet(NamedTuple):
    """Guard-UCB's confidence set of agents that keep apart, for a declared context noise."""

    noise: float
    context_noise: float
    delta: float
    agents: int
    ridge: float = 1.0
    S: float = 1.0

    def fit(self, seen, d):
        """Return V, theta-hat and beta, the smaller of log det's and the residuals', delta halved.

        H sums w (yhat^2 - 2 y yhat), yhat predicted from what was seen before.
        """
        w = 1.0 / (self.noise**2 + self.context_noise**2)
        V, U, H = self.ridge * np.eye(d), np.zeros(d), 0.0
        for x, y in seen:
            yhat = x @ np.linalg.solve(V, U)
            H += w * (yhat**2 - 2.0 * y * yhat)
            V = V + w * np.outer(x, x)
            U = U + w * x * y
        theta_hat = np.linalg.solve(V, U)
        rest = 2.0 * np.log(2.0 * np.pi**2 * self.agents / (6.0 * self.delta))
        rest += self.ridge * self.S**2
        volume = np.linalg.slogdet(V)[1] - d * np.log(self.ridge)
        return V, theta_hat, np.sqrt(min(volume, max(0.0, H + U @ theta_hat)) + rest)


def widths(table, V):
    """norm(x)_{V^-1} of every row."""
    inverse = np.linalg.inv(V)
    return np.array([np.sqrt(x @ inverse @ x) for x in table])


def own(draws: Draws, m: int, task: Sequence[int]) -> Draws:
    """One agent's draws in its task's own coordinates; directions have length one there."""
    zeta = draws.zeta[:, task]
    zeta = zeta / np.linalg.norm(zeta, axis=1, keepdims=True)
    return draws._replace(
        noise=draws.noise[:, m : m + 1],
        zeta=zeta,
        normal=draws.normal[:, m : m + 1, task],
        coin=draws.coin[:, m : m + 1],
    )


def stage_wise(
    choose, learn, earn, theta, baseline, draws, *, method, alpha, sigma, level, ridge, S=1.0,
    L=1.0, kappa=None, gate=True, pace=None, known=True, reward_floor=None, guard=None,
) -> Trace:  # fmt: skip
    """SCLTS, SCLUCB or SEGE of one agent, all tables in its own coordinates.

    ``kappa`` (C,) is added to the gate's margin; ``pace`` is SEGE's c, ``level`` delta'; ``guard``
    is Guard-UCB's confidence set in the place of their own.
    """
    d, seen, trace = len(theta), [], empty_trace(draws)
    for t, c in enumerate(draws.contexts):
        if guard is None:
            V, theta_hat = ridge_fit(seen, d, ridge)
            beta = horizon_radius(t, d, sigma=sigma, level=level, ridge=ridge, S=S, L=L)
        else:
            V, theta_hat, beta = guard.fit(seen, d)
        b, F, r_b = baseline[c], choose[c], earn[c, baseline[c]] @ theta
        mean, width = F @ theta_hat, beta * widths(F, V)
        floor = (1.0 - alpha) * (r_b if known else mean[b] + width[b])
        safe = mean - width >= floor
        least = np.linalg.eigvalsh(V)[0]
        if method == "sege":
            is_open = least >= pace * np.sqrt(t + 1)
        elif not gate:
            is_open = True
        else:
            reach = 2.0 * L * beta * (1.0 if known else 2.0 - alpha)
            margin = alpha * (r_b if known else reward_floor) + (0.0 if kappa is None else kappa[c])
            is_open = margin > 0.0 and least >= (reach / margin) ** 2
        if known and r_b <= 0.0:
            is_open = False
        if method == "sclts":
            root = np.linalg.cholesky(np.linalg.inv(V))
            score = F @ (theta_hat + beta * root @ draws.normal[t, 0])
        else:
            score = mean if method == "sege" else mean + width
        if is_open and safe.any():
            a = int(np.argmax(np.where(safe, score, -np.inf)))
            x, reward = learn[c, a], earn[c, a] @ theta
        else:
            a, rho, zeta = b, draws.rho[t], draws.zeta[t]
            x = (1.0 - rho) * learn[c, b] + rho * zeta
            reward = (1.0 - rho) * r_b + rho * zeta @ theta
            trace.conservative[t, 0] = True
        seen.append((x, reward + draws.noise[t, 0]))
        trace.actions[t, 0], trace.rewards[t, 0] = a, reward
    return trace


def cumulative(
    choose, learn, earn, theta, baseline, draws, *, alpha, sigma, level, ridge, S=1.0, L=1.0,
    known=True, reward_floor=0.0, guard=None,
) -> Trace:  # fmt: skip
    """CLUCB of one agent, or with ``known=False`` CLUCB2."""
    d, seen, trace = len(theta), [], empty_trace(draws)
    z, u, w = np.zeros(d), np.zeros(d), np.zeros(d)
    saved = everything = 0.0
    n = 0
    for t, c in enumerate(draws.contexts):
        if guard is None:
            V, theta_hat = ridge_fit(seen, d, ridge)
            beta = horizon_radius(len(seen), d, sigma=sigma, level=level, ridge=ridge, S=S, L=L)
        else:
            V, theta_hat, beta = guard.fit(seen, d)
        inverse = np.linalg.inv(V)
        b, F, r_b = baseline[c], choose[c], earn[c, baseline[c]] @ theta

        def bound(x, sign, at=theta_hat, metric=inverse, radius=beta):
            return x @ at + sign * radius * np.sqrt(x @ metric @ x)

        a = int(np.argmax([bound(x, 1.0) for x in F]))
        sure = bound(z + F[a], -1.0)
        if known:
            fine = sure + saved >= (1.0 - alpha) * (everything + r_b)
        else:
            spare = max(bound(u, -1.0), n * reward_floor)
            fine = sure + alpha * spare >= (1.0 - alpha) * bound(w + F[b], 1.0)
        everything += r_b
        if fine:
            z, w = z + F[a], w + F[b]
        else:
            a, saved, u, n = b, saved + r_b, u + F[b], n + 1
            trace.conservative[t, 0] = True
        reward = earn[c, a] @ theta
        if fine or not known:
            seen.append((learn[c, a], reward + draws.noise[t, 0]))
        trace.actions[t, 0], trace.rewards[t, 0] = a, reward
    return trace


def masked(table, task):
    """Return the table with zeros outside the task."""
    out = np.zeros_like(table)
    out[..., task] = table[..., task]
    return out


def fed_lin_ucb(
    choose, learn, earn, theta, tasks, baseline, draws, *, sigma, level, ridge, growth, S=1.0,
    L=1.0, radius=None, alpha=None,
) -> Trace:  # fmt: skip
    """FedLinUCB, all agents in every round; with ``alpha`` under the guard."""
    M, d, T, trace = len(tasks), len(theta), len(draws.contexts), empty_trace(draws)
    server, held, local = [], [[] for _ in tasks], [[] for _ in tasks]
    if radius is None:
        long = T / min(growth, 1.0)
        alone = horizon_radius(long, d, sigma=sigma, level=level, ridge=ridge, S=S, L=L)
        stretch = np.sqrt(1.0 + M * growth) + M * np.sqrt(2.0 * growth)
        radius = np.sqrt(ridge) * S + stretch * alone
    for t, c in enumerate(draws.contexts):
        for m in draws.order[t]:
            F, b = masked(choose[c], tasks[m]), baseline[m][c]
            V, theta_hat = ridge_fit(held[m], d, ridge)
            mean, width = F @ theta_hat, radius * widths(F, V)
            a, trace.conservative[t, m] = guarded(
                mean, width, b, masked(earn[c, b], tasks[m]) @ theta, alpha
            )
            played = play(learn, earn, theta, tasks[m], draws, t, a, trace.conservative[t, m])
            trace.actions[t, m], trace.rewards[t, m] = a, played[1]
            local[m].append((played[0], played[1] + draws.noise[t, m]))
            grown = ridge_fit(held[m] + local[m], d, ridge)[0]
            if np.linalg.slogdet(grown)[1] - np.linalg.slogdet(V)[1] > np.log(1.0 + growth):
                server = server + local[m]
                held[m], local[m] = list(server), []
                if not trace.sync_rounds or trace.sync_rounds[-1] != t + 1:
                    trace.sync_rounds.append(t + 1)
    return trace


def guarded(mean, width, b, r_b, alpha):
    """Return the action and whether the round is conservative; no alpha, no guard."""
    safe = np.ones(len(mean), bool) if alpha is None else mean - width >= (1.0 - alpha) * r_b
    if alpha is not None and r_b <= 0.0:
        safe[:] = False
    if not safe.any():
        return b, True
    return int(np.argmax(np.where(safe, mean + width, -np.inf))), False


def play(learn, earn, theta, task, draws, t, a, conservative):
    """Return the vector to learn from and the noise-free reward."""
    c = draws.contexts[t]
    x, y = masked(learn[c, a], task), masked(earn[c, a], task) @ theta
    if conservative:
        rho, zeta = draws.rho[t], draws.zeta[t]
        x, y = (1.0 - rho) * x + rho * zeta, (1.0 - rho) * y + rho * zeta @ theta
    return x, y


def dis_lin_ucb(
    choose, learn, earn, theta, tasks, baseline, draws, *, sigma, level, ridge, S=1.0, share=True,
    alpha=None, kappa=None,
) -> Trace:  # fmt: skip
    """DisLinUCB, with ``alpha`` under the guard; M LinUCB learners with ``share=False``.

    With ``kappa``, a number, it is MA-SCLUCB: the guard, and SCLUCB's gate at L = 1.
    """
    M, d, T, trace = len(tasks), len(theta), len(draws.contexts), empty_trace(draws)
    common, mine = [], [[] for _ in tasks]
    budget, last, V_last = T * np.log(M * T) / (d * M), 0, ridge * np.eye(d)
    for t, c in enumerate(draws.contexts):
        call = False
        for m, task in enumerate(tasks):
            F, b = masked(choose[c], task), baseline[m][c]
            V, theta_hat = ridge_fit(common + mine[m], d, ridge)
            beta = determinant_radius(V, sigma=sigma, level=level, ridge=ridge, S=S)
            mean, width = F @ theta_hat, beta * widths(F, V)
            r_b = masked(earn[c, b], task) @ theta
            a, trace.conservative[t, m] = guarded(mean, width, b, r_b, alpha)
            if kappa is not None:
                need = (2.0 * beta / (kappa + alpha * r_b)) ** 2
                if np.linalg.eigvalsh(V)[0] < need:
                    a, trace.conservative[t, m] = b, True
            played = play(learn, earn, theta, task, draws, t, a, trace.conservative[t, m])
            trace.actions[t, m], trace.rewards[t, m] = a, played[1]
            mine[m].append((played[0], played[1] + draws.noise[t, m]))
            V = ridge_fit(common + mine[m], d, ridge)[0]
            growth = np.linalg.slogdet(V)[1] - np.linalg.slogdet(V_last)[1]
            call = call or growth * (t + 1 - last) >= budget
        if share and call:
            common = common + [pair for seen in mine for pair in seen]
            mine, last = [[] for _ in tasks], t + 1
            V_last = ridge_fit(common, d, ridge)[0]
            trace.sync_rounds.append(t + 1)
    return trace


def directional(
    choose, learn, earn, theta, baseline, draws, *, alpha, sigma, level, ridge, S=1.0, L=1.0,
    whole=False, guard=None,
) -> Trace:  # fmt: skip
    """ROFUL of one agent; with ``whole`` a coin plays whole actions."""
    d, seen, trace = len(theta), [], empty_trace(draws)
    for t, c in enumerate(draws.contexts):
        if guard is None:
            V, theta_hat = ridge_fit(seen, d, ridge)
            beta = horizon_radius(t, d, sigma=sigma, level=level / 2, ridge=ridge, S=S, L=L)
        else:
            V, theta_hat, beta = guard.fit(seen, d)
        F, b = choose[c], baseline[c]
        limit = alpha * (earn[c, b] @ theta)
        k = int(np.argmax(F @ theta_hat + beta * widths(F, V)))
        z = F[k] - F[b]
        q = beta * np.sqrt(z @ np.linalg.inv(V) @ z) - z @ theta_hat
        g1 = 1.0 if q <= 0.0 else min(1.0, limit / q)
        g2 = 1.0 if not z.any() else min(1.0, limit / (S * np.linalg.norm(z)))
        g = max(g1, g2)
        trace.conservative[t, 0] = g < 1.0
        a = k if g >= 1.0 else b
        if whole:
            g = 1.0 if draws.coin[t, 0] < g else 0.0
            a = k if g else b
        x = learn[c, b] + g * (learn[c, k] - learn[c, b])
        reward = (earn[c, b] + g * (earn[c, k] - earn[c, b])) @ theta
        seen.append((x, reward + draws.noise[t, 0]))
        trace.actions[t, 0], trace.rewards[t, 0] = a, reward
    return trace


def by_gaps(
    choose, learn, earn, theta, baseline, draws, *, alpha, level, ridge, slack=16.0, gamma=1.0,
    S=1.0, L=1.0,
) -> Trace:  # fmt: skip
    """C-SquareCB of one agent, with the Vovk-Azoury-Warmuth forecaster as its oracle."""
    d, seen, trace = len(theta), [], empty_trace(draws)
    predicted = saved = everything = 0.0

    def regret(m):
        return d * np.log(1.0 + m * L**2 / (ridge * d)) + ridge * S**2

    for t, c in enumerate(draws.contexts):
        m, F, b = len(seen), choose[c], baseline[c]
        r_b, K = earn[c, b] @ theta, len(F)
        V = ridge * np.eye(d) + sum(np.outer(x, x) for x, _ in seen)
        U = sum((y * x for x, y in seen), np.zeros(d))
        yhat = np.array([x @ np.linalg.inv(V + np.outer(x, x)) @ U for x in F])
        j = int(np.argmax(yhat))
        rate = gamma * np.sqrt(K * (m + 1) / (regret(m + 1) + np.log(8.0 / level)))
        p = 1.0 / (K + rate * (yhat[j] - yhat))
        p[j] = 0.0
        p[j] = 1.0 - p.sum()
        drawn = np.r_[np.delete(np.arange(K), j), j]  # the leader last: it has what is left
        a = int(drawn[np.searchsorted(np.cumsum(p[drawn])[:-1], draws.coin[t, 0], side="right")])
        everything += r_b
        margin = slack * np.sqrt(m * (regret(m) + np.log(4.0 / level)))
        if predicted + p @ yhat + saved - margin >= (1.0 - alpha) * everything:
            predicted += p @ yhat
            seen.append((learn[c, a], earn[c, a] @ theta + draws.noise[t, 0]))
        else:
            a, saved, trace.conservative[t, 0] = b, saved + r_b, True
        trace.actions[t, 0], trace.rewards[t, 0] = a, earn[c, a] @ theta
    return trace
