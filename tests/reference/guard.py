"""Slow, plain NumPy reference of Guard-UCB.

Written from the project's specification of the algorithm ("2.4", "R2" are its sections and
corrections), never from the compiled kernels: it shares no line and no trick with them. It keeps
no sums at all. Every agent and round starts from the raw data the agent may know, all agents'
rounds up to the last synchronisation and its own after it, and calls ``inv`` and ``slogdet`` anew.
"""

from typing import NamedTuple

import numpy as np
from reference import bounded
from reference.guard_set import (
    Belief,
    Offer,
    anchored,
    by_variance,
    certificate,
    gram_of,
    half_range_of,
    masked,
    promised,
    radius_of,
    realised_slack,
    slack_of,
    squared_width,
)

RADII = {"best", "logdet", "empirical"}
PLANNED_CONTEXT_NOISE = 0.2  # of the informative action, if no context noise is stated
EAGER_GROWTH = 0.3  # of log det, at which a conservative agent asks for a sync
RELUCTANT_GROWTH = 0.7  # the same in strict mode, without the set of pooled data
FULL_OPTIMISM = 0.5  # gamma, if it is not stated and residuals are as large as weights allow
REGRET_WIDTHS = 20.0  # half widths of x that it may lose, for all that is known
OTHERS = 8  # actions that are tried beside x, in strict mode, with the range of rewards


class Trace(NamedTuple):
    """What happened, per round and agent (T, M); ``sync_rounds`` counts rounds from 1.

    ``targets`` are the optimistic actions x; ``conservative``: x was not certified; ``stuck``: and
    no safe action informs about it. ``rho`` is the probability of x and ``partner`` the other
    action of a mixture (no mixture: 1 and -1), ``policy_mean`` the expected psi-reward of that
    choice, in strict mode of the played action. ``rewards`` are realised, without noise.
    ``weights`` are those of the observations. ``betas`` and ``outside`` (theta is not in it) belong
    to the set without anchors. ``alarm``: the agent found the reports wrong, now or before.
    ``charges`` are those of trials and of explored plays to their allowance.
    The last seven tell branches: rho was raised by the joint certificate; xi was played; the set
    gave the smallest half range; the empirical radius was used; the range of rewards certified what
    the set alone does not; it refuted the assumptions; the favourite was too well known to be x.
    """

    actions: np.ndarray
    conservative: np.ndarray
    stuck: np.ndarray
    rho: np.ndarray
    partner: np.ndarray
    betas: np.ndarray
    weights: np.ndarray
    rewards: np.ndarray
    policy_mean: np.ndarray
    sync_rounds: list[int]
    outside: np.ndarray
    alarm: np.ndarray
    targets: np.ndarray
    charges: np.ndarray
    joint: np.ndarray
    informative: np.ndarray
    tightened: np.ndarray
    empirical: np.ndarray
    bounded: np.ndarray
    refuted: np.ndarray
    replaced: np.ndarray


def first_mixture(offer: Offer, x: int, slack: np.ndarray, belief: Belief) -> tuple[int, float]:
    """Return the partner of x and the probability of x, before the joint certificate (2.5)."""
    F, b, alpha, told, tau = offer
    if tau is not None:
        p = int(np.argmax(slack))
        worst = max(slack[x], -(1.0 - alpha) * (told + tau))
        if slack[p] >= 0.0 and (rho := slack[p] / (slack[p] - worst)) >= alpha:
            return p, float(rho)
        return b, alpha
    gains, wide = certificate(F - F[b], *belief), squared_width(F, belief.V)
    y = int(np.argmax(gains))
    return (y if gains[y] > 0.0 and wide[x] > wide[b] else b), alpha


def reward_ranges(offer: Offer, eps: float, ceiling: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and the largest expected reward of every action, by A2 and A4."""
    low, high = np.full(len(offer.F), -eps), np.full(len(offer.F), ceiling + eps)
    if offer.tau is not None:
        low[offer.b] = max(low[offer.b], offer.told - offer.tau)
        high[offer.b] = min(high[offer.b], offer.told + offer.tau)
    return low, high


def bounded_certificate(v: np.ndarray, offer: Offer, belief: Belief, ranges) -> float:
    """Return L*(v), the least v'theta in the set that gives every action a possible reward."""
    least = bounded.minimum(v, *belief, offer.F, *ranges)
    return 0.0 if -bounded.TOLERANCE <= least < 0.0 else least


def most_lost(offer: Offer, x, keep, belief: Belief, limits, *, use_range) -> float:
    """Return the most that x can be worth less than ``keep`` times b, for all that is known."""
    low, high = limits
    v = offer.F[x] - keep * offer.F[offer.b]
    least = certificate(v, *belief)
    if use_range:
        least = bounded.minimum(v, *belief, offer.F, *limits)
    return float(max(0.0, min(-least, keep * high[offer.b] - low[x])))


def best_mixture(holds, rho) -> float:
    """Return the largest certified r in [rho, 1] of the mixture, or rho: none is (2.5)."""
    if not holds(rho):
        return rho
    low, high = (1.0 if holds(1.0) else rho), 1.0
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def strict_choice(offer: Offer, x, slack, upper, V, w0) -> tuple[int, int, float]:
    """Return xu and xi of 2.5, and the gain of xi."""
    F, b, _, told, tau = offer
    allowed, value = slack >= 0.0, upper.copy()
    allowed[b], value[b] = True, upper[b] if tau is None else min(upper[b], told + tau)
    gain = (F @ np.linalg.inv(V) @ F[x]) ** 2 * w0 / (1.0 + w0 * squared_width(F, V))
    xu, xi = (int(np.argmax(np.where(allowed, v, -np.inf))) for v in (value, gain))
    return xu, xi, float(gain[xi])


def certify_others(offer: Offer, x, slack, upper, bounded_slack) -> np.ndarray:
    """Return the slack with the most promising action that L* certifies, if it is among eight."""
    slack = slack.copy()
    floor = max(upper[offer.b], upper[slack >= 0.0].max(initial=-np.inf))
    order = [k for k in np.argsort(-upper, kind="stable") if k != x and upper[k] > floor]
    for k in order[:OTHERS]:
        slack[k] = max(slack[k], bounded_slack(k))
        if slack[k] >= 0.0:
            break
    return slack


def measured_optimism(x, y, w, th, ridge) -> float:
    """Return gamma from the residuals of n observations, of which d are taken for noise."""
    left = np.sum(w * (y - x @ th) ** 2) + ridge * (th @ th)
    return FULL_OPTIMISM * float(np.sqrt(min(1.0, (len(th) + left) / max(1, len(y)))))


def target_of(mean, width, gamma) -> tuple[int, np.ndarray, bool]:
    """Return x, what actions are compared by, and whether x replaces a favourite known too well."""
    score, upper = mean + gamma * width, mean + width
    x = int(np.argmax(score))
    if upper.max() - (mean[x] - width[x]) <= REGRET_WIDTHS * width[x]:
        return x, score, False
    return int(np.argmax(upper)), upper, True


def choose(
    offer: Offer, slack, belief, common, mode, gamma, w0, toss, t, limits, use_range, left, promise
) -> tuple[dict, np.ndarray]:
    """Return the choice by the names of ``Trace``, and its mean psi.

    ``common`` is the set from pooled data alone and the slacks in it, or None. It takes the place
    of the agent's own where it is surer of the target.
    t is the number of observations there can be by now, M times the round counted from 1: data of
    all M agents shrink the gain, so all of them count. ``limits`` are the ranges of the rewards;
    certificates may use them. ``left`` is what trials, or explored plays, may still be charged with
    (None: there are no trials, and exploration has no end). ``promise`` are the possible features
    (n, K, d), their probabilities, and what is promised about the context drawn, or None.
    """
    F, b, alpha = offer[:3]
    width = np.sqrt(squared_width(F, belief.V))
    x, upper, replaced = target_of(F @ belief.th, belief.beta * width, gamma)
    if common is not None and x != b and slack[x] < 0.0:
        lead = F[x] - (1.0 - offer.alpha) * F[b]
        if certificate(lead, *common[0]) > certificate(lead, *belief):
            belief, slack = common
            width = np.sqrt(squared_width(F, belief.V))
    choice = {"actions": x, "targets": x, "conservative": x != b and slack[x] < 0.0}
    choice["replaced"] = replaced
    ranges = limits if use_range else None

    def lower_bound(v):
        return bounded_certificate(v, offer, belief, ranges)

    def bounded_slack(k):
        slack = lower_bound(F[k] - (1.0 - alpha) * F[b])
        if promise is None or slack < 0.0:
            return slack
        points, mu, realised = promise
        low = np.array([lower_bound(D) for D in points[:, k] - (1.0 - alpha) * points[:, b]])
        return min(slack, promised(low, mu, realised))

    if choice["conservative"] and ranges is not None:
        if bounded.minimum(F[x], *belief, F, *ranges) is None:
            return choice | {"actions": b, "refuted": True}, F[b]
        if bounded_slack(x) >= 0.0:
            return choice | {"conservative": False, "bounded": True}, F[x]
    if choice["conservative"] and mode == "policy":
        p, first = first_mixture(offer, x, slack, belief)

        def mixture(r):
            return (1.0 - r) * F[p] + r * F[x] - (1.0 - alpha) * F[b]

        rho = best_mixture(lambda r: certificate(mixture(r), *belief) >= 0.0, first)
        if ranges is not None and rho < 1.0:
            rho = best_mixture(lambda r: lower_bound(mixture(r)) >= 0.0, rho)
        cost = 0.0
        if left is not None and p != x:
            cost = most_lost(offer, x, 1.0, belief, limits, use_range=use_range)
        if left is None or cost <= left:
            choice |= {"rho": rho, "partner": p, "joint": rho > first}
            choice["actions"] = x if toss < rho else p
            choice["charges"] = cost if choice["actions"] == x else 0.0
            return choice, rho * F[x] + (1.0 - rho) * F[p]
    if choice["conservative"]:
        more = slack if ranges is None else certify_others(offer, x, slack, upper, bounded_slack)
        xu, xi, gain = strict_choice(offer, x, more, upper, belief.V, w0)
        stuck = gain < width[x] ** 2 / (t + 1)
        heads = toss < 0.5 and not stuck
        choice |= {"actions": xi if heads else xu, "informative": heads}
        choice["bounded"] = bool(((more >= 0.0) & (slack < 0.0))[choice["actions"]])
        choice["stuck"] = stuck and mode == "strict"
        if choice["stuck"] and left is not None:
            unknown = 2.0 * belief.beta * width[b]
            known = unknown <= min(F[b] @ belief.th, belief.beta * width[x])
            charge = most_lost(offer, x, 1.0 - alpha, belief, limits, use_range=use_range)
            if charge <= left and (known or xu != b or offer.tau is not None):
                choice |= {"actions": x, "charges": charge, "stuck": False, "bounded": False}
    return choice, F[choice["actions"]]


def known_to(log: list[np.ndarray], m: int, t_last: int, t: int) -> list[np.ndarray]:
    """Return what agent m knows after t rounds: all data up to ``t_last``, then its own.

    The parts are feature, reward, weight, prediction, and the baseline's feature and told reward.
    """
    shared = [part[:t_last].reshape(-1, *part.shape[2:]) for part in log]
    return [np.concatenate((old, part[t_last:t, m])) for old, part in zip(shared, log, strict=True)]


def sync_wanted(log, eager, t, t_last, ridge, enough) -> bool:
    """Tell whether an agent asks for a synchronisation after round t, counted from 1 (2.6)."""
    _, M, d = log[0].shape
    growth = np.zeros(M)
    for m in range(M):
        grams = [gram_of(*known_to(log[:3:2], m, t_last, end), ridge) for end in (t_last, t)]
        growth[m] = np.linalg.slogdet(grams[1])[1] - np.linalg.slogdet(grams[0])[1]
    due = growth * (t - t_last) >= t * np.log(M * t + 1) / (d * M)
    return bool(np.any(due | (eager & (growth >= enough))))


def simulate(
    phi, theta, tasks, contexts, coin, reward_noise, *, psi=None, baseline=None, r_hat=None,
    support=None, weights=None, rank=None, report_error=0.0, mode, alpha, sigma, delta=1e-3, S=1.0,
    f=None, gamma=1.0, eps=0.0, tau=None, context_noise=None, radius="best", ridge=None, share=True,
    realised=None, anchors=False, ceiling=1.0, use_range=False, pooled_set=True, allowance=None,
    chooser=choose,
) -> Trace:  # fmt: skip
    """Run one trial on given draws; inputs are not checked for their range.

    Parameters
    ----------
    phi, theta, tasks
        Realised features (C, K, d), true parameter (d,), one index set per agent.
    contexts, coin, reward_noise
        The draws: (T,), or (T, M) if every agent has its own context; (T, M); (T, M).
    psi, baseline, r_hat
        Tables: expected features (C, K, d), baseline actions (C, M), told rewards (C, M).
    support, weights, rank, report_error
        Forecasts: context ids (T, n), probabilities (T, n), the baseline's rank by psi'theta
        (1 = best); it is told as psi_b'theta + report_error.
    mode, alpha, realised
        "policy" or "strict"; one number or one per agent; None, "worst" or ("chance", e).
    sigma, delta, S, f, eps, context_noise
        Noise, failure probability, bound on norm(theta), agents that share a context (M if
        omitted), bias bound, declared half range of the rewards over the hidden context. Noise
        None: rewards lie in [0, 1], and weights follow Lemma V where they are larger.
    ceiling
        The largest expected reward.
    pooled_set
        Whether the data of all agents up to the last sync make a set of their own, at delta / 2.
    gamma, radius, ridge, share
        Optimism, None: from the residuals; "best", "logdet" or "empirical"; 1/S^2 if omitted;
        False: M separate learners.
    tau, anchors
        The told rewards are right to +-tau (None: they are not used); learn from them as well.
    use_range
        Certificates use the range of rewards; where the assumptions are refuted, b is played.
    allowance
        What the trials of an agent may fall short of the floor by in all; in policy mode, what its
        explored plays may cost against the baseline. None: no trials, and no end.
    chooser
        What takes the place of ``choose``, where actions have values.
    """
    forecast = support is not None
    if mode not in {"policy", "strict"} or radius not in RADII or (psi is None) is not forecast:
        raise ValueError(f"no such variant: {mode=}, {radius=}, {forecast=}")
    if (anchors and tau is None) or (realised and not (forecast and mode == "strict")):
        raise ValueError("anchors need tau; realised safety needs strict mode and a support")
    T, M, d = len(contexts), len(tasks), len(theta)
    hidden = np.broadcast_to(np.asarray(contexts).reshape(T, -1), (T, M))
    alphas = np.broadcast_to(np.asarray(alpha, dtype=float), (M,))
    ridge, f = (1.0 / S**2 if ridge is None else ridge), (M if f is None else f)
    planned = PLANNED_CONTEXT_NOISE if context_noise is None else context_noise
    f = 1 if context_noise == 0.0 else f  # a context that adds nothing connects nobody
    stated, sigma = sigma is not None, 0.5 if sigma is None else sigma
    radius = radius if stated or radius == "logdet" else "empirical"
    w0 = 1.0 / (sigma**2 + f * planned**2)
    pooled_set = pooled_set and share and M > 1
    delta = delta / 2 if pooled_set else delta
    log = [np.zeros((T, M, d) if part in {0, 4} else (T, M)) for part in range(6)]
    kinds = dict.fromkeys(("actions", "partner", "targets"), int)
    kinds |= dict.fromkeys(("rho", "betas", "weights", "rewards", "policy_mean", "charges"), float)
    out = {name: np.zeros((T, M), kinds.get(name, bool)) for name in Trace._fields}
    out |= {"rho": np.ones((T, M)), "partner": np.full((T, M), -1), "sync_rounds": []}
    alarmed, t_last = np.zeros(M, dtype=bool), 0
    for t, m in np.ndindex(T, M):
        # What is announced; with a table the context itself is.
        c, task, points, mu = hidden[t, m], tasks[m], None, None
        if forecast:
            mu = weights[t][weights[t] > 0.0]
            points = masked(phi[support[t][weights[t] > 0.0]], task)
            F = np.sum(mu[:, None, None] * points, axis=0)
            b = int(np.argsort(-(F @ theta), kind="stable")[rank - 1])
            told = F[b] @ theta + report_error
        else:
            F, b = masked(psi[c], task), int(baseline[c, m])
            told = 0.0 if r_hat is None else r_hat[c, m]

        # The confidence set, without and with anchors.
        x, y, w, yhat, psi_b, reports = known_to(log, m, t_last, t)
        bounds = {"ridge": ridge, "S": S, "delta": delta, "M": M, "eps": eps, "radius": radius}
        beta, empirical = radius_of(x, y, w, yhat, epoch=len(out["sync_rounds"]) + 1, **bounds)
        V = gram_of(x, w, ridge)
        plain = belief = Belief(np.linalg.inv(V) @ (x.T @ (w * y)), V, beta)
        if anchors and len(reports) > 0 and not alarmed[m]:
            belief = anchored(plain, psi_b, reports, tau)
            alarmed[m] = belief is None
        belief = plain if alarmed[m] else belief

        # The choice.
        offer = Offer(F, b, alphas[m], told, None if alarmed[m] else tau)

        def slacks(belief, offer=offer, points=points, mu=mu):
            slack = slack_of(offer, belief)
            if realised:
                mean = certificate(offer.F - (1.0 - offer.alpha) * offer.F[offer.b], *belief)
                sure = realised_slack(points, mu, offer.b, offer.alpha, belief, realised)
                slack = np.minimum(mean, sure)
                slack[offer.b] = max(mean[offer.b], 0.0)
            return slack

        by = measured_optimism(x, y, w, plain.th, ridge) if gamma is None else gamma
        common = None
        if pooled_set and t_last > 0:
            x, y, w, yhat = (part[:t_last].reshape(-1, *part.shape[2:]) for part in log[:4])
            beta_common, _ = radius_of(x, y, w, yhat, union=False, **bounds)
            V_common = gram_of(x, w, ridge)
            th = np.linalg.inv(V_common) @ (x.T @ (w * y))
            common = Belief(th, V_common, beta_common)
            common = common, slacks(common)
        limits = reward_ranges(offer, eps, ceiling)
        left = None if allowance is None else allowance - np.sum(out["charges"][:t, m])
        promise = (points, mu, realised) if realised else None
        given = (mode, by, w0, coin[t, m], M * (t + 1), limits, use_range, left, promise)
        facts, mean = chooser(offer, slacks(belief), belief, common, *given)

        # What is learned, and what is noted.
        played, tightened = facts["actions"], False
        s = 0.5 if context_noise is None else context_noise
        if forecast and context_noise is None:
            s, tightened = half_range_of(points[:, played], S, plain)
        w, reward = 1.0 / (sigma**2 + f * s**2), masked(phi[c, played], task) @ theta
        guess = F[played] @ plain.th
        if not stated and radius == "empirical":
            larger, guess = by_variance(F[played], plain, S, ceiling, f, eps)
            w = max(w, larger)
        news = (F[played], reward + reward_noise[t, m], w, guess, F[b], told)
        for part, new in zip(log, news, strict=True):
            part[t, m] = new
        facts |= {"betas": beta, "weights": w, "rewards": reward, "policy_mean": mean @ theta}
        facts |= {"alarm": alarmed[m], "tightened": tightened, "empirical": empirical}
        facts["outside"] = np.sqrt((plain.th - theta) @ V @ (plain.th - theta)) > beta
        for name, fact in facts.items():
            out[name][t, m] = fact
        eager = out["conservative"][t] & (pooled_set or mode == "strict")
        enough = EAGER_GROWTH if pooled_set else RELUCTANT_GROWTH
        if share and m == M - 1 and sync_wanted(log, eager, t + 1, t_last, ridge, enough):
            t_last = t + 1
            out["sync_rounds"].append(t_last)
    return Trace(**out)
