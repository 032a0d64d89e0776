"""The example price_grid: its model, and what its README shows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

Load = Callable[[str, str], ModuleType]
FOLDER = "price_grid"


def test_demand_is_linear_in_the_features_and_theta_within_its_bound(example: Load) -> None:
    shop = example(FOLDER, "price_grid")
    rows = np.vstack([shop.menu(False), shop.menu(True)])
    share = np.concatenate([shop.buyers(False), shop.buyers(True)])
    theta, *_ = np.linalg.lstsq(rows, share, rcond=None)
    assert rows @ theta == pytest.approx(share)
    assert np.linalg.norm(rows, axis=1).max() <= 1.0
    assert np.linalg.norm(theta) <= shop.THETA_BOUND
    assert share.min() >= 0.0
    assert share.max() <= 1.0


def test_the_highest_price_is_that_of_algebra(example: Load) -> None:
    """0.3 x / 10 = 0.1 of the share at today's price, rounded down to the grid."""
    shop = example(FOLDER, "price_grid")
    for evening, share in ((False, 0.52), (True, 0.58)):
        exact = 10.0 + 0.1 * share / 0.03
        assert shop.PRICES[shop.highest(evening)] == np.floor(4 * exact) / 4


@pytest.mark.slow
def test_the_readme_shows_what_the_shop_prints(
    example: Load,
    printed: Callable[[Callable[[], object]], list[str]],
    shown: Callable[[str], list[str]],
    tmp_path: Path,
) -> None:
    shop = example(FOLDER, "price_grid")
    below: list[Any] = []
    lines = printed(lambda: below.append(shop.compare(3_000, 0, tmp_path)))
    assert [line for line in lines if line] == [line for line in shown(FOLDER) if line]
    assert not below[0].any()
    assert (tmp_path / "prices.png").stat().st_size > 10_000
