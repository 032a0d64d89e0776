"""Cases for Guard-UCB's definition and its kernels: problems, their draws and settings."""

from __future__ import annotations

from typing import Any

import numpy as np
from reference import guard

import guardband as gb
from guardband.algorithms.guard_ucb import ALLOWANCES
from guardband.kernels.environment import Draws
from guardband.kernels.types import Trigger
from guardband.problems import Forecast, GaussianNoise, World
from guardband.sim.runners import CommonRunner

AL = (0.1, 0.2, 0.3)


def forecast(
    seed: int,
    *,
    d: int,
    K: int,
    M: int,
    T: int,
    C: int,
    n: int,
    own: bool = False,
    sigma: float = 0.1,
) -> dict:
    """A distribution over n of C contexts in each round; `own`: contexts act on each action."""
    r = np.random.default_rng(seed)
    theta = np.abs(r.standard_normal(d))
    theta /= np.linalg.norm(theta)
    h = np.abs(r.standard_normal((K, d)))
    h /= np.linalg.norm(h, axis=1, keepdims=True)
    if own:
        h *= r.uniform(0.5, 0.9, (K, 1))
        phi = h * (0.3 + 0.7 * r.random((C, K, d)))
    else:
        h *= r.uniform(0.3, 1.0, (K, 1))
        phi = h * (0.4 + 0.6 * r.random((C, 1, d)))
    tasks = [list(range(d))]
    for _ in range(M - 1):
        gone = r.choice(d, size=r.integers(0, d // 2 + 1), replace=False)
        tasks.append([i for i in range(d) if i not in gone])
    support = np.array([r.choice(C, size=n, replace=False) for _ in range(T)])
    weights = r.dirichlet(np.ones(n), size=T)
    contexts = np.array([r.choice(support[t], p=weights[t]) for t in range(T)])
    if own:  # in every seventh round one point of the support has no weight
        weights[::7, 1] = 0.0
        weights /= weights.sum(axis=1, keepdims=True)
        gone = (support[:, 1] == contexts) & (weights[:, 1] == 0)
        contexts = np.where(gone, support[:, 0], contexts)
    return {
        "phi": phi,
        "theta": theta,
        "tasks": tasks,
        "contexts": contexts,
        "support": support,
        "weights": weights,
        "coin": r.random((T, M)),
        "reward_noise": sigma * r.standard_normal((T, M)),
    }


def stuck_b(seed: int, T: int) -> dict:
    r = np.random.default_rng(seed)
    menu = np.array([[[0.6, 0], [0.9, 0], [0.5, 0.03], [0, 1.0]]])
    return {
        "phi": menu,
        "psi": menu,
        "theta": np.array([0.6, 0.8]),
        "tasks": [[0, 1]],
        "baseline": np.zeros((1, 1), int),
        "r_hat": np.full((1, 1), 0.36),
        "contexts": np.zeros(T, int),
        "coin": r.random((T, 1)),
        "reward_noise": 0.1 * r.standard_normal((T, 1)),
    }


def one_known(seed: int, T: int) -> dict:
    """Two features, each with an action of its own; a greedy agent sees only the first."""
    menu = np.array([[[0.8, 0.0], [0.0, 0.8]]])
    return {**stuck_b(seed, T), "phi": menu, "psi": menu, "r_hat": np.full((1, 1), 0.48)}


def table(
    seed: int, *, d: int = 3, K: int = 8, M: int = 3, T: int = 250, C: int = 10, error: float = 0.0
) -> dict:
    r = np.random.default_rng(seed)
    theta = np.abs(r.standard_normal(d))
    theta /= np.linalg.norm(theta)
    phi = np.abs(r.standard_normal((C, K, d)))
    phi *= r.uniform(0.3, 1.0, (C, K, 1)) / np.linalg.norm(phi, axis=2, keepdims=True)
    psi = phi + 0.01 * r.standard_normal((C, K, d))
    tasks = [list(range(d))] + [[i for i in range(d) if i != m % d] for m in range(1, M)]
    means = np.stack([guard.masked(psi, task) @ theta for task in tasks], axis=1)
    baseline = np.argsort(-means, axis=2, kind="stable")[:, :, K // 2]
    told = np.take_along_axis(means, baseline[:, :, None], 2)[:, :, 0] + error
    return {
        "phi": phi,
        "psi": psi,
        "theta": theta,
        "tasks": tasks,
        "baseline": baseline,
        "r_hat": told,
        "contexts": r.integers(0, C, T),
        "coin": r.random((T, M)),
        "reward_noise": 0.1 * r.standard_normal((T, M)),
    }


D3 = {"d": 3, "K": 8, "M": 3, "T": 250, "C": 12, "n": 4}
D5 = {"d": 5, "K": 20, "M": 3, "T": 250, "C": 12, "n": 4, "sigma": 0.05}
ONE = {**D3, "M": 1, "T": 300}
TENTH, SMALL = {"sigma": 0.1}, {"sigma": 0.05}

CASES: dict[str, tuple[dict, dict[str, Any]]] = {
    "policy, known": (
        forecast(11, **D3),
        {"rank": 4, "mode": "policy", "alpha": 0.2, "tau": 0.02, **TENTH},
    ),
    "policy, unknown": (forecast(11, **D3), {"rank": 4, "mode": "policy", "alpha": 0.2, **TENTH}),
    "one agent, empirical": (
        forecast(12, **ONE, own=True),
        {
            "rank": 5,
            "mode": "policy",
            "alpha": 0.1,
            "f": 1,
            "gamma": 0.5,
            "radius": "empirical",
            "share": False,
            **TENTH,
        },
    ),
    "one agent, log det": (
        forecast(12, **ONE, own=True),
        {
            "rank": 5,
            "mode": "policy",
            "alpha": 0.1,
            "f": 1,
            "gamma": 0.5,
            "radius": "logdet",
            "share": False,
            **TENTH,
        },
    ),
    "strict, chance": (
        forecast(21, **D5),
        {"rank": 10, "mode": "strict", "alpha": 0.4, "f": 1, "realised": ("chance", 0.2), **SMALL},
    ),
    "strict, worst": (
        forecast(21, **D5),
        {"rank": 10, "mode": "strict", "alpha": 0.4, "f": 1, "realised": "worst", **SMALL},
    ),
    "strict, known": (
        forecast(21, **D5),
        {"rank": 10, "mode": "strict", "alpha": 0.4, "f": 1, "tau": 0.01, **SMALL},
    ),
    "strict, detour": (
        stuck_b(15, 300),
        {"mode": "strict", "alpha": 0.6, "context_noise": 0.0, "tau": 0.0, "share": False, **TENTH},
    ),
    "one agent with epochs": (
        stuck_b(15, 300),
        {"mode": "strict", "alpha": 0.6, "context_noise": 0.0, "tau": 0.0, "delta": 0.2, **TENTH},
    ),
    "strict, anchored": (
        forecast(15, **D3),
        {"rank": 4, "mode": "strict", "alpha": 0.2, "f": 1, "tau": 0.02, "anchors": True, **TENTH},
    ),
    "biased, anchored": (
        table(16),
        {
            "mode": "strict",
            "alpha": AL,
            "eps": 0.01,
            "tau": 0.05,
            "ridge": 0.5,
            "anchors": True,
            **TENTH,
        },
    ),
    "wrong reports": (
        table(16, error=-0.5),
        {
            "mode": "policy",
            "alpha": AL,
            "eps": 0.01,
            "tau": 0.05,
            "ridge": 0.5,
            "context_noise": 0.05,
            "anchors": True,
            **TENTH,
        },
    ),
    "biased, empirical": (
        table(16),
        {
            "mode": "policy",
            "alpha": AL,
            "eps": 0.01,
            "tau": 0.1,
            "ridge": 0.5,
            "radius": "empirical",
            **TENTH,
        },
    ),
    "policy, no noise stated": (
        forecast(11, **D3),
        {"rank": 4, "mode": "policy", "alpha": 0.2, "sigma": None},
    ),
    "strict, no noise stated, a ceiling": (
        forecast(21, **D5),
        {"rank": 10, "mode": "strict", "alpha": 0.4, "f": 1, "sigma": None, "ceiling": 0.6},
    ),
    "biased, no noise stated": (
        table(16),
        {"mode": "strict", "alpha": AL, "eps": 0.01, "tau": 0.05, "sigma": None, "f": 1},
    ),
    "nothing hidden, no noise stated": (
        table(17, T=150),
        {"mode": "policy", "alpha": AL, "context_noise": 0.0, "sigma": None},
    ),
}


CASES |= {
    f"{name}, optimism from the residuals": (CASES[name][0], CASES[name][1] | {"gamma": None})
    for name in ("policy, unknown", "strict, known", "strict, anchored", "policy, no noise stated")
}
CASES |= {
    f"one action too well known, {mode}": (
        one_known(18, 300),
        {"mode": mode, "alpha": 0.5, "context_noise": 0.0, "share": False, "gamma": 0.0, **TENTH},
    )
    for mode in ("policy", "strict")
}

RANGED = {"use_range": True}
SHORT = forecast(11, **{**D3, "T": 80})
CASES |= {
    f"{name}, with the range of rewards": (SHORT if "policy" in name else case, settings | RANGED)
    for name, (case, settings) in CASES.items()
    if name in ("policy, known", "policy, unknown", "strict, known", "strict, anchored")
}
CASES["strict, unknown, with the range of rewards"] = (
    forecast(22, **D5),
    {"rank": 12, "mode": "strict", "alpha": 0.3, "f": 1, **RANGED, **SMALL},
)
CASES |= {
    f"{name}, with the range of rewards": (
        forecast(21, **{**D5, "T": 100}),
        CASES[name][1] | RANGED,
    )
    for name in ("strict, chance", "strict, worst")
}
CASES["one agent, with the range of rewards"] = (
    forecast(12, **ONE, own=True),
    {"rank": 5, "mode": "strict", "alpha": 0.1, "share": False, "eps": 1e-3, **RANGED, **TENTH},
)
CASES["refuted, with the range of rewards"] = (  # by own views: the pooled set refutes nothing here
    table(16, error=-0.5),
    {"mode": "strict", "alpha": AL, "tau": 0.05, "context_noise": 0.05, **RANGED, **TENTH}
    | {"pooled_set": False},
)


def algorithm_of(settings: dict[str, Any]) -> gb.GuardUCB:
    return gb.GuardUCB(
        settings["alpha"],
        noise=settings["sigma"],
        delta=settings.get("delta", 1e-3),
        mode=settings["mode"],
        shared_context=settings.get("f") != 1,
        optimism=settings.get("gamma", 1.0),
        bias_bound=settings.get("eps", 0.0),
        baseline_tolerance=settings.get("tau"),
        realised=settings.get("realised"),
        anchors=settings.get("anchors", False),
        context_noise=settings.get("context_noise"),
        radius=settings.get("radius", "best"),
        ridge=settings.get("ridge"),
        share=settings.get("share", True),
        reward_ceiling=settings.get("ceiling"),
        pooled_set=settings.get("pooled_set", True),
        delta_alarm=None,
        on_refuted="baseline" if settings.get("use_range") else "ellipsoid",
        **{ALLOWANCES[settings["mode"]]: settings.get("allowance")},
    )


def play(case: dict, settings: dict[str, Any]) -> CommonRunner:
    rounds, agents = case["coin"].shape
    announced = "support" in case
    tasks = tuple(tuple(task) for task in case["tasks"])
    contexts = len(case["phi"])
    nature = Forecast(case["support"].shape[1], 1.0, settings["rank"]) if announced else None
    world = World(
        phi=case["phi"],
        psi=case.get("psi", case["phi"]),
        theta=case["theta"],
        tasks=tasks,
        baseline=case["baseline"].T.copy() if not announced else np.zeros((agents, contexts), int),
        reward_noise=GaussianNoise(0.0),
        nature=nature,
        values=case.get("values"),
    )
    plan = algorithm_of(settings).plan(world.facts(rounds))
    if settings.get("share", True):  # the definition pools one agent, too; the package knows better
        plan = plan._replace(terms=plan.terms._replace(trigger=int(Trigger.ANYTIME)))
    runner = CommonRunner(world, plan, np.full(agents, 0.2), np.array([rounds]), rounds)
    if not announced:
        runner.env = runner.env._replace(baseline_reward=np.ascontiguousarray(case["r_hat"]))
    runner.play(
        Draws(
            contexts=case["contexts"],
            noise=case["reward_noise"],
            zeta=np.zeros((0, 1, case["theta"].size)),
            coin=case["coin"],
            rho=np.zeros(0),
            fresh=np.zeros((0, 0, 0)),
            support=case.get("support", np.zeros((1, 0), np.int64)),
            weights=case.get("weights", np.zeros((1, 0))),
        )
    )
    return runner
