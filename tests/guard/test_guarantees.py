"""What Guard-UCB promises, measured where the model holds, and where others are seen to fail."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import guardband as gb
from guardband.problems import ForecastFormal, ForecastFormal2


def two_point(seed: int, half: float, dim: int = 3) -> gb.Tabular:
    """A hidden context moves every agent's reward of a round up or down by `half`, together.

    Contexts come in pairs with one psi, the mean of the pair's phi.
    """
    rng = np.random.default_rng(seed)
    theta = np.full(dim, dim**-0.5)
    psi = np.abs(rng.normal(size=(100, 1, dim)))
    psi *= 0.5 / np.linalg.norm(psi, axis=2, keepdims=True)
    psi = psi.repeat(2, axis=0)
    sign = np.tile([1.0, -1.0], 100)[:, None, None]
    return psi + sign * half * theta, psi, theta


def failures(algorithm: gb.GuardUCB, agents: int, rounds: int, trials: int, half: float) -> float:
    """Return the share of runs in which theta leaves some agent's set in some round."""
    phi, psi, theta = two_point(1, half)
    problem = gb.Tabular(
        phi, psi, theta, tasks=[range(theta.size)] * agents, baseline=1, reward_std=0.05
    )
    results = gb.simulate(problem, algorithm, rounds=rounds, trials=trials)
    return float((results.series[0].totals["outside"].sum(axis=1) > 0).mean())


DELTA = {"delta": 0.2, "noise": 0.05, "context_noise": 0.3}


@pytest.mark.parametrize(("agents", "rounds"), [(3, 150), (50, 60)])
@pytest.mark.parametrize("radius", ["best", "logdet", "empirical"])
def test_coverage_over_a_thousand_runs(agents: int, rounds: int, radius: str) -> None:
    share = failures(gb.GuardUCB(0.2, radius=radius, **DELTA), agents, rounds, 1000, 0.3)
    assert share <= 0.2


@pytest.mark.filterwarnings("ignore:.*rewards in:guardband.BoundWarning")
def test_the_paper_s_set_fails_where_a_context_is_shared_by_many() -> None:
    paper = gb.GuardUCB(0.2, noise=0.05, delta=0.2, radius="paper", ridge=1.0)
    assert failures(paper, 3, 300, 200, 0.3) <= 0.2
    assert failures(paper, 50, 300, 200, 0.45) > 0.2


def test_a_set_that_ignores_the_sharing_fails() -> None:
    naive = gb.GuardUCB(0.2, shared_context=False, **DELTA)
    assert failures(naive, 50, 60, 200, 0.3) > 0.2


@pytest.mark.parametrize("tolerance", [None, 0.0])
def test_no_promise_is_broken_in_the_formal_model(tolerance: float | None) -> None:
    settings = {"noise": 0.1, "baseline_tolerance": tolerance, "delta": 0.2}
    algorithms = [gb.GuardUCB(0.1, mode=mode, **settings) for mode in ("strict", "policy")]
    free = gb.DisLinUCB(noise=0.1)
    problem = ForecastFormal(agents=3, baseline=2)
    results = gb.simulate(problem, [*algorithms, free], rounds=1500, trials=40, alpha=0.1)
    strict, policy, rival = results.series
    assert strict.violations_expected.sum() == 0
    assert policy.totals["violations_policy"].sum() == 0
    assert strict.totals["outside"].sum() == policy.totals["outside"].sum() == 0
    assert rival.violations_expected.mean() > 1  # there was something to violate


def test_worst_case_certificates_hold_for_the_context_that_was_drawn() -> None:
    settings = {"noise": 0.1, "mode": "strict"}
    algorithms = [
        gb.GuardUCB(0.1, **settings),
        gb.GuardUCB(0.1, realised=("chance", 0.05), **settings),
        gb.GuardUCB(0.1, realised="worst", **settings),
    ]
    results = gb.simulate(ForecastFormal2(agents=3), algorithms, rounds=2000, trials=4)
    mean, chance, worst = (float(s.violations_realised.mean()) for s in results.series)
    assert worst == 0.0
    assert chance <= 0.05 * 2000
    assert mean > chance  # an expectation promises nothing about one context
    regrets = [float(s.regret_expected.mean()) for s in results.series]
    assert regrets == sorted(regrets)  # and the stronger promise costs more


STUCK_A = (np.array([[[0.6, 0.0], [0.0, 1.0]]]), 0.3)
STUCK_B = (np.array([[[0.6, 0.0], [0.9, 0.0], [0.5, 0.03], [0.0, 1.0]]]), 0.6)


@pytest.mark.parametrize(
    ("example", "strict_regret", "policy_regret"),
    [(STUCK_A, (2199, 2201), 5), (STUCK_B, (500, 1000), 8)],
    ids=["A", "B"],
)
def test_the_stuck_examples(example, strict_regret: tuple[int, int], policy_regret: int) -> None:
    """A: the optimum is outside the span of what is certified. B: escape takes a detour."""
    menu, alpha = example
    problem = gb.Tabular(menu, menu, [0.6, 0.8], baseline=np.zeros((1, 1), int), reward_std=0.1)
    settings = {"noise": 0.1, "context_noise": 0.0, "baseline_tolerance": 0.0}
    algorithms = [gb.GuardUCB(alpha, mode=mode, **settings) for mode in ("strict", "policy")]
    results = gb.simulate(problem, algorithms, rounds=5000, trials=10)
    strict, policy = results.series
    low, high = strict_regret
    assert low <= strict.regret.mean() <= high
    assert policy.regret.mean() <= policy_regret
    assert strict.violations_expected.sum() == policy.totals["violations_policy"].sum() == 0
    if example is STUCK_A:
        assert strict.totals["stuck"].mean() > 4900


def test_wrong_reports_raise_the_alarm_and_the_plain_set_still_holds() -> None:
    """Reports off by -.5: anchors are dropped, and theta stays in the un-anchored set."""
    rng = np.random.default_rng(4)
    phi = np.abs(rng.normal(size=(20, 8, 3)))
    phi *= rng.uniform(0.5, 1.0, (20, 8, 1)) / np.linalg.norm(phi, axis=2, keepdims=True)
    theta = np.array([0.6, 0.5, 0.6])
    fleet = gb.Fleet(
        {"a": [0, 1, 2], "b": [0, 1]},
        dim=3,
        algorithm=gb.GuardUCB(
            0.2, noise=0.1, context_noise=0.0, baseline_tolerance=0.01, anchors=True, delta=0.2
        ),
    )
    masks = {"a": np.ones(3), "b": np.array([1.0, 1.0, 0.0])}
    reasons = []
    for _ in range(150):
        menu = phi[rng.integers(20)]
        for name, agent in fleet.items():
            rewards = (menu * masks[name]) @ theta
            decision = agent.decide(menu, 3, max(0.0, float(rewards[3]) - 0.5))
            reasons.append(decision.reason)
            agent.observe(decision.id, float(rewards[decision.action]) + rng.normal(0, 0.1))
    assert "contradict" in reasons[-1]
    assert "contradict" not in reasons[0]
    assert_allclose(fleet["a"].theta, theta, atol=0.15)


def test_right_reports_make_it_nearly_trivial() -> None:
    anchored, plain = (
        gb.GuardUCB(0.2, noise=0.1, baseline_tolerance=0.0, anchors=anchors)
        for anchors in (True, False)
    )
    results = gb.simulate(ForecastFormal(), [anchored, plain], rounds=3000, trials=5)
    with_, without = (float(s.regret_expected.mean()) for s in results.series)
    assert with_ < 3
    assert without > 5 * with_


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": 0.0}, "alpha"),
        ({"noise": 0.0}, "infinite weights"),
        ({"delta": 0.0}, "delta"),
        ({"mode": "strickt"}, "Did you mean 'strict'"),
        ({"radius": "log"}, "Did you mean 'logdet'"),
        ({"optimism": -1.0}, "optimism"),
        ({"context_noise": float("nan")}, "context_noise .*nan"),
        ({"anchors": True}, "baseline_tolerance"),
        ({"realised": "best"}, "realised must be"),
        ({"realised": ("chance", 1.5)}, "1.5"),
        ({"realised": "worst", "mode": "policy"}, "mode='strict'"),
        ({"radius": "paper", "bias_bound": 0.1}, "bias_bound"),
        ({"ridge": 0.0}, "ridge"),
    ],
)
def test_bad_settings(settings: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        gb.GuardUCB(**settings)


def test_realised_promises_need_the_possible_contexts(problem: gb.Tabular) -> None:
    worst = gb.GuardUCB(0.2, noise=1.0, realised="worst")
    with pytest.raises(ValueError, match="forecast"):
        gb.simulate(problem, worst, rounds=10)
    agent = gb.Agent(dim=2, algorithm=worst)
    with pytest.raises(ValueError, match="support"):
        agent.decide(np.eye(2) / 2, 0)
    with pytest.raises(ValueError, match="support"):
        agent.decide(np.eye(2) / 2, 0, covariance=np.zeros((1, 2, 2)))


def test_chance_certificates_from_covariances_hold_in_fresh_worlds() -> None:
    """phi is drawn around psi in each round; the chance is of the draw, not of the learning."""
    problem = gb.problem("synthetic-b", nature="fresh", psi_noise=0.03)
    settings = {"noise": 0.1, "context_noise": 0.03, "theta_bound": 1.0}
    algorithms = [
        gb.GuardUCB(0.25, **settings),
        gb.GuardUCB(0.25, realised=("chance", 0.1), **settings),
    ]
    results = gb.simulate(problem, algorithms, rounds=4000, trials=5, alpha=0.25)
    mean, chance = results.series
    assert chance.violations_realised.mean() <= 0.1 * 4000
    assert chance.violations_realised.mean() <= mean.violations_realised.mean()
    assert chance.violations_expected.sum() == 0
    assert chance.conservative.mean() < 4000  # it does leave the baseline


def test_an_agent_takes_covariances_of_a_gaussian_context() -> None:
    rng, theta = np.random.default_rng(7), np.array([0.6, 0.5])
    agent = gb.Agent(
        dim=2, algorithm=gb.GuardUCB(0.4, noise=0.05, context_noise=0.05, realised=("chance", 0.2))
    )
    law = gb.Gaussian([0.4, 0.4], 0.0004 * np.eye(2))
    kinds = []
    for _ in range(400):
        actions = rng.uniform(0.3, 1.0, (3, 2))
        psi = gb.expected_features(lambda a, c: a * c, actions, law)
        covariance = gb.difference_covariance(lambda a, c: a * c, actions, law, 0, alpha=0.4)
        decision = agent.decide(psi, 0, covariance=covariance)
        kinds.append(decision.kind)
        drawn = law.mean + rng.normal(0, 0.02, 2)
        agent.observe(decision.id, float(actions[decision.action] * drawn @ theta))
    assert kinds[-20:].count("learned") > 5
    bad = [
        (np.zeros((2, 2, 2)), "2 matrices for 3 actions"),
        (np.array([[[1.0, 0.5], [0.0, 1.0]]]), "not symmetric"),
        (-np.eye(2)[None], "negative eigenvalue"),
        (np.full((1, 2, 2), np.nan), "nan"),
    ]
    for covariance, message in bad:
        with pytest.raises(ValueError, match=message):
            agent.decide(psi, 0, covariance=covariance)


def test_an_agent_takes_the_support_of_the_hidden_context() -> None:
    agent = gb.Agent(dim=2, algorithm=gb.GuardUCB(0.3, noise=0.05, realised="worst"))
    rng, theta, weights = np.random.default_rng(3), np.array([0.7, 0.6]), [0.25, 0.75]
    kinds = []
    for _ in range(400):
        menu = rng.uniform(0.1, 0.6, (3, 2))
        support = menu + rng.uniform(-0.05, 0.05, (2, 3, 2))
        psi = np.einsum("n,nkd->kd", weights, support)
        decision = agent.decide(psi, 0, support=support, weights=weights)
        kinds.append(decision.kind)
        drawn = rng.choice(2, p=weights)
        agent.observe(decision.id, float(support[drawn, decision.action] @ theta))
        if decision.promise == "play":
            assert decision.margin >= 0
            rewards = support @ theta
            assert (rewards[:, decision.action] >= 0.7 * rewards[:, 0]).all()
    assert kinds[-20:].count("learned") > 5
    before = agent.theta
    bad = [
        ({"support": support}, "go together"),
        ({"support": support, "weights": [0.5, 0.6]}, "sum to 1"),
        ({"support": support[:1], "weights": weights}, "2 weights"),
        ({"support": support, "weights": [0.75, 0.25]}, "not the mean"),
        ({"support": support * np.nan, "weights": weights}, "not finite"),
    ]
    for arguments, message in bad:
        with pytest.raises(ValueError, match=message):
            agent.decide(psi, 0, **arguments)
    assert_allclose(agent.theta, before)


def test_heavy_weights_and_long_runs_do_not_wear_the_set_down() -> None:
    """Declared bounds far above the truth make ridge small and weights large: drift would show."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        theta = rng.random(6)
        theta /= np.linalg.norm(theta)
        menu = rng.random((1, 3, 6))
        menu /= np.linalg.norm(menu, axis=2)[..., None] * 1.3
        problem = gb.Tabular(menu, menu, theta, baseline=2, reward_std=0.01)
        algorithm = gb.GuardUCB(
            0.3, noise=0.01, context_noise=0.0, theta_bound=1000.0, mode="policy"
        )
        results = gb.simulate(problem, algorithm, rounds=20_000, seed=seed)
        assert results.series[0].totals["outside"].sum() == 0


@pytest.mark.filterwarnings("ignore::guardband.StuckWarning")
def test_numbers_that_break_down_certify_nothing() -> None:
    rng = np.random.default_rng(0)
    theta = rng.random(6)
    theta /= np.linalg.norm(theta)
    menu = rng.random((6, 6))
    menu /= np.linalg.norm(menu, axis=1)[:, None] * 1.3
    means = menu @ theta
    b = int(np.argsort(means)[3])
    agent = gb.Agent(
        dim=6, alpha=0.05, algorithm=gb.GuardUCB(noise=1e-3, theta_bound=1e6, realised="worst")
    )
    for _ in range(2000):
        decision = agent.decide(menu, b, support=menu[None], weights=[1.0])
        assert 0 <= decision.action < 6
        if decision.promise == "play":
            assert means[decision.action] >= 0.95 * means[b]
        agent.observe(decision.id, float(means[decision.action] + 1e-3 * rng.normal()))


def test_rewards_outside_the_unit_interval_are_warned_of() -> None:
    phi = np.array([[[0.0, 0.5], [-0.9, 0.1], [0.0, 0.6]]])
    problem = gb.Tabular(phi, phi, [0.9, 0.4], baseline=2, reward_std=0.1)
    with pytest.warns(gb.BoundWarning, match=r"rewards in \[0, 1\].*−0\.77"):
        gb.simulate(problem, gb.GuardUCB(0.1, noise=0.1, context_noise=0.0), rounds=10)


@pytest.mark.parametrize("radius", ["best", "logdet", "empirical"])
def test_a_set_that_is_told_a_quarter_of_the_noise_is_seen_to_fail(radius: str) -> None:
    told = {"delta": 0.2, "noise": 0.05 / 4, "context_noise": 0.075}
    assert failures(gb.GuardUCB(0.2, radius=radius, **told), 10, 150, 100, 0.3) > 0.2


def test_a_decision_names_its_certificate() -> None:
    seen = set()
    for settings in (
        {"mode": "policy"},
        {"mode": "strict"},
        {"mode": "strict", "baseline_tolerance": 0.0},
    ):
        agent = gb.Agent(
            dim=2, algorithm=gb.GuardUCB(0.3, noise=0.05, context_noise=0.0, **settings)
        )
        rng, theta = np.random.default_rng(1), np.array([0.7, 0.5])
        for _ in range(150):
            menu = rng.uniform(0.1, 0.6, (4, 2))
            decision = agent.decide(menu, 0, float(menu[0] @ theta))
            agent.observe(decision.id, float(menu[decision.action] @ theta) + rng.normal(0, 0.05))
            seen.add((decision.promise, decision.certificate))
            if decision.promise == "play":
                assert decision.certificate in (
                    "difference",
                    "lead",
                    "reward",
                    "baseline",
                    "bounded",
                )
                assert decision.certified[decision.action]
            assert (decision.certificate == "mixture") == (decision.promise == "policy")
    assert {("play", "difference"), ("policy", "mixture")} <= seen
