"""The problems, under the names of the command line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from guardband.problems.noise import GaussianNoise, RewardNoise, StudentNoise, TwoPointNoise
from guardband.problems.synthetic import SyntheticA
from guardband.problems.tabular import Tabular
from guardband.problems.world import Forecast, Fresh, Problem, World

__all__ = [
    "PROBLEMS",
    "Forecast",
    "Fresh",
    "GaussianNoise",
    "Problem",
    "RewardNoise",
    "StudentNoise",
    "SyntheticA",
    "Tabular",
    "TwoPointNoise",
    "World",
]

PROBLEMS: dict[str, Callable[..., Any]] = {SyntheticA.name: SyntheticA}
