"""Which algorithm a fleet runs: what was asked for, with the settings given beside it."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from guardband.algorithms import Algorithm, Confidence, DiscUcb
from guardband.checks import nearest

__all__ = ["settle_algorithm"]


def settle_algorithm(algorithm: Algorithm | None, alpha: Any, bounds: dict[str, Any]) -> Algorithm:
    """Return the algorithm with `alpha` and `bounds` in place of its own settings."""
    known = [f.name for f in fields(Confidence)]
    for name in bounds:
        if name not in known:
            listed = ", ".join(known)
            raise TypeError(f"unknown setting {name!r}; there are {listed}.{nearest(name, known)}")
    chosen: Any = DiscUcb() if algorithm is None else algorithm
    settings = dict(bounds) if alpha is None else {"alpha": alpha, **bounds}
    own = {f.name for f in fields(chosen)}
    for name in settings:
        if name not in own:
            raise TypeError(f"{chosen.name} has no setting {name!r}.")
    settled: Algorithm = replace(chosen, **settings)
    return settled
