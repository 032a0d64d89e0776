"""P5 and I10: every decision comes out again from what was written down with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live.client.world import agent, journal_of, link_of, live_on, menus

from guardband.live.client.replay import rebuild
from guardband.live.protocol.messages import Revision


def check_all(one: Any) -> tuple[int, int]:
    """Make all decisions of a journal again; return how many, and how many were learned."""
    journal = journal_of(one)
    learned = 0
    numbers = [seq for (seq,) in journal.query("SELECT seq FROM decision ORDER BY seq")]
    for seq in numbers:
        rebuilt = rebuild(journal, seq)
        row, verdict = rebuilt.row, rebuilt.decide()
        assert verdict.action == row["action"]
        assert verdict.kind == row["kind"]
        assert verdict.margin == pytest.approx(row["margin"], abs=1e-9)
        assert verdict.awaited.weight == pytest.approx(row["weight"], rel=1e-9)
        np.testing.assert_array_equal(verdict.awaited.x, np.frombuffer(row["x"]))
        if verdict.kind == "learned":
            assert verdict.margin >= -1e-12, "I10"
            learned += 1
    return len(numbers), learned


def test_I10_every_learned_decision_clears_its_floor_again(tmp_path: Path) -> None:
    one, other = agent(tmp_path), agent(tmp_path, task="tv", uses=[0, 2])
    for step in range(8):
        live_on(one, 15, seed=step)
        live_on(other, 10, seed=50 + step)
        for each in (one, other, one):
            each.sync()
        if step == 4:  # a restart in between
            one.close()
            one = agent(tmp_path)
    assert one.epoch >= 2
    made, learned = check_all(one)
    assert made == 120
    assert learned > 20
    assert check_all(other)[0] == 80


def test_with_support_weights_and_covariance(tmp_path: Path) -> None:
    one = agent(tmp_path)
    rng = np.random.default_rng(4)
    for _ in range(30):
        pages = rng.uniform(0.05, 0.55, (4, 5, 3))
        weights = rng.dirichlet(np.ones(4))
        psi = np.einsum("n,nkd->kd", weights, pages)
        covariance = np.tile(0.01 * np.eye(3), (5, 1, 1))
        decision = one.decide(psi, 0, support=pages, weights=weights, covariance=covariance)
        one.observe(decision.id, 0.5)
    assert check_all(one)[0] == 30


def test_what_was_not_free_to_choose_comes_out_again(tmp_path: Path) -> None:
    one = agent(tmp_path, shadow=True)
    live_on(one, 20)
    assert check_all(one) == (20, 0)


def test_after_a_sealed_stream_was_continued(tmp_path: Path) -> None:
    one = agent(tmp_path)
    live_on(one, 30)
    one.sync()
    live_on(one, 10, seed=1)
    held = Revision(*journal_of(one).query("SELECT n, version FROM cut ORDER BY n")[-1])
    link_of(one).seal(one.status()["stream"], held)
    one.sync()
    live_on(one, 10, seed=2)
    assert journal_of(one).query("SELECT count(*) FROM stream") == [(2,)]
    assert one.counted < 50
    assert check_all(one)[0] == 50


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    one = agent(tmp_path)
    live_on(one, 3)
    with pytest.raises(LookupError, match="decision 4"):
        rebuild(journal_of(one), 4)


def test_a_journal_is_readable_by_people(tmp_path: Path) -> None:
    one = agent(tmp_path)
    live_on(one, 3)
    found = journal_of(one).query("SELECT kind, reason, promise, certificate FROM decision")
    assert found[0] == ("baseline", "careful", "play", "baseline") or found[0][0] == "baseline"
    assert menus(1)[0].T.tobytes() == journal_of(one).query("SELECT features FROM decision")[0][0]
