"""The example model_routing: its data, the router, its rivals, and what its README shows."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

Load = Callable[[str, str], ModuleType]
FOLDER = "model_routing"


def test_the_sample_is_what_the_script_writes(
    example: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    traffic = example(FOLDER, "traffic")
    shipped = traffic.SAMPLE.read_text()
    monkeypatch.setattr(traffic, "SAMPLE", tmp_path / "recorded.jsonl")
    traffic.main()
    assert traffic.SAMPLE.read_text() == shipped
    assert len(shipped.splitlines()) == 60


def test_grades_lie_as_far_from_their_mean_as_is_declared(example: Load) -> None:
    traffic = example(FOLDER, "traffic")
    made = list(traffic.prompts(900, 2_000))
    for model in traffic.MODELS:
        off = [
            prompt.grades[model.name] - model.expected_quality(prompt.words, prompt.cues)
            for prompt in made
        ]
        assert np.abs(off).max() <= traffic.GRADE_ERROR
        assert abs(np.mean(off)) < 5 * traffic.GRADE_ERROR / np.sqrt(3 * len(off))
    grades = [list(prompt.grades.values()) for prompt in made]
    assert np.min(grades) >= 0.0
    assert np.max(grades) <= 1.0
    assert all((p.words, p.cues) == traffic.cheap_features(p.text) for p in made)
    assert {p.cues for p in made} == {0, 1, 2, 3}


def test_quality_is_linear_in_the_features_and_theta_within_its_bound(example: Load) -> None:
    traffic, router = example(FOLDER, "traffic"), example(FOLDER, "router")
    columns = router.features()
    made = list(traffic.prompts(901, 200))
    pairs = [(prompt, model) for prompt in made for model in traffic.MODELS]
    rows = columns.table([router.GuardedRouter._row(*pair) for pair in pairs])
    quality = [model.expected_quality(prompt.words, prompt.cues) for prompt, model in pairs]
    theta, *_ = np.linalg.lstsq(rows, np.array(quality), rcond=None)
    assert rows @ theta == pytest.approx(quality, abs=1e-9)
    assert np.linalg.norm(rows, axis=1).max() <= 1.0
    assert np.linalg.norm(theta) <= router.theta_bound(columns)


@pytest.mark.slow
def test_the_readme_shows_what_the_comparison_prints(
    example: Load,
    printed: Callable[[Callable[[], object]], list[str]],
    shown: Callable[[str], list[str]],
    tmp_path: Path,
) -> None:
    compare = example(FOLDER, "compare")
    runs: list[Any] = []
    lines = printed(lambda: runs.extend(compare.compare(compare.Plan(), 0, tmp_path)))
    assert [line for line in lines if line] == [line for line in shown(FOLDER) if line]
    assert (tmp_path / "routing.png").stat().st_size > 20_000
    by_name = {run.name: run for run in runs}
    ours, best = by_name["guardband"], by_name[compare.IDEAL]
    assert ours.below.sum() == best.below.sum() == 0
    assert best.cost.sum() < ours.cost.sum() < 0.65 * ours.best_cost.sum()
    late = slice(-5_000, None)
    assert ours.cost[late].sum() < 0.75 * ours.cost[:5_000].sum()  # elm has been taken in
    for name in ("threshold router", "bandit without a floor"):
        rival = by_name[name]
        assert rival.below.mean() > 0.1
        assert rival.quality.sum() >= 0.945 * rival.best_quality.sum()  # what they aim at


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nobody connect to anything."""

    def refuse(*args: object) -> None:
        raise AssertionError(f"something was called over the network: {args[1:]}")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket.socket, "connect_ex", refuse)


@pytest.mark.slow
@pytest.mark.usefixtures("offline")
@pytest.mark.filterwarnings("default")  # LiteLLM and what it imports
def test_litellm_asks_whom_the_guarded_router_chooses(example: Load) -> None:
    traffic, serving = example(FOLDER, "traffic"), example(FOLDER, "litellm_router")
    lines = [json.loads(line) for line in traffic.SAMPLE.read_text().splitlines()]
    strategy = serving.serving(lines, traffic.MODELS[:4])
    agent = strategy.guarded.agent
    asked = asyncio.run(serving.serve(strategy, lines))
    assert len(asked) == len(lines)
    assert asked.count(traffic.BIRCH) > 10
    assert agent.rounds == len(lines)
    assert agent.pending == len(strategy.decisions) == 0
    strategy.join(traffic.ELM)
    assert traffic.ELM not in asyncio.run(serving.serve(strategy, lines))  # nobody knows it
    strategy.guarded.learn((prompt, traffic.ELM) for prompt in traffic.prompts(902, 2_000))
    assert asyncio.run(serving.serve(strategy, lines)).count(traffic.ELM) > 10


@pytest.mark.slow
@pytest.mark.usefixtures("offline")
@pytest.mark.filterwarnings("default")
def test_grades_of_a_fallback_are_learned_as_its_own(
    example: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    traffic, serving = example(FOLDER, "traffic"), example(FOLDER, "litellm_router")
    lines = [json.loads(line) for line in traffic.SAMPLE.read_text().splitlines()]
    strategy = serving.serving(lines, traffic.MODELS[:4])
    serving.litellm.custom_provider_map[0]["custom_handler"].broken = {"birch", "cedar", "dwarf"}
    overridden: list[tuple[Any, str]] = []
    real = strategy.guarded.overridden
    monkeypatch.setattr(
        strategy.guarded,
        "overridden",
        lambda decision, name: (overridden.append((decision, name)), real(decision, name)),
    )
    asked = asyncio.run(serving.serve(strategy, lines))
    assert set(asked) == {traffic.ATLAS}
    assert len(overridden) > 10
    assert {name for _, name in overridden} == {"atlas"}
    assert all(decision.action != 0 for decision, _ in overridden)
    assert strategy.guarded.agent.pending == 0


@pytest.mark.slow
@pytest.mark.usefixtures("offline")
@pytest.mark.filterwarnings("default")
def test_a_retry_takes_the_place_of_the_decision_before(example: Load) -> None:
    traffic, serving = example(FOLDER, "traffic"), example(FOLDER, "litellm_router")
    strategy = serving.serving([], traffic.MODELS[:4])
    messages = [{"role": "user", "content": "Write a polite reply."}]
    for _ in range(3):
        strategy.get_available_deployment(
            "answers", messages, request_kwargs={"metadata": {"request": "one"}}
        )
        strategy.get_available_deployment("answers", messages)  # nobody can grade it
    agent = strategy.guarded.agent
    assert agent.rounds == 6
    assert agent.pending == len(strategy.decisions) == 1
    strategy.graded("one", 0.9)
    assert agent.pending == 0
