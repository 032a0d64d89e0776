"""Raise a price as far as buyers allow.

A shop sets the price of a product every hour, on a grid. It wants the highest price at which the
share of visitors who buy stays at 90 % or more of what it is at today's price, in every hour. The
price is the value, the share of buyers the guarded reward. `python price_grid.py` prints a table
and writes prices.png; the shop is made up.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

import guardband as gb

Floats = NDArray[np.float64]
PRICES = np.arange(8.0, 14.01, 0.25)
TODAY = int(np.flatnonzero(PRICES == 10.0)[0])  # the baseline's row
ALPHA = 0.1
VISITORS = 100  # an hour; the share of them who buy is the reward
NOISE = 0.5 / math.sqrt(VISITORS)  # of a mean of that many numbers that are 0 or 1
SCALE = math.sqrt(2.0 + ((PRICES[-1] - PRICES[TODAY]) / 10.0) ** 2)  # no row is longer than 1
# At most 80 % buy today, the evening changes that by at most 20 %, and a price that is higher by
# 10 costs at most half of all visitors. Rows are divided by SCALE, and theta is longer by it.
THETA_BOUND = SCALE * math.hypot(0.8, 0.2, 0.5)


def menu(evening: bool) -> Floats:
    """Return the features of every price in an hour: an intercept, the evening, and the price.

    Prices are counted from today's, so that one step on the grid is a small step of the features.
    """
    steps = (PRICES - PRICES[TODAY]) / 10.0
    rows = np.column_stack([np.ones(PRICES.size), np.full(PRICES.size, float(evening)), steps])
    return rows / SCALE


def buyers(evening: bool) -> Floats:
    """Return the share who buy at every price; the shop does not know it."""
    return 0.52 + 0.06 * evening - 0.3 * (PRICES - PRICES[TODAY]) / 10.0


def shop(hours: int, seed: int) -> tuple[list[int], list[bool]]:
    """Return the row of each hour's price, and whether it was in the evening."""
    rng = np.random.default_rng(seed)
    agent = gb.Agent(
        dim=3, alpha=ALPHA, noise=NOISE, context_noise=0.0, theta_bound=THETA_BOUND, seed=seed
    )
    played, evenings = [], []
    for hour in range(hours):
        evening = hour % 24 >= 17
        d = agent.decide(menu(evening), TODAY, value=PRICES)
        bought = rng.binomial(VISITORS, buyers(evening)[d.action])
        agent.observe(d, bought / VISITORS)
        played.append(d.action)
        evenings.append(evening)
    return played, evenings


def highest(evening: bool) -> int:
    """Return the row of the highest price that keeps 90 % of the buyers."""
    share = buyers(evening)
    return int(np.flatnonzero(share >= (1.0 - ALPHA) * share[TODAY] - 1e-12)[-1])


def compare(hours: int, seed: int, folder: Path) -> NDArray[np.bool_]:
    """Run the shop, print the table, draw the picture; return which hours were below the floor."""
    played, evenings = shop(hours, seed)
    prices, best = PRICES[played], PRICES[[highest(evening) for evening in evenings]]
    kept = np.array(
        [buyers(late)[k] / buyers(late)[TODAY] for k, late in zip(played, evenings, strict=True)]
    )
    shown = Table(title="The highest price that keeps 90 % of the buyers", box=SIMPLE)
    for head in ("hours", "price", "possible", "buyers kept", "at least", "below 90 %"):
        shown.add_column(head, justify="right")
    below = kept < 1.0 - ALPHA - 1e-12
    for part in np.array_split(np.arange(hours), 5):
        shown.add_row(
            f"{part[0] + 1:,} to {part[-1] + 1:,}",
            f"{prices[part].mean():.2f}",
            f"{best[part].mean():.2f}",
            f"{kept[part].mean():.1%}",
            f"{kept[part].min():.1%}",
            f"{below[part].sum()}",
        )
    Console().print(shown)
    figure, (up, down) = plt.subplots(2, 1, figsize=(8, 5), sharex=True, layout="constrained")
    up.plot(prices, lw=1, label="price")
    up.plot(best, "k:", lw=1, label="highest that keeps 90 %")
    up.axhline(PRICES[TODAY], color="0.6", lw=1, label="today's")
    up.set(ylabel="price")
    up.legend(fontsize=8, loc="lower right")
    down.plot(kept, lw=1)
    down.axhline(1.0 - ALPHA, color="black", ls="--", lw=1)
    down.annotate("floor", (hours, 1.0 - ALPHA), ha="right", va="bottom", fontsize=9)
    down.set(ylabel="buyers, today's = 1", xlabel="hours")
    for axes in (up, down):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(folder / "prices.png", dpi=120)
    plt.close(figure)
    return below


def main() -> None:
    """Read the command line and run the shop."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=int, default=3_000, help="how long the shop runs")
    parser.add_argument("--seed", type=int, default=0, help="of the customers")
    parser.add_argument("--folder", type=Path, default=Path(), help="where prices.png goes")
    given = parser.parse_args()
    compare(given.hours, given.seed, given.folder)


if __name__ == "__main__":
    main()
