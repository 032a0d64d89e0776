"""How good outlooks are: what agents said, beside what happened to them: docs/outlook.md."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console

import guardband as gb
from guardband.envs.episode import Episode, Rules

SEEDS = 10
MARKS = (10, 100, 1_000, 10_000)  # rounds after which agents are asked
HEAD = ("problem", "left the baseline", "first learned play", *(f"after {m:,}" for m in MARKS))


class Turn(NamedTuple):
    """What an agent is given, and what it earns."""

    features: np.ndarray
    baseline: int
    reward: Callable[[int], float]
    more: dict[str, Any] = {}  # noqa: RUF012


class Case(NamedTuple):
    """A problem: the agent's settings and its rounds, from a seed, and how long to wait."""

    name: str
    play: Callable[[int], tuple[dict[str, Any], Iterator[Turn]]]
    rounds: int


def clicked(rng: np.random.Generator, worth: np.ndarray) -> Callable[[int], float]:
    return lambda k: float(rng.random() < worth[k])


def named(name: str, **settings: Any) -> Callable[[int], tuple[dict[str, Any], Iterator[Turn]]]:
    """Return the rounds of a named problem, with the bounds that it states itself."""

    def play(seed: int) -> tuple[dict[str, Any], Iterator[Turn]]:
        problem = gb.problem(name, agents=1, **settings)
        assumed = problem.assumptions()
        episode = Episode(Rules(problem, 10_000_000, assumed["alpha"]), 1_000 + seed)
        stated = {key: assumed[key] for key in ("alpha", "theta_bound", "feature_bound")}
        stated |= {"dim": episode.world.shape[2], "context_noise": problem.context_noise}
        if not episode.world.binary:
            stated["noise"] = 0.1
        return stated, rounds(episode)

    def rounds(episode: Episode) -> Iterator[Turn]:
        while True:
            seen, known, more = episode.observe(0), episode.announce(0), {}
            if known:
                phi = episode.world.phi[known["contexts"]]
                more = {"support": phi, "weights": known["weights"]}
            reward = lambda k: episode.play(0, k)[0]  # noqa: E731
            yield Turn(seen["features"], int(seen["baseline"]), reward, more)
            episode.advance()

    return play


def scores(marked: bool) -> Callable[[int], tuple[dict[str, Any], Iterator[Turn]]]:
    """Return rounds of eight actions with two scores; a column may mark the baseline's."""

    def play(seed: int) -> tuple[dict[str, Any], Iterator[Turn]]:
        return {"dim": 3 + marked, "alpha": 0.1, "theta_bound": 1.7, "context_noise": 0.0}, rounds(
            np.random.default_rng(seed)
        )

    def rounds(rng: np.random.Generator) -> Iterator[Turn]:
        while True:
            table = np.column_stack([np.ones(8), rng.uniform(0.2, 0.8, (8, 2))]) / 2.0
            worth = table @ [0.4, 1.0, 0.4]
            baseline = int(np.argsort(worth)[5])
            if marked:
                table = np.column_stack([table, np.arange(8) == baseline])
            yield Turn(table / math.sqrt(2.0), baseline, clicked(rng, worth))

    return play


def blocks(fixed: bool) -> Callable[[int], tuple[dict[str, Any], Iterator[Turn]]]:
    """Return rounds of four actions, each with three features that the others have not."""

    def play(seed: int) -> tuple[dict[str, Any], Iterator[Turn]]:
        return {"dim": 12, "alpha": 0.1, "theta_bound": 2.0, "context_noise": 0.0}, rounds(
            np.random.default_rng(seed)
        )

    def rounds(rng: np.random.Generator) -> Iterator[Turn]:
        theta = rng.uniform(0.0, 0.25, (4, 3))
        theta[:, 0] += 0.2
        while True:
            context = np.array([1.0, *rng.random(2)])
            worth = theta @ context
            baseline = 0 if fixed else int(np.argsort(worth)[2])
            table = np.kron(np.eye(4), context / 2.0)
            yield Turn(table, baseline, clicked(rng, worth))

    return play


CASES = [
    Case("clicks", named("clicks"), 200_000),
    Case("forecast", named("forecast"), 50_000),
    Case("movielens, fresh", named("movielens", nature="fresh"), 50_000),
    Case("two scores and an intercept", scores(marked=False), 50_000),
    Case("the same, and which is the baseline's", scores(marked=True), 50_000),
    Case("a block of features per action, the baseline picks by context", blocks(False), 200_000),
    Case("the same, the baseline is one action", blocks(True), 50_000),
    Case("categories", named("categories"), 50_000),
]


def follow(number: int, seed: int) -> tuple[float, dict[int, gb.Outlook]]:
    """Return when an agent made its first learned play, and what it said at all marks before."""
    warnings.simplefilter("ignore", gb.StuckWarning)
    case = CASES[number]
    stated, turns = case.play(seed)
    agent, said = gb.Agent(seed=seed, **stated), {}
    for t in range(1, case.rounds + 1):
        turn = next(turns)
        decision = agent.decide(turn.features, turn.baseline, **turn.more)
        if decision.kind == "learned":
            return t, said
        agent.observe(decision, turn.reward(decision.action))
        if t in MARKS:
            said[t] = agent.outlook()
    return math.inf, said


def answers(runs: list[tuple[float, dict[int, gb.Outlook]]], mark: int) -> str:
    """Return what agents said at a mark: how many were stuck, and how right the rounds were."""
    asked = [(first, said[mark]) for first, said in runs if mark in said]
    if not asked:
        return "–"
    counts = [sum(o.stuck is value for _, o in asked) for value in (True, None, False)]
    words = [
        f"{n} {word}" for n, word in zip(counts, ("stuck", "can't tell", "not"), strict=True) if n
    ]
    ratios = [
        (mark + outlook.rounds) / first
        for first, outlook in asked
        if outlook.rounds is not None and first < math.inf
    ]
    if ratios:
        words.append(f"{median(ratios):.1f} ({min(ratios):.1f} to {max(ratios):.1f})")
    return ", ".join(words)


def line(case: Case, runs: list[tuple[float, dict[int, gb.Outlook]]]) -> str:
    firsts = sorted(first for first, _ in runs)
    left = [first for first in firsts if first < math.inf]
    when = f"{median(left):,.0f} ({left[0]:,.0f} to {left[-1]:,.0f})" if left else "–"
    cells = (case.name, f"{len(left)} of {len(runs)} in {case.rounds:,} rounds", when)
    return "| " + " | ".join((*cells, *(answers(runs, mark) for mark in MARKS))) + " |"


def main() -> None:
    page = [
        "# How good outlooks are",
        "",
        "For those who ask an agent whether it will ever leave the baseline: how often the answer "
        "was right.",
        "",
        "[`agent.outlook()`](guard-ucb.md#when-strict-mode-is-stuck) is rough. Here agents in "
        f"strict mode were asked after {', '.join(f'{m:,}' for m in MARKS)} rounds, as long as "
        f"they had made no learned play, and followed until they did; {SEEDS} seeds each. A cell "
        "says how many were stuck, could not tell, and were not; then how the foreseen round of "
        "the first learned play compares with the real one, as a ratio, median and range. "
        "Written by `python -m bench.outlook`.",
        "",
        "| " + " | ".join(HEAD) + " |",
        "|" + "---|" * len(HEAD),
    ]
    console = Console()
    with ProcessPoolExecutor(2) as workers:
        found = [
            [workers.submit(follow, number, seed) for seed in range(SEEDS)]
            for number in range(len(CASES))
        ]
        for case, futures in zip(CASES, found, strict=True):
            page.append(line(case, [future.result() for future in futures]))
            console.print(page[-1])
    (Path(__file__).parents[1] / "docs" / "outlook.md").write_text("\n".join([*page, ""]))


if __name__ == "__main__":
    main()
