"""Logs that are made up for tests."""

from __future__ import annotations

import numpy as np
import pandas as pd

ITEMS = ("a", "b", "c", "d")
PRICES = {"a": 3.0, "b": 5.0, "c": 7.0, "d": 9.0}


def shop(rows: int = 400, seed: int | list[int] = 0) -> pd.DataFrame:
    """A rule that plays all four items alike; dearer ones are clicked less, z clicks more."""
    rng = np.random.default_rng(seed)
    items = np.array(ITEMS)[rng.integers(4, size=rows)]
    price = np.array([PRICES[item] for item in items])
    segment = rng.choice(["x", "y", "z"], rows)
    rate = 0.5 - 0.04 * price + 0.1 * (segment == "z")
    return pd.DataFrame(
        {
            "item": items,
            "price": price,
            "segment": segment,
            "age": rng.uniform(18, 80, rows).round(1),
            "clicked": (rng.random(rows) < rate).astype(int),
            "chance": 0.25,
            "when": pd.date_range("2026-01-01", periods=rows, freq="h").astype(str),
            "request": [f"r{i}" for i in range(rows)],
        }
    )


ROLES = {"reward": "clicked", "action": "item", "propensity": "chance", "id": "request"}
