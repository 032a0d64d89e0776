"""`python -m bench.prices`: what each setting of Guard-UCB is worth; writes docs/prices.md."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from rich.console import Console

import guardband as gb
from guardband.algorithms import Algorithm, Oracle
from guardband.progress import ProgressBar
from guardband.sim import Series, commit

ROUNDS, TRIALS = 20_000, 8
FORMAL2 = "forecast-formal2"
MODES = ("strict", "policy")
Key = TypeVar("Key", bound=Hashable)


def per_agent(values: np.ndarray) -> str:
    """Return the mean over trials and agents, with the standard error over trials."""
    each = values.mean(axis=1)
    error = each.std(ddof=1) / np.sqrt(each.size)
    places = 1 if each.mean() < 10 else 0
    return f"{each.mean():,.{places}f} ± {error:,.{places}f}"


def play(problem: str, alpha: float, algorithms: Mapping[Key, Algorithm]) -> dict[Key, Series]:
    """Simulate, and return what each of them did under its name here."""
    results = gb.simulate(
        problem, list(algorithms.values()), rounds=ROUNDS, trials=TRIALS, alpha=alpha
    )
    return dict(zip(algorithms, results.series, strict=True))


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    """Return a table in Markdown."""
    lines = [head, ("---", *("---:" for _ in head[1:])), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines] + [""]


def contexts_drawn() -> list[str]:
    """Return what promises about the context that is drawn cost."""
    promises = {"strict": None, '`("chance", 0.2)`': ("chance", 0.2)}
    promises |= {'`("chance", 0.05)`': ("chance", 0.05), '`"worst"`': "worst"}
    rules: dict[str, Algorithm] = {"oracle": Oracle()}
    rules |= {
        name: gb.GuardUCB(0.1, noise=0.1, realised=realised) for name, realised in promises.items()
    }
    counts = ("regret_expected", "violations_realised", "violations_expected", "conservative")
    head = ("rule", "regret", "below, as drawn", "below, in expectation", "conservative rounds")
    found = play(FORMAL2, 0.1, rules)
    return table(
        head,
        [(name, *(per_agent(getattr(s, key)) for key in counts)) for name, s in found.items()],
    )


def bounds_stated() -> list[str]:
    """Return what is lost where less is stated, or something that is not true."""
    less: dict[str, dict[str, Any]] = {
        "as it is: support known, context shared, agents pool": {},
        "support not used (`context_noise=0.5`)": {"context_noise": 0.5},
        "agents do not pool (`share=False`)": {"share": False},
        "pooled data make no set of their own (`pooled_set=False`)": {"pooled_set": False},
        'log-det radius only (`radius="logdet"`)': {"radius": "logdet"},
        "as in textbooks (`optimism=1`)": {"optimism": 1.0},
        "`shared_context=False`, **which is not true there**": {"shared_context": False},
    }
    rules = {
        (name, mode): gb.GuardUCB(0.2, noise=0.1, mode=mode, **settings)
        for name, settings in less.items()
        for mode in MODES
    }
    found = play("forecast", 0.2, rules)
    cells = {key: per_agent(series.regret_expected) for key, series in found.items()}
    return table(("", *MODES), [(name, *(cells[name, mode] for mode in MODES)) for name in less])


def reports_used() -> list[str]:
    """Return what reported rewards of the baseline are worth."""
    given: dict[str, dict[str, Any]] = {
        "no reports used": {},
        "`baseline_tolerance=0.0`": {"baseline_tolerance": 0.0},
        **{
            f"`anchors=True, baseline_tolerance={tolerance}`": {
                "anchors": True,
                "baseline_tolerance": tolerance,
            }
            for tolerance in (0.0, 0.02, 0.05)
        },
    }
    rules: dict[str, Algorithm] = {
        name: gb.GuardUCB(0.2, noise=0.1, **settings) for name, settings in given.items()
    }
    found = play("forecast", 0.2, rules)
    return table(
        ("strict, on `forecast`", "regret", "conservative rounds"),
        [
            (name, per_agent(s.regret_expected), per_agent(s.conservative))
            for name, s in found.items()
        ],
    )


PARTS = {
    "A promise about the context that is drawn": (
        "`forecast-formal2`, alpha 0.1, strict with `realised=...`; the baseline is judged in the "
        "same context as the action.",
        contexts_drawn,
    ),
    "What is stated": ("`forecast`, alpha 0.2: regret.", bounds_stated),
    "Reported rewards of the baseline": ("`forecast`, alpha 0.2.", reports_used),
}


def main() -> None:
    page = [
        "# What Guard-UCB's settings are worth",
        "",
        "For users of agents who are about to change a setting: what each one costs or earns.",
        "",
        f"Per agent, {ROUNDS:,} rounds, {TRIALS} trials, seed 0, means with their standard errors; "
        f"written by `python -m bench.prices`, commit {commit()}. What the settings mean is said "
        "in [Guard-UCB](guard-ucb.md#what-to-set).",
        "",
    ]
    with ProgressBar() as bar:
        bar.expect(len(PARTS))
        for title, (about, measure) in PARTS.items():
            page += [f"## {title}", "", about, "", *measure()]
            bar.advance(1)
    (Path(__file__).parents[1] / "docs" / "prices.md").write_text("\n".join(page))
    Console().print("\n".join(page))


if __name__ == "__main__":
    main()
