"""How long a study of a million rows takes, and how much memory: docs/study-size.md."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console

ROWS, ITEMS = 1_000_000, 30
WANTED = "under 120 s and 2,000 MB"
CONFIG = """
reward = "clicked"
action = "item"
propensity = "chance"
time = "when"
id = "request"
"""


def logs(rows: int) -> pd.DataFrame:
    """Return clicks of a rule that plays thirty items alike, with five columns of features."""
    rng = np.random.default_rng(0)
    price = rng.uniform(1, 100, ITEMS).round(2)
    kind = rng.choice(["film", "series", "short"], ITEMS)
    item = rng.integers(ITEMS, size=rows)
    segment = rng.choice(["new", "old", "vip", "lost"], rows)
    rate = 0.03 + 0.0004 * price[item] + 0.02 * (segment == "vip")
    return pd.DataFrame(
        {
            "request": [f"r{i}" for i in range(rows)],
            "item": [f"item-{i}" for i in item],
            "price": price[item],
            "kind": kind[item],
            "segment": segment,
            "age": rng.uniform(18, 80, rows).round(1),
            "hour": rng.integers(24, size=rows),
            "clicked": (rng.random(rows) < rate).astype(int),
            "chance": 1 / ITEMS,
            "when": pd.date_range("2026-01-01", periods=rows, freq="10s").astype(str),
        }
    )


def study(file: Path, config: Path) -> tuple[float, float, float]:
    """Return seconds on the clock, of the processor, and the most megabytes of the command."""
    words = [sys.executable, "-m", "guardband", "study", str(file), "--config", str(config)]
    began = time.monotonic()
    process = subprocess.Popen([*words, "--out", str(file.with_suffix(""))], env=os.environ)
    _, status, used = os.wait4(process.pid, 0)
    assert status == 0
    spent = used.ru_utime + used.ru_stime
    return time.monotonic() - began, spent, used.ru_maxrss / 1024


def main() -> None:
    lines = [
        "# How long a study takes",
        "",
        "For people with large logs: how much time and memory a study of a million rows needs.",
        "",
        f"`guardband study` on {ROWS:,} made-up rows with {ITEMS} items on offer and five columns "
        "of features, 10,000 rounds ahead, kernels compiled before; the page and agent.toml are "
        f"written. Wanted: {WANTED}. Written by `python -m bench.study_size`.",
        "",
        "| file | on the clock | of the processor | most memory |",
        "|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "study.toml"
        config.write_text(CONFIG)
        few = Path(folder) / "few.csv"
        logs(2_000).to_csv(few, index=False)
        study(few, config)  # compiles the kernels
        frame = logs(ROWS)
        for name in ("csv", "parquet"):
            file = Path(folder) / f"many.{name}"
            (frame.to_csv if name == "csv" else frame.to_parquet)(file, index=False)
        del frame
        for name in ("csv", "parquet"):
            clock, spent, most = study(Path(folder) / f"many.{name}", config)
            lines.append(f"| {name} | {clock:.0f} s | {spent:.0f} s | {most:,.0f} MB |")
    text = "\n".join([*lines, ""])
    (Path(__file__).parents[1] / "docs" / "study-size.md").write_text(text)
    Console().print(text)


if __name__ == "__main__":
    main()
