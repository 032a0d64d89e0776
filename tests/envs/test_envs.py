from __future__ import annotations

import builtins
import sys
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from numpy.testing import assert_allclose, assert_array_equal
from pettingzoo.test import parallel_api_test, parallel_seed_test

import guardband as gb
from guardband.envs import BanditEnv, FleetEnv
from guardband.problems import (
    PROBLEMS,
    ForecastFormal2,
    NamedProblem,
    SyntheticB,
    SyntheticC,
    Toy,
    problem,
)

SIZES: dict[str, dict[str, Any]] = {"lastfm": {"contexts": 30, "actions": 20}}
# Their agents have actions and features of their own in every round.
NO_TABLE = ("drift-abrupt", "drift-slow", "drift-season", "odd-task", "liar")
PLAYED = [name for name in PROBLEMS if name not in NO_TABLE]
NATURES: dict[str, NamedProblem] = {
    "frozen": SyntheticB(),
    "fresh": SyntheticC(nature="fresh", psi_noise=0.1, baseline=3),
    "forecast": ForecastFormal2(contexts=20, support=6, agents=3),
}


@pytest.mark.filterwarnings("ignore:.*Box observation space m.*imum value is:UserWarning")
@pytest.mark.filterwarnings("ignore:.*Not able to test alternative render modes:UserWarning")
@pytest.mark.parametrize("name", PLAYED)
def test_gymnasium_accepts_every_problem(name: str) -> None:
    check_env(BanditEnv(problem(name, **SIZES.get(name, {})), rounds=20))


@pytest.mark.parametrize("name", NO_TABLE)
@pytest.mark.parametrize("kind", [BanditEnv, FleetEnv])
def test_problems_without_a_table_are_refused(kind: Any, name: str) -> None:
    with pytest.raises(gb.InvalidValueError, match=rf"{name} has actions and features of its own"):
        kind(problem(name), rounds=15)


@pytest.mark.parametrize("name", PLAYED)
def test_pettingzoo_accepts_every_problem(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    env = FleetEnv(problem(name, **SIZES.get(name, {})), rounds=15)
    parallel_api_test(env, num_cycles=40)
    assert "Passed" in capsys.readouterr().out


def test_the_same_seed_gives_the_same_episode() -> None:
    parallel_seed_test(lambda: FleetEnv(SyntheticB(), rounds=10), num_cycles=10)
    env = BanditEnv(SyntheticB(), rounds=10)
    first, again, other = (env.reset(seed=s)[0]["features"] for s in (1, 1, 2))
    assert_array_equal(first, again)
    assert (first != other).any()
    assert (env.reset()[0]["features"] != env.reset()[0]["features"]).any()


@pytest.mark.parametrize("name", NATURES)
def test_an_episode_is_a_trial_of_the_simulator(name: str) -> None:
    made, rounds = NATURES[name], 200
    bounds = {"theta_bound": 1.5, "feature_bound": 4.0}
    results = gb.simulate(
        made, gb.DisLinUCB(**bounds), rounds=rounds, seed=5, alpha=0.2, trace=True, progress=False
    )
    env = FleetEnv(made, rounds=rounds, alpha=0.2)
    env.reset(seed=5)
    sums: dict[str, Any] = dict.fromkeys(
        ("violation_expected", "violation_realised", "regret", "regret_expected"), 0.0
    )
    for t in range(rounds):
        names = list(env.agents)
        chosen = dict(zip(names, results.trace.actions[t].tolist(), strict=True))
        _, rewards, _, truncations, infos = env.step(chosen)
        realised = np.array([infos[agent]["realised_reward"] for agent in names])
        assert_allclose(realised, results.trace.rewards[t], atol=1e-12)
        assert (np.array(list(rewards.values())) != realised).all()  # noisy
        for key, value in sums.items():
            sums[key] = value + np.array([infos[agent][key] for agent in names])
        assert set(truncations.values()) == {t == rounds - 1}
    (series,) = results.series
    assert_allclose(series.regret[0], sums["regret"], atol=1e-9)
    assert_allclose(series.regret_expected[0], sums["regret_expected"], atol=1e-9)
    assert_array_equal(series.violations_expected[0], sums["violation_expected"])
    assert_array_equal(series.violations_realised[0], sums["violation_realised"])
    assert env.agents == []


def test_one_agent_sees_what_it_sees_in_the_fleet() -> None:
    made = SyntheticC()
    fleet, single = FleetEnv(made), BanditEnv(made, agent=2)
    everybody, _ = fleet.reset(seed=3)
    alone, info = single.reset(seed=3)
    assert info == {}
    for key, value in alone.items():
        assert_array_equal(value, everybody["agent_2"][key])
    assert not alone["features"][:, 0].any()  # the third task uses the second feature only
    assert alone["features"][:, 1].all()
    step = fleet.step({"agent_0": 1, "agent_1": 2, "agent_2": 3})
    assert single.step(3)[1] == step[1]["agent_2"]


def test_a_forecast_is_announced_with_its_half_range() -> None:
    env = BanditEnv(NATURES["forecast"], agent=1)
    seen, info = env.reset(seed=1)
    for _ in range(5):
        assert info["weights"].sum() == pytest.approx(1.0)
        assert info["half_range"].shape == (20,)
        before = info
        seen, _, _, _, info = env.step(int(seen["baseline"]))
        assert info["context"] in before["contexts"]  # the hidden one, told afterwards
        assert not info["violation_expected"]


def test_violations_of_the_toy() -> None:
    env = BanditEnv(Toy(reward_std=0.0), alpha=0.03)
    env.reset(seed=0)
    infos = [env.step(k)[4] for k in range(3)]
    assert [info["violation_realised"] for info in infos] == [False, False, True]
    assert [info["violation_expected"] for info in infos] == [False, True, False]
    assert env.step(1)[1] == pytest.approx(1.0)


def test_mistakes_are_named() -> None:
    with pytest.raises(
        ValueError, match="agent is 3, but the problem's agents are numbered 0 to 2"
    ):
        BanditEnv(SyntheticB(), agent=3)
    with pytest.raises(ValueError, match="rounds must be at least 1, not 0"):
        FleetEnv(SyntheticB(), rounds=0)
    with pytest.raises(ValueError, match="alpha has 2 values for 3 tasks"):
        FleetEnv(SyntheticB(), alpha=[0.1, 0.2])
    env = BanditEnv(SyntheticB(), rounds=1)
    with pytest.raises(gymnasium.error.ResetNeeded, match="call reset"):
        env.step(0)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="action is 10, but actions are numbered 0 to 9"):
        env.step(10)
    env.step(9)
    with pytest.raises(gymnasium.error.ResetNeeded, match="call reset"):
        env.step(0)
    fleet = FleetEnv(SyntheticB())
    with pytest.raises(gymnasium.error.ResetNeeded, match="call reset"):
        fleet.step({})
    fleet.reset(seed=0)
    with pytest.raises(
        ValueError, match="given for agent_0; give one for each of agent_0, agent_1"
    ):
        fleet.step({"agent_0": 1})


@pytest.mark.parametrize("missing", ["gymnasium", "pettingzoo"])
def test_without_the_extra_the_remedy_is_told(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def refusing(name: str, *rest: Any, **more: Any) -> Any:
        if name.partition(".")[0] == missing:
            raise ImportError(f"No module named {name!r}")
        return real(name, *rest, **more)

    for module in [name for name in sys.modules if name.startswith("guardband.envs")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(builtins, "__import__", refusing)
    with pytest.raises(ImportError, match=rf"{missing}.*pip install 'guardband\[gym\]'"):
        import guardband.envs  # noqa: F401, PLC0415
