"""What monitors notice, how soon, and how often they are wrong: docs/notices-measured.md."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import guardband as gb
from guardband.lab.panels.notices import OthersAlone
from guardband.problems import BernoulliRewards, Problem
from guardband.sim import Series

ROUNDS, TRIALS, HALF, EARLY = 4_000, 20, 2_000, 100
STATED: dict[str, Any] = {"alpha": 0.2, "noise": 0.1, "context_noise": 0.0}
OUTAGE = 4  # learned plays that earn nothing
KINDS = ("alarms_assumptions", "alarms_certificates", "alarms_fit")
OTHERS, LAST = slice(-1), slice(-1, None)  # tasks: the last one is odd, or lies
EVERY = {"": slice(None)}
NEVER = 10**9  # the round from which on a liar lies: the same menus, and nothing happens
RUNS = 1_000
STATIONARY: tuple[
    tuple[str, str, dict[str, Any], int, dict[str, Any]], ...
] = (  # a problem, how many rounds, and how Guard-UCB is told of it
    ("menus drawn anew, M = 1", "liar", {"agents": 1, "since": NEVER}, 4_000, STATED),
    ("menus drawn anew, M = 3", "liar", {"agents": 3, "since": NEVER}, 4_000, STATED),
    (
        "the same, `tolerate=1`",
        "liar",
        {"agents": 3, "since": NEVER},
        4_000,
        {**STATED, "tolerate": 1},
    ),
    ("menus drawn anew, M = 50", "liar", {"agents": 50, "since": NEVER}, 4_000, STATED),
    ("clicks, rewards 0 or 1, M = 3", "clicks", {"agents": 3}, 1_000, {"alpha": 0.2}),
    ("forecast, hidden shared contexts, M = 5", "forecast", {}, 300, {"alpha": 0.2, "noise": 0.1}),
)


def run(name: str | Problem, told: dict[str, Any], **settings: Any) -> Series:
    """Return Guard-UCB on a problem."""
    problem = gb.problem(name, **settings) if isinstance(name, str) else name
    more = {"rounds": ROUNDS, "trials": TRIALS, "progress": True, **told.pop("run", {})}
    (series,) = gb.simulate(problem, gb.GuardUCB(**told), **more).series
    return series


def first_alarms(series: Series) -> np.ndarray:
    """Return (trials,): the round of the first alarm of any task; infinite where there was none."""
    rounds = series.totals["noticed"]
    first: np.ndarray = np.where(rounds > 0, rounds, np.inf).min(axis=1)
    return first


def below(series: Series, since: int = 0) -> np.ndarray:
    """Return (trials, M): plays below the floor after a round, in true rewards."""
    curve = series.curves["violations_realised"]
    place = since * curve.shape[1] // ROUNDS - 1
    found: np.ndarray = curve[:, -1] - (curve[:, place] if since else 0.0)
    return found


def false_alarms() -> list[str]:
    """Return a table of false alarms where nothing happens."""
    lines = ["| nothing happens | runs, rounds | runs with an alarm |", "|---|---:|---:|"]
    for title, name, settings, rounds, told in STATIONARY:
        series = run(name, {**told, "run": {"rounds": rounds, "trials": RUNS}}, **settings)
        wrong = int(np.isfinite(first_alarms(series)).sum())
        lines.append(f"| {title} | {RUNS:,}, {rounds:,} | {wrong} |")
    return lines


def noticed() -> list[str]:
    """Return a table of what is noticed, when, and what it changes; for the last task apart."""
    lines = [
        "| problem | noticed in | first alarm, median round | alarms per trial: assumptions, "
        "certificates, fit | plays below the floor per task, with monitors | without | "
        "regret per task, with monitors | without |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    liar = {"since": 1_000, "fakes": 1_000.0}
    for name, settings, kinds in (
        ("drift-abrupt", {}, EVERY),
        ("drift-slow", {}, EVERY),
        ("drift-season", {}, EVERY),
        ("odd-task", {}, {"the others": OTHERS, "the odd task": LAST}),
        ("liar", liar, {"the honest": OTHERS, "the liar itself": LAST}),
        ("misfit", {"error": 0.1}, EVERY),
        ("misfit", {"error": 0.03}, EVERY),
    ):
        with_, without = (
            run(name, {**STATED, "delta_alarm": level}, **settings) for level in (1e-3, None)
        )
        words = "".join(f", {k} {v:g}" for k, v in settings.items())
        for who, tasks in kinds.items():
            noted = with_.totals["noticed"][:, tasks]
            first = np.where(noted > 0, noted, np.inf).min(axis=1)
            median = np.median(first)
            raised = (with_.totals[kind][:, tasks].sum(axis=1).mean() for kind in KINDS)
            cells = (
                f"`{name}`{words}" + (f": {who}" if who else ""),
                f"{np.isfinite(first).sum()} of {TRIALS}",
                f"{median:,.0f}" if np.isfinite(median) else "–",
                ", ".join(f"{count:.2g}" for count in raised),
                *(f"{below(each)[:, tasks].mean():.2g}" for each in (with_, without)),
                *(f"{each.regret[:, tasks].mean():,.1f}" for each in (with_, without)),
            )
            lines.append("| " + " | ".join(cells) + " |")
    return lines


def alone() -> list[str]:
    """Return a table of which monitor raises an alarm on which problem, whatever others do.

    With on_alarm="warn" nothing is done about any of them, and each raises one alarm at most.
    """
    lines = ["| problem | assumptions | certificates | fit |", "|---|---:|---:|---:|"]
    told = {**STATED, "on_alarm": "warn"}
    for name, settings in (
        ("drift-abrupt", {}),
        ("drift-slow", {}),
        ("misfit", {"error": 0.1}),
        ("odd-task", {}),
    ):
        series = run(name, dict(told), **settings)
        cells = [f"{(series.totals[kind].sum(axis=1) > 0).sum()} of {TRIALS}" for kind in KINDS]
        lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
    found = [_outage(seed) for seed in range(TRIALS)]
    counts = [sum(kind in each for each in found) for kind in ("assumptions", "certificates")]
    cells = [*(f"{count} of {TRIALS}" for count in counts), "–"]
    lines.append(f"| learned plays earn nothing, {OUTAGE} times | " + " | ".join(cells) + " |")
    return lines


def less_stated() -> list[str]:
    """Return a table of what is noticed where agents are told less: weights are then smaller."""
    lines = [
        "| problem | rewards | what is stated | noticed in | first alarm, median round "
        "| plays below the floor per task, with monitors | without |",
        "|---|---|---|---:|---:|---:|---:|",
    ]
    cases: tuple[tuple[str, Any, str, dict[str, Any]], ...] = (
        ("noise 0.1", 0.1, "both", {}),
        ("noise 0.1", 0.1, "the noise alone", {"context_noise": None}),
        ("0 or 1", BernoulliRewards(), "nothing", {"noise": None, "context_noise": None}),
    )
    for name, settings in (("drift-abrupt", {}), ("odd-task", {}), ("misfit", {"error": 0.1})):
        for rewards, noise, stated, less in cases:
            told = {**STATED, **less}
            with_, without = (
                run(name, {**told, "delta_alarm": level}, reward_std=noise, **settings)
                for level in (1e-3, None)
            )
            first = first_alarms(with_)
            median = np.median(first)
            lines.append(
                f"| `{name}` | {rewards} | {stated} | {np.isfinite(first).sum()} of {TRIALS} "
                f"| {f'{median:,.0f}' if np.isfinite(median) else '–'} "
                f"| {below(with_).mean():.2g} | {below(without).mean():.2g} |"
            )
    return lines


def _outage(seed: int) -> set[str]:
    """Return which monitors notice that learned plays earn nothing for some rounds."""
    rng, theta = np.random.default_rng(seed), np.array([0.5, 0.3, 0.4])
    agent, left = gb.Agent(dim=3, on_alarm="warn", **STATED), OUTAGE
    for t in range(800):
        menu = rng.uniform(0.1, 0.55, (10, 3))
        worth = menu @ theta
        decision = agent.decide(menu, baseline=int(np.argsort(worth)[5]))
        reward = worth[decision.action]
        if t >= 400 and left and decision.kind == "learned":
            reward, left = 0.0, left - 1
        agent.observe(decision, reward + rng.normal(0.0, 0.1))
    return {alarm.kind for alarm in agent.health.alarms}


def goals() -> list[str]:
    """Return a table of what was to be reached."""
    lines = ["| what | wanted | measured |", "|---|---|---:|"]

    def line(what: str, wanted: str, measured: str) -> None:
        lines.append(f"| {what} | {wanted} | {measured} |")

    still = [
        run("liar", {**STATED, "delta_alarm": level}, agents=3, since=NEVER)
        for level in (1e-3, None)
    ]
    ratio = still[0].regret.mean() / still[1].regret.mean()
    line("regret where nothing happens, M = 3", "at most 1.05 times", f"{ratio:.4f} times")
    abrupt = run("drift-abrupt", dict(STATED))
    late = np.median(first_alarms(abrupt)) - HALF
    line("`drift-abrupt`, noticed after the change", "150 rounds, median", f"{late:.0f}")
    after = below(abrupt, HALF).mean()
    line("the same, plays below the floor after it", "at most 5, mean", f"{after:.2f}")
    wrong, today = (run("misfit", {**STATED, "delta_alarm": x}, error=0.1) for x in (1e-3, None))
    line("`misfit` of 0.1, noticed", "500 rounds, median", f"{np.median(first_alarms(wrong)):.0f}")
    share = below(wrong).mean() / below(today).mean()
    numbers = f"{share:.1%} ({below(wrong).mean():.2f} of {below(today).mean():.1f})"
    line("the same, plays below the floor, of those without monitors", "at most 10 %", numbers)
    odd = run("odd-task", dict(STATED))
    short = below(odd, EARLY)[:, -1]
    error = short.std(ddof=1) / np.sqrt(TRIALS)
    line(
        f"`odd-task`, the odd task's plays below the floor from round {EARLY} on",
        "none of significance",
        f"{short.mean():.2f} ± {error:.2f} of {ROUNDS - EARLY:,}",
    )
    alone = run("odd-task", {**STATED, "share": False}).regret[:, :2].mean()
    pair = run(OthersAlone(), dict(STATED)).regret[:, :2].mean()
    own = odd.regret[:, :2].mean()
    numbers = (
        f"{(alone - own) / (alone - pair):.0%} (regret {own:.2f}, alone {alone:.2f}, "
        f"without the odd task {pair:.2f})"
    )
    line("the same, gain of pooling kept by the other two", "at least 80 %", numbers)
    return lines


def windows() -> list[str]:
    """Return a table of what windows are worth, and cost, with a declared drift and without."""
    kinds: dict[str, dict[str, Any]] = {
        "monitors alone": {},
        "window 500": {"window": 500},
        "window 500, drift 0.0002": {"window": 500, "drift": 2e-4},
    }
    lines = ["| problem | " + " | ".join(kinds) + " |", "|---|" + "---:|" * len(kinds)]
    for title, name, settings in (
        ("nothing happens, M = 1", "liar", {"agents": 1, "since": NEVER}),
        ("`drift-abrupt`", "drift-abrupt", {}),
        ("`drift-slow`", "drift-slow", {}),
        ("`drift-season`", "drift-season", {}),
    ):
        found = [run(name, {**STATED, **told}, **settings) for told in kinds.values()]
        cells = [f"{each.regret.mean():,.1f}; {below(each).mean():.2g}" for each in found]
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return lines


def costs() -> list[str]:
    """Return what monitors cost."""
    lines = ["| | with monitors | without | ratio |", "|---|---:|---:|---:|"]
    simulated, asked = [], []
    for level in (1e-3, None):
        guard = gb.GuardUCB(**STATED, delta_alarm=level)
        problem = gb.problem("synthetic-c", nature="fresh", reward_std=0.1)
        gb.simulate(problem, guard, rounds=100, progress=False)
        times = []
        for _ in range(5):
            started = time.process_time()
            gb.simulate(problem, guard, rounds=100_000, progress=False, workers=1)
            times.append((time.process_time() - started) / 100_000 / 3)
        simulated.append(min(times))
        rng, agent = np.random.default_rng(0), gb.Agent(dim=9, algorithm=guard)
        menus = np.abs(rng.standard_normal((64, 50, 9)))
        menus /= np.linalg.norm(menus, axis=2, keepdims=True)
        times = []
        for _ in range(5):
            started = time.process_time()
            for t in range(4_000):
                agent.observe(agent.decide(menus[t % 64], baseline=0), 0.5)
            times.append((time.process_time() - started) / 4_000)
        asked.append(min(times))
    for words, (one, two) in (
        ("a simulated round of an agent, K = 90, d = 2", simulated),
        ("decide and observe, K = 50, d = 9", asked),
    ):
        lines.append(f"| {words} | {1e6 * one:.2f} µs | {1e6 * two:.2f} µs | {one / two:.2f} |")
    return lines


def main() -> None:
    page = [
        "# What monitors notice",
        "",
        "For those who rely on [monitors](notices.md): how soon they notice a change, and what "
        "they cost where nothing changes.",
        "",
        "Guard-UCB in strict mode, alpha 0.2, told that the noise is 0.1 and that no context is "
        'hidden, with `delta_alarm=0.001` and `on_alarm="restart"`, '
        f"against the same without monitors; {TRIALS} trials of {ROUNDS:,} rounds on [problems "
        "that are not as assumed](problems.md#worlds-that-are-not-as-assumed), seed 0. [What it "
        "all means](notices.md). Written by `python -m bench.notices`.",
        "",
        *goals(),
        "",
        "*Without the odd task*: the same menus, rewards and noise of the other two, and it has "
        "nothing to offer.",
        "",
        *noticed(),
        "",
        "## Each monitor alone",
        "",
        "Trials in which each raised an alarm, where nothing is done about alarms.",
        "",
        *alone(),
        "",
        "## Where less is stated",
        "",
        "Without the noise, or without knowing that no context is hidden, a reward weighs little "
        "more than one that is 0 or 1.",
        "",
        *less_stated(),
        "",
        "## False alarms",
        "",
        *false_alarms(),
        "",
        "## Windows",
        "",
        "Regret per task; and plays below the floor per task.",
        "",
        *windows(),
        "",
        "## Cost",
        "",
        *costs(),
        "",
    ]
    (Path(__file__).parents[1] / "docs" / "notices-measured.md").write_text("\n".join(page))
    Console().print("\n".join(page))


if __name__ == "__main__":
    main()
