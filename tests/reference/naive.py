"""Slow, plain NumPy reference of DiSC-UCB, DiSC-UCB-UB and DisLinUCB.

Written from the paper ("Distributed Multi-Task Learning for Stochastic Bandits with Context
Distribution and Stage-wise Constraints") and the project's specification, never from the
compiled kernels: it shares no line and no trick with them. Every round starts from the stored
sums and calls ``inv``, ``slogdet`` and ``eigvalsh`` anew. Names in backticks (``eq:conf``,
``pas``, ``UBR_1``) are labels of the paper's source; "line n" is a line of Algorithm 1, where
every state, loop head, branch head and ``end`` counts. Inputs are not checked for their range.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

GATES = {
    "disc-ucb": {"printed", "gap", "none"},
    "disc-ucb-unknown": {"printed", "gap", "none"},
    "dis-lin-ucb": {"printed", "gap", "none"},  # has no gate: the option is ignored
}
TOLERANCE = 1e-12  # of the violation counts

Tasks = Sequence[Iterable[int]]


class Trace(NamedTuple):
    """What happened, per round (T) and agent (M); ``theta_hats`` to ``lambda_min`` before updates.

    ``actions`` is the baseline action in conservative rounds of ``mix="vector"``, ``rewards`` the
    noise-free reward of what was played, ``empty_set``: gate open, but no action was kept,
    ``outside``: theta not in the set, ``pruned``: gate open, but argmax psi'theta not kept.
    """

    actions: np.ndarray
    conservative: np.ndarray
    rewards: np.ndarray
    sync_rounds: list[int]
    theta_hats: np.ndarray
    beta: np.ndarray
    lambda_min: np.ndarray
    empty_set: np.ndarray
    gate_open: np.ndarray
    outside: np.ndarray
    pruned: np.ndarray


class Scores(NamedTuple):
    """Totals per agent, each of shape (M,)."""

    regret: np.ndarray
    regret_expected: np.ndarray
    violations_expected: np.ndarray
    violations_realised: np.ndarray


def masked(table: np.ndarray, task: Iterable[int]) -> np.ndarray:
    """Return a copy of a feature table with the coordinates outside ``task`` (I_i) set to zero."""
    inside = np.zeros(table.shape[-1], dtype=bool)
    inside[list(task)] = True
    return np.where(inside, table, 0.0)


def solve(W: np.ndarray, U: np.ndarray, ridge: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Return V = ridge I + W, theta_hat = V^-1 U and log det(V / ridge) (line 6)."""
    V = ridge * np.eye(len(U)) + W
    return V, np.linalg.inv(V) @ U, float(np.linalg.slogdet(V / ridge)[1])


def estimate(
    observations: tuple[np.ndarray, np.ndarray], ridge: float, weights: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, float]:
    """Ridge estimate from raw data (line 6).

    Parameters
    ----------
    observations
        Features (n, d) and rewards (n,).
    ridge
        The paper's lambda.
    weights
        One weight per observation, 1 if omitted.

    Returns
    -------
    tuple
        V, theta_hat and log det(V / ridge).
    """
    features, rewards = (np.asarray(part, dtype=float) for part in observations)
    weighted = features if weights is None else features * np.asarray(weights)[:, None]
    return solve(weighted.T @ features, weighted.T @ rewards, ridge)


def radius(
    logdet_ratio, *, ridge=1.0, noise=1.0, context_noise=1.0, delta=1e-3, theta_bound=1.0
) -> float:
    """Return beta(sqrt(context_noise^2 + noise^2), delta / 2) of ``eq:conf`` and Lemma 1.

    ``logdet_ratio`` is log det(V / ridge); the paper has context_noise = theta_bound = 1.
    """
    log_term = 0.5 * logdet_ratio - np.log(delta / 2.0)
    sigma = np.sqrt(context_noise**2 + noise**2)
    return float(sigma * np.sqrt(2.0 * log_term) + np.sqrt(ridge) * theta_bound)


def gate_is_open(algorithm, gate, *, lambda_min, width, alpha, r_b, gap, reward_floor) -> bool:
    """Test lambda_min against the gate: line 13 (``cons``) or ``UBR_2``, with the gap if asked for.

    ``width`` is L beta; the paper has L = 1.
    """
    if algorithm == "dis-lin-ucb":
        return True
    if algorithm == "disc-ucb" and r_b <= 0.0:  # nothing to promise, whatever the gate
        return False
    if gate == "none":
        return True
    reach, margin = 2.0 * width, alpha * r_b
    if algorithm == "disc-ucb-unknown":
        reach, margin = 2.0 * (2.0 - alpha) * width, alpha * reward_floor
    margin += gap if gate == "gap" else 0.0
    return bool(margin > 0.0 and lambda_min >= (reach / margin) ** 2)


def kept_actions(algorithm, mean, *, lambda_min, width, alpha, r_b, upper_b) -> np.ndarray:
    """Return the pruned set as booleans (K,): line 8 (``pas``), ``eq:prun2`` or ``UBR_1``.

    ``upper_b`` is max over B of psi_b'v, that is psi_b'theta_hat + beta norm(psi_b)_{V^-1}.
    """
    if algorithm == "dis-lin-ucb":
        return np.ones(len(mean), dtype=bool)
    reference = upper_b if algorithm == "disc-ucb-unknown" else r_b
    return mean >= width / np.sqrt(lambda_min) + (1.0 - alpha) * reference


def best_among(values: np.ndarray, allowed: np.ndarray) -> int:
    """Return the allowed index with the largest value, the lowest one on ties (line 10)."""
    return int(np.argmax(np.where(allowed, values, -np.inf)))


def simulate(
    phi, psi, theta, tasks, baseline, *, algorithm, alpha, ridge=1.0, noise=1.0, context_noise=1.0,
    delta=1e-3, theta_bound=1.0, feature_bound=1.0, gate="printed", gap=None, reward_floor=None,
    mix="vector", share=True, contexts, reward_noise, rho, zeta, coin=None, horizon=None,
) -> Trace:  # fmt: skip
    """Run one trial of Algorithm 1 on given draws.

    Parameters
    ----------
    phi, psi
        Realised and expected features, (C, K, d); each agent sees them masked by its task.
    theta, tasks, baseline
        True parameter (d,), one index set per agent, baseline actions (M, C).
    algorithm
        "disc-ucb", "disc-ucb-unknown" (DiSC-UCB-UB) or "dis-lin-ucb".
    alpha
        One number or one per agent.
    ridge, noise, context_noise, delta, theta_bound, feature_bound
        lambda, sigma, the 1 beside sigma^2, delta, and the bounds S and L on norms (paper: 1).
    gate, gap, reward_floor
        "printed", "gap" (needs ``gap``, (M, C)) or "none"; ``reward_floor`` is r_l in ``UBR_2``.
    mix
        Conservative rounds: "vector" plays and learns from (1-rho) b + rho zeta; "action" plays
        the largest upper bound over all actions if ``coin < rho``, otherwise the baseline.
    contexts, reward_noise, rho, zeta, coin
        The draws: (T,), (T, M), (T,), (T, d) not masked, (T, M).
    horizon
        The T in the synchronisation threshold B; the number of rounds if omitted.
    share
        False: no synchronisation, M separate learners.
    """
    if gate not in GATES[algorithm] or mix not in {"vector", "action"}:
        raise ValueError(f"no such variant: {algorithm=}, {gate=}, {mix=}")
    if gate == "gap" and gap is None:
        raise ValueError("the gap gate needs gap, an (M, C) array")
    n_rounds, M, d = len(contexts), len(tasks), len(theta)
    alphas = np.broadcast_to(np.asarray(alpha, dtype=float), (M,))
    gaps = np.zeros_like(baseline, dtype=float) if gap is None else np.asarray(gap)
    phis, psis = ([masked(table, task) for task in tasks] for table in (phi, psi))
    T = n_rounds if horizon is None else horizon
    B = T * np.log(M * T) / (d * M)  # line 1
    bounds = {"ridge": ridge, "noise": noise, "context_noise": context_noise}
    bounds |= {"delta": delta, "theta_bound": theta_bound}
    W_syn, U_syn, W, U = np.zeros((d, d)), np.zeros(d), np.zeros((M, d, d)), np.zeros((M, d))
    logdet_last, t_last = 0.0, 0  # log det(V_last / ridge): the two factors ridge^d cancel
    trace = Trace(
        actions=np.zeros((n_rounds, M), dtype=int),
        conservative=np.zeros((n_rounds, M), dtype=bool),
        rewards=np.zeros((n_rounds, M)),
        sync_rounds=[],
        theta_hats=np.zeros((n_rounds, M, d)),
        beta=np.zeros((n_rounds, M)),
        lambda_min=np.zeros((n_rounds, M)),
        empty_set=np.zeros((n_rounds, M), dtype=bool),
        gate_open=np.zeros((n_rounds, M), dtype=bool),
        outside=np.zeros((n_rounds, M), dtype=bool),
        pruned=np.zeros((n_rounds, M), dtype=bool),
    )
    for t, c in enumerate(contexts):
        for m in range(M):
            P, F, b = phis[m][c], psis[m][c], baseline[m, c]
            V, theta_hat, logdet = solve(W_syn + W[m], U_syn + U[m], ridge)  # line 6
            V_inv, lambda_min = np.linalg.inv(V), np.linalg.eigvalsh(V)[0]
            beta = radius(logdet, **bounds)  # line 7
            mean = np.array([x @ theta_hat for x in F])
            upper = mean + beta * np.array([np.sqrt(x @ V_inv @ x) for x in F])
            state = {
                "lambda_min": lambda_min,
                "width": feature_bound * beta,
                "alpha": alphas[m],
                "r_b": P[b] @ theta,  # realised: of this round's context
            }
            kept = kept_actions(algorithm, mean, upper_b=upper[b], **state)
            is_open = gate_is_open(
                algorithm, gate, gap=gaps[m, c], reward_floor=reward_floor, **state
            )
            learned = is_open and bool(kept.any())  # line 13
            if learned:
                a = best_among(upper, kept)  # line 14
            elif mix == "action" and coin[t, m] < rho[t]:
                a = best_among(upper, np.ones_like(kept))
            else:
                a = b  # line 16
            x_learn, x_earn = F[a], P[a]
            if mix == "vector" and not learned:  # the mixed vector is learned from *and* played
                x_learn = (1.0 - rho[t]) * x_learn + rho[t] * zeta[t]
                x_earn = (1.0 - rho[t]) * x_earn + rho[t] * zeta[t]
            reward = x_earn @ theta
            W[m] += np.outer(x_learn, x_learn)  # line 18
            U[m] += x_learn * (reward + reward_noise[t, m])

            trace.actions[t, m] = a
            trace.conservative[t, m] = not learned
            trace.rewards[t, m] = reward
            trace.theta_hats[t, m] = theta_hat
            trace.beta[t, m] = beta
            trace.lambda_min[t, m] = lambda_min
            trace.empty_set[t, m] = is_open and not learned
            trace.gate_open[t, m] = is_open
            error = theta_hat - theta
            trace.outside[t, m] = error @ V @ error > beta**2
            trace.pruned[t, m] = is_open and not kept[np.argmax(F @ theta)]

        # Lines 19 to 28, after all agents have acted; rounds count from 1.
        growth = max(solve(W_syn + W[m], U[m], ridge)[2] for m in range(M)) - logdet_last
        if share and growth * (t + 1 - t_last) >= B:
            W_syn, U_syn = W_syn + W.sum(axis=0), U_syn + U.sum(axis=0)
            W[:], U[:] = 0.0, 0.0
            logdet_last, t_last = solve(W_syn, U_syn, ridge)[2], t + 1
            trace.sync_rounds.append(t + 1)
    return trace


def baseline_by_rank(phi: np.ndarray, theta: np.ndarray, tasks: Tasks, rank: int) -> np.ndarray:
    """Return the action of the given rank (1 = best) by masked phi'theta, (M, C).

    Of equal actions the one with the lower index comes first.
    """
    values = np.stack([masked(phi, task) * theta for task in tasks]).sum(axis=-1)
    return np.argsort(-values, axis=-1, kind="stable")[..., rank - 1]


def best_expected(psi: np.ndarray, theta: np.ndarray, tasks: Tasks) -> np.ndarray:
    """Return the action x* = argmax psi'theta of every agent and context, (M, C)."""
    return baseline_by_rank(psi, theta, tasks, 1)


def regret_and_violations(
    actions, conservative, *, phi, psi, theta, tasks, baseline, alpha, contexts, rho, zeta,
    mix="vector",
) -> Scores:  # fmt: skip
    """Score a trace: regret against x* and broken constraints (``c2``), in phi and in psi.

    A conservative round of ``mix="vector"`` counts as its mixed vector (1-rho) b + rho zeta.
    """
    M, best = len(tasks), best_expected(psi, theta, tasks)
    alphas = np.broadcast_to(np.asarray(alpha, dtype=float), (M,))
    regrets, violations = np.zeros((2, M)), np.zeros((2, M), dtype=int)
    for kind, table in enumerate((phi, psi)):
        for m, task in enumerate(tasks):
            values = masked(table, task) @ theta
            for t, c in enumerate(contexts):
                earned, r_b = values[c, actions[t, m]], values[c, baseline[m, c]]
                if mix == "vector" and conservative[t, m]:
                    earned = (1.0 - rho[t]) * r_b + rho[t] * (zeta[t] @ theta)
                regrets[kind, m] += values[c, best[m, c]] - earned
                violations[kind, m] += earned < (1.0 - alphas[m]) * r_b - TOLERANCE
    return Scores(regrets[0], regrets[1], violations[1], violations[0])
