"""The simulator: seeds, workers, metrics, files, errors."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import guardband as gb
from guardband.algorithms import ALGORITHMS
from guardband.kernels.environment import Draws
from guardband.problems import SyntheticA
from guardband.sim.draws import TrialDraws
from guardband.sim.stats import interval_half_width, mean_interval, student_quantile
from guardband.sim.trial import checkpoint_rounds

SAFE = gb.DiscUCB(0.3, gate="none", noise=0.1, context_noise=0.1)


def totals(results: gb.Results) -> list[np.ndarray]:
    return [values for series in results.series for values in series.totals.values()]


def test_one_seed_one_result_whatever_the_workers(problem: gb.Tabular) -> None:
    runs = [
        gb.simulate(problem, [SAFE, gb.DisLinUCB()], rounds=500, trials=5, seed=0, workers=workers)
        for workers in (1, 2, 4)
    ]
    for other in runs[1:]:
        for one, two in zip(totals(runs[0]), totals(other), strict=True):
            assert_array_equal(one, two)
    different = gb.simulate(problem, [SAFE, gb.DisLinUCB()], rounds=500, trials=5, seed=1)
    assert any((a != b).any() for a, b in zip(totals(runs[0]), totals(different), strict=True))


def test_a_trial_does_not_depend_on_the_others(problem: gb.Tabular) -> None:
    few = gb.simulate(problem, SAFE, rounds=300, trials=2)
    many = gb.simulate(problem, SAFE, rounds=300, trials=6)
    assert_array_equal(few.series[0].regret, many.series[0].regret[:2])
    assert len({float(r) for r in many.series[0].regret[:, 0]}) == 6


def test_rivals_do_not_disturb_each_other(problem: gb.Tabular) -> None:
    alone = gb.simulate(problem, gb.DisLinUCB(), rounds=300, alpha=0.3)
    crowd = gb.simulate(
        problem, [SAFE, gb.DiscUCB(0.2, mix="action"), gb.DisLinUCB()], rounds=300, alpha=0.3
    )
    assert_array_equal(alone.series[0].regret, crowd["dis-lin-ucb"].regret)


def test_the_length_of_a_chunk_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    world = SyntheticA(agents=3).build(4)
    whole = list(TrialDraws(world, 1000, seed=9).chunks())
    monkeypatch.setattr("guardband.sim.draws.CHUNK_NUMBERS", 1)
    pieces = list(TrialDraws(world, 1000, seed=9).chunks())
    assert len(whole) == 1 < len(pieces)
    for name in ("contexts", "noise", "zeta", "coin"):
        joined = np.concatenate([getattr(piece, name) for piece in pieces])
        assert_array_equal(joined, getattr(whole[0], name))


def test_draws_have_the_laws_they_should() -> None:
    world = SyntheticA(agents=2, reward_std=0.5).build(1)
    (draws,) = TrialDraws(world, 20_000, seed=3).chunks()
    assert isinstance(draws, Draws)
    assert_allclose(np.linalg.norm(draws.zeta, axis=2), 1.0, rtol=1e-12)
    assert abs(draws.zeta.mean()) < 5 / math.sqrt(2 * 40_000)
    assert_allclose(draws.noise.std(), 0.5, rtol=0.02)
    counts = np.bincount(draws.contexts, minlength=100)
    assert ((counts - 200) ** 2 / 200).sum() < 150  # chi-square, 99 degrees: above 150 is p < 1e-3
    assert abs(np.corrcoef(draws.noise.T)[0, 1]) < 0.03


def test_always_the_baseline_is_the_yardstick(problem: gb.Tabular) -> None:
    (series,) = gb.simulate(
        problem, gb.algorithms.Baseline(), rounds=400, trials=2, alpha=0.1
    ).series
    assert_array_equal(series.totals["reward"], series.totals["baseline_reward"])
    assert_array_equal(series.conservative, np.full((2, 2), 400))
    assert series.violations_realised.sum() == series.sync_rounds.sum() == 0


def test_conservative_vectors_keep_the_promise(problem: gb.Tabular) -> None:
    """The mixed vector is worth (1 - alpha) r_b in every round, by the choice of rho."""
    result = gb.simulate(problem, gb.DiscUCB(0.2), rounds=5000, trace=True)
    world, trace = problem.build(0), result.trace
    assert trace.conservative.all()
    assert result.series[0].violations_realised.sum() == 0
    floor = 0.8 * world.baseline_rewards.min()
    assert trace.rewards.min() >= floor
    lengths = {len(set(np.round(trace.rewards[:, m], 9))) for m in range(2)}
    assert min(lengths) > 100  # the direction changes from round to round


def test_directions_may_stay_in_the_task_s_own_coordinates(problem: gb.Tabular) -> None:
    apart = gb.DiscUCB(0.2, mix="task-vector", share=False)
    seat_trace = gb.simulate(problem, apart, rounds=50, trace=True).trace
    mixed = gb.simulate(problem, gb.DiscUCB(0.2, share=False), rounds=50, trace=True).trace
    assert_allclose(seat_trace.rewards[:, 0], mixed.rewards[:, 0])  # agent 0 uses all features
    assert (seat_trace.rewards[:, 1] != mixed.rewards[:, 1]).any()


def test_without_any_alpha_violations_are_not_counted(problem: gb.Tabular) -> None:
    results = gb.simulate(problem, gb.DisLinUCB(), rounds=50)
    assert np.isnan(results.series[0].violations_expected).all()
    assert results.settings["alpha"] is None
    counted = gb.simulate(problem, gb.DisLinUCB(), rounds=50, alpha=[0.1, 0.2])
    assert counted.settings["alpha"] == [0.1, 0.2]
    assert not np.isnan(counted.series[0].violations_expected).any()


def test_tables(problem: gb.Tabular, tmp_path: Path) -> None:
    results = gb.simulate(problem, [SAFE, gb.DisLinUCB()], rounds=1000, trials=3)
    summary = results.summary()
    assert list(summary["label"]) == ["disc-ucb", "dis-lin-ucb"]
    per_agent = results.per_agent()
    assert len(per_agent) == 2 * 3 * 2
    mine = per_agent[per_agent["label"] == "disc-ucb"]
    assert summary["regret_per_agent"][0] == pytest.approx(mine["regret"].mean())
    assert summary["regret_total"][0] == pytest.approx(2 * mine["regret"].mean())
    curves = results.curves()
    assert set(curves["round"]) == set(checkpoint_rounds(1000))
    last = curves[(curves["round"] == 1000) & (curves["label"] == "disc-ucb")]
    assert last["regret"].mean() == pytest.approx(summary["regret_per_agent"][0])
    folder = results.save(tmp_path / "out")
    names = {"summary.csv", "agents.csv", "curves.csv", "settings.json"}
    assert {p.name for p in folder.iterdir()} == names
    about = json.loads((folder / "settings.json").read_text())
    assert about["settings"]["seed"] == 0
    assert about["settings"]["versions"]["numpy"] == np.__version__
    assert about["algorithms"]["disc-ucb"]["alpha"] == 0.3
    assert "commit" in about["settings"]


def test_series_of_one_name_say_what_sets_them_apart(problem: gb.Tabular) -> None:
    twins = [gb.DiscUCB(0.1), gb.DiscUCB(0.3), gb.DisLinUCB(), gb.DisLinUCB()]
    results = gb.simulate(problem, twins, rounds=10)
    assert [s.label for s in results.series][:2] == ["disc-ucb (alpha=0.1)", "disc-ucb (alpha=0.3)"]
    assert len({s.label for s in results.series}) == 4
    with pytest.raises(KeyError, match="no series 'x'"):
        results["x"]


def test_bounds_are_warned_of_once(problem: gb.Tabular) -> None:
    tight = gb.DiscUCB(0.3, feature_bound=0.5, theta_bound=0.5)
    with pytest.warns(gb.BoundWarning) as caught:
        gb.simulate(problem, [tight, tight], rounds=10, trials=3)
    assert len(caught) == 1
    text = str(caught[0].message)
    assert "feature_bound=0.5" in text
    assert "theta_bound=0.5" in text


def test_checkpoints() -> None:
    for rounds in (1, 7, 200, 201, 12_345, 10**7):
        checkpoints = checkpoint_rounds(rounds)
        assert checkpoints[-1] == rounds
        assert (np.diff(checkpoints) > 0).all()
        assert checkpoints[0] >= 1
        assert len(checkpoints) <= 200


def test_intervals() -> None:
    samples = np.array([1.0, 2.0, 4.0, 5.0])
    mean, low, high = mean_interval(samples)
    half = 3.182446 * samples.std(ddof=1) / 2
    assert (mean, low, high) == pytest.approx((3.0, 3.0 - half, 3.0 + half))
    assert np.isnan(interval_half_width(samples[:1])).all()
    # Quantiles from a table: df 7, 10, 30, 99
    for df, value in ((7, 2.36462), (10, 2.22814), (30, 2.04227), (99, 1.98422)):
        assert student_quantile(df) == pytest.approx(value, abs=2e-4)


REPLAY = gb.Replay(
    contexts=np.zeros(5, int), reward_noise=np.zeros((5, 2)), rho=np.zeros(5), zeta=np.zeros((5, 3))
)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"rounds": 0}, ValueError, "rounds .*0"),
        ({"rounds": None}, ValueError, "rounds is missing"),
        ({"rounds": 1.5}, TypeError, r"1\.5"),
        ({"trials": 0}, ValueError, "trials"),
        ({"seed": -3}, ValueError, "seed .*-3"),
        ({"workers": 0}, ValueError, "workers"),
        ({"alpha": 2.0}, ValueError, r"alpha .*2\.0"),
        ({"alpha": [0.1] * 3}, ValueError, "3 values for 2"),
        ({"algorithms": []}, ValueError, "algorithms is empty"),
        ({"trace": True, "trials": 2}, ValueError, "one trial and one algorithm"),
        ({"replay": REPLAY, "trials": 2}, ValueError, "a replay is one trial"),
        ({"replay": REPLAY, "rounds": 9}, ValueError, "contexts must be 9"),
        (
            {"replay": gb.Replay(np.full(5, 4), *[np.zeros((5, 2))] * 3), "rounds": 5},
            ValueError,
            "holds 4 to 4, but contexts are numbered 0 to 3",
        ),
        (
            {"replay": REPLAY, "rounds": 5, "algorithms": [gb.DiscUCB(mix="action")]},
            ValueError,
            "coin",
        ),
        ({"algorithms": [gb.DiscUCB(gate="gap", gap=np.zeros((1, 1)))]}, ValueError, "gap must"),
        ({"algorithms": [gb.DiscUCB((0.1, 0.2, 0.3))]}, ValueError, "3 values for 2"),
    ],
)
def test_bad_arguments(problem: gb.Tabular, change: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        gb.simulate(problem, **({"algorithms": [SAFE], "rounds": 20} | change))


def test_there_is_no_trace_unless_asked_for(problem: gb.Tabular) -> None:
    with pytest.raises(ValueError, match="trace=True"):
        _ = gb.simulate(problem, SAFE, rounds=5).trace


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: gb.DiscUCB(0.0), r"0\.0"),
        (lambda: gb.DiscUCB((0.1, 1.2)), r"1\.2"),
        (lambda: gb.DiscUCB(()), "empty"),
        (lambda: gb.DiscUCB(gate="print"), "Did you mean 'printed'"),
        (lambda: gb.DiscUCB(mix="vectors"), "Did you mean 'vector'"),
        (lambda: gb.DiscUCB(gap=np.zeros((1, 1))), "gate='gap' only"),
        (lambda: gb.DiscUCB(gate="gap", gap=[[np.nan]]), "nan"),
        (lambda: gb.DiscUCBUnknown(gate="gaps"), "Did you mean 'gap'"),
        (lambda: gb.DiscUCBUnknown(reward_floor=-1.0), r"reward_floor .*-1\.0"),
        (lambda: gb.DisLinUCB(ridge=-0.5), r"ridge .*-0\.5"),
        (lambda: gb.DisLinUCB(noise=math.nan), "noise .*nan"),
    ],
)
def test_bad_settings(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.slow
def test_memory_is_flat_in_the_horizon() -> None:
    """Ten million rounds of twelve agents stay under a gigabyte, in a process of their own."""
    import subprocess  # noqa: PLC0415
    import sys  # noqa: PLC0415

    # Not getrusage: its ru_maxrss outlives exec, so it would be this process's peak if larger.
    code = (
        "import numpy as np, guardband as gb\n"
        "rng = np.random.default_rng(0)\n"
        "phi = rng.uniform(0.05, 0.3, (10, 10, 9))\n"
        "p = gb.Tabular(phi, phi, np.full(9, 1 / 3), tasks=[range(9)] * 12, baseline=5)\n"
        "gb.simulate(p, gb.DiscUCB(0.1), rounds=10_000_000, workers=1)\n"
        "status = open('/proc/self/status').read()\n"
        "print(int(status.split('VmHWM:')[1].split()[0]) // 1024)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 1000


def test_names_do_as_on_the_command_line() -> None:
    named = gb.simulate("forecast", ["guard-ucb", gb.algorithms.Baseline()], rounds=2e1, alpha=0.3)
    problem = gb.problem("forecast")
    told = {k: v for k, v in problem.assumptions().items() if k != "rounds"}
    own = ALGORITHMS["guard-ucb"].informed(
        {**told, "context_noise": problem.context_noise}, alpha=0.3
    )
    made = gb.simulate(problem, [own, gb.algorithms.Baseline()], rounds=20)
    assert named.settings["rounds"] == 20
    assert [s.settings for s in named.series] == [s.settings for s in made.series]
    np.testing.assert_array_equal(named.series[0].regret, made.series[0].regret)
    one = gb.simulate("forecast", "guard-ucb", rounds=5)
    assert one.settings["alpha"] == [problem.assumptions()["alpha"]] * 5
    with pytest.raises(ValueError, match="Did you mean 'guard-ucb'"):
        gb.simulate("forecast", "guard-ubc", rounds=5)
    with pytest.raises(ValueError, match="Did you mean 'forecast'"):
        gb.simulate("forcast", "guard-ucb", rounds=5)
    with pytest.raises(TypeError, match="rounds must be a whole number, not 2"):
        gb.simulate("forecast", "guard-ucb", rounds=2.5)


def test_results_show_themselves_in_a_line_and_in_a_notebook() -> None:
    found = gb.simulate("toy", "baseline", rounds=2000, trials=2)
    assert repr(found) == "<Results of baseline on toy: 3 agents, 2,000 rounds, 2 trials>"
    assert found._repr_html_().startswith("<table")
    assert found.uncovered == {}


def test_results_know_which_promise_does_not_cover_the_problem() -> None:
    with pytest.warns(gb.BoundWarning):
        found = gb.simulate("toy", ["guard-ucb", "baseline"], rounds=5)
    assert found.uncovered == {"guard-ucb": "rewards reach \u22120.2"}
