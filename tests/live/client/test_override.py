"""Overrides of live agents: learned as the action itself, written down, and made again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live.client.world import DIM, THETA, Hands, agent, check_journal, journal_of, menus
from live.operators.journals import change, found
from numpy.testing import assert_array_equal

import guardband as gb
from guardband.errors import InvalidTypeError, InvalidValueError, UnknownDecisionError
from guardband.live.client.replay import rebuild


def overridden(one: Any, rounds: int, seed: int = 0) -> list[tuple[gb.Decision, int]]:
    """Let an agent decide, and somebody play something else in most rounds."""
    rng, made = np.random.default_rng(seed), []
    for menu in menus(rounds, seed):
        decision = one.decide(menu, 0, value=rng.random(5))
        k = int(rng.integers(5))
        if k != decision.action:
            one.override(decision, action=k)
        one.observe(decision.id, float(menu[k] @ THETA))
        made.append((decision, k))
    return made


def own_sums(one: Any) -> Any:
    return one._store.state.learner.state.own


@pytest.mark.parametrize("noise", [None, 0.1])
def test_an_override_is_learned_as_by_an_agent_in_a_process(
    tmp_path: Path, noise: float | None
) -> None:
    """Bit for bit: the same kernels, by the same numbers."""
    live = agent(tmp_path, noise=noise, agents=1, shares="equal", delta=1e-3)
    plain = gb.Agent(dim=DIM, alpha=0.3, noise=noise, delta=1e-3)
    rng = np.random.default_rng(0)
    for menu in menus(40):
        one, other = live.decide(menu, 0), plain.decide(menu, 0)
        k, reward = int(rng.integers(5)), float(rng.random())
        live.override(one, action=k)
        plain.override(other, action=k)
        live.observe(one, reward)
        plain.observe(other, reward)
    for mine, its in zip(own_sums(live), plain._group.states[0].own, strict=True):
        assert_array_equal(mine, its)


def test_a_restart_computes_what_was_known_from_the_journal(tmp_path: Path) -> None:
    one = agent(tmp_path)
    overridden(one, 30)
    one.sync()
    overridden(one, 10, seed=1)
    decision = one.decide(menus(1, seed=2)[0], 0)
    remembered = one._store.state.recalls.get(decision.id)
    one.close()
    again = agent(tmp_path)
    rebuilt = rebuild(again._store.journal, again.rounds).recall()
    np.testing.assert_allclose(rebuilt.inverse, remembered.inverse, rtol=1e-12)
    np.testing.assert_allclose(rebuilt.theta, remembered.theta, rtol=1e-12)
    assert rebuilt.radius == pytest.approx(remembered.radius, rel=1e-12)
    again.override(decision.id, action=3)
    again.close()
    third = agent(tmp_path)  # the override itself survives as well
    third.observe(decision.id, 0.5)
    journal = journal_of(third)
    row = journal.decision(third.rounds)
    journal.close()
    assert row is not None
    assert row["override"] == 3
    assert_array_equal(np.frombuffer(row["x"]), menus(1, seed=2)[0][3])
    finding = found(tmp_path / "gb", decision.id)
    assert finding.result == "same", finding.differences


def test_decisions_after_overrides_come_out_again(tmp_path: Path) -> None:
    one = agent(tmp_path)
    made = overridden(one, 50)
    journal = journal_of(one)
    check_journal(journal)
    for decision, k in made:
        row = rebuild(journal, int(decision.id.rpartition("-")[2]))
        assert row.decide().action == decision.action == row.row["action"]
        assert (row.row["override"] or decision.action) == k or k == 0
    journal.close()
    for decision, k in made[::7]:
        finding = found(tmp_path / "gb", decision.id)
        assert finding.result == "same", finding.differences
        assert finding.decision["override"] == (None if k == decision.action else k)
    assert one.report().counters["overridden"] == sum(k != d.action for d, k in made)


def test_an_audit_finds_a_changed_override(tmp_path: Path) -> None:
    one = agent(tmp_path)
    decision, _ = next(each for each in overridden(one, 20) if each[0].action != each[1])
    seq = int(decision.id.rpartition("-")[2])
    change(one, "UPDATE decision SET override = (override + 1) % 5 WHERE seq = ?", seq)
    assert found(tmp_path / "gb", decision.id).result == "differs"
    change(one, "UPDATE decision SET override = 7 WHERE seq = ?", seq)
    finding = found(tmp_path / "gb", decision.id)
    assert any("none of the 5 actions" in each for each in finding.differences)
    change(one, "UPDATE decision SET override = NULL WHERE seq = ?", seq)
    finding = found(tmp_path / "gb", decision.id)
    assert any("were overridden" in each for each in finding.differences)


def test_what_others_played_shows_nothing_of_the_promise(tmp_path: Path) -> None:
    """Rewards of overridden plays do not count against the floor; their values do count."""
    one, menu = agent(tmp_path), menus(1)[0]
    one.observe(one.decide(menu, 0, value=[1.0, 2.0, 3.0, 4.0, 5.0]), 0.5)
    decision = one.decide(menu, 0, value=[1.0, 2.0, 3.0, 4.0, 5.0])
    one.override(decision, action=4)
    before = one.report().sums
    one.observe(decision, 0.1)
    after = one.report().sums
    assert after["lead"] == before["lead"]
    assert after["value"] == before["value"] + 5.0
    assert after["baseline_value"] == before["baseline_value"] + 1.0


def test_what_cannot_be_overridden_is_refused(tmp_path: Path) -> None:
    hands = Hands()
    one, menu = agent(tmp_path, clock=hands.clock(), rewards={"window_s": 10.0}), menus(1)[0]
    decision = one.decide(menu, 0)
    with pytest.raises(InvalidValueError, match="not one of the 5 actions"):
        one.override(decision, action=5)
    with pytest.raises(InvalidValueError, match="at least 0"):
        one.override(decision, action=-1)
    with pytest.raises(InvalidTypeError, match="whole number"):
        one.override(decision, action="best")  # type: ignore[arg-type]
    with pytest.raises(UnknownDecisionError, match="no decision of task"):
        one.override("movies-1-1", action=1)
    one.override(decision, action=1)
    one.override(decision, action=2)  # the last one counts
    one.observe(decision, 0.5)
    with pytest.raises(UnknownDecisionError, match="before observe"):
        one.override(decision, action=1)
    late = one.decide(menu, 0)
    hands.pass_(11.0)
    with pytest.raises(UnknownDecisionError, match="has ended"):
        one.override(late, action=1)
    assert one.report().counters["overridden"] == 1


def test_what_is_no_longer_known_is_refused(tmp_path: Path) -> None:
    one = agent(tmp_path)
    overridden(one, 10)
    decision = one.decide(menus(1)[0], 0)
    one.close()
    change(one, "DELETE FROM outcome WHERE seq = 3")
    again = agent(tmp_path)
    with pytest.raises(InvalidValueError, match="cannot be overridden any more"):
        again.override(decision.id, action=1)


def test_two_processes_with_one_folder(tmp_path: Path) -> None:
    one, other = agent(tmp_path), agent(tmp_path)
    menu = menus(1)[0]
    decision = one.decide(menu, 0)
    other.override(decision.id, action=2)
    one.observe(decision.id, 0.5)
    assert_array_equal(own_sums(one).moment, own_sums(other).moment) if other.pending else None
    gram = own_sums(one).gram
    np.testing.assert_allclose(gram / gram[0, 0], np.outer(menu[2], menu[2]) / menu[2, 0] ** 2)


@pytest.mark.parametrize("shadow", [False, True])
def test_shadow_mode_learns_what_others_play(tmp_path: Path, shadow: bool) -> None:
    one = agent(tmp_path, shadow=shadow)
    made = overridden(one, 30)
    assert one.counted == 30
    finding = found(tmp_path / "gb", made[-1][0].id)
    assert finding.result == "same", finding.differences
