"""Which algorithm agents run, with which settings, and how many features they have."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from guardband.algorithms import ALGORITHMS, Algorithm
from guardband.checks import check_choice, check_whole
from guardband.errors import InvalidTypeError, InvalidValueError
from guardband.features import LARGEST_DIM, Features

__all__ = ["DEFAULT", "settle_algorithm", "settle_dim"]

DEFAULT = "guard-ucb"
TOLD = frozenset({"horizon", "reward_floor"})


def settle_dim(dim: int | None, features: Features | None) -> int:
    """Return the number of features, which is given as such, or by the named features."""
    if features is not None and not isinstance(features, Features):
        raise InvalidTypeError(f"features must be a gb.Features, not {features!r}.")
    if (dim is None) == (features is None):
        given = "neither was" if dim is None else f"both dim={dim!r} and features were"
        raise InvalidTypeError(
            "say how many features an action has, such as dim=3, or which ones, "
            f"features=gb.Features(...): {given} given."
        )
    if features is not None:
        return features.dim
    size = check_whole("dim", dim)  # type: ignore[arg-type]
    if size > LARGEST_DIM:
        raise InvalidValueError(
            f"dim must be at most {LARGEST_DIM:,}, not {size:,}: agents compute with its square."
        )
    return size


def settle_algorithm(algorithm: Algorithm | str | None, **given: Any) -> tuple[Algorithm, float]:
    """Return the algorithm with what is `given` in place of its own, and the feature bound.

    None stands for the algorithm's own value. Features are checked against a bound on their length
    whether the algorithm needs one or not; without one stated it is 1. A horizon and a reward floor
    are no settings of every algorithm that uses them: agents hand them on.
    """
    chosen: Any = DEFAULT if algorithm is None else algorithm
    if isinstance(chosen, str):
        names = [name for name, entry in ALGORITHMS.items() if "agent" in entry.kind.runs]
        chosen = ALGORITHMS[check_choice("algorithm", chosen, names)].make()
    if isinstance(chosen, type) or not hasattr(chosen, "plan"):
        raise InvalidTypeError(
            f"algorithm must be an object such as gb.GuardUCB(), or a name, not {chosen!r}."
        )
    own = [f.name for f in fields(chosen)]
    settings = {name: value for name, value in given.items() if value is not None}
    feature_bound = settings.get("feature_bound", getattr(chosen, "feature_bound", 1.0))
    if "feature_bound" not in own:
        settings.pop("feature_bound", None)
    told = getattr(chosen, "told", TOLD)
    for name in TOLD - set(own):
        value = settings.pop(name, None)
        if value is not None and name not in told:
            raise InvalidValueError(
                f"{chosen.name} does not use {name}={value!r}: leave it out, or choose an "
                "algorithm that does, such as algorithm='disc-ucb'."
            )
    for name in settings:
        if name not in own:
            raise InvalidTypeError(
                f"{chosen.name} has no setting {name!r}; it has {', '.join(own)}."
            )
    settled: Algorithm = replace(chosen, **settings)
    return settled, feature_bound
