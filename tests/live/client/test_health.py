"""Monitors of live agents: what is noticed, what follows, and that it all comes out again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live.client.test_modes import coordinator
from live.client.test_replay import check_all
from live.client.world import Away, Switch, agent, check_journal, journal_of
from live.operators.journals import change, found

import guardband as gb
from guardband.kernels.monitors import Note
from guardband.live.client.watching import rewatch
from guardband.live.client.windows import End
from guardband.live.link.local import LocalLink
from guardband.live.operators.monitors_check import changed_monitors

BEFORE, AFTER = np.array([0.8, 0.1, 0.3]), np.array([0.1, 0.8, 0.3])
MENU = np.array([[0.5, 0.0, 0.0], [0.0, 0.4, 0.3]])
ALONE: dict[str, Any] = {"agents": 1, "alpha": 0.2, "context_noise": 0.0}


def work(
    one: gb.LiveAgent, rounds: int, theta: np.ndarray, seed: int = 0, late: int = 0
) -> list[gb.Decision]:
    """Let an agent decide and observe, `late` decisions later; stop at an alarm."""
    rng, made = np.random.default_rng(seed), []
    waiting: list[tuple[str, float]] = []
    for _ in range(rounds):
        menu = rng.uniform(0.05, 0.55, (6, 3))
        made.append(one.decide(menu, 0))
        reward = float(np.clip(menu[made[-1].action] @ theta + rng.normal(0.0, 0.1), 0.0, 1.0))
        waiting.append((made[-1].id, reward))
        if len(waiting) > late:
            one.observe(*waiting.pop(0))
        if not one.health.ok:
            break
    for each in waiting:
        one.observe(*each)
    return made


def memory(one: gb.LiveAgent) -> bytes:
    return one._store.state.learner.monitors.memory.tobytes()


def noticed(folder: Path, **given: Any) -> gb.LiveAgent:
    """Return an agent alone whose world has turned round, and which has noticed it."""
    one = agent(folder, **ALONE | given)
    work(one, 300, BEFORE)
    assert one.health == gb.Health(True, (), ("assumptions", "certificates"))
    one.sync()
    made = work(one, 400, AFTER, seed=1, late=given.get("late", 0))
    assert len(made) < 200
    return one


def test_a_world_that_turns_round_is_noticed_and_the_task_starts_anew(tmp_path: Path) -> None:
    one = noticed(tmp_path)
    (alarm,) = one.health.alarms
    assert (alarm.kind, alarm.round, one.health.ok) == ("assumptions", one.rounds, False)
    assert alarm.evidence >= np.log(3 / 0.001)
    assert (one.counted, one.theta.any()) == (0, False)
    decision = one.decide(MENU, 1)
    assert (decision.action, decision.kind) == (1, "baseline")
    assert (
        "an alarm was raised: rewards contradict one linear, lasting parameter" in decision.reason
    )
    one.observe(decision, 0.36)
    one.resume()
    assert one.health.ok
    decision = one.decide(MENU, 1)
    assert "alarm" not in decision.reason
    one.discard(decision)
    work(one, 300, AFTER, seed=2)
    assert one.health.ok
    one.sync()
    learned = work(one, 50, AFTER, seed=3)
    assert sum(each.kind == "learned" for each in learned) > 10
    assert np.abs(one.theta - AFTER).max() < 0.1
    check_journal(journal_of(one))
    assert check_all(one)[0] == one.rounds
    result = found(tmp_path, learned[-1].id)
    assert (result.result, result.differences) == ("same", ())


def test_rewards_of_the_old_start_do_not_count(tmp_path: Path) -> None:
    one = agent(tmp_path, **ALONE)
    work(one, 300, BEFORE)
    made = work(one, 400, AFTER, seed=1, late=10)
    assert (one.counted, one.pending) == (0, 0)
    journal = journal_of(one)
    ended = journal.query("SELECT ended, k FROM outcome WHERE seq > ?", (one.rounds - 10,))
    assert ended == [(End.OUTDATED, None)] * 10
    one.observe(made[-1].id, float(journal.find(one.rounds).reward))  # the same again
    assert changed_monitors(journal) == []


@pytest.mark.parametrize("after", [100, 256, 300])
def test_a_restarted_agent_goes_on_bit_for_bit(tmp_path: Path, after: int) -> None:
    one = agent(tmp_path, **ALONE)
    work(one, after, BEFORE)
    for seed in (1, 2):
        kept = one.health, memory(one)
        one.close()
        one = agent(tmp_path, **ALONE)
        assert (one.health, memory(one)) == kept
        work(one, 400, AFTER, seed=seed)
        assert len(one.health.alarms) == 1
        one.resume()
    assert changed_monitors(journal_of(one)) == []


def test_two_processes_with_one_journal_watch_it_together(tmp_path: Path) -> None:
    one = agent(tmp_path, **ALONE)
    two = agent(tmp_path, **ALONE)
    alone = agent(tmp_path / "alone", **ALONE)
    rng = np.random.default_rng(3)
    for n in range(60):
        menu = rng.uniform(0.05, 0.55, (6, 3))
        reward = float(menu[0] @ BEFORE)
        for each in ((one, two)[n % 2], alone):
            each.observe(each.decide(menu[:1], 0), reward)
    assert one.rounds == two.rounds == 60
    assert memory(one) == memory(two) == memory(alone)


def test_on_alarm_baseline_holds_until_an_operator_resumes(tmp_path: Path) -> None:
    one = noticed(tmp_path, on_alarm="baseline")
    one.resume()
    made = work(one, 300, AFTER, seed=2)
    assert any(each.kind == "learned" for each in made)
    two = noticed(tmp_path / "two", on_alarm="baseline")
    made = work(two, 1, AFTER, seed=2) + [two.decide(MENU, 1) for _ in range(300)]
    for each in made[1:]:
        two.discard(each)
    assert {each.kind for each in made} == {"baseline"}
    assert "after an alarm the baseline is played" in made[-1].reason
    two.sync()
    assert coordinator(tmp_path / "two").resume_task("default", "movies", who="ann", now=0.0) == 1
    two.sync()
    two.sync()
    assert two.health.ok
    work(two, 300, AFTER, seed=2)
    assert any(each.kind == "learned" for each in work(two, 50, AFTER, seed=4))
    assert check_all(two)[0] == two.rounds
    assert changed_monitors(journal_of(two)) == []


def test_on_alarm_warn_changes_nothing_else(tmp_path: Path) -> None:
    one = noticed(tmp_path, on_alarm="warn")
    assert (one.counted, one.pending) == (one.rounds, 0)
    rounds = one.rounds
    memory = one._store.state.learner.monitors.memory
    work(one, 50, AFTER, seed=5)
    kinds = [each.kind for each in one.health.alarms]
    assert kinds.count("assumptions") == 1  # once, until a person has looked
    assert one.rounds > rounds
    for _ in "12":  # the second time says nothing new
        one.resume()
        assert (memory[Note.STARTS], memory[Note.REWARDS]) == (1, 0)
    for theta in (AFTER, BEFORE):
        for seed in range(8):
            work(one, 25, theta, seed=10 + seed)
            if not one.health.ok:
                one.sync()
                assert coordinator(tmp_path).resume_task("default", "movies", who="", now=0.0)
                one.sync()
                one.sync()
                assert (one.health.ok, memory[Note.REWARDS]) == (True, 0)
    alarms = one.health.alarms
    assert [each.kind for each in alarms].count("assumptions") >= 2
    assert memory[Note.STARTS] == len(alarms) - (len(kinds) - 1)
    assert one.counted == one.rounds
    assert changed_monitors(journal_of(one)) == []


def test_monitors_whose_rewards_are_gone_begin_again_and_nobody_is_let_off(tmp_path: Path) -> None:
    """As after damage to a journal: what was counted before an alarm must not be forgotten."""
    one = noticed(tmp_path, on_alarm="baseline")
    for seed in range(20):
        work(one, 1, AFTER, seed)
    monitors = one._store.state.learner.monitors
    before = monitors.memory[[Note.STARTS, Note.HOLD]].tolist()
    assert before[0] == 1
    assert before[1] > 1e9
    change(one, "DELETE FROM outcome WHERE k = 5 AND stream = (SELECT max(stream) FROM outcome)")
    with one._store:
        rewatch(one._store, whole=True)
    after = monitors.memory
    assert (after[Note.STARTS], after[Note.REWARDS]) == (2, 0)
    assert after[Note.HOLD] >= before[1]
    assert work(one, 1, AFTER, seed=4)[0].kind == "baseline"


def test_nothing_is_watched_where_the_space_says_so(tmp_path: Path) -> None:
    one = agent(tmp_path, **ALONE, delta_alarm=0)
    work(one, 100, BEFORE)
    work(one, 300, AFTER)
    assert one.health == gb.Health(True, (), ())
    assert str(one.health) == "Nothing is watched."


def test_an_alarm_far_from_the_coordinator_is_told_later(tmp_path: Path) -> None:
    link = Switch(LocalLink(tmp_path / "gb"))
    one = agent(tmp_path, link=link, **ALONE)
    work(one, 300, BEFORE)
    one.sync()
    reached, link.to = link.to, Away()
    work(one, 400, AFTER, seed=1)
    made = work(one, 2, AFTER, seed=2)
    assert "no-config" not in {each.reason for each in made}  # it goes on under its share
    link.to = reached
    one.sync()
    with coordinator(tmp_path).store.reading() as t:
        (row,) = t.alarms("default")
        streams = t.streams("default")
    (alarm,) = one.health.alarms
    assert (row.kind, row.round, row.evidence) == alarm
    assert sorted(each.pool for each in streams) == [-1, 0]
    assert len({each.place for each in streams}) == 1
    one.resume()
    one.sync()
    with coordinator(tmp_path).store.reading() as t:
        (row,) = t.alarms("default")
    assert row.looked_by == "movies"


def test_changed_memory_and_alarms_are_found(tmp_path: Path) -> None:
    one = noticed(tmp_path)
    journal = journal_of(one)
    assert changed_monitors(journal) == []
    ((reward,),) = journal.query("SELECT reward FROM outcome WHERE seq = 100")
    change(one, "UPDATE outcome SET reward = reward - 1e-9 WHERE seq = 100")
    assert any("does not follow" in each for each in changed_monitors(journal))
    change(one, "UPDATE outcome SET reward = ? WHERE seq = 100", reward)
    assert changed_monitors(journal) == []
    change(one, "UPDATE alarm SET evidence = evidence + 1e-6")
    assert any("not what its monitors noticed" in each for each in changed_monitors(journal))
