"""`LiveAgent.learn`: every row once, as if decided, shared, and there after a restart."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live.client.logs import logged, own_sums, some_log, stored
from live.client.world import Away, Hands, Switch, agent, link_of, live_on, menus

import guardband as gb
from guardband.live.client import logged_rows
from guardband.live.link.local import LocalLink

X, Y = some_log(300)
IDS = [f"r{i}" for i in range(300)]


def test_rows_count_as_if_they_had_been_decided(tmp_path: Path) -> None:
    """A menu of one row, played and observed, leaves the same sums, bit for bit."""
    one, other = agent(tmp_path / "a"), agent(tmp_path / "b")
    one.learn(X, Y)
    for x, y in zip(X, Y, strict=True):
        other.observe(other.decide(x[None, :], 0), float(y))
    assert own_sums(one) == own_sums(other)
    assert (one.theta == other.theta).all()
    assert (one.counted, one.rounds, one.pending) == (300, 0, 0)


@pytest.mark.parametrize("algorithm", ["disc-ucb", "dis-lin-ucb"])
def test_other_algorithms_learn_rows_too(tmp_path: Path, algorithm: str) -> None:
    alpha = 0.3 if algorithm == "disc-ucb" else None
    given = {"algorithm": algorithm, "alpha": alpha}
    one, other = agent(tmp_path / "a", **given), agent(tmp_path / "b", **given)
    one.learn(X[:40], Y[:40])
    for x, y in zip(X[:40], Y[:40], strict=True):
        other.observe(other.decide(x[None, :], 0, 0.2), float(y))
    assert own_sums(one) == own_sums(other)


def test_every_row_counts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logged_rows, "BATCH", 64)
    one = agent(tmp_path)
    first = one.learn(X[:200], Y[:200], ids=IDS[:200])
    assert (first.rows, first.known) == (200, 0)
    before, sums = logged(one), own_sums(one)
    again = one.learn(X[:200], Y[:200], ids=IDS[:200])
    assert (again.rows, again.known) == (0, 200)
    assert (logged(one), own_sums(one)) == (before, sums)
    mixed = np.random.default_rng(1).permutation(300)
    more = one.learn(X[mixed], Y[mixed], ids=[IDS[i] for i in mixed])
    assert (more.rows, more.known) == (100, 200)
    assert [row[1] for row in logged(one)] == list(range(1, 301))
    assert {row[2] for row in logged(one)} == set(IDS)
    assert one.counted == 300


def test_without_ids_rows_are_known_by_what_comes_before_them(tmp_path: Path) -> None:
    one = agent(tmp_path)
    assert one.learn(X[:200], Y[:200]).rows == 200
    assert one.learn(X[:200], Y[:200]).rows == 0
    grown = one.learn(X, Y)
    assert (grown.rows, grown.known) == (100, 200)
    assert one.learn(X[1:], Y[1:]).rows == 299  # another log: its rows may well be others


def test_bad_rows_change_nothing(tmp_path: Path) -> None:
    one = agent(tmp_path)
    one.learn(X[:50], Y[:50], ids=IDS[:50])
    before, sums = logged(one), own_sums(one)
    nan, long, far = X[50:60].copy(), X[50:60].copy(), Y[50:60].copy()
    nan[7, 1], long[3], far[4] = np.nan, 0.9, 1.5
    rest, ids = (X[50:60], Y[50:60]), IDS[50:60]
    other = Y[:10].copy()
    other[6] = 0.5 if other[6] != 0.5 else 0.25
    for given, more, said in (
        ((nan, Y[50:60]), {}, r"row 7 are not finite"),
        ((long, Y[50:60]), {}, r"row 3 have length"),
        ((X[50:60, :2], Y[50:60]), {}, r"shape"),
        ((X[50:60], far), {}, r"row 4: reward 1\.5"),
        ((X[50:60], Y[50:59]), {}, r"do not fit together"),
        (rest, {"propensities": [0.5] * 9 + [0.0]}, r"row 9 is 0"),
        (rest, {"ids": [*ids[:9], ids[2]]}, r"'r52' is given twice: of rows 2 and 9"),
        (rest, {"ids": [*ids[:9], 0.5]}, r"that of row 9 is 0\.5"),
        ((X[:10], other), {"ids": IDS[:10]}, r"row 6: id 'r6' was learned before with the reward"),
        ((X[50:60], Y[:10]), {"ids": IDS[:10]}, r"row \d: id 'r\d' was learned before"),
        (rest, {"menus": [(X[:3], 7)]}, r"baseline 7"),
    ):
        with pytest.raises((ValueError, TypeError), match=said):
            one.learn(*given, **more)
        assert (logged(one), own_sums(one)) == (before, sums), said
    assert one.learn(*rest, ids=ids).rows == 10


def test_rewards_lie_within_the_bounds_of_the_space(tmp_path: Path) -> None:
    one = agent(tmp_path, noise=0.5, rewards={"order": "prompt", "low": 0.0, "high": 1.0})
    with pytest.raises(ValueError, match=r"row 2: reward 1\.2 is not between 0 and 1, as the sp"):
        one.learn(X[:3], [0.1, 0.2, 1.2])
    assert one.counted == 0


def test_the_other_task_learns_from_the_log(tmp_path: Path) -> None:
    one, other = agent(tmp_path), agent(tmp_path, task="tv")
    live_on(other, 3, seed=5)
    before = other.theta
    found = one.learn(X, Y, menus=[(menus(1)[0], 0)])
    assert (found.after < 0.5 * found.before).all()
    assert (found.menus[0].after < found.menus[0].before).all()
    assert one.status()["due"], "an epoch is due, as after observations"
    for each in (one, other, one, other):
        each.sync()
    assert other.epoch == 1
    assert other.report().gauges["foreign_n"] == 300.0
    assert np.abs(other.theta - before).max() > 0.05


def test_a_restart_goes_on_with_the_log(tmp_path: Path) -> None:
    one = agent(tmp_path)
    live_on(one, 10)
    one.learn(X, Y, ids=IDS)
    live_on(one, 10, seed=1)
    theta = one.theta
    one.close()
    back = agent(tmp_path)
    assert (back.counted, back.rounds) == (320, 20)
    np.testing.assert_allclose(back.theta, theta, rtol=1e-9)
    assert back.learn(X, Y, ids=IDS).known == 300


def test_other_processes_of_the_agent_see_it(tmp_path: Path) -> None:
    one, other = agent(tmp_path), agent(tmp_path)
    one.learn(X, Y, ids=IDS)
    assert other.counted == 300
    np.testing.assert_allclose(other.theta, one.theta, rtol=1e-12)
    assert other.learn(X, Y, ids=IDS).rows == 0


def test_two_that_learn_one_log_at_once_learn_it_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logged_rows, "BATCH", 8)
    agents = [agent(tmp_path), agent(tmp_path)]
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda one: one.learn(X, Y, ids=IDS), agents))
    assert sum(each.rows for each in found) == sum(each.known for each in found) == 300
    assert sorted(row[2] for row in logged(agents[0])) == sorted(IDS)
    assert [one.counted for one in agents] == [300, 300]


def test_rows_wait_for_no_window_and_no_turn(tmp_path: Path) -> None:
    """Decisions that wait for their reward count after the rows, each with its own number."""
    hands = Hands()
    rules = {"order": "window", "window_s": 60.0}
    one = agent(tmp_path, clock=hands.clock(), rewards=rules)
    waiting = [one.decide(menu, 0) for menu in menus(5)]
    one.learn(X, Y)
    assert (one.counted, one.pending) == (300, 5)
    for decision in waiting:
        one.observe(decision, 0.5)
    hands.pass_(61.0)
    one.sync()
    assert (one.counted, one.pending) == (305, 0)


def test_reports_count_rows_of_logs_apart(tmp_path: Path) -> None:
    one = agent(tmp_path)
    live_on(one, 10)
    one.learn(X, Y)
    report = one.report()
    assert (report.counters["decisions"], report.counters["observed"]) == (10, 10)
    assert (report.sums["logged"], report.gauges["own_n"]) == (300.0, 310.0)


@pytest.mark.parametrize("how", ["shadow", "paused"])
def test_agents_that_may_only_play_the_baseline_learn_from_logs(tmp_path: Path, how: str) -> None:
    one = agent(tmp_path, shadow=how == "shadow")
    if how == "paused":
        link_of(one)._do(lambda c, now: c.pause("default", "recall", who="me", now=now))
        one.sync()
    one.learn(X, Y)
    assert one.decide(menus(1)[0], 0).kind == "baseline"
    assert one.counted == 300


def test_where_contexts_are_shared_rows_have_the_weights_of_decisions(tmp_path: Path) -> None:
    """They are of rounds that are over: an epoch with them can be adopted in the next round."""
    given = {"contexts": "shared", "context_noise": 0.2}
    one, other = agent(tmp_path / "a", **given), agent(tmp_path / "b", **given)
    one.decide(menus(1)[0], 0, round=4)
    one.learn(X[:20], Y[:20])
    for t, (x, y) in enumerate(zip(X[:20], Y[:20], strict=True)):
        other.observe(other.decide(x[None, :], 0, round=t + 1), float(y))
    assert own_sums(one) == own_sums(other)
    tv = agent(tmp_path / "a", task="tv", **given)
    tv.decide(menus(1)[0], 0, round=4)
    one.sync()
    tv.sync()
    tv.sync()
    tv.decide(menus(1)[0], 0, round=5)
    assert tv.report().gauges["foreign_n"] == 20.0


def test_without_the_coordinator_nothing_is_learned(tmp_path: Path) -> None:
    link: Any = Switch(LocalLink(tmp_path / "gb"))
    one = agent(tmp_path, link=link)
    there, link.to = link.to, Away()
    with pytest.raises(gb.Unreachable):
        one.learn(X, Y)
    assert one.counted == 0
    link.to = there
    assert one.learn(X, Y).rows == 300


@pytest.mark.parametrize("task", ["movies", "tv"])
def test_a_log_counts_once_in_a_space(tmp_path: Path, task: str) -> None:
    """Neither a second state folder of the task nor another task learns it again."""
    one = agent(tmp_path)
    other = agent(tmp_path, task=task, state_dir=tmp_path / "other")
    one.learn(X, Y, ids=IDS)
    for ids in (IDS, None):  # ids are each journal's own: what the rows hold is compared
        with pytest.raises(gb.Refused, match="task 'movies' has learned a log with th") as error:
            other.learn(X, Y, ids=ids)
        assert (error.value.code, error.value.status) == ("log_taken", 409)
    assert other.counted == 0
    assert other.learn(*some_log(50, seed=1)).rows == 50
    assert one.learn(X, Y, ids=IDS).known == 300


def test_a_log_counts_once_also_where_a_task_uses_fewer_features(tmp_path: Path) -> None:
    one = agent(tmp_path)
    other = agent(tmp_path, task="tv", uses=["x0", "x2"], state_dir=tmp_path / "other")
    one.learn(X, Y)
    with pytest.raises(gb.Refused, match="in another state folder"):
        other.learn(X[:, [0, 2]], Y)
    assert other.counted == 0


def test_rows_are_known_in_one_way(tmp_path: Path) -> None:
    one = agent(tmp_path)
    one.learn(X, Y)
    with pytest.raises(gb.InputError, match="learned before without ids"):
        one.learn(X, Y, ids=IDS)
    other = some_log(50, seed=1)
    one.learn(*other, ids=IDS[:50])
    with pytest.raises(gb.InputError, match="learned before with ids"):
        one.learn(*other)
    assert one.counted == 350


def test_a_copied_folder_counts_nothing_twice(tmp_path: Path) -> None:
    one = agent(tmp_path)
    live_on(one, 5)
    one.sync()
    one.close()
    shutil.copytree(tmp_path / "gb" / "agents" / "default" / "movies", tmp_path / "clone")
    one, clone = agent(tmp_path), agent(tmp_path, state_dir=tmp_path / "clone")
    one.learn(X, Y)
    clone.learn(X, Y)  # it is still the same stream
    one.sync()
    clone.sync()
    assert sorted(stored(tmp_path).values()) == [0, 305]
    assert clone.counted == 0
    with pytest.raises(gb.Refused, match="in another state folder"):
        clone.learn(X, Y)
    one.sync()
    assert sorted(stored(tmp_path).values()) == [0, 305]


def test_a_new_stream_does_not_take_the_rest_of_a_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stream may change while a log is learned: the one that has the claim may go on there."""
    monkeypatch.setattr(logged_rows, "BATCH", 100)
    one = agent(tmp_path)
    live_on(one, 5)
    one.sync()
    shutil.copytree(one.state_dir, tmp_path / "clone")
    clone = agent(tmp_path, state_dir=tmp_path / "clone")
    live_on(one, 5, seed=1)
    one.sync()

    def blocks() -> Iterator[Any]:
        yield X[:100], Y[:100], None, None
        if clone.counted > 5:  # it has begun to learn
            clone.sync()
        yield X[100:], Y[100:], None, None

    with pytest.raises(gb.JournalError, match="a new stream has begun"):
        clone.learn_blocks(blocks)
    assert clone.counted == 0


def test_a_sealed_stream_goes_on_with_its_log(tmp_path: Path) -> None:
    with agent(tmp_path, ephemeral=True) as one:
        one.learn(X[:100], Y[:100], ids=IDS[:100])
        one.learn(X, Y, ids=IDS)
    back = agent(tmp_path)
    assert back.learn(X, Y, ids=IDS).known == 300
    live_on(back, 5)
    back.sync()
    assert sorted(stored(tmp_path).values()) == [5, 300]
