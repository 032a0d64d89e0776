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
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console

import guardband as gb
from guardband.kernels.environment import Fabricated
from guardband.kernels.lies import make_up as make_up_rows
from guardband.kernels.monitors import Note
from guardband.kernels.types import Floats, Terms
from guardband.problems import BernoulliRewards
from guardband.sim import Series

QUICK = "quick" in sys.argv
ROUNDS, TRIALS, RUNS = (1_000, 3, 1) if QUICK else (10_000, 20, 20)
TASKS, D, K, RANK, ALPHA, NOISE = 4, 5, 20, 10, 0.2, 0.1
NUMBERS = (30.0, 1e3, 1e6, 1e9)
LATE = (ROUNDS // 100, ROUNDS // 4)  # when something is certified, and when nearly all is learned


def guard(tolerate: int, *, stated: bool = True, watched: bool = True) -> gb.GuardUCB:
    """Return the algorithm: strict mode, with the noise stated, or nothing but [0, 1].

    Monitors are as users have them; if not `watched`, there are none, and nobody leaves the pool.
    """
    told: dict[str, Any] = (
        {"tolerate": tolerate} if watched else {"tolerate": tolerate, "delta_alarm": None}
    )
    if not stated:
        return gb.GuardUCB(ALPHA, **told)
    return gb.GuardUCB(ALPHA, noise=NOISE, context_noise=0.0, **told)


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
            policies = [guard(n, watched=on) for on in (False, True) for n in (0, 1)]
            found = gb.simulate(problem, policies, rounds=ROUNDS, trials=TRIALS, alpha=ALPHA)
            for word, pair in (("none", found.series[:2]), ("on", found.series[2:])):
                (low, gain), (low_1, gain_1) = map(of_the_honest, pair)
                raised = pair[1].totals["noticed"] > 0
                left = f"{raised[:, :-1].sum()}, {raised[:, -1].sum()}" if word == "on" else "–"
                lines.append(
                    f"| {since:,} | {fakes:,.0f} | {word} | {low:,} | **{low_1:,}** | {gain:+.4f} "
                    f"| {gain_1:+.4f} | {left} |"
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


class Attack(NamedTuple):
    """What the liar does: its lie, how many observations it makes up, and from which round on.

    Attributes
    ----------
    stated
        Whether the noise is; else rewards are 0 or 1.
    asks
        Whether it calls for a pooling after every round; else others do, as they learn.
    watched
        Whether monitors watch. It is then a task like any other, which decides and reports rewards
        as it says they are: only a task that has rewards can be named.
    """

    lie: Lie
    number: float
    since: int
    stated: bool
    asks: bool = False
    watched: bool = False


class Outcome(NamedTuple):
    """What came of one run."""

    low: int  # plays of the honest below the floor
    gain: float  # of the honest over the baseline, in a round
    lies: int  # that it told: one for every pooling
    left: tuple[int, int]  # who was apart from the pool in the end: of the honest, and the liar


def attacked(attack: Attack, seed: int) -> Outcome:
    """Play a fleet that tolerates one liar, which knows theta and all that was pooled.

    From a round on it makes up observations whenever its last ones were pooled, as long as it is in
    the pool; before, it has nothing to say, or reports what is true.
    """
    rng = np.random.default_rng(seed)
    theta = np.abs(rng.standard_normal(D))
    theta /= np.linalg.norm(theta)
    rows = np.concatenate([menu_of(rng) for _ in range(200)])
    gram, names = rows.T @ rows / len(rows), [f"task {m}" for m in range(TASKS)]
    algorithm = guard(1, stated=attack.stated, watched=attack.watched)
    fleet = gb.Fleet(dict.fromkeys(names), dim=D, algorithm=algorithm)
    group, said, last, lies, low, gain = fleet._group, theta, -1, 0, 0, 0.0
    apart = [state.watch[Note.APART : Note.APART + 1] for state in group.states]
    for t in range(1, ROUNDS + 1):
        if t >= attack.since and not apart[-1][0]:
            if group.poolings > last:
                said, last, lies = attack.lie(fleet, theta, rng), group.poolings, lies + 1
                make_up(fleet, gram, said, attack.number)
            if attack.asks:
                group.note_due(TASKS - 1, pool=True)
        for name in names if attack.watched else names[:-1]:
            menu, liar = menu_of(rng), name == names[-1]
            rewards = menu @ theta
            b = int(np.argsort(-rewards)[RANK - 1])
            decision = fleet[name].decide(menu, b)
            k = decision.action
            told = float(np.clip(menu[k] @ (said if liar else theta), 0.0, 1.0))  # else refused
            noisy = told + NOISE * float(rng.standard_normal())
            fleet[name].observe(decision, noisy if attack.stated else float(rng.random() < told))
            if not liar:
                low += int(rewards[k] < (1.0 - ALPHA) * rewards[b] - 1e-12)
                gain += float(rewards[k] - rewards[b])
    gone = [int(each[0]) for each in apart]
    return Outcome(low, gain / (ROUNDS * (TASKS - 1)), lies, (sum(gone[:-1]), gone[-1]))


def attack_lines() -> dict[str, list[str]]:
    """Return the tables of adversaries that know theta and the past, by how tasks pool."""
    cases = [(number, 1, True) for number in NUMBERS]
    cases += [(1e9, since, True) for since in LATE] + [(1e3, 1, False)]
    lines: dict[str, list[str]] = {"rarely": [], "often": [], "watched": []}
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:  # there may be threads
        for name, lie in ADVERSARIES.items():
            for number, since, stated in cases:
                row = f"| {name} | {since:,} | {number:,.0f} | {NOISE if stated else '0 or 1'} "
                plain = Attack(lie, number, since, stated)
                ways = {"rarely": plain}
                if stated and since == 1 and number in (1e3, 1e9):  # what takes longest
                    ways["often"] = plain._replace(asks=True)
                    ways["watched"] = plain._replace(watched=True)
                for way, attack in ways.items():
                    found = list(pool.map(partial(attacked, attack), range(RUNS)))
                    left = np.sum([each.left for each in found], axis=0)
                    out = f"| {left[0]} | {left[1]} |" if way == "watched" else "|"
                    lines[way].append(row + told_of(found) + out)
                    Console(stderr=True).print(way, lines[way][-1])
    return lines


def told_of(found: list[Outcome]) -> str:
    """Return three cells: plays below the floor, lies that were told in a run, and the gain."""
    low, lies = sum(each.low for each in found), np.mean([each.lies for each in found])
    return f"| **{low:,}** | {lies:,.0f} | {np.mean([each.gain for each in found]):+.4f} "


def main() -> None:
    lines, plays = attack_lines(), RUNS * ROUNDS * (TASKS - 1)
    head = "| what it does | since round | made up each time | noise | below the floor "
    head += "| lies, per trial | gain |"
    rule = "|---|---:|---:|---|---:|---:|---:|"
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
        "baseline, in a round. [Monitors](notices.md) are on as agents have them unless told "
        "otherwise, or there are none (`delta_alarm=None`). Then nobody leaves the pool, and "
        "`tolerate=1` is all that keeps the others safe. The last column says how many tasks "
        f"raised an alarm with `tolerate=1`: of {TRIALS * (TASKS - 1)} honest ones, and of "
        f"{TRIALS} liars.",
        "",
        "| since round | made up | monitors | below the floor, tolerate=0 | tolerate=1 "
        "| gain, tolerate=0 | tolerate=1 | alarms: honest, liar |",
        "|---:|---:|---|---:|---:|---:|---:|---:|",
        *problem_lines(),
        "",
        "## Adversaries that know theta and the past",
        "",
        "With `tolerate=1`: from a round on the liar makes up so many observations, and as many "
        f"again whenever these were pooled; {ROUNDS:,} rounds, {RUNS} trials, "
        f"{plays:,} plays of the others in every cell. Where rewards are 0 or 1, no noise is "
        "stated.",
        "",
        "**Without monitors** (`delta_alarm=None`) nobody leaves the pool, and the lies go on to "
        "the end. Tasks pool when they have learned enough to call for it; what was made up counts "
        "as learned, so the more it is, the less often they do. Those that confirm or double what "
        "honest data say find nothing pooled in round 1, and begin with rewards of 0.",
        "",
        head,
        rule,
        *lines["rarely"],
        "",
        "**Without monitors, pooled after every round**, because the liar calls for it.",
        "",
        head,
        rule,
        *lines["often"],
        "",
        "**With monitors**, as agents have them unless told otherwise, the liar is a task like any "
        "other: it decides, and reports rewards as it says they are. Whoever is found out leaves "
        "the pool, and a liar that has left lies to nobody. The last columns count who was out in "
        f"the end, of {RUNS * (TASKS - 1)} honest tasks and of {RUNS} liars.",
        "",
        head + " honest that left | liars that left |",
        rule + "---:|---:|",
        *lines["watched"],
        "",
        "## What it costs where nobody lies",
        "",
        f"The gain over the baseline in a round, up to a round; {TRIALS} trials, with monitors. "
        "Plays below the floor are those of all rounds, with `tolerate=1`. Where rewards are 0 or "
        "1, no noise is stated.",
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
