"""Problems by name, reward noise models, and problems from arrays, files and functions."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from guardband.checks import nearest
from guardband.errors import InvalidTypeError, InvalidValueError
from guardband.problems.base import NamedProblem, NoisyFeatures, ProblemAssumptions, Sizes
from guardband.problems.categories import Categories
from guardband.problems.changing import (
    ChangingWorld,
    DriftAbrupt,
    DriftSeason,
    DriftSlow,
    Liar,
    OddTask,
)
from guardband.problems.clicks import Clicks
from guardband.problems.files import from_file
from guardband.problems.forecast import ForecastFormal, ForecastFormal2, ForecastLarge
from guardband.problems.formal import Formal
from guardband.problems.formal_world import MOST_ROUNDS, FormalRound, FormalWorld
from guardband.problems.misfit import Misfit
from guardband.problems.noise import (
    NOISES,
    BernoulliRewards,
    GaussianNoise,
    RewardNoise,
    StudentNoise,
    TwoPointNoise,
    UniformNoise,
    as_noise,
)
from guardband.problems.ratings import LastFm, MovieLens
from guardband.problems.rounds import Round, round_of
from guardband.problems.routing import Routing
from guardband.problems.synthetic import SyntheticA, SyntheticB, SyntheticC
from guardband.problems.tabular import Tabular
from guardband.problems.toy import SafeSets, Toy, toy_safe_sets
from guardband.problems.world import AnyWorld, Forecast, Fresh, Problem, World, rank_baseline

__all__ = [
    "MOST_ROUNDS",
    "NOISES",
    "PROBLEMS",
    "AnyWorld",
    "BernoulliRewards",
    "Categories",
    "ChangingWorld",
    "Clicks",
    "DriftAbrupt",
    "DriftSeason",
    "DriftSlow",
    "Forecast",
    "ForecastFormal",
    "ForecastFormal2",
    "ForecastLarge",
    "Formal",
    "FormalRound",
    "FormalWorld",
    "Fresh",
    "GaussianNoise",
    "LastFm",
    "Liar",
    "Misfit",
    "MovieLens",
    "NamedProblem",
    "NoisyFeatures",
    "OddTask",
    "Problem",
    "ProblemAssumptions",
    "RewardNoise",
    "Round",
    "Routing",
    "SafeSets",
    "Sizes",
    "StudentNoise",
    "SyntheticA",
    "SyntheticB",
    "SyntheticC",
    "Tabular",
    "Toy",
    "TwoPointNoise",
    "UniformNoise",
    "World",
    "as_noise",
    "from_file",
    "problem",
    "rank_baseline",
    "round_of",
    "toy_safe_sets",
]

PROBLEMS: dict[str, type[NamedProblem]] = {
    kind.name: kind
    for kind in (
        SyntheticA,
        SyntheticB,
        SyntheticC,
        MovieLens,
        LastFm,
        Toy,
        ForecastFormal,
        ForecastFormal2,
        ForecastLarge,
        Clicks,
        Categories,
        Routing,
        DriftAbrupt,
        DriftSlow,
        DriftSeason,
        OddTask,
        Liar,
        Misfit,
    )
}


def problem(name: str, **settings: Any) -> NamedProblem:
    """Return the problem of this name.

    Parameters
    ----------
    name
        One of `PROBLEMS`.
    **settings
        Its parameters, such as `agents`, `baseline`, `psi_noise`, `reward_std` and `seed`.

    Examples
    --------
    >>> problem("movielens", agents=5).sizes
    {'agents': 5, 'contexts': 100, 'actions': 50, 'features': 9}
    """
    if str(name).lower().endswith((".csv", ".npz")):
        raise InvalidValueError(
            f"{name!r} is a file, not the name of a problem: gb.problems.from_file({name!r}, ...) "
            "reads it."
        )
    if name not in PROBLEMS:
        raise InvalidValueError(
            f"there is no problem {name!r}; there are {', '.join(PROBLEMS)}."
            f"{nearest(name, list(PROBLEMS))}"
        )
    kind = PROBLEMS[name]
    known = [field.name for field in fields(kind)]
    for setting in settings:
        if setting not in known:
            raise InvalidTypeError(
                f"{name} has no setting {setting!r}; it has {', '.join(known)}."
                f"{nearest(setting, known)}"
            )
    return kind(**settings)
