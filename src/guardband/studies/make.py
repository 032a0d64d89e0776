"""`gb.study`: from logs to a study."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from guardband.kernels._compile import cache_folder
from guardband.progress import ProgressBar
from guardband.studies.advice import advise
from guardband.studies.config import StudyConfig
from guardband.studies.contents import look_at
from guardband.studies.expect import expect
from guardband.studies.linearity import judge_linearity
from guardband.studies.read import read_study_logs
from guardband.studies.result import Study
from guardband.studies.suggestions import suggest_settings
from guardband.studies.values import value_policies

__all__ = ["make_study", "study"]

TITLE = "studying the logs"
COMPILING = (
    "The kernels are compiled now, once, which takes some minutes; until then the time that is "
    "left is not known."
)
COMPILED = "loop._rounds*.nbi"  # what Numba calls the rounds of a simulation
READ, FITTED, PLAYED, VALUED = 0.15, 0.15, 0.6, 0.1  # shares of the work


def study(
    data: Any,
    *,
    reward: str = "reward",
    action: str = "action",
    features: Any = None,
    columns: Sequence[str] | None = None,
    action_columns: Sequence[str] | None = None,
    actions: Any = None,
    menu: str | None = None,
    menus: Any = None,
    baseline: str | None = None,
    propensity: str | None = None,
    time: str | None = None,
    task: str | None = None,
    id: str | None = None,
    alpha: float = 0.1,
    rounds: int = 10_000,
    look: float = 0.5,
    settings: Mapping[str, Any] | None = None,
    seed: int = 0,
    progress: bool | None = None,
) -> Study:
    """Study logs of an earlier rule before an agent is switched on.

    The first half of the rows is looked at; the second is left for the agent to learn, and only
    checked. Nothing is learned or changed here.

    Parameters
    ----------
    data
        One row per past decision, in the order of time: a DataFrame, a list of dicts, a dict of
        columns, or the path of a CSV or Parquet file.
    reward, action
        Columns: what was earned, in [0, 1], and the label of what was played.
    features
        A `gb.Features`; or names of columns that are numbers already, no longer than 1 together;
        None: features of `columns`, with limits from the rows.
    columns
        The columns that are features; None: all that are nothing else.
    action_columns
        Those that describe the action and not the round; None: those with one value per label.
    actions
        A table of the action's columns: a DataFrame by label, a dict of dicts, or a file.
    menu
        A column with the labels on offer; None: all labels that were seen.
    menus
        (n, K, d) or a list of n tables: the features of what was on offer, if they are numbers
        already.
    baseline
        A column with the baseline's label; None: the label that was played most.
    propensity
        A column with the probability with which the action was played.
    time, task, id
        Columns: when, for which task, and under which id a decision was made.
    alpha
        The share of the baseline's reward that may be lost.
    rounds
        How far to look ahead.
    look
        The share of rows that is looked at.
    settings
        Settings of the agent that are known, such as theta_bound.
    seed
        The same seed gives the same study.
    progress
        Whether to show a progress bar; None: on a terminal.

    Returns
    -------
    Study
        What was found; `study.save(folder)` writes a page and an agent.toml.

    Examples
    --------
    >>> import guardband as gb
    >>> logs = {"offer": ["A", "B"] * 200, "rule": ["A"] * 400, "reward": [0, 1, 1, 1] * 100}
    >>> logs["match"] = [0.5, 1.0] * 200
    >>> found = gb.study(logs, action="offer", baseline="rule", features=["match"], rounds=100)
    >>> print(found.recommendation.split(", ")[0])
    Switch on an agent in strict mode
    """
    config = StudyConfig(
        reward=reward,
        action=action,
        menu=menu,
        baseline=baseline,
        propensity=propensity,
        time=time,
        task=task,
        id=id,
        features=features,
        columns=columns,
        action_columns=action_columns,
        actions=actions,
        alpha=alpha,
        rounds=rounds,
        look=look,
        seed=seed,
        settings=settings or {},
    )
    return make_study(data, config, menus=menus, progress=progress)


def make_study(
    data: Any, config: StudyConfig, *, menus: Any = None, progress: bool | None = None
) -> Study:
    """Return the study of some logs; `menus` are tables of features, if they are given."""
    with ProgressBar(TITLE, progress) as bar:
        bar.expect(1.0)
        logs = read_study_logs(data, config, menus)
        contents = look_at(logs)
        bar.advance(READ)
        linearity = judge_linearity(logs, config.alpha, config.seed)
        suggested = suggest_settings(logs, linearity, config.alpha, config.settings, config.seed)
        bar.advance(FITTED)
        compiling = not any(cache_folder().rglob(COMPILED))
        if progress is not False and compiling:
            bar.say(COMPILING)
        bar.turn_to(f"{TITLE}: compiling, once" if compiling else TITLE, forecast=False)
        expectation = expect(
            logs,
            alpha=config.alpha,
            rounds=config.rounds,
            settings={each.name: each.value for each in suggested},
            seed=config.seed,
            progress=_played(bar),
        )
        values = value_policies(logs)
        bar.advance(VALUED)
        advice = advise(logs, contents, linearity, suggested, expectation, values)
    return Study(config, logs, contents, linearity, suggested, expectation, values, advice)


def _played(bar: ProgressBar) -> Callable[[float], None]:
    """Return what moves a bar on; the first share tells nothing of the others' pace."""
    first = True

    def move(share: float) -> None:
        nonlocal first
        bar.advance(PLAYED * share)
        if first:
            first = False
            bar.turn_to(TITLE)

    return move
