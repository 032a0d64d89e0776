"""What one task that lies does to the others, and what tolerating it costs: docs/liars-measured.md.

`python -m bench.liars` plays 10,000 rounds; with `quick` as an argument, 1,000 and fewer trials.
Adversaries that adapt are played round by round, in as many processes as there are cores.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from rich.console import Console

import guardband as gb
from guardband.kernels.environment import Fabricated
from guardband.kernels.lies import make_up as make_up_rows
from guardband.kernels.types import Floats, Terms
from guardband.problems import BernoulliRewards
from guardband.sim import Series

QUICK = "quick" in sys.argv
ROUNDS, TRIALS, RUNS = (1_000, 3, 1) if QUICK else (10_000, 20, 20)
TASKS, D, K, RANK, ALPHA, NOISE = 4, 5, 20, 10, 0.2, 0.1
NUMBERS = (30.0, 1e3, 1e6, 1e9)
LATE = (ROUNDS // 100, ROUNDS // 4)  # when something is certified, and when nearly all is learned


def guard(tolerate: int, *, stated: bool = True) -> gb.GuardUCB:
    """Return the algorithm: strict mode, with the noise stated, or nothing but [0, 1]."""
    if not stated:
        return gb.GuardUCB(ALPHA, tolerate=tolerate)
    return gb.GuardUCB(ALPHA, noise=NOISE, context_noise=0.0, tolerate=tolerate)


def of_the_honest(series: Series) -> tuple[int, float]:
    """Return their plays below the floor, and their gain over the baseline in a round."""
    honest = slice(0, TASKS - 1)
    gain = series.totals["reward"] - series.totals["baseline_reward"]
    low = series.violations_expected[:, honest].sum()
    return int(low), float(gain[:, honest].mean()) / ROUNDS


def problem_lines() -> list[str]:
    """Return the table of the problem `liar`: rewards of another theta, from a round on."""
    lines = []
    for since in (1, ROUNDS // 2):
        for fakes in (0.0, *NUMBERS):
            problem = gb.problem("liar", since=since, fakes=fakes)
            results = gb.simulate(
                problem, [guard(0), guard(1)], rounds=ROUNDS, trials=TRIALS, alpha=ALPHA
            )
            (low, gain), (low_1, gain_1) = map(of_the_honest, results.series)
            lines.append(
                f"| {since:,} | {fakes:,.0f} | {low:,} | **{low_1:,}** | {gain:+.4f} "
                f"| {gain_1:+.4f} |"
            )
    return lines


def cost_lines() -> list[str]:
    """Return what tolerance costs where nobody lies, for several numbers of tasks."""
    lines = []
    for tasks in (2, 3, TASKS, 10):
        for stated in (True, False):
            noise = NOISE if stated else BernoulliRewards()
            problem = gb.problem("liar", agents=tasks, since=ROUNDS + 1, reward_std=noise)
            policies = [guard(tolerate, stated=stated) for tolerate in (0, 1)]
            results = gb.simulate(problem, policies, rounds=ROUNDS, trials=TRIALS, alpha=ALPHA)
            below = int(results.series[1].violations_expected.sum())
            for upto in sorted({200, 1_000, ROUNDS}):
                at = int(np.searchsorted(results.rounds, upto))
                gains = []
                for series in results.series:
                    gain = series.curves["reward"][:, at] - series.curves["baseline_reward"][:, at]
                    gains.append(float(gain.mean()))
                lost = 1.0 - gains[1] / gains[0]
                lines.append(
                    f"| {tasks} | {NOISE if stated else '0 or 1'} | {upto:,} "
                    f"| {gains[0] / upto:+.4f} | {gains[1] / upto:+.4f} | {lost:.1%} | {below} |"
                )
    return lines


Lie = Callable[[gb.Fleet, Floats, np.random.Generator], Floats]


def mirror(fleet: gb.Fleet, theta: Floats, rng: np.random.Generator) -> Floats:
    """Confirm whatever the honest data say, errors included."""
    return fleet._group.engine.left_out.pooled.theta[-1].copy()


def reverse(fleet: gb.Fleet, theta: Floats, rng: np.random.Generator) -> Floats:
    """Say that the best features are the worst."""
    return np.sort(theta)[::-1][np.argsort(np.argsort(theta))]


def anything(fleet: gb.Fleet, theta: Floats, rng: np.random.Generator) -> Floats:
    """Say something else every time."""
    other = np.abs(rng.standard_normal(D))
    return other / np.linalg.norm(other)


def beyond(fleet: gb.Fleet, theta: Floats, rng: np.random.Generator) -> Floats:
    """Go on where the honest data err: as far again from theta as they are."""
    honest = mirror(fleet, theta, rng)
    return np.maximum(0.0, honest + (honest - theta))


ADVERSARIES: dict[str, Lie] = {
    "confirms what honest data say, errors included": mirror,
    "doubles the error of honest data": beyond,
    "says that the best features are the worst": reverse,
    "says something else every time": anything,
}


def menu_of(rng: np.random.Generator) -> Floats:
    """Return a menu as the problem `liar` has them."""
    menu = np.abs(rng.standard_normal((K, D)))
    return menu * (rng.uniform(0.3, 1.0, K) / np.linalg.norm(menu, axis=1))[:, None]


def make_up(fleet: gb.Fleet, gram: Floats, theta: Floats, number: float) -> None:
    """Let the last task add so many observations of `theta` to all sums that it hands in.

    Each was predicted exactly; `gram` is the mean of x x'.
    """
    state, engine = fleet._group.states[-1], fleet._group.engine
    made = Fabricated(gram, gram @ theta, float(theta @ gram @ theta), 1.0, number)
    make_up_rows(state, engine.pooled, Terms(*map(float, engine.terms)), made)


def attacked(
    seed: int, lie: Lie, number: float, since: int = 1, stated: bool = True
) -> tuple[int, int, float]:
    """Play a fleet that tolerates one liar, which knows theta and all that was pooled.

    From a round on it lies before every round in which its last lie was pooled; before, it has
    nothing to say. Where the noise is not `stated`, rewards are 0 or 1. Returns the plays of the
    honest below the floor, the learned ones, and their gain over the baseline in a round.
    """
    rng = np.random.default_rng(seed)
    theta = np.abs(rng.standard_normal(D))
    theta /= np.linalg.norm(theta)
    rows = np.concatenate([menu_of(rng) for _ in range(200)])
    gram = rows.T @ rows / len(rows)
    fleet = gb.Fleet(
        {f"task {m}": None for m in range(TASKS)}, dim=D, algorithm=guard(1, stated=stated)
    )
    honest, own = list(fleet.values())[:-1], fleet._group.states[-1].own
    low, learned, gain = 0, 0, 0.0
    for t in range(1, ROUNDS + 1):
        if t >= since and own.scalars[0] == 0.0:
            make_up(fleet, gram, lie(fleet, theta, rng), number)
        for agent in honest:
            menu = menu_of(rng)
            rewards = menu @ theta
            b = int(np.argsort(-rewards)[RANK - 1])
            decision = agent.decide(menu, b)
            reward = float(rewards[decision.action])
            noisy = reward + NOISE * float(rng.standard_normal())
            agent.observe(decision, noisy if stated else float(rng.random() < reward))
            low += reward < (1.0 - ALPHA) * rewards[b] - 1e-12
            learned += decision.kind == "learned"
            gain += reward - float(rewards[b])
    plays = ROUNDS * len(honest)
    return low, learned, gain / plays


def attack_lines() -> list[str]:
    """Return the table of adversaries that know theta and the past."""
    cases = [(1, number, True) for number in NUMBERS]
    cases += [(since, number, True) for since in LATE for number in (1e3, 1e9)]
    cases += [(1, 1e3, False)]
    lines = []
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:  # there may be threads
        for name, lie in ADVERSARIES.items():
            for since, number, stated in cases:
                told = {"lie": lie, "number": number, "since": since, "stated": stated}
                found = list(pool.map(partial(attacked, **told), range(RUNS)))
                low, learned = (sum(each[i] for each in found) for i in (0, 1))
                plays, gain = RUNS * ROUNDS * (TASKS - 1), np.mean([each[2] for each in found])
                lines.append(
                    f"| {name} | {since:,} | {number:,.0f} | {NOISE if stated else '0 or 1'} "
                    f"| **{low:,}** of {plays:,} | {learned / plays:.1%} | {gain:+.4f} |"
                )
    return lines


def main() -> None:
    page = [
        "# One task that lies",
        "",
        "For teams that do not run all tasks themselves: what one task that sends wrong data "
        "does to the others, and what `tolerate=1` changes.",
        "",
        f"Guard-UCB in strict mode, alpha {ALPHA:g}, on the problem `liar`: {TASKS} tasks, "
        f"d = {D}, K = {K}, menus drawn anew, baseline the tenth best, reward "
        f"noise {NOISE:g}. The last task lies; counted are the plays of the others. Written by "
        f"`python -m bench.liars{' quick' if QUICK else ''}`; what it means is "
        "[on its own page](guard-ucb.md#tasks-that-lie).",
        "",
        "## Rewards of another theta",
        "",
        f"From a round on the last task reports rewards of another theta, and in that round makes "
        f"up so many more, all at once; {ROUNDS:,} rounds, {TRIALS} trials. Gains are over the "
        "baseline, in a round.",
        "",
        "| since round | made up | below the floor, tolerate=0 | tolerate=1 | gain, tolerate=0 "
        "| tolerate=1 |",
        "|---:|---:|---:|---:|---:|---:|",
        *problem_lines(),
        "",
        "## Adversaries that know theta and the past",
        "",
        "With `tolerate=1`: from a round on, after every pooling, the liar makes up so many "
        f"observations for the next one; {ROUNDS:,} rounds, {RUNS} trials each. Where rewards "
        "are 0 or 1, no noise is stated.",
        "",
        "| what it does | since round | made up each time | noise | below the floor "
        "| learned plays | gain |",
        "|---|---:|---:|---|---:|---:|---:|",
        *attack_lines(),
        "",
        "## What it costs where nobody lies",
        "",
        f"The gain over the baseline in a round, up to a round; {TRIALS} trials. Plays "
        "below the floor are those of all rounds, with `tolerate=1`. Where rewards are 0 or 1, no "
        "noise is stated.",
        "",
        "| tasks | noise | up to round | tolerate=0 | tolerate=1 | lost | below the floor |",
        "|---:|---|---:|---:|---:|---:|---:|",
        *cost_lines(),
        "",
    ]
    (Path(__file__).parents[1] / "docs" / "liars-measured.md").write_text("\n".join(page))
    Console().print("\n".join(page))


if __name__ == "__main__":
    main()
