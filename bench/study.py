"""Whether studies are right: what they expect, beside what agents did: docs/study-measured.md.

A study sees the log of an old rule and nothing else. Agents play the world that the log is from.
"""

from __future__ import annotations

import argparse
import math
import os
import tempfile
import warnings
from concurrent.futures import Future, ProcessPoolExecutor
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console

import guardband as gb
from bench.study_worlds import CASES, Case

SEEDS = 10
SHOWN = 8  # the world that the page shows; others were looked at while studies were built
FACTOR = 2.0
MODES = ("strict", "policy", "trial_budget")
HEAD = (
    "log",
    "agent",
    "first learns the log",
    "left the baseline",
    "first learned play, median (range)",
    "the study: can leave",
    "first learned play",
    "as it was",
)


class Arm(NamedTuple):
    """An agent that is followed: a case, a mode, whether it learns the log, and its trials."""

    case: int
    world: int
    mode: str
    logged: bool
    budget: float

    @property
    def settings(self) -> dict[str, Any]:
        """What the agent is told."""
        if self.mode == "policy":
            return CASES[self.case].settings | {"mode": "policy"}
        more = {"trial_budget": self.budget} if self.mode == "trial_budget" else {}
        return CASES[self.case].settings | more


def follow(arm: Arm, seed: int) -> float:
    """Return the round of an agent's first learned play; inf: none within the horizon."""
    warnings.simplefilter("ignore", gb.StuckWarning)
    case = CASES[arm.case]
    turns = case.turns(arm.world, seed)
    turn = next(turns)
    agent = gb.Agent(turn.features.shape[1], seed=seed, **arm.settings)
    if arm.logged:
        agent.learn(*left_to_learn(arm.case, arm.world))
    for t in range(1, case.rounds + 1):
        decision = agent.decide(turn.features, turn.baseline)
        if decision.kind == "learned":
            return t
        agent.observe(decision, turn.reward(decision.action))
        turn = next(turns)
    return math.inf


@cache
def left_to_learn(case: int, world: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of a log that a study does not look at, and their rewards."""
    log = CASES[case].log(world)
    left = log[round(0.5 * len(log)) :]
    rows = np.array([turn.features[k] for turn, k, _ in left])
    return rows, np.array([reward for *_, reward in left])


def studied(case: Case, world: int) -> dict[str, Any]:
    """Return what a study says of the case's log, from the file alone, and its budget."""
    settings = dict(case.settings) | {"reward_ceiling": 1.0, "bias_bound": 0.0}
    alpha = settings.pop("alpha")
    with tempfile.TemporaryDirectory() as folder:
        path, columns = case.file(world, Path(folder))
        study = gb.study(
            str(path),
            alpha=alpha,
            rounds=case.rounds,
            settings=settings,
            progress=False,
            **columns,
        )
    return study.to_dict()["expect"] | {"budget": study.expectation.budget}


def agrees(firsts: list[float], said: dict[str, Any]) -> bool:
    """Tell whether a study was right: most agents left or stayed, and the first play's round."""
    middle, left = median(firsts), sum(first < math.inf for first in firsts)
    if said["can_leave"] is not (2 * left > len(firsts)):
        return False
    first = math.inf if said["first_learned"] is None else said["first_learned"]
    if math.inf in (middle, first):
        return middle == first
    return middle / FACTOR <= first <= FACTOR * middle


def line(arm: Arm, firsts: list[float], said: dict[str, Any]) -> str:
    """Return a line of the table."""
    case, left = CASES[arm.case], sorted(first for first in firsts if first < math.inf)
    when = "–"
    if left:
        middle = median(firsts)
        shown = "never" if middle == math.inf else f"{middle:,.10g}"
        when = f"{shown} ({left[0]:,.0f} to {left[-1]:,.0f})"
    answer = {True: "yes", False: "no"}.get(said["can_leave"], said["can_leave"])
    first = "never" if said["first_learned"] is None else f"{said['first_learned']:,}"
    mode = arm.mode if arm.mode != "trial_budget" else f"`trial_budget={arm.budget:.3g}`"
    cells = (
        case.name,
        mode,
        "yes" if arm.logged else "no",
        f"{len(left)} of {len(firsts)} in {case.rounds:,}",
        when,
        answer,
        first,
        "yes" if agrees(firsts, said) else "**no**",
    )
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--world", type=int, default=SHOWN, help="another one; writes no page")
    parser.add_argument("--only", default="", help="cases whose name has this; writes no page")
    parser.add_argument("--modes", default=",".join(MODES), help=f"some of {', '.join(MODES)}")
    options = parser.parse_args()
    modes, console = options.modes.split(","), Console(width=200)
    whole = options.world == SHOWN and not options.only and modes == list(MODES)
    os.nice(5)
    with ProcessPoolExecutor(2) as workers:
        shown = measured(options.world, modes, options.only, workers, console)
    if not whole:
        return
    text = "\n".join(page(shown))
    (Path(__file__).parents[1] / "docs" / "study-measured.md").write_text(text)


class Measured(NamedTuple):
    """Lines of a table, how many of them were right, and what could not be measured."""

    lines: list[str]
    counts: str
    missing: list[str]


def measured(
    world: int,
    modes: list[str],
    only: str,
    workers: ProcessPoolExecutor,
    console: Console,
) -> Measured:
    """Return what studies said of a world's logs, and agents did in it."""
    found: list[tuple[Arm, list[Future[float]], dict[str, Any]]] = []
    missing = []
    for number, case in enumerate(CASES):
        if only not in case.name:
            continue
        if not case.there():
            missing.append(case.name)
            continue
        said = studied(case, world)
        for mode in modes if case.every_mode else [m for m in modes if m == "strict"]:
            for logged in (False, True):
                arm = Arm(number, world, mode, logged, said["budget"])
                runs = [workers.submit(follow, arm, seed) for seed in range(SEEDS)]
                found.append((arm, runs, said[mode]["with_logs" if logged else "without_logs"]))
    lines, right = [], dict.fromkeys(modes, (0, 0))
    for arm, runs, said in found:
        firsts = [run.result() for run in runs]
        lines.append(line(arm, firsts, said))
        good, count = right[arm.mode]
        right[arm.mode] = good + agrees(firsts, said), count + 1
        console.print(lines[-1])
    counts = ", ".join(f"{mode}: {good} of {count}" for mode, (good, count) in right.items())
    console.print(f"as it was: {counts}")
    return Measured(lines, counts, missing)


def page(shown: Measured) -> list[str]:
    """Return the page."""
    absent = []
    if shown.missing:
        names = ", ".join(shown.missing)
        absent = [f"Not measured here, since the data could not be had: {names}.", ""]
    table = ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    return [
        "# Whether studies are right",
        "",
        "For those who are about to trust a [study](study.md): how often what it foretells "
        "comes true.",
        "",
        "A [study](study.md) sees the log of an old rule, and nothing else. It looks at the first "
        "half of the rows and leaves the other half for the agent to learn. Beside it are "
        f"{SEEDS} agents that played the world that the log is from, with the same settings, all "
        "of them stated. A study is right if it says that the agent can leave the baseline where "
        "most of them did within the horizon, and that it cannot where most did not. Its first "
        f"learned play must be within a factor of {FACTOR:g} of their median; never is beyond the "
        'horizon. A budget for trials is what the study itself proposes. An answer "can\'t tell" '
        "counts as wrong. Written by `python -m bench.study`; the worlds are described in "
        "`bench/study_worlds.py`. Other worlds were looked at while studies were built; this one "
        "was studied after all was settled. On the last one before it one more line was wrong, "
        "digits with a block per action after the log: 665 for a median of 2,478, by four possible "
        "worlds. Since then what time there is goes to more of the first plays.",
        "",
        f"Right, of all lines: {shown.counts}.",
        "",
        *absent,
        *table,
        *shown.lines,
        "",
    ]


if __name__ == "__main__":
    main()
