import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.figure import Figure

import guardband as gb
from guardband.algorithms import ALGORITHMS
from guardband.sim.plots import (
    METRICS,
    Curve,
    _crowded_below,
    draw_curves,
    frame,
    label_ends,
    place_labels,
)

PHI = np.array([[[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]], [[0.7, 0.3], [0.1, 0.9], [0.6, 0.2]]])


def run(algorithms, *, rounds=30, trials=3, name="tiny", **options):
    problem = gb.Tabular(
        PHI, PHI, [0.8, 0.3], tasks=[[0, 1], [0]], baseline=2, reward_std=0.1, name=name
    )
    return gb.simulate(problem, algorithms, rounds=rounds, trials=trials, **options)


@pytest.fixture(scope="module")
def results():
    return run([gb.DiscUCB(0.3), gb.DisLinUCB(), gb.algorithms.Baseline()])


def texts(figure):
    axes = figure.axes[0]
    return [axes.get_title(loc="left"), *(text.get_text() for text in axes.texts)]


def lines(figure):
    """Return the curves; labels come with lines of two points."""
    return [line for line in figure.axes[0].lines if len(line.get_xdata()) > 2]


OF_VALUES = ("value", "value_regret", "cost")


@pytest.mark.parametrize("metric", [metric for metric in METRICS if metric not in OF_VALUES])
def test_every_metric_is_drawn_and_rendered(results, metric, tmp_path):
    figure = draw_curves(results, metric)
    assert isinstance(figure, Figure)
    figure.savefig(tmp_path / "figure.png")
    assert len(lines(figure)) == 3 + (metric == "reward")  # and the floor


@pytest.mark.parametrize("metric", OF_VALUES)
def test_values_are_drawn_where_there_are_any(results, metric, tmp_path):
    with pytest.raises(ValueError, match=f"{metric} was not counted"):
        draw_curves(results, metric)
    bought = gb.simulate("routing", ["guard-ucb", "baseline"], rounds=30, trials=2)
    figure = draw_curves(bought, metric)
    figure.savefig(tmp_path / "figure.png")
    assert len(lines(figure)) == 2


def test_curves_are_means_over_agents_and_trials(results):
    (disc, free, _) = lines(draw_curves(results))
    expected = results.series[0].curves["regret"].mean(axis=(0, 2))
    np.testing.assert_allclose(disc.get_ydata(), expected)
    np.testing.assert_array_equal(free.get_xdata(), results.rounds)


def test_the_share_and_the_average_are_per_round(results):
    share = lines(draw_curves(results, "conservative"))
    np.testing.assert_allclose(share[1].get_ydata(), 0.0)
    np.testing.assert_allclose(share[2].get_ydata(), 100.0)
    reward = lines(draw_curves(results, "reward"))[-1].get_ydata()  # the baseline
    assert reward[-1] == pytest.approx(results.summary()["baseline_reward_mean"].iloc[0])


def test_one_trial_has_no_band_and_more_have(results):
    assert len(draw_curves(results).axes[0].collections) == 3
    figure = draw_curves(run(gb.DisLinUCB(), trials=1))
    assert len(figure.axes[0].collections) == 0
    assert any("one trial" in text for text in texts(figure))


def test_the_title_says_what_where_and_how_often(results):
    title, below, *labels = texts(draw_curves(results))
    assert title == "Regret per agent"
    for part in ("tiny", "2 agents", "30 rounds", "3 trials", "95 %"):
        assert part in below
    assert [label.split()[0] for label in labels] == ["disc-ucb", "dis-lin-ucb", "baseline"]


def test_curves_differ_in_dash_as_well_as_in_colour(results):
    curves = lines(draw_curves(run([gb.DiscUCB(a) for a in (0.1, 0.2, 0.3, 0.4, 0.5)])))
    assert len({line.get_color() for line in curves}) == len(curves)
    assert len({str(line._dash_pattern) for line in curves}) == len(curves)


def test_an_algorithm_has_the_same_colour_in_all_plots():
    def colours(*algorithms):
        return [line.get_color() for line in lines(draw_curves(run(list(algorithms))))]

    class Rival:
        name = "rival"

        def choose(self, agent, round, features, baseline, baseline_reward):
            return baseline

        def update(self, agent, features, action, reward):
            pass

    guard, disc, free = gb.GuardUCB(0.1, noise=0.1), gb.DiscUCB(0.1), gb.DisLinUCB()
    listed = [ALGORITHMS[each.name].colour for each in (guard, disc, free)]
    assert colours(guard, disc, free) == listed
    assert colours(free, disc) == listed[:0:-1]
    rival, *others = colours(Rival(), disc, guard)
    assert others == listed[1::-1]
    assert rival not in listed


def test_thousands_are_separated():
    figure = draw_curves(run(gb.algorithms.Baseline(), rounds=5000, trials=1))
    figure.draw_without_rendering()
    assert "4,000" in [text.get_text() for text in figure.axes[0].get_xticklabels()]


def test_no_violations_are_said_in_words():
    figure = draw_curves(run([gb.DiscUCB(0.3), gb.algorithms.Baseline()]), "violations_expected")
    assert "not once, in any trial" in texts(figure)
    assert figure.axes[0].get_ylim() == (0, 1)


def test_a_single_round_can_be_drawn(tmp_path):
    for metric in ("regret", "reward"):
        draw_curves(run(gb.DisLinUCB(), rounds=1), metric).savefig(tmp_path / "figure.png")


def test_names_are_not_read_as_formulas(tmp_path):
    figure = draw_curves(run(gb.DisLinUCB(), name=r"$\broken{$"))
    figure.savefig(tmp_path / "figure.png")


def test_the_references_of_rewards_follow_from_what_is_there():
    labels = " ".join(texts(draw_curves(run([gb.DiscUCB((0.3, 0.4))]), "reward")))
    assert "the baseline" in labels
    assert "floor: (1 − alpha) of" in labels.replace("\n", " ")
    assert "floor" not in " ".join(texts(draw_curves(run(gb.algorithms.Baseline()), "reward")))


def test_an_unknown_metric_names_the_nearest(results):
    with pytest.raises(ValueError, match="Did you mean 'regret'"):
        draw_curves(results, "regrets")


def test_violations_that_were_not_counted_are_not_drawn():
    with pytest.raises(ValueError, match="was not counted"):
        draw_curves(run(gb.DisLinUCB()), "violations_realised")


def ending(*ends):
    """Return curves that rise in a line to these ends."""
    return [
        Curve(str(end), np.linspace(0.0, end, 5), np.full(5, np.nan), "#000000", "-")
        for end in ends
    ]


@pytest.mark.parametrize(
    ("ends", "straight"),
    [
        ((5000.0, 30.0, 7.0), 1.0),
        ((5000.0, 30.0, -7.0), 1.0),
        ((5000.0, 30.0, 0.0), 10.0),
        ((5000.0, 0.0, 0.0), None),  # nothing to tell apart
        ((5000.0, 30.0, 700.0), None),  # one alone lies on nobody
        ((5000.0, 3.0, 1e-9), 1e-3),  # six decades at most
        ((0.0, 0.0), None),
    ],
)
def test_an_axis_bends_where_curves_would_lie_on_top_of_each_other(ends, straight):
    assert _crowded_below("sum", ending(*ends)) == straight
    assert _crowded_below("average", ending(*ends)) is None


def test_a_bent_axis_keeps_names_beside_their_ends_and_says_that_it_is_bent():
    curves = ending(5000.0, 30.0, 7.0, -2.0)
    figure = Figure()
    axes = figure.add_subplot()
    frame(axes, METRICS["regret"], curves, subtitle="", last=5)
    label_ends(axes, curves, [curve.label for curve in curves], 0.05)
    figure.draw_without_rendering()
    assert axes.get_ylabel() == "regret so far\nlogarithmic from 1"
    shown = [label.get_text() for label in axes.get_yticklabels()]
    assert shown == ["-1", "0", "1", "10", "100", "1,000"]
    for curve, text in zip(curves, axes.texts[-4:], strict=True):
        inside = axes.transAxes.inverted().transform(axes.transData.transform((5, curve.mean[-1])))
        assert text.get_position()[1] == pytest.approx(inside[1], abs=0.05)


def test_a_sample_is_long_enough_to_show_two_dashes(results):
    figure = draw_curves(results)
    figure.draw_without_rendering()
    axes = figure.axes[0]
    width = axes.get_window_extent().width * 72 / figure.dpi  # in points
    samples = [line for line in axes.lines if line.get_transform() == axes.transAxes]
    longest = max(np.ptp(line.get_xdata()) * width for line in samples)
    assert longest > 2 * 2.2 * 8  # of dash and gap of all but the longest pattern, 2.2 points wide


@pytest.mark.parametrize(
    ("wanted", "heights"),
    [
        ([0.5], [0.1]),
        ([0.0, 0.0, 0.0], [0.1, 0.1, 0.2]),
        ([1.0, 1.0, 0.2], [0.1, 0.1, 0.1]),
        ([0.5, 0.52, 0.9, 0.1], [0.1, 0.2, 0.1, 0.1]),
    ],
)
def test_labels_stay_inside_in_order_and_apart(wanted, heights):
    places = place_labels(wanted, heights)
    order = np.argsort(places)
    assert all(np.diff(np.array(wanted)[order]) >= 0)
    edges = [
        (place - height / 2, place + height / 2)
        for place, height in zip(places, heights, strict=True)
    ]
    for below, above in pairwise(order):
        assert edges[below][1] <= edges[above][0] + 1e-12
    assert min(low for low, _ in edges) >= -1e-12
    assert max(high for _, high in edges) <= 1 + 1e-12


def test_labels_with_room_stay_where_they_are_wanted():
    np.testing.assert_allclose(place_labels([0.8, 0.2, 0.5], [0.1, 0.1, 0.1]), [0.8, 0.2, 0.5])


def test_equal_curves_are_labelled_in_their_order_from_the_top():
    first, second = place_labels([0.5, 0.5], [0.1, 0.1])
    assert first > second


def test_neither_the_package_nor_the_report_loads_matplotlib_and_plots_never_load_pyplot():
    code = """
import sys, guardband, guardband.report
assert "matplotlib" not in sys.modules
import guardband.sim.plots
assert "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
