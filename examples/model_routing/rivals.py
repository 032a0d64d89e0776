"""Other ways to route, each with the data that the guarded router has, and no promise per prompt.

All of them aim at the same 95 %: the first two on average, the third by its best guess.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from router import ALPHA, features, theta_bound
from traffic import GRADE_ERROR, Model, Prompt

import guardband as gb

Floats = NDArray[np.float64]
RECALIBRATE = 500  # grades after which a threshold is set anew


class Fits:
    """Least squares of every model's grades, and the prompts that were seen: the usual start."""

    def __init__(self, models: Sequence[Model]) -> None:
        self.models = list(models)
        self._sums: dict[str, tuple[Floats, Floats]] = {}
        self._prompts: list[list[float]] = []

    @staticmethod
    def row(prompt: Prompt) -> list[float]:
        """Return what is seen of a prompt."""
        return [1.0, prompt.words, prompt.cues]

    def add(self, prompt: Prompt, model: Model, grade: float) -> None:
        """Count a grade."""
        row = self.row(prompt)
        gram, moment = self._sums.setdefault(model.name, (1e-3 * np.eye(3), np.zeros(3)))
        gram += np.outer(row, row)
        moment += grade * np.array(row)
        self._prompts.append(row)

    def qualities(self, rows: Floats | None = None) -> Floats:
        """Return the estimated quality of every model for these prompts, or for all seen ones."""
        seen = np.array(self._prompts) if rows is None else rows
        known = [self._sums.get(model.name) for model in self.models]
        return np.stack(
            [
                np.zeros(len(seen)) if sums is None else seen @ np.linalg.solve(*sums)
                for sums in known
            ],
            axis=1,
        )


class AlwaysBest:
    """Asks the best model, whatever it costs."""

    name, learns = "always atlas", False

    def __init__(self, models: Sequence[Model]) -> None:
        self.models = list(models)

    def learn(self, rows: Iterable[tuple[Prompt, Model]]) -> None:
        """Learn nothing."""

    def join(self, model: Model) -> None:
        """Ignore a model."""

    def route(self, prompt: Prompt) -> tuple[Model, object]:
        """Return the first model."""
        return self.models[0], None

    def graded(self, decision: object, grade: float) -> None:
        """Learn nothing."""

    def not_graded(self, decision: object) -> None:
        """Forget nothing."""


class ThresholdRouter(AlwaysBest):
    """A weak and a strong model, and a threshold on what the weak one is estimated to lose.

    As such routers are meant: the threshold sends as many prompts to the weak model as a mean
    quality of 95 % allows, by the grades so far. The weak model is the one with which that is
    cheapest.
    """

    name, learns = "threshold router", True

    def __init__(self, models: Sequence[Model]) -> None:
        super().__init__(models)
        self.fits, self.new = Fits(self.models), 0
        self.weak, self.threshold = 0, -np.inf

    def learn(self, rows: Iterable[tuple[Prompt, Model]]) -> None:
        """Learn grades, and set the threshold anew."""
        for prompt, model in rows:
            self._count(prompt, model, prompt.grades[model.name])

    def join(self, model: Model) -> None:
        """Offer a model; what it is worth is known with its first grades."""
        self.models.append(model)
        self.fits.models.append(model)

    def route(self, prompt: Prompt) -> tuple[Model, object]:
        """Return the weak model where it loses little."""
        if self.new >= RECALIBRATE:
            self.calibrate()
        (quality,) = self.fits.qualities(np.array([self.fits.row(prompt)]))
        weak = quality[0] - quality[self.weak] <= self.threshold
        model = self.models[self.weak if weak else 0]
        return model, (prompt, model)

    def graded(self, decision: object, grade: float) -> None:
        """Learn a grade."""
        prompt, model = decision  # type: ignore[misc]
        self._count(prompt, model, grade)

    def _count(self, prompt: Prompt, model: Model, grade: float) -> None:
        self.fits.add(prompt, model, grade)
        self.new += 1

    def calibrate(self) -> None:
        """Choose the weak model and the threshold."""
        quality, self.new = self.fits.qualities(), 0
        strong, cheapest = quality[:, 0], np.inf
        for k, model in enumerate(self.models):
            lost = np.sort(strong - quality[:, k])
            share = np.cumsum(lost) <= ALPHA * strong.sum()
            count = int(np.flatnonzero(share)[-1]) + 1 if share.any() else 0
            spent = count * model.price + (lost.size - count) * self.models[0].price
            if count and spent < cheapest:
                cheapest, self.weak, self.threshold = spent, k, float(lost[count - 1])


class EstimateRouter(ThresholdRouter):
    """The cheapest model whose estimated quality is 95 % of the best one's: no confidence."""

    name = "cheapest by estimate"

    def route(self, prompt: Prompt) -> tuple[Model, object]:
        """Return the cheapest that looks good enough."""
        (quality,) = self.fits.qualities(np.array([self.fits.row(prompt)]))
        good = np.flatnonzero(quality >= (1.0 - ALPHA) * quality[0])
        model = min((self.models[k] for k in good), key=lambda each: each.price)
        return model, (prompt, model)


class BanditRouter:
    """LinUCB on quality less a price of money: the usual bandit for this, with no floor.

    The price is the highest at which, by the grades of the pilot, the mean quality is 95 % of the
    best model's. It has the guarded router's features and bounds.
    """

    name, learns = "bandit without a floor", True

    def __init__(self, models: Sequence[Model]) -> None:
        self.models, self.fits, self.price = list(models), Fits(models), 0.0
        self.agent: gb.Agent | None = None

    def learn(self, rows: Iterable[tuple[Prompt, Model]]) -> None:
        """Learn grades; the first time, the pilot's, they set the price of money as well."""
        played = list(rows)
        if self.agent is None:
            for prompt, model in played:
                self.fits.add(prompt, model, prompt.grades[model.name])
            self.price = self._highest_price()
            self.agent = self._agent()
        self.agent.learn(
            [self._row(prompt, model) for prompt, model in played],
            [self._reward(model, prompt.grades[model.name]) for prompt, model in played],
        )

    def join(self, model: Model) -> None:
        """Offer a model."""
        self.models.append(model)

    def route(self, prompt: Prompt) -> tuple[Model, object]:
        """Return the most promising model."""
        assert self.agent is not None, "it starts from a pilot"
        decision = self.agent.decide([self._row(prompt, model) for model in self.models], 0)
        model = self.models[decision.action]
        return model, (decision, model)

    def graded(self, decision: object, grade: float) -> None:
        """Learn a grade."""
        made, model = decision  # type: ignore[misc]
        assert self.agent is not None
        self.agent.observe(made, self._reward(model, grade))

    def not_graded(self, decision: object) -> None:
        """Forget a decision whose answer nobody grades."""
        assert self.agent is not None
        self.agent.discard(decision[0])  # type: ignore[index]

    def _agent(self) -> gb.Agent:
        columns = features()
        noise, bound = GRADE_ERROR / (1.0 + self.price), theta_bound(columns)
        return gb.Agent(
            features=columns,
            algorithm="lin-ucb",
            noise=noise,
            context_noise=0.0,
            theta_bound=bound,
            ridge=(noise / bound) ** 2,  # the guarded router's, in these units
            delta=1e-3,
        )

    def _reward(self, model: Model, grade: float) -> float:
        """Return quality less cost, moved to [0, 1]; it is linear in the features as well."""
        saved = 1.0 - model.price / self.models[0].price
        return (grade + self.price * saved) / (1.0 + self.price)

    def _highest_price(self) -> float:
        quality = self.fits.qualities()
        paid = np.array([model.price / self.models[0].price for model in self.models])
        wanted = (1.0 - ALPHA) * quality[:, 0].mean()
        low, high = 0.0, 10.0
        for _ in range(40):
            price = 0.5 * (low + high)
            chosen = np.argmax(quality - price * paid, axis=1)
            enough = quality[np.arange(chosen.size), chosen].mean() >= wanted
            low, high = (price, high) if enough else (low, price)
        return low

    @staticmethod
    def _row(prompt: Prompt, model: Model) -> dict[str, object]:
        return {"model": model.name, "words": prompt.words, "cues": prompt.cues}
