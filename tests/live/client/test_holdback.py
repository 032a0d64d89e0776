"""A holdback of live agents: measured in the journal, across restarts, pauses and new settings."""

from __future__ import annotations

import csv
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live.client.test_health import AFTER, BEFORE
from live.client.test_modes import coordinator
from live.client.world import THETA, agent, journal_of
from live.operators.journals import change, found

import guardband as gb
from guardband.live.client.replay import rebuild
from guardband.live.operators.export import export_csv
from guardband.live.server import snapshot
from guardband.uplift import GainSums, reach_of, uplift_of


def start(folder: Path, **given: Any) -> gb.LiveAgent:
    return agent(folder, **{"noise": None, "context_noise": 0.0, "holdback": 0.2, **given})


def work(one: gb.LiveAgent, rounds: int, seed: int = 0) -> list[gb.Decision]:
    """Let an agent decide and hear of clicks; it exchanges its messages now and then."""
    rng, made = np.random.default_rng(seed), []
    for n in range(rounds):
        menu = rng.uniform(0.0, 0.57, (6, 3))
        decision = one.decide(menu, int(np.argsort(menu @ THETA)[-3]))
        one.observe(decision, float(rng.random() < menu[decision.action] @ THETA))
        made.append(decision)
        if n % 50 == 49:
            one.sync()
    return made


def hear(one: gb.LiveAgent, rounds: int, theta: np.ndarray, seed: int) -> None:
    """Let an agent decide and hear of its rewards, whatever it notices."""
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        menu = rng.uniform(0.05, 0.55, (6, 3))
        decision = one.decide(menu, 0)
        reward = menu[decision.action] @ theta + rng.normal(0.0, 0.1)
        one.observe(decision, float(np.clip(reward, 0.0, 1.0)))


def exported(one: gb.LiveAgent, out: Path) -> list[dict[str, str]]:
    export_csv([one.state_dir / "journal.db"], out)
    with out.open() as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("mode", ["strict", "policy"])
def test_the_uplift_is_what_the_rows_say(tmp_path: Path, mode: str) -> None:
    one = start(tmp_path, mode=mode)
    made = work(one, 500)
    held = [each for each in made if "held back by a coin" in each.reason]
    assert 20 < len(held) < 140
    rows = exported(one, tmp_path / "out.csv")
    gains = [float(row["uplift"]) for row in rows]
    told = one.uplift()
    assert told.rounds == len(gains) == 500
    assert told.mean == pytest.approx(np.mean(gains))
    assert [row["reason"] == "holdback" for row in rows] == [each in held for each in made]
    for row, decision in zip(rows, made, strict=True):
        assert float(row["propensity"]) == decision.propensity
        assert (float(row["hold"]) < 0.2 and decision.propensity < 1.0) == (decision in held)
    sums = one.report().sums
    assert [sums[f"uplift_{name}"] for name in GainSums._fields] == pytest.approx(
        [500, math.fsum(gains), sums["uplift_squares"]]
    )


@pytest.mark.parametrize("mode", ["strict", "policy"])
def test_decisions_come_out_again(tmp_path: Path, mode: str) -> None:
    one = start(tmp_path, mode=mode)
    made, reasons = work(one, 160), set()
    journal = journal_of(one)
    for seq, decision in enumerate(made, 1):
        rebuilt = rebuild(journal, seq)
        again = rebuilt.decide()
        reasons.add(again.reason)
        assert again.action == decision.action
        staked = [rebuilt.row[name] for name in ("lead", "share", "predicted")]
        assert again.propensity == pytest.approx(decision.propensity, abs=1e-12)
        assert again.awaited.stake == pytest.approx(staked, abs=1e-12)
    journal.close()
    assert "holdback" in reasons
    for decision in made[::7]:
        finding = found(tmp_path / "gb", decision.id)
        assert finding.result == "same", finding.differences


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE decision SET hold = 1 - hold WHERE seq = ?",
        "UPDATE decision SET lead = lead + 0.1 WHERE seq = ?",
        "UPDATE decision SET share = -share WHERE seq = ?",
        "UPDATE decision SET hold = NULL, lead = NULL, share = NULL WHERE seq = ?",
    ],
)
def test_a_row_that_was_changed_is_noticed(tmp_path: Path, sql: str) -> None:
    one = start(tmp_path, mode="policy")
    made = work(one, 120)
    seq, held = next((n, d) for n, d in enumerate(made, 1) if n > 40 and "held back" in d.reason)
    change(one, sql, seq)
    assert found(tmp_path / "gb", held.id).result == "differs"


def test_it_goes_on_after_a_restart(tmp_path: Path) -> None:
    one = start(tmp_path)
    work(one, 100)
    waiting = one.decide(np.eye(3), 0)
    before = one.uplift()
    one.close()
    again = start(tmp_path)
    assert again.uplift() == before
    again.observe(waiting.id, 1.0)
    assert again.uplift().rounds == before.rounds + 1


def test_it_goes_on_after_alarms_of_its_own_and_of_others(tmp_path: Path) -> None:
    """By the rows of all streams: the coin needs no model, and no stream."""
    given = {"noise": 0.1, "agents": 3, "alpha": 0.2, "keep_decisions": 10_000}
    agents = [start(tmp_path, task=task, **given) for task in ("movies", "tv", "books")]
    one, two, _ = agents

    def all_(rounds: int, theta: np.ndarray) -> None:
        for place, each in enumerate(agents):
            hear(each, rounds, theta if each is one else BEFORE, seed=rounds + place)
        for _ in range(3):
            for each in agents:
                each.sync()

    all_(150, BEFORE)
    waiting = [one.decide(np.eye(3) * 0.5, 0) for _ in range(5)]
    all_(300, AFTER)
    assert [each.kind for each in one.health.alarms] == ["assumptions"]
    for each in waiting:  # of the old start: they count here alone
        one.observe(each, 0.5)
    all_(60, AFTER)
    assert (one.status()["counted"] < 400, one.status()["counted_before"] > 150) == (True, True)
    for each, rounds in ((one, 515), (two, 510)):
        rows = exported(each, tmp_path / f"{each.name}.csv")
        gains = [float(row["uplift"]) for row in rows if row["uplift"]]
        told = each.uplift()
        assert told.rounds == len(gains) == rounds
        assert told.mean == pytest.approx(np.mean(gains))
    assert len({row["stream"] for row in rows}) > 1  # of the other, whose pool was made anew
    counts = [each.uplift().rounds for each in agents]
    for each in agents:
        each.sync()
    seen = snapshot.take(coordinator(tmp_path).store, "default", 2_000.0)
    assert seen is not None
    assert [task.gains.rounds for task in seen.tasks] == counts  # none twice, and none is missing
    decided = [task.counters["decisions"] for task in seen.tasks]
    assert decided == [each.rounds for each in agents]
    one.close()
    one = start(tmp_path, task="movies", **given)
    assert one.uplift().rounds == counts[0]
    made = one.decide(np.eye(3) * 0.5, 0)
    assert found(tmp_path / "gb", made.id).result == "same"
    change(one, "UPDATE meta SET value = replace(value, '[', '[1') WHERE key = 'before'")
    assert "what the holdback measured" in str(found(tmp_path / "gb", made.id).differences)


def test_a_copied_folder_begins_anew(tmp_path: Path) -> None:
    """What the original measured is its own: added up, it would count twice."""
    one = start(tmp_path)
    work(one, 100)
    one.close()
    shutil.copytree(one.state_dir, tmp_path / "copy")
    one = start(tmp_path)
    work(one, 100, seed=1)
    one.close()
    copy = start(tmp_path, state_dir=tmp_path / "copy")
    work(copy, 60, seed=2)
    copy.sync()
    assert copy.uplift().rounds <= 60
    seen = snapshot.take(coordinator(tmp_path).store, "default", 2_000.0)
    assert seen is not None
    assert seen.tasks[0].gains.rounds <= 260


def test_rounds_in_which_it_could_not_choose_do_not_count(tmp_path: Path) -> None:
    one = start(tmp_path, shadow=True)
    made = work(one, 60)
    assert {each.propensity for each in made} == {1.0}
    assert one.uplift().rounds == 0
    assert {row["uplift"] for row in exported(one, tmp_path / "out.csv")} == {""}


def test_another_holdback_is_measured_anew(tmp_path: Path) -> None:
    one = start(tmp_path)
    work(one, 120)
    waiting = one.decide(np.eye(3), 0)
    boss = coordinator(tmp_path)
    boss.configure("default", one.settings.changed(holdback=0.4), who="op", now=1.0)
    one.sync()
    assert one.uplift().rounds == 0
    one.observe(waiting.id, 1.0)  # it was staked with a smaller chance: it would weigh too much
    made = work(one, 100, seed=1)
    assert one.uplift().rounds in (100, 101)
    assert found(tmp_path / "gb", made[-1].id).result == "same"
    boss.configure("default", one.settings.changed(holdback=None), who="op", now=2.0)
    one.sync()
    with pytest.raises(gb.InvalidValueError, match="state holdback"):
        one.uplift()
    assert work(one, 5)[-1].propensity == 1.0


def test_a_space_adds_up_what_its_tasks_measured(tmp_path: Path) -> None:
    one, two = start(tmp_path), start(tmp_path, task="tv", link=None, seed=1)
    work(one, 120)
    work(two, 80, seed=2)
    for each in (one, two):
        each.sync()
    seen = snapshot.take(coordinator(tmp_path).store, "default", 2_000.0)
    assert seen is not None
    told, parts = seen.uplift(seen.tasks), [one.uplift(), two.uplift()]
    assert told is not None
    assert told.rounds == sum(each.rounds for each in parts) == 200
    gain = sum(each.mean * each.rounds for each in parts)
    assert told.mean == pytest.approx(gain / 200)
    squares = sum(task.gains.squares for task in seen.tasks)
    assert told == pytest.approx(uplift_of(GainSums(200, gain, squares), reach_of(0.2, None)))


def test_a_space_refuses_what_cannot_be() -> None:
    with pytest.raises(gb.InvalidValueError, match=r"holdback must be at most 0\.5, not 0\.7"):
        gb.SpaceSettings(features=["a"], agents=1, holdback=0.7)
    with pytest.raises(gb.InvalidValueError, match="dis-lin-ucb has no setting holdback"):
        gb.SpaceSettings(features=["a"], agents=1, algorithm="dis-lin-ucb", holdback=0.1)
