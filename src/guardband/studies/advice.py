"""A recommendation in one paragraph, and the settings of the agent that it recommends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from guardband.report import listed
from guardband.studies.contents import Contents
from guardband.studies.expect import Expectation, Prospect
from guardband.studies.linearity import Linearity
from guardband.studies.logs import StudyLogs
from guardband.studies.suggestions import Suggestion
from guardband.studies.values import Values

__all__ = ["Advice", "advise"]

SELDOM = 0.05  # a rule that plays more than so much beside the baseline varies enough to learn from


@dataclass(frozen=True)
class Advice:
    """What to do.

    Attributes
    ----------
    text
        The recommendation.
    settings
        Those of the agent, for agent.toml.
    mode
        "strict", "trial_budget", "policy", or None: no agent leaves the baseline by itself.
    """

    text: str
    settings: dict[str, Any]
    mode: str | None


def advise(
    logs: StudyLogs,
    contents: Contents,
    linearity: Linearity,
    suggestions: Sequence[Suggestion],
    expectation: Expectation,
    values: Values,
) -> Advice:
    """Return what to do, from all parts of a study."""
    mode, sentences = _mode(expectation, contents)
    sentences += [_learning(logs, expectation, mode), *_model(linearity), _earned(values)]
    if contents.suspects:
        names = listed(list(contents.suspects))
        sentences.insert(
            0,
            f"First look at {names}: nobody who chooses an action may know the reward, and "
            "something in the rows does. Leave out what was not known beforehand, and study again.",
        )
    settings = {each.name: each.value for each in suggestions if each.value is not None}
    stated = {each.name for each in suggestions if each.because == "it was stated"}
    if mode == "policy" and "mode" not in stated:
        settings["mode"] = "policy"
    if mode == "trial_budget" and "trial_budget" not in stated:
        settings["trial_budget"] = float(f"{expectation.budget:.3g}")
    unsure = [each.name for each in suggestions if each.sure == "can't tell"]
    if unsure:
        sentences.append(f"Check {listed(unsure)} yourself: the rows cannot tell.")
    return Advice(" ".join(filter(None, sentences)), settings, mode)


def _mode(expectation: Expectation, contents: Contents) -> tuple[str | None, list[str]]:
    """Return the most cautious mode in which an agent leaves the baseline, and why it is that."""
    if contents.rewards["std"] == 0.0 or contents.rows["labels"] < 2:
        what = "all rewards are alike" if contents.rows["labels"] > 1 else "there is one action"
        return None, [f"There is nothing to learn from these rows: {what}."]
    strict, trial, policy = (
        getattr(expectation, mode).with_logs for mode in ("strict", "trial_budget", "policy")
    )
    if strict.can_leave:
        return "strict", [
            "Switch on an agent in strict mode, the default: every play keeps the floor, and "
            f"{_soon(strict)}."
        ]
    found = []
    if strict.can_leave is None:
        found.append(
            f"Whether strict mode leaves the baseline, the logs cannot tell: {strict.because}."
        )
    else:
        found.append(f"Strict mode will stay at the baseline: {strict.because}.")
    if trial.can_leave:
        return "trial_budget", [
            *found,
            f"With a budget for trials of {expectation.budget:.3g} units of reward it leaves it: "
            f"{_soon(trial)}, at a cost of about {_cost(trial)}.",
        ]
    if policy.can_leave:
        return "policy", [
            *found,
            'mode="policy", which promises the floor for the randomised choice and not for every '
            f"play, leaves it: {_soon(policy)}, at a cost of about {_cost(policy)}.",
        ]
    if strict.can_leave is None:
        return "strict", [*found, "It is safe to try: what is not certified is not played."]
    return None, found + _staying(expectation, contents)


def _staying(expectation: Expectation, contents: Contents) -> list[str]:
    """Return what to say where no agent is expected to leave the baseline."""
    found, strict = [], expectation.strict.with_logs
    named = {
        "a budget for trials": expectation.trial_budget.with_logs,
        "policy mode": expectation.policy.with_logs,
    }
    unclear = {name: each for name, each in named.items() if each.can_leave is None}
    for name, each in unclear.items():
        found.append(f"Whether {name} leads away from it, the logs cannot tell: {each.because}.")
    if not unclear:
        found.append(
            "Nor do a budget for trials or policy mode lead away from it within "
            f"{expectation.rounds:,} rounds."
        )
    if strict.settled:
        return [*found, "Then there is nothing to gain; the rule that you have will do."]
    if not unclear:
        found.append("Do not expect an agent with these features to learn.")
    return [*found, _remedies(strict, contents)]


def _remedies(strict: Prospect, contents: Contents) -> str:
    """Return what could make an agent learn that stays at the baseline."""
    found = []
    if strict.blocked_by:
        found.append("describe actions by features that they share with the baseline")
    if contents.rows["baseline_played"] > 1.0 - SELDOM:
        found.append(
            "let the rule you have play other actions at random now and then, and study those logs"
        )
    if not found:
        found.append("collect more rows, or look further ahead with --rounds")
    text = "; or ".join(found)
    return f"{text[0].upper()}{text[1:]}."


def _soon(prospect: Prospect) -> str:
    if prospect.first_learned is None:
        return "learned plays come within the rounds"
    first = (
        "from the first round on"
        if prospect.first_learned <= 1
        else (f"from about round {prospect.first_learned:,} on")
    )
    half = (
        ""
        if prospect.half_learned is None or prospect.half_learned <= prospect.first_learned
        else f", half of the plays by about round {prospect.half_learned:,}"
    )
    return f"learned plays are to be expected {first}{half}"


def _cost(prospect: Prospect) -> str:
    return f"{prospect.cost:.3g} units of reward against the baseline"


def _learning(logs: StudyLogs, expectation: Expectation, mode: str | None) -> str:
    """Return whether the rows that are left should be learned."""
    if mode is None or not logs.left:
        return ""
    outcomes = getattr(expectation, mode)
    told = f"Let it learn the {logs.left:,} rows that were not looked at first"
    alone = outcomes.without_logs
    if alone.can_leave and alone.first_learned is not None:
        first = f"{alone.first_learned:,}"
        return f"{told}; without them the first learned play is at about round {first}."
    return f"{told}: without them it is not expected to leave the baseline."


def _model(linearity: Linearity) -> list[str]:
    words = {True: "is good enough", False: "is not good enough", None: "may or may not do"}
    found = [f"A linear model {words[linearity.good_enough]}: {linearity.because}."]
    if linearity.crosses:
        best = " and ".join(f"{' x '.join(names)}" for names, _ in linearity.crosses[:2])
        found.append(f"Crosses would help: {best}.")
    return found


def _earned(values: Values) -> str:
    text = values.because
    return f"{text[0].upper()}{text[1:]}."
