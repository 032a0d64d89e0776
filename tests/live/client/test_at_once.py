"""Where every request has a context of its own, rewards count as they come (order "prompt")."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live.client.world import Hands, agent, another_process, check_journal, journal_of

from guardband.live.client.windows import End
from guardband.live.operators.audit import audit, find_decision
from guardband.live.operators.rows_check import changed_rows
from guardband.live.protocol.messages import Refused

MENU = np.array([[0.4, 0.3, 0.1], [0.1, 0.2, 0.6]])
WINDOW = {"window_s": 10.0, "default": 0.25, "order": "prompt"}


def ended(one: Any) -> list[tuple[Any, ...]]:
    return journal_of(one).query("SELECT seq, ended, reward, k FROM outcome ORDER BY k")


def test_one_that_has_no_answer_holds_up_nobody(tmp_path: Path) -> None:
    hands = Hands()
    one = agent(tmp_path, rewards=WINDOW, clock=hands.clock())
    made = [one.decide(MENU, 0) for _ in range(4)]
    for k, reward in ((3, 0.3), (1, 0.2), (2, 0.5)):
        one.observe(made[k].id, reward)
    assert (one.counted, one.pending) == (3, 1)
    assert ended(one) == [(4, End.OBSERVED, 0.3, 1), (2, End.OBSERVED, 0.2, 2), (3, 1, 0.5, 3)]
    assert changed_rows(journal_of(one)) == []
    one.observe(made[3].id, 0.3)  # again: nothing changes
    with pytest.raises(ValueError, match=r"0\.3 already"):
        one.observe(made[3].id, 0.4)
    hands.pass_(10.0)
    one.sync()
    assert ended(one)[3] == (1, End.DEFAULTED, 0.25, 4)
    assert (one.counted, one.pending) == (4, 0)
    check_journal(journal_of(one))
    assert changed_rows(journal_of(one)) == []
    later = one.decide(MENU, 0)
    assert audit(later.id, find_decision(later.id, [tmp_path])).result == "same"


def test_where_contexts_are_shared_it_waits(tmp_path: Path) -> None:
    one = agent(tmp_path, contexts="shared", rewards=WINDOW, clock=Hands().clock())
    made = [one.decide(MENU, 0, round=t) for t in (1, 2)]
    one.observe(made[1].id, 0.3)
    assert (one.counted, one.pending) == (0, 2)


def test_after_a_kill_the_others_count(tmp_path: Path) -> None:
    """The process that asked died with its reward; others have the same journal."""
    hands = Hands()
    one = agent(tmp_path, rewards={**WINDOW, "window_s": 600.0}, clock=hands.clock(), link=None)
    one.decide(MENU, 0)  # nobody will ever tell
    del one
    two = agent(tmp_path, rewards={**WINDOW, "window_s": 600.0}, clock=hands.clock())
    for _ in range(50):
        two.observe(two.decide(MENU, 0).id, 0.5)
    assert (two.counted, two.pending) == (50, 1)
    two.close()
    again = agent(tmp_path, rewards={**WINDOW, "window_s": 600.0}, clock=hands.clock())
    assert (again.counted, again.pending) == (50, 1)
    assert changed_rows(journal_of(again)) == []


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_sums_are_those_of_the_rewards_whatever_their_order(
    tmp_path: Path, order: tuple[int, ...]
) -> None:
    rewards = (0.1, 0.6, 0.9)
    one = agent(tmp_path, rewards=WINDOW, clock=Hands().clock())
    made = [one.decide(MENU, 0) for _ in range(3)]
    one.discard(one.decide(MENU, 0).id)
    for k in order:
        one.observe(made[k].id, rewards[k])
    own = one._store.state.learner.state.own
    rows = journal_of(one).query("SELECT x, weight FROM decision WHERE seq < 4 ORDER BY seq")
    moment = sum(w * y * np.frombuffer(x) for (x, w), y in zip(rows, rewards, strict=True))
    np.testing.assert_allclose(own.moment, moment, rtol=1e-12)
    assert own.scalars[0] == 3
    assert one.pending == 0
    assert one.report().counters["discarded"] == 1


def test_what_counted_is_not_lost_with_a_stream(tmp_path: Path) -> None:
    one = agent(tmp_path, rewards=WINDOW, clock=Hands().clock())
    made = [one.decide(MENU, 0) for _ in range(3)]
    one.observe(made[1].id, 0.5)
    another_process(one).refused(Refused("already_continued", 409, "another went on"))
    found = journal_of(one).query("SELECT seq, ended FROM outcome ORDER BY seq")
    assert found == [(1, End.LOST), (2, End.OBSERVED), (3, End.LOST)]
