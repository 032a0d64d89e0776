"""Lines on logarithmic axes: intervals that can be read, and lines that end early."""

from __future__ import annotations

import io

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PolyCollection

from guardband.lab import plots
from guardband.lab.loglog import FEW, Line, draw_lines, log_interval


def drawn(*lines, **options):
    figure = plots.new_figure(6.0, 4.0)
    axes = figure.add_subplot()
    draw_lines(axes, lines, **options)
    figure.savefig(io.BytesIO(), format="png", dpi=40)
    return axes


def test_an_interval_that_reaches_0_does_not_stretch_the_axis():
    """The means lie within one decade; an interval of ten times the mean must not show more."""
    x = np.array([2.0, 4.0, 8.0])
    y = np.array([10.0, 20.0, 40.0])
    low, high = drawn(Line("a", x, y, half=10 * y)).get_ylim()
    assert low > 5.0
    assert high < 80.0


def test_few_points_have_whiskers_and_those_that_reach_0_run_to_the_edge():
    x, y = np.array([2.0, 4.0]), np.array([10.0, 20.0])
    axes = drawn(Line("a", x, y, half=np.array([2.0, 25.0])))
    (whiskers,) = [each for each in axes.collections if isinstance(each, LineCollection)]
    first, second = whiskers.get_segments()
    assert first[:, 1] == pytest.approx([8.0, 12.0])
    assert second[:, 1] == pytest.approx([axes.get_ylim()[0], 45.0])
    assert not [each for each in axes.collections if isinstance(each, PolyCollection)]


def test_many_points_have_a_band_where_it_is_above_0():
    x = np.arange(1.0, FEW + 10)
    half = np.where(x < 5, 20.0, 1.0)
    axes = drawn(Line("a", x, np.full(x.size, 10.0), half=half))
    (band,) = [each for each in axes.collections if isinstance(each, PolyCollection)]
    corners = np.concatenate([path.vertices for path in band.get_paths()])
    assert corners[:, 0].min() == 5.0
    assert corners[:, 1].min() == pytest.approx(9.0)


def test_a_line_that_is_a_number_in_places_only_is_drawn_there_and_named():
    x = np.arange(1.0, 21.0)
    y = np.where(x < 8, 3.0, np.nan)
    axes = drawn(Line("early", x, y, bound=True), Line("all", x, x), Line("none", x, x * np.nan))
    assert [text.get_text() for text in axes.texts] == ["early", "all"]


def test_bounds_have_dashes_of_their_own():
    x = np.arange(1.0, 21.0)
    names = "abcde"
    axes = drawn(
        Line("none", x, x * np.nan, bound=True), *(Line(n, x, x, bound=True) for n in names)
    )
    dashes = {str(line._dash_pattern) for line in axes.lines if len(line.get_xdata()) == 20}
    assert len(dashes) == len(names)


def test_an_interval_of_logarithms_is_above_0():
    """1 and 100: the logarithms are 0 and 2 (base 10), the half-width is 12.706 times 1."""
    mean, (low, high) = log_interval(np.array([[1.0], [100.0]]))
    assert mean == pytest.approx([10.0])
    assert np.log10(low) == pytest.approx([1 - 12.7062], abs=1e-3)
    assert np.log10(high) == pytest.approx([1 + 12.7062], abs=1e-3)
