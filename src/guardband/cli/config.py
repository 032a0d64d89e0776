"""The settings of `guardband run`: read from a TOML file, overridden by options, and checked."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import guardband as gb
from guardband.checks import check_choice, nearest
from guardband.errors import InvalidValueError

__all__ = [
    "DEFAULT_ALGORITHMS",
    "DEFAULT_PROBLEM",
    "DEFAULT_SETTINGS",
    "TEMPLATE",
    "RunConfig",
    "make_algorithms",
    "make_problem",
    "read_config",
]

FILE_SETTINGS = ("theta", "tasks", "baseline", "reward_std")

# The types of settings that nothing else checks.
KINDS: dict[str, tuple[type, str]] = {
    "problem": (str, "a text"),
    "algorithms": (list, "a list of names"),
    "out": (str, "a text"),
    "settings": (dict, "a table"),
    "problem_settings": (dict, "a table"),
}

DEFAULT_ALGORITHMS = (
    "guard-ucb",
    "guard-ucb-policy",
    "guard-ucb-free",
    "disc-ucb",
    "disc-ucb-gap-oracle",
    "dis-lin-ucb",
    "baseline",
)
# The usual problem is one to which promises apply: psi is the mean of what is drawn. Its alpha is
# the agents' own, at which learning without a guard costs something; the paper's is 0.5.
DEFAULT_PROBLEM = "movielens"
DEFAULT_SETTINGS = {"nature": "fresh"}
DEFAULT_ALPHA = 0.1
DEFAULT_ROUNDS = 20_000  # the figures' own horizons reach ten million

TEMPLATE = """\
# A run of guardband; start it with: guardband run THIS_FILE
# Every line may be left out, and every option of `guardband run` overrides its line here.

# problem = "synthetic-c"    # see: guardband problems; or a file of your own, .npz or .csv; left
#                            # out: movielens with features drawn anew in each round (nature
#                            # "fresh"), so that what agents are given is right on average, and
#                            # alpha = 0.1
algorithms = [{algorithms}]    # see: guardband algorithms

# agents = 3       # tasks that learn together; the problem's own number if left out
# alpha = 0.3      # share of the baseline's reward that may be lost; one number, or one per agent;
#                  # the problem's own if left out
# rounds = 20000   # the horizon
# history = 100000 # before round 1 agents learn so many rounds of the baseline's own rule; or of
#                  # uniform plays: [100000, "uniform"]
# budget = 5000    # what an agent's plays may cost in all, on a problem with costs
trials = {trials}        # independent repetitions
seed = {seed}           # the same seed gives the same numbers

out = "{out}"   # where the report goes

# Settings of the algorithms and of the problem, by their names in Python:
# [settings]
# noise = 0.1      # the bound on the reward noise that algorithms are told
# context_noise = 0.1    # the same for what the hidden context adds to a reward
# delta = 1e-3
# trial_budget = 100    # what guard-ucb's trials may fall short of the floor by, in all
# holdback = 0.05    # how often guard-ucb plays the baseline to measure what its choices earn
# [problem_settings]
# psi_noise = 0.01
# reward_std = {{model = "student", std = 0.1, df = 3}}    # the rewards' own noise; or a number
"""


@dataclass(frozen=True)
class RunConfig:
    """The settings of `guardband run`; None means the problem's own.

    Without a problem it is the default one, with settings of its own beside those given.
    """

    problem: str | None = None
    algorithms: tuple[str, ...] = DEFAULT_ALGORITHMS
    agents: int | None = None
    alpha: Any = None
    rounds: int = DEFAULT_ROUNDS
    trials: int = 20
    history: Any = None
    budget: float | None = None
    seed: int = 0
    out: str | None = None
    settings: Mapping[str, Any] | None = None
    problem_settings: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.problem is not None and not _names_file(self.problem):
            check_choice("problem", self.problem, tuple(gb.problems.PROBLEMS))
        if not self.algorithms:
            raise InvalidValueError("algorithms is empty; see `guardband algorithms`.")
        for name in self.algorithms:
            check_choice("algorithm", name, tuple(gb.algorithms.ALGORITHMS))
        if "alpha" in (self.settings or {}):
            raise InvalidValueError(
                "alpha is a setting of the whole run: write it above [settings]."
            )

    @property
    def floor_alpha(self) -> Any:
        """The alpha of algorithms and floor; None: the problem's own."""
        return DEFAULT_ALPHA if self.problem is None and self.alpha is None else self.alpha

    def updated(self, told: Mapping[str, Any], **changes: Any) -> RunConfig:
        """Return the settings with what is given; `told` are settings of the algorithms."""
        settings = {**(self.settings or {}), **_given(told)}
        return replace(self, settings=settings, **_given(changes))


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def read_config(path: Path) -> RunConfig:
    """Return the settings in a TOML file."""
    try:
        table = tomllib.loads(path.read_text())
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no {path}; make one with --init {path}") from None
    except tomllib.TOMLDecodeError as error:
        raise InvalidValueError(f"{path} is not valid TOML: {error}.") from None
    known = [f.name for f in fields(RunConfig)]
    for key in table:
        if key not in known:
            raise InvalidValueError(f"{path}: unknown setting {key!r}.{nearest(key, known)}")
        kind, words = KINDS.get(key, (object, ""))
        if not isinstance(table[key], kind):
            raise InvalidValueError(f"{path}: {key} must be {words}, not {table[key]!r}.")
    if "algorithms" in table:
        table["algorithms"] = tuple(table["algorithms"])
    return RunConfig(**table)


def make_problem(config: RunConfig) -> Any:
    """Return the problem of a run: one of the named ones, or a user's own from a file."""
    settings = dict(config.problem_settings or {})
    name = config.problem
    if name is None:
        name, settings = DEFAULT_PROBLEM, DEFAULT_SETTINGS | settings
    if isinstance(settings.get("reward_std"), Mapping):
        settings["reward_std"] = _noise_model(settings["reward_std"])
    if config.agents is not None:
        settings["agents"] = config.agents
    if not _names_file(name):
        return gb.problem(name, **settings)
    for key in settings:
        if key not in FILE_SETTINGS:
            raise InvalidValueError(
                f"a problem from a file has no setting {key!r}; it has "
                f"{', '.join(FILE_SETTINGS)}.{nearest(key, FILE_SETTINGS)}"
            )
    return gb.problems.from_file(name, **settings)


def _names_file(problem: str) -> bool:
    return Path(problem).suffix.lower() in (".csv", ".npz")


def _noise_model(table: Mapping[str, Any]) -> Any:
    """Return a noise model from a table such as {model = "student", std = 0.1, df = 3}."""
    name = check_choice(
        "reward_std.model", table.get("model", "gaussian"), tuple(gb.problems.NOISES)
    )
    kind, known = gb.problems.NOISES[name], [f.name for f in fields(gb.problems.NOISES[name])]
    for key in table:
        if key not in ("model", *known):
            raise InvalidValueError(
                f"the {name} noise has no setting {key!r}; it has {', '.join(known)}."
                f"{nearest(key, known)}"
            )
    return kind(**{key: value for key, value in table.items() if key != "model"})


def make_algorithms(
    config: RunConfig, assumptions: Mapping[str, Any]
) -> list[gb.algorithms.Algorithm]:
    """Return the algorithms of a run, told what the problem may be assumed to be."""
    given = dict(config.settings or {})
    if config.floor_alpha is not None:
        given["alpha"] = config.floor_alpha
    made = [
        gb.algorithms.ALGORITHMS[name].informed(assumptions, **given) for name in config.algorithms
    ]
    used = {name for algorithm in made for name in {*algorithm.settings()} - algorithm.unused}
    for key in config.settings or {}:
        if key not in used:
            raise InvalidValueError(
                f"no algorithm has a setting {key!r}.{nearest(key, sorted(used))}"
            )
    return made
