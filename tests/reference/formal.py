"""Slow, plain NumPy simulation of the paper's formal model, from functions.

Written from the paper, never from the simulator: each round asks the functions again, adds the
features up in loops, and solves for the estimate from all raw data. The confidence set, the gate
and the pruned set are those of ``naive``.
"""

from typing import NamedTuple

import numpy as np
from reference import naive


class Played(NamedTuple):
    """What happened, per round and agent, and the totals per agent."""

    actions: np.ndarray
    conservative: np.ndarray
    rewards: np.ndarray
    sync_rounds: list[int]
    told: np.ndarray
    regret: np.ndarray
    regret_expected: np.ndarray
    violations_expected: np.ndarray
    violations_realised: np.ndarray


def offer(feature_map, agent, labels, task, theta, contexts, weights, hidden):
    """Return psi and phi of each action, by loops; and their rewards."""
    inside = np.isin(np.arange(len(theta)), list(task))
    psi, phi = [], []
    for x in labels:
        mean = np.zeros(len(theta))
        for c, w in zip(contexts, weights, strict=True):
            mean = mean + w * np.asarray(feature_map(agent, x, c), dtype=float)
        psi.append(np.where(inside, mean, 0.0))
        phi.append(np.where(inside, feature_map(agent, x, hidden), 0.0))
    psi, phi = np.array(psi), np.array(phi)
    return psi, phi, psi @ theta, phi @ theta


def simulate(
    feature_map, announced, theta, *, tasks, actions, baseline, told, algorithm, alpha,
    reward_noise, rho, zeta, coin, mix="vector", gate="none", share=True, **bounds,
) -> Played:  # fmt: skip
    """Run one trial.

    Parameters
    ----------
    announced
        For each round the possible contexts, their probabilities, and the hidden one.
    actions, baseline
        (agent, round) -> labels; (agent, round, psi) -> row, or a rank.
    told
        Which of the baseline's rewards agents are told: "expected" or "realised".
    bounds
        For ``naive.radius``, and feature_bound.
    """
    longest = bounds.pop("feature_bound", 1.0)
    ridge = bounds.setdefault("ridge", 1.0)
    T, M, d = len(announced), len(tasks), len(theta)
    data = [[] for _ in tasks]  # (features, reward) since the last synchronisation
    pooled, last, logdet_last, syncs = [], 0, 0.0, []
    out = {name: np.zeros((T, M)) for name in ("actions", "conservative", "rewards", "told")}
    sums = {name: np.zeros(M) for name in Played._fields[5:]}
    for t, (contexts, weights, hidden) in enumerate(announced, start=1):
        for m, task in enumerate(tasks):
            labels = actions(m, t)
            psi, _, mean, drawn = offer(
                feature_map, m, labels, task, theta, contexts, weights, hidden
            )
            if callable(baseline):
                b = baseline(m, t, psi)
            else:
                b = sorted(range(len(labels)), key=lambda k: (-mean[k], k))[baseline - 1]
            r_b = mean[b] if told == "expected" else drawn[b]
            V, theta_hat, logdet = fit(pooled + data[m], ridge, d)
            beta, lambda_min = naive.radius(logdet, **bounds), np.linalg.eigvalsh(V)[0]
            guess = psi @ theta_hat
            upper = guess + beta * np.sqrt(np.einsum("kd,de,ke->k", psi, np.linalg.inv(V), psi))
            state = {"lambda_min": lambda_min, "width": longest * beta, "alpha": alpha, "r_b": r_b}
            kept = naive.kept_actions(algorithm, guess, upper_b=upper[b], **state)
            learned = bool(kept.any()) and naive.gate_is_open(
                algorithm, gate, gap=0.0, reward_floor=None, **state
            )
            if learned:
                a = naive.best_among(upper, kept)
            elif mix == "action" and coin[t - 1, m] < rho[t - 1]:
                a = int(np.argmax(upper))
            else:
                a = b
            x, earned, expected = psi[a], drawn[a], mean[a]
            if mix == "vector" and not learned:
                x = (1 - rho[t - 1]) * x + rho[t - 1] * zeta[t - 1]
                earned = (1 - rho[t - 1]) * earned + rho[t - 1] * zeta[t - 1] @ theta
                expected = (1 - rho[t - 1]) * expected + rho[t - 1] * zeta[t - 1] @ theta
            data[m].append((x, earned + reward_noise[t - 1, m]))
            out["actions"][t - 1, m], out["conservative"][t - 1, m] = a, not learned
            out["rewards"][t - 1, m], out["told"][t - 1, m] = earned, r_b
            best = int(np.argmax(mean))
            sums["regret"][m] += drawn[best] - earned
            sums["regret_expected"][m] += mean[best] - expected
            sums["violations_expected"][m] += expected < (1 - alpha) * mean[b] - naive.TOLERANCE
            sums["violations_realised"][m] += earned < (1 - alpha) * drawn[b] - naive.TOLERANCE
        growth = max(fit(pooled + own, ridge, d)[2] for own in data) - logdet_last
        if share and growth * (t - last) >= T * np.log(M * T) / (d * M):
            pooled = [*pooled, *(each for own in data for each in own)]
            data = [[] for _ in tasks]
            last, logdet_last = t, fit(pooled, ridge, d)[2]
            syncs.append(t)
    return Played(**out, sync_rounds=syncs, **sums)


def fit(observations, ridge, d):
    """Return V, the estimate and log det(V / ridge) from raw data."""
    x = np.array([each[0] for each in observations]).reshape(-1, d)
    y = np.array([each[1] for each in observations])
    return naive.estimate((x, y), ridge)
