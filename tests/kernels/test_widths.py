"""The action of the largest upper bound from old widths, against computing all of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import guardband as gb
from guardband.kernels import widths as kernels
from guardband.kernels.ridge import absorb
from guardband.kernels.scan import argmax, form_of, scan, scan_forms
from guardband.kernels.shortcuts import MOST, OldWidths
from guardband.kernels.state import new_group, new_scratch, scores_of, view, view_of
from guardband.kernels.types import Floats, RoundInput, Scores
from guardband.sim.runners import CommonRunner, make_runner
from guardband.sim.trial import checkpoint_rounds

NONE = np.zeros((0, 0, 0))


def given(menu: Floats) -> RoundInput:
    coords, ids = np.arange(len(menu)), np.zeros(0, np.int64)
    return RoundInput(
        menu, coords, 0, 0.5, False, 0.0, 0.1, 0.1, 1, 1, 0.5, NONE, ids, np.zeros(0), NONE
    )


def new_scores(actions: int) -> Scores:
    return scores_of.py_func(new_scratch(actions), actions)


def new_widths(menu: Floats) -> OldWidths:
    dim, actions = menu.shape
    return OldWidths(
        np.zeros((1, 1, actions)),
        np.full((1, 1), -np.inf),
        np.zeros((1, 1), np.int64),
        np.zeros((1, 3)),
        np.array([(menu**2).sum(axis=0).max()]),
        np.zeros((dim, dim)),
    )


def test_the_form_of_one_action_is_that_of_the_scan_to_the_bit() -> None:
    rng = np.random.default_rng(0)
    for d in (1, 4, 5, 9, 14):
        group = view(new_group(1, d, 0.3), d)
        state, menu = view_of(group, 0), rng.normal(size=(d, 7))
        for _ in range(20):
            absorb(state, rng.normal(size=d), 0.3, 1.0, 0.0)
        coords, scores = np.arange(0, d, 1 + d // 9), new_scores(7)
        scan_forms(state.estimate, coords, menu, scores.mean, scores.form)
        got = [form_of(state.estimate, coords, menu, k, np.empty(d)) for k in range(7)]
        assert_array_equal(got, scores.form)


@pytest.mark.parametrize("actions", [30, 300, 1200])
@pytest.mark.parametrize("scale", [1.0, 1e-150])  # squares of these underflow
def test_few_widths_are_computed_and_the_choice_is_the_same(actions: int, scale: float) -> None:
    d, rng = 8, np.random.default_rng(actions)
    group = view(new_group(1, d, 1.0), d)
    state, beta, rounds = view_of(group, 0), 1.3, 300
    menu = rng.normal(size=(d, actions)) / d
    menu[:, 1::3] = menu[:, ::3][:, : menu[:, 1::3].shape[1]]  # ties
    menu = menu * scale
    widths, scores, plain = new_widths(menu), new_scores(actions), new_scores(actions)
    kernels.begin_chunk(widths, group)
    computed = 0.0
    for t in range(rounds):
        k = kernels._largest(widths, 0, 0, state, given(menu), scores, beta, 1.0, -math.inf)
        scan(state.estimate, beta, np.arange(d), menu, plain)
        assert k == argmax(plain.upper)
        scan_forms(state.estimate, np.arange(d), menu, plain.mean, plain.form)
        assert (widths.form[0, 0] >= plain.form).all()
        assert_array_equal(scores.mean, plain.mean)
        if t > 100:
            computed += scores.least.sum()
        widths.choice[0, 0] = k
        x = menu[:, k].copy() / scale
        gain = absorb(state, x, 0.5 * x.sum() + 0.1 * rng.normal(), 1.0, 0.0)
        kernels.note_update(widths, 0, state, 1.0, gain)
    assert computed <= 0.3 * 200 * min(actions, 60)


def test_a_step_that_proves_nothing_forgets() -> None:
    group = view(new_group(1, 3, 1.0), 3)
    widths = new_widths(np.ones((3, 4)))
    for gain, known in ((1.5, True), (0.9, False), (math.nan, False)):
        widths.since[:] = 0.0
        kernels.note_update(widths, 0, view_of(group, 0), 1.0, gain)
        assert np.isfinite(widths.since).all() == known


def runner_of(contexts: int, actions: int, rounds: int) -> CommonRunner:
    phi = np.full((contexts, actions, 5), 0.2)
    world = gb.Tabular(phi, phi, np.full(5, 0.3), baseline=1, reward_std=0.1).build(0)
    plan = gb.DisLinUCB().plan(world.facts(rounds))
    made = make_runner(world, plan, np.full(1, 0.1), checkpoint_rounds(rounds), 0)
    assert isinstance(made, CommonRunner)
    return made


def test_what_is_kept_is_bounded_and_only_where_contexts_recur() -> None:
    assert runner_of(10, 20, 1000).widths.form.shape == (1, 10, 20)
    assert runner_of(10, 20, 100).widths.form.size == 0
    large = runner_of(500, MOST // 500 + 1, 10**6).widths
    assert large.form.size == large.since.size == 0
