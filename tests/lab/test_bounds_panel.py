"""The panel `bounds`: whose assumptions a bound is drawn with, and trials counted one by one."""

from __future__ import annotations

import io
import math
from functools import cache

import numpy as np
import pytest
from lab.handmade import gathered, smoke
from matplotlib.collections import PolyCollection

from guardband import theory
from guardband.lab.panels import bounds
from guardband.report.words import number


@cache
def findings():
    return gathered(bounds.PANEL.runs(smoke()))


def claim(id):
    (only,) = [each for each in bounds.PANEL.claims(smoke(), findings()) if each.id == id]
    return only


def regret_axes():
    figure = bounds.PANEL.draw(smoke(), findings())
    figure.savefig(io.BytesIO(), format="png", dpi=40)
    return figure.axes[0]


def partly(found_at):
    """Return T1 as it would be if it were a number, and met, for short horizons only."""

    def made(given):
        fits = given.horizon <= found_at
        value = 1e5 if fits else math.nan
        return theory.Bound("T1", "regret", value, fits, "", terms={"c'": 1.0, "c''": 2.0})

    return made


def test_ecc_is_drawn_with_what_dislinucb_assumes():
    """As declared at T = 300: the same number as in the claim, and not that of a tight setting."""
    results = findings()["DisLinUCB"]
    declared = theory.ECC(bounds._given(300, tight=False)).value
    assert theory.ECC(bounds._given(300, tight=True)).value < 0.6 * declared
    ends = [line.get_ydata()[-1] for line in regret_axes().lines if len(line.get_ydata()) > 3]
    assert any(end == pytest.approx(declared) for end in ends)
    assert f"bound {number(declared)}" in claim("bounds-ECC").detail
    assert results.rounds[-1] == 300


def test_t1_is_drawn_where_it_is_a_number(monkeypatch):
    monkeypatch.setattr(theory, "T1", partly(150))
    axes = regret_axes()
    texts = [text.get_text() for text in axes.texts]
    assert "T1" in texts
    rounds = findings()["DisLinUCB"].rounds
    few, all_of = int((rounds <= 150).sum()), len(rounds)
    said = f"T1 is a number at {few} of {all_of} t, its condition is met at {few} of them"
    assert said in texts
    (line,) = [
        line
        for line in axes.lines
        if len(line.get_ydata()) == all_of and np.nanmax(line.get_ydata()) == 1e5
    ]
    assert np.isfinite(line.get_ydata()).sum() == few


def test_where_t1_is_no_number_the_picture_says_so(monkeypatch):
    monkeypatch.setattr(theory, "T1", partly(0))
    texts = [text.get_text() for text in regret_axes().texts]
    assert "T1" not in texts
    assert any(text.startswith("T1 is a number at none of ") for text in texts)


def test_every_trial_is_compared_not_their_mean(monkeypatch):
    """One trial of two above the bound, their mean below it: the mean would call that kept."""
    ends = np.sort(bounds._regret(findings()[bounds.TOLD])[:, -1])
    between = 0.01 * ends[0] + 0.99 * ends[1]
    assert ends.mean() < between < ends[1]

    def limit(given, conservative, form):
        return theory.Bound("prop1", "regret", max(between, 0.0), True, "")

    monkeypatch.setattr(theory, "prop1", limit)
    judged = claim("bounds-prop1-proof")
    assert judged.holds is False
    assert "1 of 2 trials exceed it at some t [0.013, 0.99], said: at most 0.005" in judged.detail


@pytest.mark.parametrize(
    ("bad", "trials", "holds"), [(0, 20, True), (1, 20, False), (1, 200, False), (1, 9000, None)]
)
def test_a_bound_may_fail_in_a_share_of_the_trials(bad, trials, holds):
    """1 of 9,000: the interval begins at 2.8e-6, far below 1e-4; 1 of 200 begins above it."""
    assert bounds._counted(bad, trials, 1e-4)[0] is holds


def test_what_was_measured_has_bands():
    for axes, least in zip(bounds.PANEL.draw(smoke(), findings()).axes, (4, 2), strict=True):
        bands = [each for each in axes.collections if isinstance(each, PolyCollection)]
        assert len(bands) >= least


def test_the_remarks_say_whose_assumptions_and_how_trials_are_counted():
    text = " ".join(bounds.PANEL.remarks(smoke()))
    assert "ECC with what DisLinUCB assumes" in text
    assert "Mδ = 0.005" in text
