"""A router that sends every prompt to the cheapest language model that is still good enough.

Good enough means an expected quality of at least 95 % of the best model's, for every single
prompt and with the confidence that guardband gives, not on average over prompts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from traffic import GRADE_ERROR, LONGEST, MODELS, MOST_CUES, Model, Prompt

import guardband as gb

ALPHA = 0.05  # the share of the best model's quality that may be lost
STEEPEST = 0.6  # no model loses more of its quality by length, nor by reasoning


def features() -> gb.Features:
    """Return the features of a prompt and a model: each model has slopes of its own.

    Models that join later are listed from the start: a feature that no model on offer has costs
    nothing. Real services leave some names free, such as "next-1".
    """
    return gb.Features(
        numbers={"words": (0, LONGEST), "cues": (0, MOST_CUES)},
        categories={"model": [model.name for model in MODELS]},
        crosses=[("model", "words"), ("model", "cues")],
        intercept=False,
    )


def theta_bound(columns: gb.Features) -> float:
    """Return a bound on the length of theta: qualities are at most 1, slopes at most STEEPEST.

    Rows are divided by a fixed number, and theta is longer by that.
    """
    row = columns.table([{"model": MODELS[0].name, "words": 0, "cues": 0}])
    return math.sqrt(len(MODELS) * (1 + 2 * STEEPEST**2)) / float(row.max())


class GuardedRouter:
    """Routes prompts by a guardband agent: prices are its values, grades its rewards.

    Parameters
    ----------
    models
        The models on offer, the best first: it is the baseline.
    """

    name, learns = "guardband", True

    def __init__(self, models: Sequence[Model]) -> None:
        self.models, columns = list(models), features()
        self.agent = gb.Agent(
            features=columns,
            alpha=ALPHA,
            noise=GRADE_ERROR,  # grades lie within it of their mean, so it bounds their noise
            context_noise=0.0,  # nothing is hidden but that
            theta_bound=theta_bound(columns),
        )

    def learn(self, rows: Iterable[tuple[Prompt, Model]]) -> None:
        """Learn the grades of answers that another rule asked for: of a pilot, or in shadow."""
        played = list(rows)
        self.agent.learn(
            [self._row(prompt, model) for prompt, model in played],
            [prompt.grades[model.name] for prompt, model in played],
        )

    def join(self, model: Model) -> None:
        """Offer a model from now on; it is played once it is certified."""
        self.models.append(model)

    def route(self, prompt: Prompt) -> tuple[Model, gb.Decision]:
        """Return the model to ask, and the decision to report its grade with."""
        decision = self.agent.decide(
            [self._row(prompt, model) for model in self.models],
            baseline=0,
            value=[-model.cost(prompt.words) for model in self.models],
        )
        return self.models[decision.action], decision

    def overridden(self, decision: gb.Decision, name: str) -> None:
        """Say that another model answered, chosen by who saw no more than the prompt's features."""
        names = [model.name for model in self.models]
        self.agent.override(decision, action=names.index(name))

    def graded(self, decision: gb.Decision, grade: float) -> None:
        """Learn the grade of an answer, whenever it comes."""
        self.agent.observe(decision, grade)

    def not_graded(self, decision: gb.Decision) -> None:
        """Forget a decision whose answer nobody grades."""
        self.agent.discard(decision)

    @staticmethod
    def _row(prompt: Prompt, model: Model) -> dict[str, object]:
        return {"model": model.name, "words": prompt.words, "cues": prompt.cues}
