"""Every panel of the paper, small: finite numbers, claims with ids of their own, a picture."""

from __future__ import annotations

import io
from functools import cache

import numpy as np
import pytest
from lab.handmade import OF_VALUES, gathered, result, smoke

from guardband.lab.panels import PANELS

OURS = ("better", "lemmas", "bounds", "communication", "separate", "notices")
LUMA = np.array([0.299, 0.587, 0.114])  # how bright a colour prints
PAPER = [name for name in PANELS if name not in OURS]
CLAIMS = {
    "1a": ["1a-above-sclts", "1a-above-dis-lin-ucb"],
    "1b": ["1b-disc-ucb-zero", "1b-disc-ucb-sclts", "1b-sclts-dis-lin-ucb"],
    "1c": [],
    "1d": [
        "1d-disc-ucb-zero",
        *("1d-dis-lin-ucb-above", "1d-dis-lsb-above", "1d-fed-pe-cd-above"),
        *("1d-dis-lin-ucb-large", "1d-dis-lsb-large", "1d-fed-pe-cd-large"),
    ],
    **{name: [f"{name}-floor", f"{name}-rises"] for name in ("2a", "2d", "2g")},
    **{name: [f"{name}-falls"] for name in ("2b", "2c", "2e", "2f", "2h", "2i")},
    "3a": ["3a-unknown-costs"],
    "3b": ["3b-unknown-costs", "3b-bends", "3b-slows"],
    "3c": ["3c-alike"],
    "toy": ["toy-true", "toy-expected", "toy-any-alpha"],
    "lastfm-unknown": ["lastfm-unknown-unknown-costs"],
    "notices": [
        *("notices-drift-abrupt-soon", "notices-misfit-soon", "notices-few"),
        *("notices-drift-abrupt-fewer", "notices-odd-task-fewer", "notices-misfit-fewer"),
        *("notices-odd-task-late", "notices-odd-task-kept", "notices-liar-honest"),
        "notices-cheap",
    ],
}


@cache
def findings(name, settings):
    return gathered(PANELS[name].runs(smoke(settings)))


def test_the_order_of_the_paper():
    assert [
        *("1a", "1b", "1c", "1d", "2a", "2b", "2c", "2d", "2e", "2f", "2g", "2h", "2i"),
        *("3a", "3b", "3c", "toy", "lastfm-unknown"),
    ] == PAPER
    assert all(name == panel.name for name, panel in PANELS.items())


@pytest.mark.parametrize("settings", ["printed", "notebook"])
@pytest.mark.parametrize("name", CLAIMS)
def test_small(name, settings):
    panel, options = PANELS[name], smoke(settings)
    results = findings(name, settings)
    for each in results.values():
        for metric, values in each.series.totals.items():
            counted = np.isnan if metric in OF_VALUES else np.isfinite
            assert counted(values).all(), (each.run.label, metric)
    claims = panel.claims(options, results)
    assert [claim.id for claim in claims] == CLAIMS[name]
    assert all(claim.text and claim.detail for claim in claims)
    assert all(claim.holds is None or type(claim.holds) is bool for claim in claims)  # JSON
    figure = panel.draw(options, results)
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=40)
    assert file.tell() > 1000
    assert all(isinstance(line, str) and line for line in panel.remarks(options))


def texts(figure):
    told = "\n".join(text.get_text() for axes in figure.axes for text in axes.texts)
    return told.replace("\N{NO-BREAK SPACE}", " ")


def test_every_curve_is_named_beside_its_end():
    figure = PANELS["2b"].draw(smoke(), findings("2b", "printed"))
    told = texts(figure)
    for algorithm in ("DiSC-UCB", "Guard-UCB"):
        for alpha in ("0.1", "0.3", "0.5"):
            assert f"{algorithm}, α = {alpha}" in told
    (axes,) = figure.axes
    assert axes.get_title(loc="left") == PANELS["2b"].title
    assert axes.get_xlabel() == "round"
    assert "per agent" in axes.get_ylabel()
    assert len(axes.collections) == 6  # the bands


def test_curves_can_be_told_apart_without_colours():
    (axes,) = PANELS["2b"].draw(smoke(), findings("2b", "printed")).axes
    curves = [line for line in axes.lines if len(line.get_xdata()) > 2]
    looks = {(line.get_marker(), str(line._dash_pattern)) for line in curves}
    assert len(looks) == len(curves) == 6


def test_bands_can_be_told_apart_without_colours():
    """Three values of one algorithm: three shades of grey, edges with three kinds of dashes."""
    (axes,) = PANELS["2b"].draw(smoke(), findings("2b", "printed")).axes
    assert len(axes.collections) == 6
    for bands in (axes.collections[:3], axes.collections[3:]):
        assert len({str(band.get_linestyle()) for band in bands}) == 3
        assert all(band.get_linewidth()[0] > 0.0 for band in bands)
        greys = [float(band.get_facecolor()[0][:3] @ LUMA) for band in bands]
        assert greys[0] > greys[1] + 0.1 > greys[2] + 0.2  # from light to dark


def test_a_band_that_is_alone_in_its_colour_is_plain():
    (axes,) = PANELS["1a"].draw(smoke(), findings("1a", "printed")).axes
    assert {float(band.get_linewidth()[0]) for band in axes.collections} == {0.0}
    curves = [line for line in axes.lines if len(line.get_xdata()) > 2]
    assert curves[0].get_color() == "#0072B2"


def test_reward_panels_draw_the_floor():
    results = findings("2a", "printed")
    (axes,) = PANELS["2a"].draw(smoke(), results).axes
    curves = [line for line in axes.lines if len(line.get_xdata()) > 2]
    baseline, floor, disc, _ = (line.get_ydata() for line in curves)
    np.testing.assert_allclose(floor, 0.7 * baseline)
    marks = results["DiSC-UCB"].rounds
    whole = (disc * np.diff(marks, prepend=0)).sum()
    assert whole == pytest.approx(results["DiSC-UCB"].series.totals["reward"].mean())


def test_average_regret_is_drawn_beside_the_regret():
    results = findings("3a", "printed")
    left, right = PANELS["3a"].draw(smoke(), results).axes
    sums = next(line for line in left.lines if len(line.get_xdata()) > 2)
    average = next(line for line in right.lines if len(line.get_xdata()) > 2)
    np.testing.assert_allclose(average.get_ydata() * average.get_xdata(), sums.get_ydata())


def test_what_the_notebooks_draw_is_beside_the_count_of_violations():
    """One bad round, the 31st of 100, in one of two trials: 1/2 on average; theirs grows to 70."""
    rounds = np.arange(1, 101)
    bad = np.stack([np.zeros(100), rounds >= 31])
    made = {"DiSC-UCB": bad, "SCLTS": 0 * bad, "DisLinUCB": bad}
    results = {n: result(n, curves={"violations_realised": each}) for n, each in made.items()}
    figure = PANELS["1b"].draw(smoke(), results)
    realised, theirs, _ = figure.axes
    assert "not a count" in theirs.get_title(loc="left")
    count, drawn = (
        [line for line in axes.lines if len(line.get_xdata()) > 2] for axes in (realised, theirs)
    )
    np.testing.assert_allclose(count[0].get_ydata(), (rounds >= 31) / 2)
    np.testing.assert_allclose(drawn[0].get_ydata(), np.maximum(rounds - 30, 0))
    np.testing.assert_allclose(drawn[1].get_ydata(), 0)
    assert "adds 1 in every round after the first violation" in PANELS["1b"].remarks(smoke())[0]


def test_the_toy_example_holds_for_small_alpha_only():
    true, expected, any_alpha = PANELS["toy"].claims(smoke(), {})
    assert (true.holds, expected.holds, any_alpha.holds) == (True, True, False)
    assert "up to 0.039" in any_alpha.detail  # below 1/25
    words = [text.get_text() for text in PANELS["toy"].draw(smoke(), {}).axes[0].texts]
    assert words.count("unsafe") == 1  # x'' at 0.03


def test_the_notebook_gate_of_synthetic_data_is_labelled_an_oracle():
    assert "DiSC-UCB-gap-oracle, α = 0.1" in findings("2b", "notebook")
    assert "DiSC-UCB, α = 0.7" in findings("2h", "notebook")  # LastFM's is not one
