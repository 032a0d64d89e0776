"""The holdback: propensities, what rounds say about the lead, and the interval made of it."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import guardband as gb
from guardband.agent import Request, Verdict
from guardband.kernels.holdback import gain_of
from guardband.uplift import BETS, GainSums, reach_of, uplift_of

THETA = np.array([0.5, 0.4, 0.3])
COINS = np.linspace(0.0, 1.0, 201)[:-1] + 0.0025
H = 0.2


def menu(rng: np.random.Generator, actions: int = 6) -> tuple[np.ndarray, int]:
    features = rng.uniform(0.0, 0.57, (actions, 3))
    return features, int(np.argsort(features @ THETA)[-3])


def taught(rounds: int, seed: int = 0, **options: object) -> gb.Agent:
    """An agent that has seen some rounds."""
    rng = np.random.default_rng(seed)
    agent = gb.Agent(dim=3, seed=seed, **{"holdback": H, **options})  # type: ignore[arg-type]
    for _ in range(rounds):
        features, baseline = menu(rng)
        made = agent.decide(features, baseline)
        agent.observe(made, float(rng.random() < features[made.action] @ THETA))
    return agent


def chances(agent: gb.Agent, request: Request) -> dict[int, tuple[float, Verdict]]:
    """Every action that coins can lead to, with how many coins do, and its verdict."""
    engine, group, found = agent._group.engine, agent._group, {}
    for coin in COINS:
        for hold, chance in ((0.0, H), (1.0, 1.0 - H)):
            verdict = engine.decide(
                0, request, group.poolings + 1, group.passed(0) + 1, coin, hold=hold
            )
            before = found.get(verdict.action, (0.0, verdict))
            assert before[1].propensity == pytest.approx(verdict.propensity, abs=1e-12)
            assert before[1].awaited.stake == pytest.approx(verdict.awaited.stake, abs=1e-12)
            found[verdict.action] = (before[0] + chance / COINS.size, verdict)
    return found


KINDS = [
    pytest.param(120, {"mode": "strict", "alpha": 0.3}, id="strict, careful"),
    pytest.param(900, {"mode": "strict", "alpha": 0.3}, id="strict, learned"),
    pytest.param(5, {"mode": "policy", "alpha": 0.3}, id="policy, mixing"),
    pytest.param(60, {"mode": "strict", "trial_budget": 50.0}, id="trials"),
]


@pytest.mark.parametrize(("rounds", "options"), KINDS)
def test_propensities_are_those_of_the_coins_and_sum_to_one(rounds: int, options: dict) -> None:
    agent, rng, mixed = taught(rounds, **options), np.random.default_rng(1), 0
    for _ in range(12):
        found = chances(agent, agent._reader.read(*menu(rng), None))
        mixed += len(found) > 1
        assert math.fsum(v.propensity for _, v in found.values()) == pytest.approx(1.0, abs=1e-12)
        for share, verdict in found.values():  # as many coins lead to it as the propensity says
            assert share == pytest.approx(verdict.propensity, abs=2.0 / COINS.size)
    assert mixed > 1


@pytest.mark.parametrize(("rounds", "options"), KINDS)
def test_a_round_has_the_lead_of_the_choice_for_its_mean_whatever_rewards_are(
    rounds: int, options: dict
) -> None:
    agent, rng = taught(rounds, **options), np.random.default_rng(2)
    for _ in range(12):
        features, b = menu(rng)
        found = chances(agent, agent._reader.read(features, b, None))
        rewards = rng.random(6)  # linear in nothing
        p = {k: verdict.propensity for k, (_, verdict) in found.items()}
        own = {k: (p[k] - H * (k == b)) / (1.0 - H) for k in p} if len(p) > 1 else {b: 1.0}
        lead = math.fsum(own[k] * rewards[k] for k in own) - rewards[b]
        gains = {k: gain_of(v.awaited.stake, rewards[k])[0] for k, (_, v) in found.items()}
        assert math.fsum(p[k] * gains[k] for k in p) == pytest.approx(lead, abs=1e-12)


@given(
    own=st.floats(0.0, 0.99),
    h=st.floats(0.01, 0.5),
    p=st.lists(st.floats(0.0, 1.0), min_size=2, max_size=2),
    m=st.lists(st.floats(0.0, 1.0), min_size=2, max_size=2),
    bet=st.integers(0, 12),
    sign=st.sampled_from([1.0, -1.0]),
)
@settings(max_examples=300, deadline=None)
def test_every_bet_is_a_supermartingale_exactly(
    own: float, h: float, p: list[float], m: list[float], bet: int, sign: float
) -> None:
    """Rewards 0 or 1 of the baseline and of one other action, drawn with `1 - own`."""
    reach, a = reach_of(h, None), BETS[bet]
    chance = h + (1.0 - h) * own
    plays = [(chance, -(1.0 - own) / chance, 0), (1.0 - chance, 1.0 / (1.0 - h), 1)]
    lead, predicted = (1.0 - own) * (p[1] - p[0]), (1.0 - own) * (m[1] - m[0])
    mean = expected = 0.0
    for probability, share, k in plays:
        for y, of_y in ((1.0, p[k]), (0.0, 1.0 - p[k])):
            gain, square = gain_of((predicted, share, m[k]), y)
            assert abs(gain - predicted) <= reach * (1.0 + 1e-12)
            mean += probability * of_y * gain
            exponent = sign * a * (gain - lead) / reach
            price = (-math.log1p(-a) - a) * square / reach**2
            expected += probability * of_y * math.exp(exponent - price)
    assert mean == pytest.approx(lead, abs=1e-9)
    assert expected <= 1.0 + 1e-9


@given(st.floats(1.0, 1e6), st.floats(-1.0, 1.0), st.floats(0.0, 10.0), st.floats(0.5, 0.999))
@settings(max_examples=60, deadline=None)
def test_the_interval_is_where_the_mixture_of_bets_reaches_its_threshold(
    rounds: float, mean: float, variance: float, level: float
) -> None:
    reach = 20.0
    sums = GainSums(rounds, 0.2 * mean * rounds, variance * rounds)
    found = uplift_of(sums, reach, level)
    for bound, sign in ((found.low, 1.0), (found.high, -1.0)):
        if abs(bound) == 1.0:
            continue
        total = 0.0
        for j, bet in enumerate(BETS):
            a = bet / reach
            price = (-math.log1p(-bet) - bet) / reach**2
            exponent = sign * a * (sums.gain - rounds * bound) - price * sums.squares
            total += math.exp(min(exponent, 700.0)) / ((j + 1) * (j + 2))
        assert total == pytest.approx(2.0 / (1.0 - level), rel=1e-6)
    assert math.fsum(1.0 / ((j + 1) * (j + 2)) for j in range(BETS.size)) < 1.0


def test_without_rewards_nothing_is_known() -> None:
    found = gb.Agent(dim=2, holdback=0.1).uplift()
    assert (found.low, found.high, found.rounds) == (-1.0, 1.0, 0)
    assert math.isnan(found.mean)
    assert "nothing is known" in str(found)


def test_choices_do_not_change_where_the_coin_holds_nothing_back() -> None:
    rng, rounds, agents = np.random.default_rng(3), 400, 2
    psi = rng.uniform(0.0, 0.57, (5, 6, 3))
    draws = (rng.integers(5, size=rounds), 0.1 * rng.standard_normal((rounds, agents)))
    rest = (np.full(rounds, 0.1), rng.standard_normal((rounds, 3)), rng.random((rounds, agents)))
    problem = gb.Tabular(psi, psi, THETA, tasks=[[0, 1, 2]] * agents, baseline=np.full((2, 5), 1))

    def played(hold: np.ndarray, **options: float) -> np.ndarray:
        replay = gb.Replay(*draws, *rest, hold=hold)
        algorithm = gb.GuardUCB(alpha=0.3, noise=0.1, context_noise=0.0, **options)
        trace = gb.simulate(problem, algorithm, replay=replay, trace=True).trace
        return np.where(trace.conservative, -1, 0), trace.actions, trace.rewards

    hold = rng.random((rounds, agents))
    plain, never = played(hold), played(np.ones_like(hold), holdback=0.3)
    for one, other in zip(plain, never, strict=True):
        np.testing.assert_array_equal(one, other)
    some = played(hold, holdback=0.3)[1]
    assert (some[hold < 0.3] == 1).all()
    assert (some[hold >= 0.3] != 1).mean() > 0.3


def test_an_agent_measures_what_the_simulator_does() -> None:
    rng, rounds = np.random.default_rng(4), 500
    psi = rng.uniform(0.0, 0.57, (4, 6, 3))
    contexts, noise = rng.integers(4, size=rounds), 0.1 * rng.standard_normal((rounds, 1))
    coin, hold = rng.random((rounds, 1)), rng.random((rounds, 1))
    rest = (np.full(rounds, 0.1), rng.standard_normal((rounds, 3)))
    problem = gb.Tabular(psi, psi, THETA, tasks=[[0, 1, 2]], baseline=np.full((1, 4), 2))
    algorithm = gb.GuardUCB(alpha=0.2, noise=0.1, context_noise=0.0, mode="policy", holdback=0.1)
    replay = gb.Replay(contexts, noise, *rest, coin, hold=hold)
    results = gb.simulate(problem, algorithm, replay=replay, trace=True)
    agent = gb.Agent(dim=3, algorithm=algorithm)
    group, held = agent._group, 0
    for t in range(rounds):
        group.next_coin[0], group.next_hold[0] = coin[t, 0], hold[t, 0]
        made = agent.decide(psi[contexts[t]], 2)
        assert made.action == results.trace.actions[t, 0]
        held += "held back" in made.reason
        agent.observe(made, float(psi[contexts[t], made.action] @ THETA + noise[t, 0]))
    (series,) = results.series
    assert series.totals["held_back"].sum() == held > 20
    told = agent.uplift()
    assert told == pytest.approx(series.uplift(rounds)[0], abs=1e-12)
    truth = float(series.totals["lead"].sum()) / rounds
    assert told.low <= truth <= told.high
    assert truth > 0.01


def test_what_was_held_back_says_so_and_keeps_its_promise() -> None:
    agent, rng, held = taught(600, alpha=0.3), np.random.default_rng(5), 0
    for _ in range(200):
        features, baseline = menu(rng)
        made = agent.decide(features, baseline)
        if "held back by a coin" in made.reason:
            held += 1
            assert (made.action, made.kind, made.promise) == (baseline, "baseline", "baseline")
            assert made.margin >= 0.0
            assert H <= made.propensity < 1.0
        elif made.action != baseline:
            assert made.propensity <= 1.0 - H
    assert 15 < held < 70


@pytest.mark.parametrize("mode", ["strict", "policy"])
def test_it_goes_on_after_saving(tmp_path: Path, mode: str) -> None:
    agent = taught(80, mode=mode)
    rng = np.random.default_rng(6)
    waiting = [agent.decide(*menu(rng)) for _ in range(20)]
    again = gb.Agent.load(agent.save(tmp_path / "agent.npz"))
    assert again.uplift() == agent.uplift()
    for made in waiting:
        agent.observe(made, 0.4)
        again.observe(made, 0.4)
    assert again.uplift() == agent.uplift()
    for _ in range(50):
        asked = menu(rng)
        one, other = agent.decide(*asked), again.decide(*asked)
        assert one[:12] == other[:12]


def test_a_fleet_measures_all_its_tasks_together() -> None:
    fleet, rng = gb.Fleet({"a": None, "b": None}, dim=3, holdback=0.3), np.random.default_rng(7)
    for _ in range(100):
        for agent in fleet.values():
            made = agent.decide(*menu(rng))
            agent.observe(made, float(rng.random() < 0.5))
    whole, parts = fleet.uplift(), [agent.uplift() for agent in fleet.values()]
    assert whole.rounds == sum(each.rounds for each in parts) == 200
    assert whole.mean == pytest.approx(np.mean([each.mean for each in parts]))


@pytest.mark.parametrize("holdback", [-0.1, 0.6, math.nan, "much"])
def test_a_holdback_that_cannot_be_is_refused(holdback: object) -> None:
    with pytest.raises((ValueError, TypeError), match="holdback must be"):
        gb.GuardUCB(holdback=holdback)  # type: ignore[arg-type]


def test_what_is_missing_is_said() -> None:
    with pytest.raises(gb.InvalidValueError, match=r"state holdback=\.\.\."):
        gb.Agent(dim=2).uplift()
    with pytest.raises(gb.InvalidValueError, match="level must lie strictly between 0 and 1"):
        gb.Agent(dim=2, holdback=0.1).uplift(level=1.5)
    with pytest.raises(gb.InvalidTypeError, match="disc-ucb has no setting 'holdback'"):
        gb.Agent(dim=2, algorithm="disc-ucb", holdback=0.1)
    menus = np.full((1, 2, 2), 0.5)
    problem = gb.Tabular(menus, menus, [0.5, 0.5], baseline=1)
    replay = gb.Replay([0], [[0.0]], [0.1], [[1.0, 0.0]], [[0.5]])
    with pytest.raises(gb.InvalidValueError, match=r"Replay\(hold="):
        gb.simulate(problem, gb.GuardUCB(noise=0.1, holdback=0.1), replay=replay)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["strict", "policy"])
def test_the_interval_holds_at_its_rate(mode: str) -> None:
    """1,000 runs, looked at 50 times each; with bounds that are far too small it fails."""
    guard = gb.GuardUCB(0.2, noise=0.1, mode=mode, holdback=0.2)
    results = gb.simulate(
        gb.problem("forecast", agents=1), guard, rounds=1_000, trials=1_000, seed=5, progress=False
    )
    (series,) = results.series
    names = ("gain", "gain_squares", "lead")
    gains, squares, leads = (series.curves[name][..., 0] for name in names)
    reach, n = reach_of(0.2, 0.1), results.rounds.astype(float)
    missed = {1.0: 0, 1e-3: 0}
    for scale in missed:
        for run in range(0, 1_000, 1 if scale == 1.0 else 20):
            looked = zip(n[::4], gains[run, ::4], squares[run, ::4], leads[run, ::4], strict=True)
            missed[scale] += any(
                not told.low <= lead / rounds <= told.high
                for rounds, gain, square, lead in looked
                for told in [uplift_of(GainSums(rounds, gain, scale * square), scale * reach)]
            )
    assert missed[1.0] <= 50
    assert missed[1e-3] > 25
    assert abs((gains[:, -1] - leads[:, -1]).mean()) < 4.0 * gains[:, -1].std() / math.sqrt(1_000)
