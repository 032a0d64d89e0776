"""Audits of journals that somebody has changed: none is called the same, and no other is not."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest
from live.client.world import Hands, agent, live_on, menus
from live.operators.journals import change, found, sync, two_agents
from live.operators.world import a_space, free_port, pool, serving, work
from typer.testing import CliRunner

from guardband.cli.app import app
from guardband.live.client.journal import Journal
from guardband.live.operators.audit import compared
from guardband.live.protocol.sums import HEAD, Sums

RUN = CliRunner()


@pytest.fixture
def two(tmp_path: Path) -> tuple[Any, Any, list[Any], list[Any]]:
    return two_agents(tmp_path)


def tamper_margin(one: Any, seq: int) -> None:
    change(one, "UPDATE decision SET margin = margin + 1e-6 WHERE seq = ?", seq)


def tamper_action(one: Any, seq: int) -> None:
    change(one, "UPDATE decision SET action = (action + 1) % 5 WHERE seq = ?", seq)


def tamper_features(one: Any, seq: int) -> None:
    menu = np.full((3, 5), 0.3).tobytes()
    change(one, "UPDATE decision SET features = ? WHERE seq = ?", menu, seq)


def tamper_reward(one: Any, seq: int) -> None:
    change(one, "UPDATE outcome SET reward = 1.0 - reward WHERE seq = ?", seq - 1)


def tamper_config(one: Any, seq: int) -> None:
    change(one, "UPDATE config SET space = replace(space, '\"alpha\": 0.3', '\"alpha\": 0.9')")


def tamper_sum(one: Any, seq: int) -> None:
    change(
        one,
        "UPDATE epoch SET total = (SELECT total FROM epoch e WHERE e.epoch < epoch.epoch) "
        "WHERE epoch = (SELECT epoch FROM decision WHERE seq = ?)",
        seq,
    )


def tamper_reason(one: Any, seq: int) -> None:
    change(one, "UPDATE decision SET reason = 'because' WHERE seq = ?", seq)


def tamper_held_back(one: Any, seq: int) -> None:
    """What plays the baseline anyway is made to look as if somebody had pressed a button."""
    change(
        one,
        "UPDATE decision SET reason = 'paused' WHERE seq = "
        "(SELECT min(seq) FROM decision WHERE kind = 'baseline')",
    )


def tamper_wish(one: Any, seq: int) -> None:
    change(one, "UPDATE decision SET shadow_action = 2 WHERE seq = ?", seq)


def tamper_weight(one: Any, seq: int) -> None:
    change(one, "UPDATE decision SET weight = 2.0 * weight WHERE seq = ?", seq)


def tamper_round(one: Any, seq: int) -> None:
    change(one, "UPDATE decision SET round = round + 5 WHERE seq = ?", seq - 2)


def tamper_last_round(one: Any, seq: int) -> None:
    change(one, "UPDATE decision SET round = round + 5 WHERE seq = ?", seq)


def tamper_late(one: Any, seq: int) -> None:
    change(one, "UPDATE outcome SET late = 0.5 WHERE seq = ?", seq - 20)


def lose_an_outcome(one: Any, seq: int) -> None:
    change(one, "DELETE FROM outcome WHERE seq = ?", seq - 20)


def lose_an_outcome_and_close_up(one: Any, seq: int) -> None:
    """As if one reward had never come in."""
    lose_an_outcome(one, seq)
    change(one, "UPDATE outcome SET k = k - 1 WHERE seq > ?", seq - 20)


def lose_a_decision(one: Any, seq: int) -> None:
    change(one, "DELETE FROM outcome WHERE seq = ?", seq - 20)
    change(one, "DELETE FROM decision WHERE seq = ?", seq - 20)


def lose_the_newest(one: Any, seq: int) -> None:
    change(one, "DELETE FROM head")


def flip_to_defaulted(one: Any, seq: int) -> None:
    change(one, "UPDATE outcome SET ended = 2 WHERE seq = ?", seq - 20)


def flip_to_void(one: Any, seq: int) -> None:
    change(one, "UPDATE outcome SET ended = 3 WHERE seq = ?", seq - 20)


def flip_to_lost(one: Any, seq: int) -> None:
    change(one, "UPDATE outcome SET ended = 4, k = NULL, stream = NULL WHERE seq = ?", seq)


def flip_to_heard(one: Any, seq: int) -> None:
    change(one, "UPDATE outcome SET ended = 0, k = NULL, stream = NULL WHERE seq = ?", seq)


def lose_cuts(one: Any, seq: int) -> None:
    """Without checkpoints there would be nothing to compare an early reward with."""
    change(one, "DELETE FROM cut")
    change(one, "UPDATE outcome SET reward = 1.0 - reward WHERE seq = 3")


def lose_one_cut(one: Any, seq: int) -> None:
    change(one, "DELETE FROM cut WHERE n = (SELECT min(n) FROM cut WHERE n > 0)")


def lose_the_last_cut(one: Any, seq: int) -> None:
    change(one, "DELETE FROM cut WHERE n = (SELECT max(n) FROM cut)")


def swap_totals(one: Any, seq: int) -> None:
    change(one, "UPDATE cut SET total = part WHERE n = (SELECT max(n) FROM cut)")


def tamper_an_early_reward(one: Any, seq: int) -> None:
    change(one, "UPDATE outcome SET reward = 1.0 - reward WHERE seq = 3")


@pytest.mark.parametrize(
    "tamper",
    [
        *(tamper_margin, tamper_action, tamper_features, tamper_reward, tamper_config, tamper_sum),
        *(tamper_reason, tamper_held_back, tamper_wish, tamper_weight, tamper_round),
        *(tamper_last_round, tamper_late, lose_an_outcome, lose_an_outcome_and_close_up),
        *(lose_a_decision, lose_the_newest, flip_to_defaulted, flip_to_void, flip_to_lost),
        *(flip_to_heard, lose_cuts, lose_one_cut, lose_the_last_cut, swap_totals),
        tamper_an_early_reward,
    ],
)
def test_a_changed_journal_is_found_out(tmp_path: Path, two: Any, tamper: Any) -> None:
    one, _, mine, _ = two
    last = mine[-1]
    assert found(tmp_path / "gb", last.id).result == "same"
    tamper(one, int(last.id.rpartition("-")[2]))
    finding = found(tmp_path / "gb", last.id)
    assert finding.result == "differs"
    assert finding.differences
    result = RUN.invoke(app, ["audit", last.id, "--state", str(tmp_path / "gb")])
    assert result.exit_code == 1
    assert "NOT CONFIRMED" in result.output


@pytest.fixture
def waited(tmp_path: Path) -> tuple[Any, list[Any]]:
    """An agent with every kind of ending, and a reward that came late."""
    hands = Hands()
    one = agent(tmp_path, clock=hands.clock())
    made = live_on(one, 10)
    menu = menus(1)[0]
    late, discarded, defaulted = (one.decide(menu, 0, 0.4) for _ in range(3))
    one.discard(discarded.id)
    hands.pass_(601.0)
    one.observe(late.id, 0.25)
    sync(one)
    made += [late, discarded, defaulted, *live_on(one, 10, seed=1)]
    return one, made


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE outcome SET late = NULL WHERE late IS NOT NULL",
        "UPDATE outcome SET late = 7.0 WHERE late IS NOT NULL",
        "UPDATE outcome SET ended = 1 WHERE ended = 2",
        "UPDATE outcome SET reward = 0.5 WHERE ended = 2",
        "UPDATE outcome SET ended = 4 WHERE ended = 3",
        "UPDATE outcome SET ended = 2 WHERE ended = 3",
        "UPDATE outcome SET reward = 0.5 WHERE ended = 3",
        "UPDATE decision SET kind = 'explored' WHERE seq = 3",
        "UPDATE decision SET floor = floor / 2 WHERE seq = 3",
        "UPDATE outcome SET reward = 1.5 WHERE seq = 3",
        "INSERT INTO outcome VALUES (500, 1, 0.5, 0.0, 1, 500, NULL)",
    ],
)
def test_a_changed_ending_is_found_out(tmp_path: Path, waited: Any, sql: str) -> None:
    one, made = waited
    for decision in made:
        assert found(tmp_path / "gb", decision.id).result == "same"
    change(one, sql)
    assert found(tmp_path / "gb", made[-1].id).result == "differs"


def test_rounds_of_shared_contexts_only_grow(tmp_path: Path) -> None:
    one = agent(tmp_path, contexts="shared")
    made = []
    for step, menu in enumerate(menus(20)):
        made.append(one.decide(menu, 0, 0.4, round=10 * step + 1))
        one.observe(made[-1].id, 0.4)
    assert found(tmp_path / "gb", made[-1].id).result == "same"
    change(one, "UPDATE decision SET round = 1 WHERE seq = 7")
    assert found(tmp_path / "gb", made[-1].id).result == "differs"


def test_rounds_may_be_given_in_any_order_where_they_mean_nothing(tmp_path: Path) -> None:
    one = agent(tmp_path)
    for round_, menu in zip((1, 9, 9, 4, 20, 3), menus(6), strict=True):
        decision = one.decide(menu, 0, 0.4, round=round_)
        one.observe(decision.id, 0.4)
    assert found(tmp_path / "gb", decision.id).result == "same"


@pytest.mark.parametrize("place", [0, 3, 5, 20])  # in the magic word, the checksum, the numbers
@pytest.mark.parametrize("dim", [2, 3])  # sums of two features are as long as those of format 1
def test_sums_damaged_on_the_disk_are_not_used(
    tmp_path: Path, place: int, dim: int, caplog: pytest.LogCaptureFixture
) -> None:
    one, rng = agent(tmp_path, dim=dim), np.random.default_rng(0)
    for _ in range(5):
        decision = one.decide(rng.uniform(0.1, 0.5, (3, dim)), 0)
        one.observe(decision, float(rng.random()))
    connection = apsw.Connection(str(one.state_dir / "journal.db"))
    own = bytearray(connection.execute("SELECT own FROM head").get)
    connection.close()
    own[place] ^= 4
    change(one, "UPDATE head SET own = ?, revision = revision + 1", bytes(own))
    decision = one.decide(rng.uniform(0.1, 0.5, (3, dim)), 0)
    assert (decision.kind, decision.action) == ("baseline", 0)
    assert "the journal begins anew" in caplog.text
    assert (one.counted, one.report().counters["damaged"]) == (0, 1)
    assert agent(tmp_path, dim=dim).report().counters["damaged"] == 1


def test_the_sum_is_compared_with_the_coordinators(tmp_path: Path) -> None:
    data = tmp_path / "gb"
    with serving(data, free_port()) as server:
        server.post("/v1/spaces", a_space().as_json())
        one, other = server.agent("movies"), server.agent("tv")
        work(one, 20)
        work(other, 20, seed=1)
        pool(one, other)
        ident = work(one, 5, seed=2)[-1].id
        assert one.epoch == 1
        words = ["audit", ident, "--state", str(one.state_dir)]
        token = (data / "admin.token").read_text().strip()
        asked = [[*words, "--url", server.url, "--token", token], [*words, "--data", str(data)]]
        for each in asked:
            result = RUN.invoke(app, each)
            assert result.exit_code == 0, (result.output, result.exception)
            assert "as the coordinator has it" in result.output
        # The last bit of one number: nothing else in the journal can tell.
        journal = Journal(one.state_dir / "journal.db")
        ((total,),) = journal.query("SELECT total FROM epoch WHERE epoch = 1")
        journal.close()
        flipped = total[:-8] + bytes([total[-8] ^ 1]) + total[-7:]
        change(one, "UPDATE epoch SET total = ?", flipped)
        assert "checksum" in str(RUN.invoke(app, words).exception)
        # Changed by somebody who also writes the checksum anew:
        forged = Sums.from_bytes(flipped[HEAD.size :]).as_bytes()
        change(one, "UPDATE epoch SET total = ?", forged)
        assert RUN.invoke(app, words).exit_code == 0
        for each in asked:
            result = RUN.invoke(app, each)
            assert result.exit_code == 1
            assert "the coordinator has another sum of epoch 1" in result.output
        finding = compared(found(one.state_dir, ident), None)
        assert finding.result == "impossible"
        one.close()
        other.close()


def test_a_running_agent_is_not_mistaken_for_a_changed_journal(tmp_path: Path) -> None:
    one = agent(tmp_path)
    first = live_on(one, 30)[-1].id
    stop, seen = threading.Event(), []

    def look() -> None:
        while not stop.is_set():
            seen.append(found(tmp_path / "gb", first).result)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        for seed in range(1, 15):
            live_on(one, 20, seed=seed)
            sync(one)
    finally:
        stop.set()
        thread.join(timeout=60)
    assert seen
    assert set(seen) == {"same"}
