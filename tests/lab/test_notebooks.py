"""The notebooks: r_l and r_h of another action than the baseline, drawn rho, centred zeta."""

from __future__ import annotations

import numpy as np
import pytest
from lab.handmade import smoke
from numpy.testing import assert_allclose, assert_array_equal

import guardband as gb
from guardband.algorithms import SCLTS, DiscUCB, DiscUCBUnknown
from guardband.lab.notebooks import NOTEBOOKS, NotebookWorld
from guardband.lab.panels import PANELS
from guardband.seeds import trial_seed
from guardband.sim.draws import Replay, TrialDraws

ALPHA = 0.3


def problem_of(name="synthetic-a", **settings):
    given = {"baseline": 11, "psi_noise": 0.01, "alpha": ALPHA, "rho_alpha": ALPHA} | settings
    return NOTEBOOKS[name](**given)


def world_of(name="synthetic-a", seed=5, **settings):
    return problem_of(name, **settings).build(seed)


def ranked(world, rank):
    """Return (C, M): the reward of the action of this rank, by sorting."""
    mine = world.realised[:, world.groups[1], :]
    return np.sort(mine, axis=2)[:, :, -rank]


@pytest.mark.parametrize(
    ("name", "agents"), [("synthetic-a", 1), ("synthetic-b", 3), ("synthetic-c", 3)]
)
def test_the_baseline_is_one_worse_than_what_it_is_taken_for(name, agents):
    world = world_of(name, agents=agents, baseline=5, all_masks=False)
    assert_allclose(world.baseline_rewards, ranked(world, 5))
    facts, meant = world.facts(100), ranked(world, 4)
    assert (facts.reward_low, facts.reward_high) == pytest.approx((meant.min(), meant.max()))
    best = np.take_along_axis(world.realised, world.best[:, :, None], axis=2)[:, :, 0]
    margin = best[:, world.groups[1]].T - meant.max() + ALPHA * world.baseline_rewards.T
    assert_allclose(facts.gap + ALPHA * world.baseline_rewards.T, np.abs(margin))


def test_ranges_over_all_masks_though_there_is_one_task():
    """The notebooks of 1a and 3a, with one agent: r_h is that of a masked task, r_l too."""
    own, whole = (world_of(all_masks=all_masks).facts(9) for all_masks in (False, True))
    assert (own.reward_low, own.reward_high) == pytest.approx((0.7625, 0.7625), abs=0.013)
    assert whole.reward_low < 0.4  # the second feature alone
    assert whole.reward_high > 0.8  # the first
    assert whole.reward_high == world_of(agents=3).facts(9).reward_high


def test_everything_else_is_the_problem_itself():
    """The same features and expected features in every trial: runs of a panel stay pairs."""
    theirs = world_of("synthetic-c", agents=3)
    plain = gb.problem("synthetic-c", agents=3, baseline=11, psi_noise=0.01).build(5)
    for name in ("phi", "psi", "baseline", "theta"):
        assert_array_equal(getattr(theirs, name), getattr(plain, name))
    assert theirs.facts(9).context_noise == plain.facts(9).context_noise
    ours, other = (next(TrialDraws(world, 50, 7).chunks()) for world in (theirs, plain))
    for name in ("contexts", "noise", "coin"):
        assert_array_equal(getattr(ours, name), getattr(other, name))
    assert other.rho.size == 0


def test_rho_is_drawn_in_each_round():
    world = world_of()
    facts = world.facts(1)
    most = ALPHA * facts.reward_low / (np.linalg.norm([0.9, 0.4]) + facts.reward_high)
    rho = np.concatenate([draws.rho for draws in TrialDraws(world, 300_000, 7).chunks()])
    assert rho.shape == (300_000,)
    assert rho.min() > 0
    assert rho.max() <= most
    assert_allclose(rho.mean(), most / 2, rtol=0.01)
    assert_allclose(rho.std(), most / 12**0.5, rtol=0.01)
    quarters = np.histogram(rho, np.linspace(0, most, 5))[0] / rho.size
    assert_allclose(quarters, 0.25, atol=0.005)


def test_a_baseline_that_is_worth_nothing_has_no_share_to_give():
    """As in the notebooks, r_l is the smallest reward of all, and with it rho."""
    world = world_of("lastfm", agents=3, baseline=6, actions=50, psi_noise=1e-3)
    assert (world.baseline_rewards <= 0).any()
    assert world.facts(9).reward_low == 0
    assert next(TrialDraws(world, 2000, 7).chunks()).rho.max() <= 1e-10


@pytest.mark.parametrize(("name", "dim"), [("synthetic-a", 2), ("movielens", 9)])
def test_zeta_has_no_mean_over_its_coordinates(name, dim):
    zeta = next(TrialDraws(world_of(name, agents=3), 4000, 7).chunks()).zeta
    assert zeta.shape == (4000, 1, dim)  # one for all agents
    assert_allclose(zeta.sum(axis=2), 0, atol=1e-9)
    assert_allclose(np.linalg.norm(zeta, axis=2), 1)
    assert_allclose(zeta.mean(axis=0), 0, atol=0.05)
    if dim == 2:
        assert_allclose(np.abs(zeta), 0.5**0.5)


def test_length_of_chunks_does_not_change_the_draws(monkeypatch):
    world = world_of()
    whole = next(TrialDraws(world, 500, 7).chunks())
    monkeypatch.setattr("guardband.sim.draws.CHUNK_NUMBERS", 1)
    parts = list(TrialDraws(world, 500, 7).chunks())
    assert len(parts) > 1
    assert_array_equal(np.concatenate([part.rho for part in parts]), whole.rho)
    assert_array_equal(np.concatenate([part.zeta for part in parts]), whole.zeta)


@pytest.mark.filterwarnings("ignore::guardband.BoundWarning")
def test_conservative_rounds_play_what_was_drawn():
    problem, seed = problem_of(), 7
    world = problem.build(trial_seed(seed, 0))
    draws = next(TrialDraws(world, 200, trial_seed(seed, 0)).chunks())
    replay = Replay(draws.contexts, draws.noise, draws.rho, draws.zeta[:, 0])
    how = {"rounds": 200, "seed": seed, "trace": True}
    one = gb.simulate(problem, DiscUCB(ALPHA), **how)
    other = gb.simulate(problem, DiscUCB(ALPHA), replay=replay, **how)
    assert one.trace.conservative.all()
    assert_allclose(one.trace.rewards, other.trace.rewards)
    base = world.baseline_rewards[draws.contexts, 0]
    mixed = (1 - draws.rho) * base + draws.rho * (draws.zeta[:, 0] @ world.theta)
    assert_allclose(one.trace.rewards[:, 0], mixed)


@pytest.mark.parametrize("name", ["1a", "1d", "2b", "2d", "2h", "3a", "3c"])
def test_who_meets_it(name):
    """Those that mix the baseline with a direction, in the notebooks' column only."""
    for settings in ("printed", "notebook"):
        runs = PANELS[name].runs(smoke(settings))
        for run in runs:
            mixes = isinstance(run.algorithm, DiscUCB | DiscUCBUnknown | SCLTS)
            theirs = type(run.problem).__module__.endswith("lab.notebooks")
            assert theirs == (mixes and settings == "notebook")
            if theirs:
                assert run.problem.alpha == run.alpha
                assert run.problem.rho_alpha == min(each.alpha for each in runs)
    assert isinstance(runs[0].problem.build(0), NotebookWorld)


def test_remarks_tell_it():
    told = "\n".join(PANELS["1a"].remarks(smoke("notebook")))
    assert "drawn in each round" in told
    assert "the 11th best action, index 10" in told
    assert "r_l and r_h are those of the 10th" in told
    assert "drawn in each round" not in "\n".join(PANELS["1a"].remarks(smoke()))
