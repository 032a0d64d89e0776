"""What a study is told: which columns of the logs are what, and what is to be found out."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from guardband.agent import check_setting_names
from guardband.checks import (
    as_alpha,
    check_fraction,
    check_ordered,
    check_seed,
    check_whole,
    nearest,
)
from guardband.errors import InvalidTypeError, InvalidValueError
from guardband.features import Features, Hashed

__all__ = ["ROLES", "TEMPLATE", "StudyConfig", "read_study_config"]

# Columns that a log may have beside its features, and what each holds.
ROLES = ("reward", "action", "menu", "baseline", "propensity", "time", "task", "id")
PARTS = ("numbers", "categories", "vectors", "crosses", "intercept", "unknown", "beyond", "missing")

TEMPLATE = """\
# A study of logs; start it with: guardband study LOGS --config THIS_FILE
# The logs are a CSV file, or Parquet (.parquet, .pq), one row per past decision, in the order of
# time. Every option of `guardband study` overrides its line here.

# Which column is what. These two are needed:
reward = "reward"          # between 0 and 1; a yes is 1, a no is 0
action = "action"          # the label of what was played
# These say more, if the logs have them:
# menu = "menu"            # the labels on offer, a list or its JSON text; else: all labels seen.
#                          # Or a list of objects with the action's column and columns of the pair
#                          # of action and round, such as a score: [{{"action": "a", "score": 0.7}}]
# baseline = "baseline"    # the label that the rule you trust would play; else: the most played
# propensity = "propensity"    # the probability with which the action was played, in (0, 1]
# time = "time"            # a date, or a number
# task = "task"            # if several tasks are in one file
# id = "id"                # one per row; an agent then knows which rows were looked at

# Which columns are features. Left out, all other columns are, and limits are taken from the rows.
# columns = ["minutes", "stars", "format", "segment"]
# Which of them describe the action and not the round; left out, those with one value per label.
# action_columns = ["minutes", "stars", "format"]
# actions = "items.csv"    # or a file of their own: one row per label, in a column of its name

alpha = {alpha}           # the share of the baseline's reward that may be lost
rounds = {rounds}       # how far the study looks ahead
look = {look}             # the share of rows that it looks at, the first ones; the rest is to learn
seed = {seed}             # the same seed gives the same numbers
# out = "{out}"

# Settings of the agent that are known; the study looks for the others.
# [settings]
# theta_bound = 2.0

# Features by name, as in gb.Features; instead of `columns`. Or features = ["x1", "x2"] for columns
# of numbers that are no longer than 1 together, or features = "features.json".
# [features]
# crosses = [["format", "segment"]]
# [features.numbers]
# minutes = [5, 240, "log"]
# stars = [1, 5]
# [features.categories]
# format = ["film", "series", "short"]
# segment = {{hashed = 64}}    # of too many values to list
"""


@dataclass(frozen=True)
class StudyConfig:
    """The settings of a study.

    Attributes
    ----------
    reward, action, menu, baseline, propensity, time, task, id
        Names of columns; None: the logs do not have it.
    features
        A `gb.Features`; or names of columns that are numbers already; None: from `columns`.
    columns
        The columns that are features; None: all that are nothing else.
    action_columns
        Those of them that describe the action; None: to be found.
    actions
        A table with the columns of the action, by label; a frame, a dict, or a file.
    alpha, rounds
        The promise, and how far to look ahead.
    look
        The share of rows that is looked at.
    settings
        Settings of the agent that are known.
    seed
        For what is drawn.
    out
        The folder of the report; used on the command line.
    """

    reward: str = "reward"
    action: str = "action"
    menu: str | None = None
    baseline: str | None = None
    propensity: str | None = None
    time: str | None = None
    task: str | None = None
    id: str | None = None
    features: Any = None
    columns: Sequence[str] | None = None
    action_columns: Sequence[str] | None = None
    actions: Any = None
    alpha: float = 0.1
    rounds: int = 10_000
    look: float = 0.5
    seed: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    out: str | None = None

    def __post_init__(self) -> None:
        for role in ROLES:
            name = getattr(self, role)
            if not isinstance(name, str) and (name is not None or role in ("reward", "action")):
                raise InvalidTypeError(f"{role} must be the name of a column, not {name!r}.")
        named = [name for role in ROLES if (name := getattr(self, role)) is not None]
        if len(set(named)) < len(named):
            twice = next(name for name in named if named.count(name) > 1)
            raise InvalidValueError(f"column {twice!r} is given as two things: {self.roles}.")
        for part in ("features", "columns", "action_columns"):
            check_ordered(part, getattr(self, part))
        for part in ("columns", "action_columns"):
            names = getattr(self, part)
            if names is not None and (
                isinstance(names, str) or not all(isinstance(name, str) for name in names)
            ):
                raise InvalidTypeError(f"{part} must be a list of names, not {names!r}.")
        if self.features is not None and self.columns is not None:
            raise InvalidValueError("give features or columns, not both.")
        (alpha,) = as_alpha(self.alpha)
        object.__setattr__(self, "alpha", alpha)
        check_whole("rounds", self.rounds)
        check_fraction("look", self.look)
        check_seed(self.seed)
        if not isinstance(self.settings, Mapping):
            raise InvalidTypeError(f"settings must be a dict by name, not {self.settings!r}.")
        if "alpha" in self.settings:
            raise InvalidValueError("alpha is a setting of the whole study, not one of settings.")
        _check_settings(self.settings)

    @property
    def roles(self) -> dict[str, str]:
        """What the columns are, for those that the logs have."""
        return {role: name for role in ROLES if (name := getattr(self, role)) is not None}

    def updated(self, **changes: Any) -> StudyConfig:
        """Return the settings with those that are not None."""
        return replace(self, **{k: v for k, v in changes.items() if v is not None})


def _check_settings(settings: Mapping[str, Any]) -> None:
    """Refuse settings before anything is simulated without them."""
    if "dim" in settings:
        raise InvalidValueError("settings has dim: how many features there are, the columns say.")
    if "algorithm" in settings:
        raise InvalidValueError("settings has algorithm: a study is about Guard-UCB alone.")
    check_setting_names(settings)


def read_study_config(path: Path) -> StudyConfig:
    """Return the settings in a TOML file; files that it names lie beside it."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no {path}; make one with --init {path}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidValueError(f"{path} is not valid TOML: {error}.") from None
    except RecursionError:
        raise InvalidValueError(f"{path} is nested too deep.") from None
    known = [each.name for each in fields(StudyConfig)]
    for key in table:
        if key not in known:
            raise InvalidValueError(f"{path}: unknown setting {key!r}.{nearest(key, known)}")
    try:
        table["features"] = _features(table.get("features"), path)
        if "actions" in table:
            table["actions"] = path.parent / table["actions"]
        return StudyConfig(**table)
    except (InvalidTypeError, InvalidValueError) as error:
        raise type(error)(f"{path}: {error}") from None


def _features(given: Any, path: Path) -> Any:
    """Return features as they are written in TOML: a table, a list of columns, or a file."""
    if isinstance(given, str):
        return Features.from_json((path.parent / given).read_text(encoding="utf-8"))
    if not isinstance(given, dict):
        return given
    for key in given:
        if key not in PARTS:
            raise InvalidValueError(f"features has no {key!r}.{nearest(key, PARTS)}")
    categories = {
        name: Hashed(**{"size" if k == "hashed" else k: v for k, v in value.items()})
        if isinstance(value, dict)
        else value
        for name, value in given.get("categories", {}).items()
    }
    return Features(**{**given, "categories": categories})
