"""`make better`: the panel `better` at full horizons, many trials; writes docs/better.md."""

from __future__ import annotations

import math
import time
from pathlib import Path

import pandas as pd
from rich.console import Console

from guardband.engines import LocalEngine, ResultCache
from guardband.lab import PanelBetter, RunOptions, run_all
from guardband.lab.leaders import leaders
from guardband.progress import ProgressBar
from guardband.sim import cache_folder, commit

PANEL = PanelBetter(share=1.0, trials=20)
TOLD = (
    "Guard-UCB is told `context_noise`, or the support of each round's distribution where the "
    "problem is a forecast. So are all rivals whose confidence sets have a place for it; in print "
    "they assume 1. `dis-lin-ucb` and `disc-ucb` play twice, as printed and, `-told`, with the "
    "same information: compare with the latter to see the algorithm, with the former to see "
    "algorithm and information together."
)
SETTINGS = (
    "A rival has up to three settings: `theory`, the constants of its paper; `authors`, those that "
    "its authors, or others, experiment with; `tuned`, chosen by `python -m bench.tune` on seeds "
    "that are not used here ([record](tuning.csv)). An `oracle` is told what no learner knows. "
    "Each table has a rival's strongest setting on that problem, chosen in hindsight: the least "
    "regret among settings that kept a promise per round, if there are any. Rivals are in the "
    "order of regret, those that are inferred, because their papers could not be read, after all "
    "others. What was read of each is said on [its page](algorithms/README.md)."
)
COLUMNS = [
    *("algorithm", "regret", "below floor, expected", "policy below floor"),
    *("below floor, realised", "conservative", "refuted", "syncs", "outside"),
    *("setting", "others", "reading"),
]
OUTSIDE = " (psi is phi plus frozen noise: outside the model)"


def ratios(table: pd.DataFrame) -> list[str]:
    """Return one line per problem: how far Guard-UCB reaches there."""
    head = (
        "problem",
        "strict / guard-ucb-free (at most 2.5)",
        "policy / guard-ucb-free (at most 1.7)",
        "policy / DisLinUCB (at most 2)",
        "policy / DisLinUCB told context_noise (at most 2)",
        "strict / DisLinUCB (at most 4)",
        "strict / DisLinUCB told context_noise (at most 4)",
        "printed DiSC-UCB / strict (at least 10 where it never leaves)",
        "DiSC-UCB told context_noise / strict",
        "promises broken",
    )
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for name, part in table.groupby("problem", sort=False):
        rows = part.set_index("algorithm")
        regret, policy, strict = rows["regret"], rows.loc["guard-ucb-policy"], rows.loc["guard-ucb"]
        broken = policy["policy below floor"] + strict["below floor, expected"]
        told = [
            str(name),
            *(f"{mine['regret'] / regret['guard-ucb-free']:.2f}" for mine in (strict, policy)),
            *(
                f"{mine['regret'] / regret[rival]:.2f}"
                for mine in (policy, strict)
                for rival in ("dis-lin-ucb", "dis-lin-ucb-told")
            ),
            *(_lead(rows.loc[rival], strict) for rival in ("disc-ucb", "disc-ucb-told")),
            f"{broken:.2f}" + ("" if part["model"].iloc[0] else " (outside the model)"),
        ]
        lines.append("| " + " | ".join(told) + " |")
    return lines


def _lead(rival: pd.Series, strict: pd.Series) -> str:
    """Return how many times the regret a rival has, and whether it leaves the baseline."""
    stays = rival["conservative"] > 0.999 * rival["rounds"]
    return f"{rival['regret'] / strict['regret']:.0f}" + ("" if stays else " (it leaves)")


def page(table: pd.DataFrame, trials: int, seconds: float) -> str:
    """Return the page."""
    lines = [
        "# Guard-UCB beside the others",
        "",
        "For people who compare algorithms: what Guard-UCB earns, how often it is below the "
        "floor, and what its rivals do on the same problems, each with its strongest setting.",
        "",
        f"Means over {trials} trials, per agent; written by `make better` in {seconds:.0f} s, "
        f"commit {commit()}. Regret is in expected rewards; counts are rounds. `outside`: rounds "
        "with theta outside the confidence set; `refuted`: rounds in which Guard-UCB plays the "
        'baseline because no parameter fits (`on_refuted="baseline"`, on every problem). Where '
        "the expected reward of the baseline itself is negative, as with frozen noise on LastFM, "
        "even the baseline is below (1 - alpha) times it: see its row.",
        "",
        TOLD,
        "",
        SETTINGS,
        "",
        *ratios(table),
        "",
    ]
    for name, part in table.groupby("problem", sort=False):
        result = leaders(part)[COLUMNS]
        model = bool(part["model"].iloc[0])
        lines += [
            f"## {name}, {part['rounds'].iloc[0]:,} rounds" + ("" if model else OUTSIDE),
            "",
            "| " + " | ".join(result.columns) + " |",
            "|" + "---|" * result.shape[1],
            *("| " + " | ".join(cells(row)) + " |" for row in result.itertuples(index=False)),
            "",
        ]
    return "\n".join(lines)


def cells(row: tuple[object, ...]) -> list[str]:
    """Return the words and the numbers of a line."""
    return [each if isinstance(each, str) else figure(float(str(each))) for each in row]


def figure(value: float) -> str:
    """Return a number with two places below 100, and none above."""
    return "-" if math.isnan(value) else f"{value:,.2f}" if value < 100 else f"{value:,.0f}"


def main() -> None:
    options, start = RunOptions(scale="paper"), time.perf_counter()
    with ProgressBar() as bar:
        results = run_all(
            PANEL.runs(options), engine=LocalEngine(), cache=ResultCache(cache_folder()), bar=bar
        )
    table = PANEL.table(results)
    folder = Path(__file__).parents[1] / "docs"
    table.to_csv(folder / "better.csv", index=False, float_format="%.6g")
    (folder / "better.md").write_text(page(table, PANEL.trials, time.perf_counter() - start))
    Console().print("\n".join(ratios(table)))
    Console(stderr=True).print("written to docs/better.md and docs/better.csv")


if __name__ == "__main__":
    main()
