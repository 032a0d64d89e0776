"""`guardband audit`: explains, recomputes, and is not fooled."""

from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest
from live.agent.world import agent, live_on
from typer.testing import CliRunner

from guardband.cli.app import app
from guardband.live.agent.journal import Journal, JournalError
from guardband.live.operators.audit import Finding, audit, find_decision
from guardband.live.operators.replay import rebuild

RUN = CliRunner()


def sync(*agents: Any) -> None:
    for each in agents:
        each._courier._done.clear()
        each.sync()


def found(folder: Path, ident: str) -> Finding:
    return audit(ident, find_decision(ident, [folder]))


def change(one: Any, sql: str, *values: Any) -> None:
    """Change a journal behind its agent's back."""
    connection = apsw.Connection(str(one.state_dir / "journal.db"))
    connection.execute(sql, values)
    connection.close()


@pytest.fixture
def two(tmp_path: Path) -> tuple[Any, Any, list[Any], list[Any]]:
    one, other = agent(tmp_path), agent(tmp_path, task="tv", uses=[0, 2])
    mine, its = [], []
    for step in range(5):
        mine += live_on(one, 15, seed=step)
        its += live_on(other, 10, seed=50 + step)
        sync(one, other, one)
    mine += live_on(one, 5, seed=9)
    assert one.epoch >= 2
    return one, other, mine, its


def test_every_decision_comes_out_again(tmp_path: Path, two: Any) -> None:
    _, _, mine, its = two
    kinds = set()
    for decision in [*mine, *its]:
        finding = found(tmp_path / "gb", decision.id)
        assert finding.result == "same", finding.differences
        assert finding.decision["action"] == decision.action
        assert finding.choices[decision.action].why == "played"
        kinds.add(finding.decision["reason"])
    assert len(kinds) >= 2


def test_the_table_is_what_the_decision_said(tmp_path: Path, two: Any) -> None:
    _, _, mine, _ = two
    for decision in mine[::7]:
        finding = found(tmp_path / "gb", decision.id)
        chosen = finding.choices[decision.action]
        assert chosen.mean == pytest.approx(decision.mean, abs=1e-9)
        assert chosen.lower == pytest.approx(decision.lower, abs=1e-9)
        assert chosen.upper == pytest.approx(decision.upper, abs=1e-9)
        if decision.promise == "play":
            assert chosen.slack == pytest.approx(decision.margin, abs=1e-9)
        for choice, kept in zip(finding.choices, decision.kept, strict=True):
            assert choice.certified == kept
            missing = "miss the floor" in choice.why
            assert choice.action == decision.action or missing == (not kept)


def test_slack_from_first_principles(tmp_path: Path, two: Any) -> None:
    """The least of (psi_k - (1 - alpha) psi_b)'theta over the ellipsoid, found on its border."""
    one, _, mine, _ = two
    finding = found(tmp_path / "gb", mine[-1].id)
    rebuilt = rebuild(Journal(one.state_dir / "journal.db"), finding.decision["seq"])
    estimate, beta = rebuilt.learner.state.estimate, finding.beta
    assert beta is not None
    root = np.linalg.cholesky(estimate.inverse)
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(20_000, 3))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    border = estimate.theta + beta * directions @ root.T
    psi = np.array(finding.features)
    b = finding.decision["baseline"]
    for choice in finding.choices:
        if choice.action == b:
            continue
        share = (border @ (psi[choice.action] - 0.7 * psi[b])).min()
        lead = (border @ (psi[choice.action] - psi[b])).min()
        assert choice.slack == pytest.approx(max(share, lead), abs=2e-3 * beta)


def test_a_held_back_decision_says_why_and_what_was_wished(tmp_path: Path) -> None:
    one = agent(tmp_path, shadow=True)
    made = live_on(one, 40)
    wished = 0
    for decision in made:
        finding = found(tmp_path / "gb", decision.id)
        assert finding.result == "same"
        assert finding.because.startswith("shadow mode")
        wished += sum("would have been played" in choice.why for choice in finding.choices)
    assert wished > 0


@pytest.mark.parametrize("algorithm", ["DiscUcb", "DisLinUcb"])
def test_other_algorithms(tmp_path: Path, algorithm: str) -> None:
    extra = {} if algorithm == "DiscUcb" else {"alpha": None}
    one = agent(tmp_path, algorithm=algorithm, **extra)
    for decision in live_on(one, 30):
        finding = found(tmp_path / "gb", decision.id)
        assert finding.result == "same", finding.differences
        chosen = finding.choices[decision.action]
        assert chosen.upper == pytest.approx(decision.upper, abs=1e-9)
        assert all(choice.why for choice in finding.choices)


def test_policy_mode(tmp_path: Path) -> None:
    one = agent(tmp_path, mode="policy")
    coins = 0
    for decision in live_on(one, 60):
        finding = found(tmp_path / "gb", decision.id)
        assert finding.result == "same", finding.differences
        coins += any("fell the other way" in choice.why for choice in finding.choices)
    assert coins > 0


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


@pytest.mark.parametrize(
    "tamper",
    [tamper_margin, tamper_action, tamper_features, tamper_reward, tamper_config, tamper_sum],
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


def test_what_is_missing_is_said(tmp_path: Path, two: Any) -> None:
    one, _, mine, _ = two
    last = mine[-1].id
    change(one, "DELETE FROM outcome WHERE seq = ?", int(last.rpartition("-")[2]) - 1)
    change(one, "DELETE FROM decision WHERE seq = ?", int(last.rpartition("-")[2]) - 1)
    finding = found(tmp_path / "gb", last)
    assert finding.result == "impossible"
    assert finding.missing is not None
    assert "gone" in finding.missing
    with pytest.raises(LookupError, match="was changed"):
        found(tmp_path / "gb", mine[-2].id)
    change(one, "DELETE FROM epoch WHERE epoch = (SELECT max(epoch) FROM epoch)")
    assert "epoch" in str(found(tmp_path / "gb", last).missing)
    change(one, "UPDATE decision SET features = x'00' WHERE seq = ?", int(last.rpartition("-")[2]))
    with pytest.raises(JournalError, match="damaged or was changed"):
        found(tmp_path / "gb", last)


def test_a_pruned_journal(tmp_path: Path) -> None:
    one = agent(tmp_path, keep_decisions=10)
    made = live_on(one, 40)
    sync(one)
    with pytest.raises(LookupError, match="was pruned"):
        found(tmp_path / "gb", made[0].id)
    old = found(tmp_path / "gb", made[-10].id)
    assert old.result == "impossible"  # its own observations went with the others
    assert "no longer" in str(old.missing)


def test_ids_that_lead_nowhere(tmp_path: Path, two: Any) -> None:
    _, _, mine, _ = two
    for junk in ("", "x", "movies-17", "movies-1f0c9a3e52b7-x", "-1f0c9a3e52b7-1"):
        with pytest.raises(ValueError, match="no decision's id"):
            find_decision(junk, [tmp_path])
    with pytest.raises(LookupError, match="no journal"):
        find_decision("movies-000000000000-1", [tmp_path])
    beyond = mine[-1].id.rpartition("-")[0] + "-100000"
    with pytest.raises(LookupError, match="has not been made"):
        found(tmp_path, beyond)


def test_a_folder_that_was_copied(tmp_path: Path, two: Any) -> None:
    """Both have the stream, but only one has the decision."""
    one, _, _, _ = two
    one.close()
    copied = tmp_path / "a-copy"
    shutil.copytree(one.state_dir, copied)
    again = agent(tmp_path)
    later = live_on(again, 3, seed=77)
    again.close()
    ident = later[-1].id
    place = find_decision(ident, [copied, tmp_path / "gb"])
    assert place.journal == again.state_dir / "journal.db"
    assert audit(ident, place).result == "same"


def test_the_command(tmp_path: Path, two: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    _, _, mine, _ = two
    monkeypatch.chdir(tmp_path)  # ./gb is searched
    result = RUN.invoke(app, ["audit", mine[20].id])
    assert result.exit_code == 0, result.output
    for words in ("recomputed: the same action", "certificate", "coin", "why", "epoch"):
        assert words in result.output
    result = RUN.invoke(app, ["audit", mine[20].id, "--json"])
    told = json.loads(result.output)
    assert told["result"] == "same"
    assert told["decision"]["action"] == mine[20].action
    assert len(told["choices"]) == len(told["features"]) == 5
    result = RUN.invoke(app, ["audit", "movies-000000000000-1"])
    assert isinstance(result.exception, ValueError)
    result = RUN.invoke(app, ["audit", mine[20].id, "--state", str(tmp_path / "none")])
    assert isinstance(result.exception, FileNotFoundError)


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
