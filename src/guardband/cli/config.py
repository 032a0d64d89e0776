"""What a run is: read from a TOML file, overridden by options, checked before anything starts."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from guardband.algorithms import ALGORITHMS, Algorithm
from guardband.checks import check_choice, nearest
from guardband.problems import PROBLEMS

__all__ = [
    "DEFAULT_ALGORITHMS",
    "TEMPLATE",
    "RunConfig",
    "make_algorithms",
    "make_problem",
    "read_config",
]

DEFAULT_ALGORITHMS = ("disc-ucb", "disc-ucb-gap-oracle", "dis-lin-ucb", "baseline")

TEMPLATE = """\
# A run of guardband; start it with: guardband run THIS_FILE
# Every line may be left out, and every option of `guardband run` overrides its line here.

problem = "{problem}"          # see: guardband problems
algorithms = [{algorithms}]    # see: guardband algorithms

# agents = 3       # tasks that learn together; the problem's own number if left out
# alpha = 0.3      # share of the baseline's reward that may be lost; one number, or one per agent
# rounds = 20000   # the horizon
trials = {trials}        # independent repetitions
seed = {seed}           # the same seed gives the same numbers

out = "{out}"   # where the report goes

# Settings of the problem and of all algorithms, by their names in Python:
# [settings]
# noise = 0.1
# delta = 1e-3
# [problem_settings]
# psi_noise = 0.01
"""


@dataclass(frozen=True)
class RunConfig:
    """The settings of `guardband run`; None means the problem's own."""

    problem: str = "synthetic-a"
    algorithms: tuple[str, ...] = DEFAULT_ALGORITHMS
    agents: int | None = None
    alpha: Any = None
    rounds: int | None = None
    trials: int = 20
    seed: int = 0
    out: str | None = None
    settings: Mapping[str, Any] | None = None
    problem_settings: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        check_choice("problem", self.problem, tuple(PROBLEMS))
        if not self.algorithms:
            raise ValueError("algorithms is empty; see `guardband algorithms`.")
        for name in self.algorithms:
            check_choice("algorithm", name, tuple(ALGORITHMS))

    def updated(self, **changes: Any) -> RunConfig:
        """Return the settings with those changes that are not None."""
        return replace(self, **{k: v for k, v in changes.items() if v is not None})


def read_config(path: Path) -> RunConfig:
    """Return the settings in a TOML file."""
    try:
        table = tomllib.loads(path.read_text())
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no {path}; make one with --init {path}") from None
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path} is not valid TOML: {error}.") from None
    known = [f.name for f in fields(RunConfig)]
    for key in table:
        if key not in known:
            raise ValueError(f"{path}: unknown setting {key!r}.{nearest(key, known)}")
    if "algorithms" in table:
        names = table["algorithms"]
        table["algorithms"] = (names,) if isinstance(names, str) else tuple(names)
    return RunConfig(**table)


def make_problem(config: RunConfig) -> Any:
    """Return the problem of a run."""
    settings = dict(config.problem_settings or {})
    if config.agents is not None:
        settings["agents"] = config.agents
    kind = PROBLEMS[config.problem]
    if is_dataclass(kind):
        known = [f.name for f in fields(kind)]
        for name in settings:
            if name not in known:
                raise ValueError(
                    f"{config.problem} has no setting {name!r}; it has {', '.join(known)}."
                    f"{nearest(name, known)}"
                )
    return kind(**settings)


def make_algorithms(config: RunConfig, assumptions: Mapping[str, Any]) -> list[Algorithm]:
    """Return the algorithms of a run, told what the problem may be assumed to be."""
    given = {**assumptions, **(config.settings or {})}
    if config.alpha is not None:
        given["alpha"] = config.alpha
    made = []
    for name in config.algorithms:
        plain = ALGORITHMS[name].make()
        own = {f.name for f in fields(plain)}
        made.append(replace(plain, **{k: v for k, v in given.items() if k in own}))
    used = {f.name for algorithm in made for f in fields(algorithm)}  # type: ignore[arg-type]
    for key in config.settings or {}:
        if key not in used:
            raise ValueError(f"no algorithm has a setting {key!r}.{nearest(key, sorted(used))}")
    return made


def as_dict(config: RunConfig) -> dict[str, Any]:
    """Return the settings as plain values."""
    return asdict(config)
