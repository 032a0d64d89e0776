"""Our own panels: verdicts on results made by hand, and every panel once, small."""

from __future__ import annotations

import io
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from lab.handmade import OF_VALUES, gathered, result, smoke

import guardband as gb
from guardband import theory
from guardband.lab.bound_inputs import bound_setting, gap_range
from guardband.lab.experiments import shown_name
from guardband.lab.panel import RunOptions
from guardband.lab.panel_result import PanelResult
from guardband.lab.panels import better, bounds, communication, lemmas, separate

PANELS = {panel.PANEL.name: panel.PANEL for panel in (lemmas, bounds, communication, separate)}


@cache
def findings(name):
    return gathered(PANELS[name].runs(smoke()))


def check(panel, results):
    for each in results.values():
        for metric, values in each.series.totals.items():
            counted = np.isnan if metric in OF_VALUES else np.isfinite
            assert counted(values).all(), (each.run.label, metric)
    claims = panel.claims(smoke(), results)
    assert len({claim.id for claim in claims}) == len(claims) > 0
    assert all(claim.text and claim.detail for claim in claims)
    assert all(claim.holds is None or type(claim.holds) is bool for claim in claims)  # JSON
    file = io.BytesIO()
    panel.draw(smoke(), results).savefig(file, format="png", dpi=40)
    assert file.tell() > 5000
    assert all(isinstance(line, str) and line for line in panel.remarks(smoke()))


@pytest.mark.parametrize("name", PANELS)
def test_small(name):
    check(PANELS[name], findings(name))


@pytest.mark.slow
def test_better_small():
    check(better.PANEL, gathered(better.PANEL.runs(smoke())))


@pytest.mark.parametrize("panel", [*PANELS.values(), better.PANEL], ids=lambda panel: panel.name)
def test_labels_differ_at_every_scale(panel):
    for scale in ("smoke", "quick", "paper"):
        runs = panel.runs(RunOptions(scale=scale))
        assert len({run.label for run in runs}) == len(runs)


# ---- lemmas ------------------------------------------------------------------------------------


COUNTS = ("outside", "optimum_pruned")
COUNTS += ("violations_conservative", "violations_conservative_expected")


def counted(lemma_id, bad, trials=50, conservative=10.0, home=0):
    """Return a lemma and a run in which so many trials break it, `home` in safe rounds."""
    (lemma,) = [each for each in lemmas.LEMMAS if each.id == lemma_id]
    results = result("x", name=lemma.algorithm, conservative=np.full(trials, conservative))
    results.series.totals.update({metric: np.zeros((trials, 1)) for metric in COUNTS})
    results.series.totals[lemma.metric] = (np.arange(trials) < bad).astype(float)[:, None]
    if lemma.less:
        results.series.totals[lemma.less] = (np.arange(trials) < home).astype(float)[:, None]
    return lemma, results


@pytest.mark.parametrize(
    ("lemma", "bad", "holds"),
    [
        ("confidence", 0, True),  # at most 7.1 % of the trials
        ("confidence", 2, None),  # up to 13.7 %
        ("confidence", 11, False),  # at least 11.5 %
        ("L4", 0, True),
        ("L4", 1, None),
        ("L4", 20, False),
        ("L2", 0, True),
        ("L2", 49, False),
        ("L3", 0, True),
        ("L3", 1, False),  # it promises this without any allowance
        ("guard-mean", 0, True),
        ("guard-mean", 1, None),
    ],
)
def test_lemmas_are_judged_by_counting(lemma, bad, holds):
    assert lemmas._holds(*counted(lemma, bad)) is holds


def test_a_gate_that_never_opened_tells_nothing():
    lemma, results = counted("L4", 0, conservative=100.0)
    assert lemmas._holds(lemma, results) is None
    assert "never opened" in lemmas._detail(lemma, results)


@pytest.mark.parametrize(
    ("bad", "conservative", "holds"),
    [
        ([0, 0], [10.0, 10.0], True),
        ([0, 0], [10.0, 100.0], True),  # where the gate stayed shut there is nothing to see
        ([0, 0], [100.0, 100.0], None),
        ([0, 2], [10.0, 10.0], None),  # broken in two trials: that is no proof, and no success
        ([0, 2], [10.0, 100.0], None),
        ([0, 49], [10.0, 10.0], False),
    ],
)
def test_a_lemma_is_judged_on_all_problems_where_it_speaks(bad, conservative, holds):
    pairs = [counted("L2", b, conservative=c) for b, c in zip(bad, conservative, strict=True)]
    assert lemmas._together(pairs[0][0], [run for _, run in pairs]) is holds


@pytest.mark.parametrize(("trials", "holds"), [(5, None), (35, None), (36, True)])
@pytest.mark.parametrize("lemma", ["confidence", "L2", "guard-mean"])
def test_few_trials_cannot_tell_the_coverage(lemma, trials, holds):
    assert lemmas._holds(*counted(lemma, 0, trials=trials)) is holds


def test_violations_of_conservative_rounds_are_not_held_against_those_behind_the_gate():
    lemma, results = counted("L2", 49, home=49)
    assert lemmas._holds(lemma, results) is True
    assert "0 of 4,500 rounds, in 0 of 50 trials" in lemmas._detail(lemma, results)
    lemma, results = counted("L3", 49)
    assert lemmas._holds(lemma, results) is False
    assert "49 of 500 rounds, in 49 of 50 trials" in lemmas._detail(lemma, results)


def test_what_may_fail_in_some_trials_says_so():
    """So that violations beside 'inconclusive' make sense."""
    for lemma in lemmas.LEMMAS:
        assert ("in all but" in lemma.text) is not lemma.sure
        if not lemma.sure:
            assert "allowed: 0.1" in lemmas._detail(*counted(lemma.id, 2))


def test_a_shortened_run_cannot_show_that_a_lemma_holds():
    for id, bad, holds in (("L3", 0, None), ("L2", 0, None), ("L3", 1, False), ("L2", 49, False)):
        lemma, results = counted(id, bad)
        part = replace(results, run=replace(results.run, horizon=1000))
        assert lemmas._holds(lemma, part) is holds


# ---- better ------------------------------------------------------------------------------------


def field(**regrets):
    """Return results on every problem; every trial of an algorithm has the same regret."""
    results = {}
    for case in better.BENCHMARKS:
        for name in ("guard-ucb", "guard-ucb-policy", "disc-ucb", "dis-lin-ucb", "sege"):
            label = f"{case.name}: {shown_name(name)}"
            regret = regrets.get(name.replace("-", "_"), 10.0)
            results[label] = result(label, name=name, regret_expected=[regret, regret, regret])
            results[label].series.totals["violations_policy"] = np.zeros((3, 1))
    return results


def claim(results, id):
    (only,) = [each for each in better.PANEL.claims(smoke(), results) if each.id == id]
    return only


@pytest.mark.parametrize(("free", "holds"), [(6.0, True), (5.0, True), (4.0, False)])
def test_factors_are_judged_on_every_problem(free, holds):
    results = field(dis_lin_ucb=free)
    assert claim(results, "better-guard-ucb-policy-dis-lin-ucb").holds is holds
    assert claim(results, "better-guard-ucb-dis-lin-ucb").holds is True


def test_one_play_below_the_floor_breaks_the_promise_where_there_is_one():
    results = field()
    assert claim(results, "better-guard-ucb-safe").holds is True
    results["forecast: Guard-UCB"].series.totals["violations_expected"][1, 0] = 1.0
    assert claim(results, "better-guard-ucb-safe").holds is False
    outside = field()
    outside["LastFM: Guard-UCB"].series.totals["violations_expected"][1, 0] = 1.0
    assert claim(outside, "better-guard-ucb-safe").holds is True
    assert "promised, 1" in claim(outside, "better-guard-ucb-safe").detail


def test_a_safe_rival_with_less_regret_is_named():
    results = field(sege=9.0, disc_ucb=20.0)
    best = claim(results, "better-best-safe")
    assert best.holds is False
    assert "SEGE-type 9" in best.detail
    for each in results.values():  # an unsafe one does not count
        if each.series.algorithm == "sege":
            each.series.totals["violations_expected"][0, 0] = 1.0
    assert claim(results, "better-best-safe").holds is True


def test_nobody_is_asked_for_what_a_problem_does_not_allow():
    """All that fit are there already; others would end the whole run."""
    options = smoke(extra=("fed-pe", "fed-pe-cd"))
    assert better.PANEL.runs(options) == better.PANEL.runs(smoke())


# ---- communication, separate -------------------------------------------------------------------


def test_the_ball_is_what_the_paper_assumes():
    world = communication.Ball(agents=5, features=3).build(1)
    assert (np.linalg.norm(world.phi, axis=2) <= 1).all()
    assert np.linalg.norm(world.theta) == pytest.approx(1.0)
    assert world.tasks == ((0, 1, 2), (0, 2), (0, 1), (1, 2), (0, 2))
    assert (world.phi == world.psi).all()


def test_numbers_are_counted_by_hand():
    results = findings("communication")
    label = "DiSC-UCB, T = 300, M = 3, d = 8"
    series = results[label].series
    assert (series.sync_rounds > 0).all()
    assert (series.numbers_sent == series.sync_rounds * 264).all()  # 2 * 3 * (36 + 8)
    guard = results[label.replace("DiSC-UCB", "Guard-UCB")].series
    assert (guard.numbers_sent == guard.sync_rounds * 288).all()  # 2 * 3 * (36 + 8 + 4)


@pytest.mark.parametrize("scale", ["smoke", "quick", "paper"])
def test_sizes_are_those_that_are_played(scale):
    """What a label calls T is the number of rounds; no size is played twice."""
    runs = communication.PANEL.runs(RunOptions(scale=scale))
    sizes = [(run.algorithm, run.rounds, run.problem) for run in runs]
    assert len(set(sizes)) == len(sizes)
    assert all(f"T = {run.rounds:,}, M = {run.problem.agents:,}," in run.label for run in runs)


def test_exponents_say_what_their_interval_leaves_out():
    claims = communication.PANEL.claims(smoke(), findings("communication"))
    told = {claim.id: claim.detail for claim in claims}
    assert "intervals over trials, means off the line by up to" in told["communication-guard-ucb-m"]
    assert "all runs have the same size" in told["communication-guard-ucb-t"]


def fleets(power):
    """Return results in which sharing is worth M^power to everybody."""
    results = {}
    for who in separate._algorithms(smoke()):
        for M in separate.FLEETS:
            for share in (True, False):
                label = separate._label(who, M, share=share)
                regret = 5.0 if share else 5.0 * M**power
                results[label] = result(label, regret_expected=[regret, regret])
    return results


@pytest.mark.parametrize(("power", "holds"), [(1.0, True), (0.4, False), (0.0, False)])
def test_what_sharing_is_worth(power, holds):
    claims = {each.id: each for each in separate.PANEL.claims(smoke(), fleets(power))}
    assert claims["separate-guard-ucb-root"].holds is holds
    assert claims["separate-guard-ucb"].holds is (power > 0)
    assert f"M^{power:.2f}" in claims["separate-guard-ucb-root"].detail


@pytest.mark.parametrize(
    ("name", "extra", "there"),
    [
        ("bounds", ("lin-ucb", "fed-pe", "guard-ucb"), {"lin-ucb"}),
        ("separate", ("guard-ucb-policy", "sege"), {"guard-ucb-policy"}),
        ("communication", ("dis-lin-ucb", "lin-ucb"), {"dis-lin-ucb", "lin-ucb"}),
        ("lemmas", ("lin-ucb",), set()),
    ],
)
def test_algorithms_can_be_added_where_they_fit(name, extra, there):
    panel, options = PANELS[name], smoke(extra=extra)
    own = {run.label for run in panel.runs(smoke())}
    new = [run for run in panel.runs(options) if run.label not in own]
    assert {run.algorithm.name for run in new} == there
    results = findings(name) | gathered(new)
    claims = panel.claims(options, results)
    assert len({claim.id for claim in claims}) == len(claims)
    text = "\n".join(t.get_text() for axes in panel.draw(options, results).axes for t in axes.texts)
    drawn = there - {"lin-ucb"} if name == "communication" else there  # it sends nothing
    assert all(shown_name(each) in text for each in drawn)
    outcome = PanelResult(
        panel=panel, options=options, results=results, claims=(), seconds=0.0, agent_rounds=0
    )
    run_names = {each.run.algorithm.name for each in results.values()}
    assert outcome.left_out == [each for each in extra if each not in run_names]
    assert set(outcome.left_out) == set(extra) - there - {"guard-ucb"}


# ---- bounds, and what a theorist knows ----------------------------------------------------------


def test_regret_is_that_of_all_agents():
    results = findings("bounds")["DisLinUCB"]
    whole = results.series.regret.sum(axis=1).mean()
    assert bounds._together(results)[-1] == pytest.approx(whole)


@pytest.mark.parametrize(
    ("value", "met", "holds"), [(1e9, True, True), (0.0, True, False), (1e9, False, False)]
)
def test_t1_holds_only_where_it_applies(monkeypatch, value, met, holds):
    given = theory.T1(bounds._given(300, tight=True))
    made = theory.Bound("T1", "regret", value, met, "", terms=given.terms)
    monkeypatch.setattr(theory, "T1", lambda _: made)
    assert bounds._t1(findings("bounds")).holds is holds


def test_where_a_bound_begins_to_say_something():
    given = theory.Setting(agents=5, horizon=100, dim=5, alpha=0.2, reward_low=0.1, noise=0.1)
    given = theory.Setting(**{**vars(given), "delta": 1e-3})
    start = int(bounds._useful_from(given))
    at = [
        theory.ECC(theory.Setting(**{**vars(given), "horizon": int(start * by)})).vacuous
        for by in (0.99, 1.0, 1.01)
    ]
    assert at == [True, False, False]


def test_what_a_theorist_knows_of_a_table():
    # Rewards of two contexts: (.9, .5) and (.4, .8); the baseline is worth .5 and .4.
    phi = np.array([[[0.9], [0.5]], [[0.4], [0.8]]])
    problem = gb.Tabular(phi, phi, [1.0], baseline=2)
    world = problem.build(0)
    assert gap_range(world) == (pytest.approx(0.4), pytest.approx(0.4))
    given = bound_setting(world, problem.assumptions(), horizon=50, alpha=0.3)
    assert (given.reward_low, given.reward_high) == (pytest.approx(0.4), pytest.approx(0.5))
    assert (given.agents, given.dim, given.level) == (1, 1, pytest.approx(1 / 50))


def test_a_forecast_has_a_range_that_holds_every_gap():
    world = gb.problem("forecast", seed=3).build(0)
    low, high = gap_range(world)
    rng = np.random.default_rng(0)
    for _ in range(200):  # whatever is announced, kappa lies in the range
        expected = np.tensordot(rng.dirichlet(np.ones(100)), world.realised, axes=1)
        ranked = np.sort(expected, axis=1)
        gap = ranked[:, -1] - ranked[:, -10]
        assert (low <= gap).all()
        assert (gap <= high).all()
