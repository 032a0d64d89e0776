"""`guardband audit`: explains, recomputes, and is not fooled."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live.client.world import DIM, THETA, agent, another_process, live_on, menus
from live.operators.journals import change, found, sync, two_agents
from typer.testing import CliRunner

from guardband.cli.app import app
from guardband.live.client.journal import Journal, JournalError
from guardband.live.client.replay import rebuild
from guardband.live.operators.audit import audit, find_decision
from guardband.live.protocol.messages import Refused, Registered

RUN = CliRunner()


@pytest.fixture
def two(tmp_path: Path) -> tuple[Any, Any, list[Any], list[Any]]:
    return two_agents(tmp_path)


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
        for choice, certified in zip(finding.choices, decision.certified, strict=True):
            assert choice.certified == certified
            missing = "miss the floor" in choice.why
            assert choice.action == decision.action or missing == (not certified)


@pytest.mark.parametrize("mode", ["strict", "policy"])
def test_certificates_by_the_range_of_rewards_come_out_again(tmp_path: Path, mode: str) -> None:
    """From their multipliers: at most the least lead over parameters that fit the range."""
    one = agent(tmp_path, on_refuted="baseline", mode=mode)
    bounded = 0
    for decision in live_on(one, 40, seed=3):
        finding = found(tmp_path / "gb", decision.id)
        assert finding.result == "same", finding.differences
        if decision.certificate == "bounded":
            bounded += 1
            chosen, psi = finding.choices[decision.action], np.array(finding.features)
            lead = (psi[decision.action] - 0.7 * psi[finding.decision["baseline"]]) @ THETA
            assert 0.0 <= chosen.slack <= lead + 1e-9
            assert chosen.slack == pytest.approx(decision.margin, abs=1e-9)
    assert bounded > 0


def test_a_decision_that_refutes_the_assumptions_comes_out_again(tmp_path: Path) -> None:
    """The reward that is reported for the baseline would make action 1 worth more than 1."""
    one = agent(tmp_path, on_refuted="baseline", dim=1, baseline_tolerance=0.01)
    menu, reasons = np.array([[0.2], [0.9], [0.3]]), set()
    for _ in range(5):
        decision = one.decide(menu, 0, 0.5)
        finding = found(tmp_path / "gb", decision.id)
        assert finding.result == "same", finding.differences
        reasons.add(finding.decision["reason"])
        one.observe(decision.id, float(menu[decision.action, 0] * 0.8))
    assert "refuted" in reasons


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


@pytest.mark.parametrize("algorithm", ["disc-ucb", "dis-lin-ucb"])
def test_other_algorithms(tmp_path: Path, algorithm: str) -> None:
    extra = {} if algorithm == "disc-ucb" else {"alpha": None}
    one = agent(tmp_path, algorithm=algorithm, **extra)
    for decision in live_on(one, 30):
        finding = found(tmp_path / "gb", decision.id)
        assert finding.result == "same", finding.differences
        chosen = finding.choices[decision.action]
        assert chosen.upper == pytest.approx(decision.upper, abs=1e-9)
        assert all(choice.why for choice in finding.choices)


@pytest.mark.parametrize("mode", ["strict", "policy"])
@pytest.mark.parametrize("told", [True, False])
def test_what_the_coin_would_have_chosen(tmp_path: Path, mode: str, told: bool) -> None:
    """The other action of a draw is the one that comes out with another coin."""
    one = agent(tmp_path, mode=mode, optimism=1.0)  # many rounds are drawn
    drawn = 0
    for menu in menus(60):
        decision = one.decide(menu, 0, float(menu[0] @ THETA) if told else None)
        one.observe(decision.id, float(menu[decision.action] @ THETA))
        finding = found(tmp_path / "gb", decision.id)
        assert finding.result == "same", finding.differences
        others = {c.action for c in finding.choices if "fell the other way" in c.why}
        journal = Journal(one.state_dir / "journal.db")
        _, request, _, learner, _ = rebuild(journal, finding.decision["seq"])
        journal.close()
        seq = finding.decision["seq"]
        possible = {learner.decide(request, seq, coin).action for coin in (0.0, 1.0 - 1e-12)}
        assert possible == {decision.action, *others}
        drawn += bool(others)
    assert drawn > 0


def test_every_reason_by_hand(tmp_path: Path) -> None:
    """Actions along one feature: means, bounds and slacks are products of single numbers."""
    one = agent(tmp_path, optimism=1.0)
    for _ in range(300):  # nothing but the baseline
        one.observe(one.decide(np.array([[0.9, 0.0, 0.0]]), 0).id, 0.45)
    sizes = [0.4, 0.5, 0.1, 0.6]  # the first is the baseline's
    menu = np.zeros((4, DIM))
    menu[:, 0] = sizes
    decision = one.decide(menu, 0)
    assert decision.action == 3
    finding = found(tmp_path / "gb", decision.id)
    assert finding.result == "same"
    assert finding.beta is not None
    journal = Journal(one.state_dir / "journal.db")
    learner = rebuild(journal, finding.decision["seq"]).learner
    journal.close()
    theta = float(learner.state.estimate.theta[0])
    spread = finding.beta * float(np.sqrt(learner.state.estimate.inverse[0, 0]))
    optimism = learner.group.engine.terms.optimism

    def sure(size: float) -> float:
        return size * theta - abs(size) * spread

    score = [size * (theta + optimism * spread) for size in sizes]
    why = [choice.why for choice in finding.choices]
    against = f"less promising than the action played: {{:.6g}} against {score[3]:.6g}"
    assert why[0] == "the baseline: certified, but " + against.format(score[0])
    assert why[1] == "certified, but " + against.format(score[1])
    short = -max(sure(0.1 - 0.7 * 0.4), sure(0.1 - 0.4))
    assert short > 0.0
    assert why[2] == (
        against.format(score[2]) + f"; not certified: it could miss the floor by {short:.6g}"
    )
    assert why[3] == "played"
    slack = [choice.slack for choice in finding.choices]
    assert slack[1] == pytest.approx(max(sure(0.5 - 0.28), sure(0.1)), abs=1e-9)
    assert slack[2] == pytest.approx(-short, abs=1e-9)
    assert slack[3] == pytest.approx(decision.margin, abs=1e-9)
    assert [choice.certified for choice in finding.choices] == [True, True, False, True]


def test_another_share_of_delta_holds_from_then_on(tmp_path: Path) -> None:
    """A coordinator that was restored gives shares in the order in which agents come back."""
    one = agent(tmp_path)
    made = live_on(one, 20)
    status, client = one.status(), another_process(one)
    before = client.state.share
    answer = Registered(
        stream=status["stream"],
        task_index=3,
        delta_share=1.0 / 12.0,
        agents=3,
        config=one.settings,
        config_version=status["config_version"],
        epoch=status["epoch"],
    )
    for _ in range(2):  # agents register again whenever they start
        client.registered(answer)
    assert before != client.state.share == 1.0 / 12.0
    made += live_on(one, 20, seed=1)
    for decision in made:
        finding = found(tmp_path / "gb", decision.id)
        assert finding.result == "same", finding.differences
    journal = Journal(one.state_dir / "journal.db")
    assert journal.query("SELECT * FROM level") == [(1, 1, before, 2), (1, 21, 1.0 / 12.0, 2)]
    journal.close()


def test_a_stream_that_is_not_registered_yet(tmp_path: Path) -> None:
    """It plays the baseline without a share of delta; what it is based on stays known."""
    one = agent(tmp_path)
    made = live_on(one, 20)
    another_process(one).refused(Refused("already_continued", 409, "another went on"))
    between = live_on(one, 5, seed=1)
    sync(one)
    made += [*between, *live_on(one, 10, seed=2)]
    early = {decision.id for decision in between}
    for decision in made:
        finding = found(tmp_path / "gb", decision.id)
        assert finding.result == "same", finding.differences
        assert (finding.decision["reason"] == "no-config") == (decision.id in early)


def test_what_is_missing_is_said(tmp_path: Path, two: Any) -> None:
    one, _, mine, _ = two
    last = mine[-1].id
    change(one, "DELETE FROM outcome WHERE seq = ?", int(last.rpartition("-")[2]) - 1)
    change(one, "DELETE FROM decision WHERE seq = ?", int(last.rpartition("-")[2]) - 1)
    finding = found(tmp_path / "gb", last)
    assert finding.result == "differs"
    assert any("comes after a gap" in each for each in finding.differences)
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


def features_of(tmp_path: Path, dim: int) -> tuple[str, list[Any]]:
    """What the command says about a decision in a space with so many features."""
    one = agent(tmp_path, dim=dim, features=[f"[f]{i}" for i in range(dim)])
    menu = np.random.default_rng(3).uniform(0.0, 1.0 / dim, (4, dim))
    decision = one.decide(menu, 1)
    result = RUN.invoke(app, ["audit", decision.id, "--state", str(tmp_path / "gb")])
    assert result.exit_code == 0, result.output
    finding = found(tmp_path / "gb", decision.id)
    best = max(finding.choices, key=lambda choice: choice.upper).action
    lines = [line.split() for line in result.output.splitlines() if line.startswith("[f]")]
    values = {f"[f]{i}": menu[[decision.action, 1, best], i] for i in range(dim)}
    for name, *numbers in lines:
        np.testing.assert_allclose([float(each) for each in numbers], values[name], rtol=1e-4)
    return result.output, [line[0] for line in lines]


@pytest.mark.parametrize("dim", [5, 20])
def test_the_features_are_shown(tmp_path: Path, dim: int) -> None:
    said, names = features_of(tmp_path, dim)
    assert "the most promising (" in said
    assert "baseline (1)" in said
    assert names == [f"[f]{i}" for i in range(dim)]


def test_of_many_features_those_that_differ_most(tmp_path: Path) -> None:
    said, names = features_of(tmp_path, 25)
    assert len(names) == 10
    assert "the 10 features that differ most of 25; --json has all." in said
