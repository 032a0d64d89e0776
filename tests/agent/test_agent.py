"""What an agent promises, and what it refuses."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import guardband as gb
from guardband.algorithms import Plan
from guardband.facts import Facts

MENU = np.array([[0.6, 0.0, 0.1], [0.1, 0.7, 0.2], [0.3, 0.3, 0.3]])


def quick(alpha: float = 0.5, **settings: float) -> gb.Agent:
    """Return an agent that learns within a few rounds."""
    bounds = {"noise": 0.01, "context_noise": 0.01, "ridge": 0.01} | settings
    return gb.Agent(dim=3, alpha=alpha, algorithm=gb.DiscUCB(gate="none"), **bounds)


def teach(
    agent: gb.Agent, rounds: int, theta: tuple[float, ...] = (0.5, 0.6, 0.3)
) -> list[gb.Decision]:
    rng, decisions = np.random.default_rng(1), []
    for _ in range(rounds):
        menu = rng.uniform(0, 0.5, (6, 3))
        decision = agent.decide(menu, baseline=2, baseline_reward=float(menu[2] @ theta))
        agent.observe(decision.id, float(menu[decision.action] @ theta) + rng.normal(0, 0.005))
        decisions.append(decision)
    return decisions


def test_it_starts_with_the_baseline_and_learns() -> None:
    agent = quick()
    decisions = teach(agent, 300)
    assert decisions[0].kind in ("baseline", "explored")
    assert decisions[-1].kind == "learned"
    assert {"learned", "explored", "baseline"} == {d.kind for d in decisions}
    np.testing.assert_allclose(agent.theta, (0.5, 0.6, 0.3), atol=0.05)


def test_a_decision_says_what_it_promises() -> None:
    agent = quick()
    last = teach(agent, 300)[-1]
    assert last.lower < last.mean < last.upper
    assert last.action in last.safe_actions
    assert last.propensity == 1.0
    assert last.mean >= last.floor
    explored = [d for d in teach(quick(), 60) if d.kind == "explored"]
    baseline = [d for d in teach(quick(), 60) if d.kind == "baseline"]
    assert {round(d.propensity, 12) for d in explored} == {0.5}
    assert all(d.action == 2 for d in baseline)
    assert {round(d.propensity, 12) for d in baseline} <= {0.5, 1.0}


def test_the_floor_is_a_fraction_of_the_baseline() -> None:
    decision = quick(alpha=0.2).decide(MENU, 0, baseline_reward=0.5)
    assert decision.floor == pytest.approx(0.4)
    unknown = quick(alpha=0.2).decide(MENU, 0)
    beta = math.hypot(0.01, 0.01) * math.sqrt(2 * math.log(2 / 1e-3)) + math.sqrt(0.01)
    norm = np.linalg.norm(MENU[0]) / math.sqrt(0.01)
    assert unknown.floor == pytest.approx(0.8 * beta * norm)


def test_without_a_reward_floor_an_unknown_baseline_keeps_the_gate_shut() -> None:
    decision = gb.Agent(dim=3, algorithm=gb.DiscUCB(0.3)).decide(MENU, 1)
    assert decision.kind in ("baseline", "explored")
    assert "reward_floor" in decision.reason


def test_a_worthless_baseline_is_played() -> None:
    for reward in (0.0, -0.2):
        agent = quick(alpha=1e-9)
        assert agent.decide(MENU, 1, baseline_reward=reward).kind == "baseline"


@given(st.integers(0, 10**6), st.floats(0.01, 1.0), st.floats(0.01, 1.0))
def test_a_smaller_alpha_never_enlarges_the_safe_set(seed: int, one: float, other: float) -> None:
    rng = np.random.default_rng(seed)
    menu = rng.uniform(0, 0.5, (20, 3))
    sets = []
    for alpha in (min(one, other), max(one, other)):
        agent = quick(alpha=alpha)
        for _ in range(30):
            x = rng.uniform(0, 0.5, (1, 3))
            d = agent.decide(x, 0, baseline_reward=0.2)
            agent.observe(d.id, float(x[0] @ (0.5, 0.6, 0.3)))
        rng = np.random.default_rng(seed)
        rng.uniform(0, 0.5, (20, 3))
        sets.append(set(agent.decide(menu, 0, baseline_reward=0.3).safe_actions))
    assert sets[0] <= sets[1]


def test_rewards_may_come_late_and_in_any_order() -> None:
    agent = quick()
    decisions = [agent.decide(MENU, 0, 0.4) for _ in range(5)]
    assert agent.pending == 5
    for decision in reversed(decisions):
        agent.observe(decision.id, 0.3)
    assert agent.pending == 0
    assert agent.rounds == 5


def test_a_missing_reward_blocks_nothing() -> None:
    agent, other = quick(), quick()
    agent.decide(MENU, 0, 0.4)
    d = agent.decide(MENU, 0, 0.4)
    other.decide(MENU, 0, 0.4)
    e = other.decide(MENU, 0, 0.4)
    agent.observe(d.id, 0.3)
    other.discard("agent-1")
    other.observe(e.id, 0.3)
    assert_array_equal(agent.theta, other.theta)


@dataclass(frozen=True)
class Greedy:
    """An algorithm of the user's own, which derives from nothing."""

    ridge: float = 1.0

    name: ClassVar[str] = "greedy"
    constrained: ClassVar[bool] = False

    def plan(self, facts: Facts) -> Plan:
        plan = gb.DisLinUCB(ridge=self.ridge).plan(facts)
        return plan._replace(terms=plan.terms._replace(sigma=0.0, theta_bound=0.0))


def test_an_algorithm_of_the_user_s_own() -> None:
    agent = gb.Agent(3, algorithm=Greedy())
    agent.observe(agent.decide(MENU, 1), 0.9)
    assert agent.decide(MENU, 1).action == 0


def saved(agent: gb.Agent) -> dict[str, np.ndarray]:
    """What a file of the agent holds: its sums, counters, coins and pending decisions."""
    with TemporaryDirectory() as folder, np.load(agent.save(Path(folder, "agent.npz"))) as file:
        return dict(file)


def fingerprint(agent: gb.Agent) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in saved(agent).items()}


BAD_REQUESTS = [
    ({"features": [[math.nan, 0, 0]]}, ValueError, "action 0 .*nan"),
    ({"features": [[0.1, 0, 0], [math.inf, 0, 0]]}, ValueError, "action 1 .*inf"),
    ({"features": np.zeros((0, 3))}, ValueError, r"shape \(K, 3\).*\(0, 3\)"),
    ({"features": np.zeros((2, 4))}, ValueError, r"\(2, 4\)"),
    ({"features": np.zeros(3)}, ValueError, r"\(3,\)"),
    ({"features": "abc"}, ValueError, "table of numbers"),
    ({"features": [[0.9, 0.9, 0.9]]}, ValueError, r"length 1\.55885.*feature_bound=1"),
    ({"baseline": 3}, ValueError, "baseline 3 is not one of the 3"),
    ({"baseline": -1}, ValueError, "baseline -1"),
    ({"baseline": 0.5}, TypeError, "0.5"),
    ({"baseline": True}, TypeError, "True"),
    ({"features": [["0.1", "0.2", "0.3"]]}, ValueError, "per action: '0.1' is no number"),
    ({"features": np.array([[0.1 + 1j, 0, 0]])}, ValueError, "1j. is no number"),
    ({"features": np.array([[0.1, 0, 0]], object)}, ValueError, r"pass features.astype\(float\)"),
    ({"features": np.ma.masked_array(np.zeros((2, 3)), mask=True)}, ValueError, "masked"),
    ({"baseline_reward": "0.4"}, TypeError, "'0.4'"),
    ({"baseline_reward": math.nan}, ValueError, "nan"),
    ({"baseline_reward": math.inf}, ValueError, "inf"),
    ({"baseline_reward": "x"}, TypeError, "'x'"),
    ({"baseline_reward": 7.0}, ValueError, r"theta_bound \* feature_bound = 1.*not 7"),
]


@pytest.mark.parametrize(("change", "error", "message"), BAD_REQUESTS)
def test_bad_requests_change_nothing(change: dict, error: type, message: str) -> None:
    agent = quick()
    teach(agent, 20)
    before = fingerprint(agent)
    request = {"features": MENU, "baseline": 0, "baseline_reward": 0.4} | change
    with pytest.raises(error, match=message):
        agent.decide(**request)
    assert fingerprint(agent) == before
    many = {
        f"{k}s" if k != "features" else k: [MENU if k == "features" else v, v]
        for k, v in request.items()
    }
    if "baseline" not in change:
        many["baselines"] = [0, request["baseline"]]
    many["baseline_rewards"] = [0.4, request["baseline_reward"]]
    with pytest.raises(error, match=message):
        agent.decide_many(**many)
    assert fingerprint(agent) == before


@pytest.mark.parametrize(
    ("reward", "error", "message"),
    [
        (math.nan, ValueError, "nan"),
        (-math.inf, ValueError, "-inf"),
        ("much", TypeError, "'much'"),
        ("0.5", TypeError, "'0.5'"),
        (4200.0, ValueError, "4200.*stated noise"),
    ],
)
def test_bad_rewards_change_nothing(reward: object, error: type, message: str) -> None:
    agent = quick()
    decision = agent.decide(MENU, 0, 0.4)
    before = fingerprint(agent)
    with pytest.raises(error, match=message):
        agent.observe(decision.id, reward)
    assert fingerprint(agent) == before
    agent.observe(decision.id, 0.4)


def test_observing_twice_or_something_unknown_changes_nothing() -> None:
    agent = quick()
    decision = agent.decide(MENU, 0, 0.4)
    agent.observe(decision.id, 0.4)
    before = fingerprint(agent)
    with pytest.raises(gb.UnknownDecisionError, match="observed or given up before"):
        agent.observe(decision.id, 0.4)
    with pytest.raises(gb.UnknownDecisionError, match="'agent-2' is no decision of task 'agent'"):
        agent.observe("agent-2", 0.4)
    with pytest.raises(gb.UnknownDecisionError, match="'x'"):
        agent.observe("x", 0.4)
    assert fingerprint(agent) == before


def test_decide_many_relies_on_what_is_known_now() -> None:
    one, other = quick(), quick()
    teach(one, 50)
    teach(other, 50)
    batch = one.decide_many([MENU, MENU[:2]], [0, 1], [0.3, 0.4])
    single = [other.decide(MENU, 0, 0.3), other.decide(MENU[:2], 1, 0.4)]
    assert [d[:12] for d in batch] == [d[:12] for d in single]
    with pytest.raises(ValueError, match="2 tables of features and 1 baselines"):
        one.decide_many([MENU, MENU], [0])


def test_features_may_be_lists_integers_strided_or_read_only() -> None:
    wide = np.asfortranarray(np.repeat(MENU, 2, axis=1))[:, ::2]
    locked = MENU.copy()
    locked.flags.writeable = False
    menus = [MENU, MENU.tolist(), wide, locked, MENU.astype(np.float32).astype(np.float64)]
    choices = [quick().decide(menu, 0, 0.4)[1:12] for menu in menus[:4]]
    assert len(set(choices)) == 1
    assert quick().decide(np.eye(3, dtype=int), 0, 0.4).action in (0, 1, 2)


def test_thousands_of_actions() -> None:
    menu = np.random.default_rng(0).uniform(0, 0.5, (5000, 3))
    decision = quick().decide(menu, 17, 0.2)
    assert 0 <= decision.action < 5000


def test_several_threads_lose_nothing() -> None:
    agent = quick()
    per_thread, threads = 300, 4
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        try:
            for _ in range(per_thread):
                decision = agent.decide(rng.uniform(0, 0.5, (5, 3)), 0, 0.2)
                agent.observe(decision.id, 0.3)
        except BaseException as error:
            failures.append(error)

    pool = [threading.Thread(target=work, args=(i,)) for i in range(threads)]
    for thread in pool:
        thread.start()
    for thread in pool:
        thread.join()
    assert not failures
    assert agent.rounds == per_thread * threads
    assert agent.pending == 0
    sums = saved(agent)
    counted = sums["own_scalars"][:, 0].sum() + sums["pooled_scalars"][0]
    assert counted == per_thread * threads


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"dim": 0}, ValueError, "dim .*0"),
        ({"dim": 2.5}, TypeError, "2.5"),
        ({"alpha": 0.0}, ValueError, "alpha .*0.0"),
        ({"alpha": 1.5}, ValueError, "1.5"),
        ({"alpha": math.nan}, ValueError, "nan"),
        ({"ridge": 0.0}, ValueError, "ridge .*0.0"),
        ({"ridge": math.inf}, ValueError, "inf"),
        ({"noise": -1.0}, ValueError, "noise .*-1.0"),
        ({"delta": 1.0}, ValueError, "delta .*1.0"),
        ({"theta_bound": 0}, ValueError, "theta_bound"),
        ({"feature_bound": -2}, ValueError, "feature_bound"),
        ({"horizon": 0}, ValueError, "horizon"),
        ({"seed": -1}, ValueError, "seed"),
        ({"reward_floor": -0.1}, ValueError, "reward_floor"),
        ({"rigde": 1.0}, TypeError, "unexpected keyword argument 'rigde'"),
        ({"algorithm": gb.DisLinUCB()}, TypeError, "dis-lin-ucb has no setting 'alpha'"),
        ({"algorithm": gb.DiscUCB(gate="gap")}, ValueError, "only a simulation knows"),
    ],
)
def test_bad_settings(settings: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        gb.Agent(**({"dim": 3, "alpha": 0.3} | settings))


def test_seed_zero_is_a_seed_like_any_other() -> None:
    runs = [[d.action for d in teach(quick(), 50)] for _ in range(2)]
    assert runs[0] == runs[1]
    agent = gb.Agent(dim=3, alpha=0.5, algorithm=gb.DiscUCB(gate="none"), seed=0)
    assert agent.decide(MENU, 0, 0.4).id == "agent-1"


def test_an_unconstrained_agent_and_a_baseline_agent() -> None:
    free = gb.Agent(dim=3, algorithm=gb.DisLinUCB())
    decision = free.decide(MENU, 0)
    assert decision.kind == "learned"
    assert math.isnan(decision.floor)
    held = gb.Agent(dim=3, algorithm=gb.algorithms.Baseline())
    assert held.decide(MENU, 1).kind == "baseline"
