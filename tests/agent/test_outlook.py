"""An agent that knows whether it is stuck: what it says, when it warns, and what helps."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import guardband as gb

RATES = np.linspace(0.02, 0.08, 9)
CATEGORIES = np.hstack([np.ones((9, 1)), np.eye(9)]) / np.sqrt(2.0)  # an intercept and a one-hot
FIFTH = 4


def categories(**more: object) -> gb.Agent:
    stated = {"alpha": 0.1, "theta_bound": 0.3, "context_noise": 0.0}
    return gb.Agent(dim=10, **{**stated, **more})


def play(agent: gb.Agent, rounds: int, rng: np.random.Generator) -> list[gb.Decision]:
    """Let the agent choose a category in every round; its reward is a click."""
    decisions = []
    for _ in range(rounds):
        decision = agent.decide(CATEGORIES, FIFTH)
        agent.observe(decision, float(rng.random() < RATES[decision.action]))
        decisions.append(decision)
    return decisions


def scored(rng: np.random.Generator, marked: bool) -> tuple[np.ndarray, int, np.ndarray]:
    """Actions with two scores; one column more may mark the baseline's. Returns their worth."""
    menu = np.column_stack([np.ones(8), rng.uniform(0.2, 0.8, (8, 2))]) / 2.0
    worth = menu @ [0.4, 1.0, 0.4]
    baseline = int(np.argsort(worth)[5])
    if marked:
        menu = np.column_stack([menu, (np.arange(8) == baseline) / 2.0])
    return menu, baseline, worth


def follow(agent: gb.Agent, rounds: int, *, marked: bool) -> None:
    rng = np.random.default_rng(2)
    for _ in range(rounds):
        menu, baseline, worth = scored(rng, marked)
        decision = agent.decide(menu, baseline)
        agent.observe(decision, float(rng.random() < worth[decision.action]))


def test_before_any_menu_it_cannot_be_told() -> None:
    outlook = categories().outlook()
    assert outlook == gb.Outlook(None, None, (), (), "no menu was seen yet")
    assert str(outlook) == "Can't tell yet: no menu was seen yet."


def test_one_hot_actions_are_stuck_from_the_first_round_on() -> None:
    agent, rng = categories(), np.random.default_rng(0)
    for rounds in (1, 99, 400):
        play(agent, rounds, rng)
        outlook = agent.outlook()
        assert outlook.stuck is True
        assert outlook.rounds is None
        assert outlook.blocked_by == (1, 2, 3, 4, 6, 7, 8, 9)  # the baseline's own is feature 5
    helps = {help.name: help.amount for help in outlook.helps}
    assert list(helps) == ["logs", "policy", "trial_budget", "shared_feature"]
    assert 33_000 / 4 < helps["logs"] < 4 * 50_000  # 33,000 to 50,000 are needed
    assert helps["logs"] < helps["policy"] < 1_000_000
    assert 600 / 4 < helps["trial_budget"] < 4 * 1_200  # 600 to 1,200 are needed
    assert helps["shared_feature"] is None
    said = str(outlook)
    assert said.startswith("Stuck: no certified play teaches about features 1, 2, 3, 4, 6, 7, 8 an")
    assert "- logs, by agent.learn: about " in said
    assert "- mode='policy': about " in said


def test_what_helps_does_help() -> None:
    """Rows drawn at random, as many as the outlook says up to a factor of three."""
    rng = np.random.default_rng(1)
    agent = categories()
    play(agent, 100, rng)
    rows = next(help.amount for help in agent.outlook().helps if help.name == "logs")
    played = rng.integers(9, size=int(3 * rows))
    agent.learn(CATEGORIES[played], (rng.random(len(played)) < RATES[played]).astype(float))
    assert play(agent, 1, rng)[0].kind == "learned"
    assert agent.outlook().stuck is False


def test_rows_that_leave_hardly_any_noise_do_not_break_a_decision() -> None:
    x = np.random.default_rng(0).uniform(0.1, 1.0, 6)
    x /= np.linalg.norm(x)
    agent = gb.Agent(6, alpha=0.1)
    agent.learn(np.tile(x, (100_000, 1)), np.zeros(100_000))
    agent.decide(np.vstack([x, np.eye(6)[:3]]), 0)
    assert agent.outlook().stuck in (True, False, None)


def test_numbers_that_broke_down_have_no_outlook() -> None:
    agent = categories()
    play(agent, 1, np.random.default_rng(0))
    agent._group.states[0].own.gram[0, 0] = np.nan
    assert agent.outlook().because == "the numbers of the agent are not finite"


@pytest.mark.filterwarnings("error")
def test_a_warning_that_is_an_error_leaves_a_batch_undecided() -> None:
    agent = categories()
    play(agent, 900, np.random.default_rng(0))
    agent.decide_many([CATEGORIES] * 300, [4] * 300)
    with pytest.raises(gb.StuckWarning):
        agent.decide_many([CATEGORIES] * 300, [4] * 300)
    assert (agent.rounds, agent.pending) == (1_200, 300)
    agent.decide_many([CATEGORIES] * 300, [4] * 300)  # it warns once


def test_an_agent_that_was_loaded_looks_again(tmp_path: Path) -> None:
    agent = categories()
    with pytest.warns(gb.StuckWarning):
        play(agent, 1_500, np.random.default_rng(0))
    twin = gb.Agent.load(agent.save(tmp_path / "agent.npz"))
    with pytest.warns(gb.StuckWarning):
        play(twin, 1_100, np.random.default_rng(1))


def test_shared_features_are_not_stuck() -> None:
    agent = gb.Agent(dim=3, alpha=0.1, theta_bound=1.2, context_noise=0.0)
    follow(agent, 10, marked=False)
    outlook = agent.outlook()
    assert outlook.stuck is False
    assert 0 < outlook.rounds < 2_000
    assert outlook.blocked_by == outlook.helps == ()
    assert str(outlook).startswith("Not stuck: it is about ")
    follow(agent, 2_000, marked=False)
    assert agent.outlook().rounds == 0.0


def test_a_column_that_marks_the_baseline_is_found() -> None:
    agent = gb.Agent(dim=4, alpha=0.1, theta_bound=1.2, context_noise=0.0)
    follow(agent, 200, marked=True)
    outlook = agent.outlook()
    assert outlook.stuck is True
    assert outlook.blocked_by == (0, 3)
    shared = outlook.helps[-1]
    assert shared.name == "shared_feature"
    assert shared.amount < 500
    assert shared.what.startswith("without feature 3: ")


def test_a_baseline_that_is_best_is_not_stuck() -> None:
    agent = gb.Agent(dim=2, alpha=0.1, noise=0.1, context_noise=0.0)
    menus = [[[0.9, 0.0], [0.1, 0.0]], [[0.0, 0.9], [0.0, 0.1]]]
    for i in range(400):
        decision = agent.decide(menus[i % 2], 0)
        agent.observe(decision, 0.8)
    outlook = agent.outlook()
    assert outlook.stuck is False
    assert outlook.rounds is None
    assert "the best action" in outlook.because


def test_another_task_may_teach_what_is_missing() -> None:
    menu = CATEGORIES[:2]
    stated = {"dim": 10, "alpha": 0.3, "context_noise": 0.0, "theta_bound": 0.9}
    everything = range(10)

    def fleet(other: int) -> gb.Fleet:
        tasks = {"one": everything, "other": everything}
        found = gb.Fleet(tasks, algorithm=gb.GuardUCB(shared_context=False), **stated)
        rng = np.random.default_rng(0)
        for _ in range(300):
            for name, baseline in (("one", 0), ("other", other)):
                decision = found[name].decide(menu, baseline)
                found[name].observe(decision, float(rng.random() < (0.3, 0.6)[decision.action]))
        return found

    assert fleet(other=0)["one"].outlook().stuck is True
    assert fleet(other=1)["one"].outlook().stuck is False


def test_it_warns_once_and_reasons_say_the_same() -> None:
    agent, rng = categories(), np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        play(agent, 1_000, rng)
    with pytest.warns(
        gb.StuckWarning, match="no learned play in 1,000 rounds. Stuck: no cert"
    ) as seen:
        (decision,) = play(agent, 1, rng)
    assert seen[0].filename == __file__
    because = agent.outlook().because
    assert decision.reason.endswith(f"; {because}")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        last = play(agent, 1_100, rng)[-1]
    assert "no certified play teaches about" in last.reason


@pytest.mark.filterwarnings("error")
def test_a_warning_that_is_an_error_changes_nothing() -> None:
    agent, rng = categories(), np.random.default_rng(0)
    play(agent, 1_000, rng)
    with pytest.raises(gb.StuckWarning):
        agent.decide(CATEGORIES, FIFTH)
    assert (agent.rounds, agent.pending) == (1_000, 0)
    assert agent.decide(CATEGORIES, FIFTH).id == "agent-1001"


def test_no_warning_once_something_was_learned() -> None:
    agent = gb.Agent(dim=3, alpha=0.1, theta_bound=1.2, context_noise=0.0)
    follow(agent, 1_200, marked=False)
    assert agent._group.watches[0].turn == 0


def test_an_outlook_changes_no_decision() -> None:
    asked, left_alone = (play_with(look) for look in (gb.Agent.outlook, lambda agent: None))
    assert asked == left_alone


def play_with(look: Callable[[gb.Agent], object]) -> list[tuple[int, float]]:
    agent, rng = gb.Agent(dim=3, alpha=0.3, theta_bound=1.2, seed=5), np.random.default_rng(2)
    found = []
    for _ in range(150):
        menu, baseline, worth = scored(rng, marked=False)
        decision = agent.decide(menu, baseline)
        look(agent)
        agent.observe(decision, float(rng.random() < worth[decision.action]))
        found.append((decision.action, decision.margin))
    return found


def test_the_same_question_has_the_same_answer() -> None:
    agent = categories()
    play(agent, 50, np.random.default_rng(0))
    outlook = agent.outlook()
    assert outlook == agent.outlook()
    assert pickle.loads(pickle.dumps(outlook)) == outlook


def test_few_menus_are_remembered() -> None:
    agent = gb.Agent(dim=2, alpha=0.1)
    for _ in range(300):
        agent.decide(np.eye(2), 0)
    assert len(list(agent._group.seen[0])) == 128
    large = gb.Agent(dim=50, alpha=0.1)
    for _ in range(30):
        large.decide(np.full((1000, 50), 0.01), 0)
    assert len(list(large._group.seen[0])) == 10


@pytest.mark.parametrize("algorithm", ["disc-ucb", "disc-ucb-unknown", "dis-lin-ucb"])
def test_agents_of_other_algorithms_have_an_outlook(algorithm: str) -> None:
    agent = gb.Agent(dim=2, algorithm=algorithm)
    for _ in range(20):
        agent.observe(agent.decide([[0.9, 0.0], [0.0, 0.9]], 0, 0.5), 0.5)
    assert isinstance(str(agent.outlook()), str)
