"""The table of features from its definition: one row, one column at a time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from guardband.kernels.types import Floats


def number(x: float, low: float, high: float, scale: str = "linear") -> float:
    x = min(max(x, low), high)
    if scale == "log":
        x, low, high = math.log(x), math.log(low), math.log(high)
    return (x - low) / (high - low)


def one_hot(value: Any, values: Sequence[Any]) -> list[float]:
    return [float(value == each) for each in values]


def shortened(vector: Sequence[float], bound: float = 1.0) -> list[float]:
    length = math.sqrt(sum(x * x for x in vector))
    return [x / max(length, bound) for x in vector]


def table(
    rows: Sequence[Mapping[str, Any]],
    numbers: Mapping[str, Any],
    categories: Mapping[str, Any],
    vectors: Mapping[str, Any],
    crosses: Sequence[tuple[str, ...]] = (),
) -> Floats:
    """Rows with an intercept; each block has length 1 at most, so m blocks have sqrt(m)."""
    made = []
    for row in rows:
        blocks = {name: [number(row[name], *limits)] for name, limits in numbers.items()}
        blocks |= {name: one_hot(row[name], values) for name, values in categories.items()}
        blocks |= {name: shortened(row[name]) for name in vectors}
        for cross in crosses:
            products = [1.0]
            for name in cross:
                products = [a * b for a in products for b in blocks[name]]
            blocks[":".join(cross)] = products
        flat = [1.0, *(x for block in blocks.values() for x in block)]
        made.append(np.array(flat) / math.sqrt(1 + len(blocks)))
    return np.array(made)
