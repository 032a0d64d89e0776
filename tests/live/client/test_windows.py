"""Rewards: windows, defaults, order, duplicates; with a clock that is turned by hand."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from live.client.world import Hands, agent, check_journal, journal_of, live_on, menus

import guardband as gb
from guardband.live.client.windows import Clock, End, Ending, ending
from guardband.live.protocol.space import RewardSettings

WINDOW = {"window_s": 10.0, "default": 0.25, "order": "window"}
MENU = menus(1)[0]


def ended(one: Any) -> list[tuple[int, float | None, int | None]]:
    rows = journal_of(one).query("SELECT ended, reward, k FROM outcome ORDER BY seq")
    return [(End(how), reward, k) for how, reward, k in rows]


def test_a_window_counts_when_it_ends_whatever_came(tmp_path: Path) -> None:
    hands = Hands()
    one = agent(tmp_path, rewards=WINDOW, clock=hands.clock())
    first, second, third = (one.decide(MENU, 0) for _ in range(3))
    one.observe(second.id, 0.9)
    hands.pass_(9.9)
    one.observe(first.id, 0.4)
    one.sync()
    assert (one.counted, one.pending) == (0, 3)
    hands.pass_(0.2)
    one.sync()
    assert (one.counted, one.pending) == (3, 0)
    assert ended(one) == [
        (End.OBSERVED, 0.4, 1),
        (End.OBSERVED, 0.9, 2),
        (End.DEFAULTED, 0.25, 3),
    ]
    one.observe(third.id, 0.8)  # late: kept, not learned
    one.observe(third.id, 0.8)
    report = one.report()
    assert report.counters["late"] == 1
    assert (report.counters["observed"], report.counters["defaulted"]) == (2, 1)
    assert report.sums["reward"] == pytest.approx(0.4 + 0.9 + 0.25)
    assert journal_of(one).query("SELECT late FROM outcome WHERE seq = 3") == [(0.8,)]


def test_a_reward_after_its_window_is_late_even_if_nobody_has_looked(tmp_path: Path) -> None:
    hands = Hands()
    one = agent(tmp_path, rewards=WINDOW, clock=hands.clock())
    decision = one.decide(MENU, 0)
    hands.pass_(10.0)
    one.observe(decision.id, 0.9)
    one.sync()
    assert ended(one) == [(End.DEFAULTED, 0.25, 1)]
    assert one.report().counters["late"] == 1


def test_prompt_counts_the_prefix_that_is_known(tmp_path: Path) -> None:
    hands = Hands()
    one = agent(
        tmp_path, contexts="shared", rewards={**WINDOW, "order": "prompt"}, clock=hands.clock()
    )
    made = [one.decide(MENU, 0, round=t) for t in range(1, 5)]
    one.observe(made[2].id, 0.3)
    one.observe(made[1].id, 0.2)
    assert (one.counted, one.pending) == (0, 4)
    one.observe(made[0].id, 0.1)
    assert (one.counted, one.pending) == (3, 1)
    assert [reward for _, reward, _ in ended(one)] == [0.1, 0.2, 0.3]
    hands.pass_(10.0)
    one.sync()  # the oldest blocks until its window ends
    assert ended(one)[3] == (End.DEFAULTED, 0.25, 4)


def test_void_only_excludes(tmp_path: Path) -> None:
    one = agent(tmp_path)
    made = [one.decide(MENU, 0) for _ in range(3)]
    one.discard(made[1].id)
    one.discard(made[1].id)
    one.observe(made[0].id, 0.5)
    one.observe(made[2].id, 0.6)
    assert (one.counted, one.pending) == (2, 0)
    with pytest.raises(gb.UnknownDecisionError, match="discarded"):
        one.observe(made[1].id, 0.5)
    with pytest.raises(gb.UnknownDecisionError, match="ended before"):
        one.discard(made[0].id)
    report = one.report()
    assert (report.counters["discarded"], report.counters["orphan"]) == (1, 1)
    assert report.counters["lost_baseline"] + report.counters["lost_learned"] == 1


def test_the_same_reward_again_is_accepted_another_refused(tmp_path: Path) -> None:
    for order in ("prompt", "window"):
        one = agent(tmp_path / order, rewards={"order": order})
        decision = one.decide(MENU, 0)
        one.observe(decision.id, 0.5)
        before = journal_of(one).query("SELECT * FROM outcome")
        one.observe(decision.id, 0.5)
        with pytest.raises(ValueError, match=r"has the reward 0.5 already, 0.6 is refused"):
            one.observe(decision.id, 0.6)
        assert journal_of(one).query("SELECT * FROM outcome") == before
        assert one.report().counters["duplicate"] == 1


def test_unknown_ids_are_orphans(tmp_path: Path) -> None:
    one = agent(tmp_path)
    decision = one.decide(MENU, 0)
    stem = decision.id.rpartition("-")[0]
    wrong = ["movies-7", f"{stem}-2", f"{stem}-x", f"{stem}-²", f"{stem}-{10**30}", "tv-1", ""]
    for each in wrong:
        with pytest.raises(gb.UnknownDecisionError):
            one.observe(each, 0.5)
        with pytest.raises(gb.UnknownDecisionError):
            one.discard(each)
    assert one.report().counters["orphan"] == len(wrong)
    assert one.pending == 1


def test_rewards_outside_the_declared_range_change_nothing(tmp_path: Path) -> None:
    one = agent(tmp_path)
    decision = one.decide(MENU, 0)
    for bad in (1.1, -0.1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="between 0 and 1"):
            one.observe(decision.id, bad)
    with pytest.raises(TypeError):
        one.observe(decision.id, "0.5")
    assert one.pending == 1


def test_a_clock_that_is_set_does_not_end_windows(tmp_path: Path) -> None:
    hands = Hands()
    one = agent(tmp_path, rewards=WINDOW, clock=hands.clock())
    one.decide(MENU, 0)
    hands.wall += 3_600.0  # forwards: the steady clock has not moved
    one.sync()
    assert one.pending == 1
    hands.wall -= 7_200.0
    hands.pass_(10.0)
    one.sync()
    assert one.pending == 0
    one.decide(MENU, 0)
    one.close()
    # A new process with a clock that is behind goes on from the journal.
    later = Hands(wall=hands.wall - 1_000.0)
    again = agent(tmp_path, rewards=WINDOW, clock=later.clock())
    assert again.pending == 1
    later.pass_(9.0)
    again.sync()
    assert again.pending == 1
    later.pass_(2.0)
    again.sync()
    assert again.pending == 0


def test_the_clock_notices_when_it_is_set() -> None:
    hands = Hands()
    clock = hands.clock()
    hands.pass_(5.0)
    assert clock.now() == 1_005.0
    assert clock.jump() == 0.0
    hands.wall += 60.0
    assert clock.jump() == pytest.approx(60.0)
    assert clock.jump() == 0.0
    clock.not_before(900.0)
    assert clock.now() == 1_005.0
    clock.not_before(2_000.0)
    assert clock.now() == 2_000.0
    assert Clock().now() > 1.6e9


@given(
    order=st.sampled_from(["window", "prompt"]),
    age=st.floats(0, 20),
    heard=st.none() | st.floats(0, 1),
    discarded=st.booleans(),
)
def test_how_a_decision_ends_in_a_window_does_not_depend_on_its_reward(
    order: str, age: float, heard: float | None, discarded: bool
) -> None:
    rules = RewardSettings(order=order, window_s=10.0, default=0.5)
    got = ending(rules, 100.0, heard, discarded, 100.0 + age)
    over = 100.0 + age >= 110.0
    if discarded:
        assert got == Ending(End.DISCARDED, 0.0)
    elif over:
        want = (End.DEFAULTED, 0.5) if heard is None else (End.OBSERVED, heard)
        assert got == Ending(*want)
    elif order == "window" or heard is None:
        assert got is None
    else:
        assert got == Ending(End.OBSERVED, heard)


@settings(max_examples=25)
@given(data=st.data())
def test_whatever_happens_the_books_balance(data: st.DataObject, tmp_path_factory: Any) -> None:
    """I4 and I8 after any sequence of decisions, rewards, exclusions and time."""
    order = data.draw(st.sampled_from(["window", "prompt"]))
    hands = Hands()
    folder = tmp_path_factory.mktemp("books")
    one = agent(
        folder, rewards={"window_s": 5.0, "order": order, "default": 0.5}, clock=hands.clock()
    )
    made: list[str] = []
    truth: dict[str, float] = {}
    for _ in range(data.draw(st.integers(1, 40))):
        what = data.draw(st.sampled_from(["decide", "observe", "discard", "pass", "sync"]))
        if what == "decide":
            made.append(one.decide(MENU, 0).id)
        elif what == "pass":
            hands.pass_(data.draw(st.sampled_from([0.5, 2.0, 6.0])))
        elif what == "sync":
            one.sync()
        elif made:
            which = data.draw(st.sampled_from(made))
            reward = truth.setdefault(which, data.draw(st.sampled_from([0.0, 0.5, 1.0])))
            with contextlib.suppress(gb.UnknownDecisionError):
                one.observe(which, reward) if what == "observe" else one.discard(which)
    counters = one.report().counters
    assert counters["decisions"] == len(made)
    kinds = sum(counters[kind] for kind in ("learned", "explored", "baseline"))
    ends = sum(counters[end] for end in ("observed", "defaulted", "discarded", "lost"))
    assert counters["decisions"] == kinds == ends + one.pending, "I8"
    assert one.counted == counters["observed"] + counters["defaulted"]
    check_journal(journal_of(one))
    one.close()


def test_a_batch_is_written_down_whole_or_not_at_all(tmp_path: Path) -> None:
    one = agent(tmp_path)
    live_on(one, 5)
    with pytest.raises(ValueError, match="not finite"):
        one.decide_many([MENU, MENU * np.nan], [0, 0])
    assert one.rounds == 5
    made = one.decide_many([MENU, MENU], [0, 1], [0.2, 0.3])
    assert [d.id.rpartition("-")[2] for d in made] == ["6", "7"]
    with pytest.raises(ValueError, match="do not fit together"):
        one.decide_many([MENU], [0, 0])
