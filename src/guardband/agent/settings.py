"""Which algorithm a fleet runs: what was asked for, with the settings given beside it."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from guardband.algorithms import Algorithm, Confidence, GuardUCB
from guardband.checks import nearest

__all__ = ["settle_algorithm"]

BESIDE = ("dim", "alpha", "algorithm", "horizon", "reward_floor", "seed")  # what both take by name


def settle_algorithm(
    algorithm: Algorithm | None, alpha: Any, bounds: dict[str, Any]
) -> tuple[Algorithm, float]:
    """Return the algorithm with `alpha` and `bounds` in place of its own, and the feature bound.

    Guard-UCB needs no bound on features, but they are checked against one all the same.
    """
    known = [f.name for f in fields(Confidence)]
    chosen: Any = GuardUCB() if algorithm is None else algorithm
    own = {f.name for f in fields(chosen)}
    for name in bounds:
        if name not in known:
            if name in own:
                kind = f"gb.{type(chosen).__name__}"
                raise TypeError(
                    f"{name} is a setting of the algorithm: algorithm={kind}({name}=...)."
                )
            words = [*BESIDE, *known]
            listed = ", ".join(words)
            raise TypeError(f"unknown setting {name!r}; there are {listed}.{nearest(name, words)}")
    settings = dict(bounds) if alpha is None else {"alpha": alpha, **bounds}
    if "feature_bound" not in own and "feature_bound" in settings:
        feature_bound = settings.pop("feature_bound")
    else:
        feature_bound = settings.get("feature_bound", getattr(chosen, "feature_bound", 1.0))
    for name in settings:
        if name not in own:
            raise TypeError(f"{chosen.name} has no setting {name!r}.")
    settled: Algorithm = replace(chosen, **settings)
    return settled, feature_bound
