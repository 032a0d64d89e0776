"""What an agent decided, why, and what it promises."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from guardband.agent.weighed import Weighed
from guardband.html_tables import html_table
from guardband.kernels.types import Floats

__all__ = ["CertifiedAction", "Decision"]


class CertifiedAction(NamedTuple):
    """An action that is certified to clear the floor.

    Attributes
    ----------
    action
        Its row.
    lower
        The lower confidence bound of its expected reward.
    margin
        By how much it is certain to clear the floor.
    value
        What it is worth to the caller; None where no value was given.
    """

    action: int
    lower: float
    margin: float
    value: float | None


class Decision(NamedTuple):
    """One decision of one agent.

    Attributes
    ----------
    id
        What to give to `observe` with the reward.
    action
        The row of the features to play.
    kind
        "learned": an action other than the baseline, certified and chosen by what was learned
        (an algorithm without a constraint certifies nothing); "explored": a coin chose an action
        that is not certified; "trial": such an action in strict mode, charged to the budget for
        trials; "baseline": the baseline, to be safe, because it is itself
        the most promising action, because nothing was observed yet, or because the holdback's
        coin held the choice back; the reason says which.
    reason
        Why, in a sentence.
    mean, lower, upper
        The expected reward of the action played, as estimated, and its confidence bounds.
    floor
        (1 - alpha) times the baseline's reward, or times its upper bound where it is not known;
        NaN where there is no constraint.
    propensity
        The probability with which this action was played, the holdback's coin counted.
    margin
        By how much the action, or the mixture it was drawn from, is certain to clear the floor;
        negative where nothing but the baseline itself stands for it.
    promise
        What is promised about it: "play" (this action clears the floor), "policy" (the randomised
        choice does), "trial" (it falls short of the floor by at most what it was charged with),
        "reused" (it would be one of these, but rows of logs were learned that had been looked at
        when the agent was set up), "baseline" (it is the baseline) or "none".
    certificate
        By what: "difference" (its lead over the share of the baseline's reward), "lead" (it is
        worth the baseline or more), "reward" (its lower bound against the reported reward),
        "context" (the difference, and the context that is drawn), "bounded" (the difference, and
        with `realised` the context, given that every action has an expected reward in [0, 1]),
        "pooled" (one of the first three, by the set from pooled data alone), "leave one out" (one
        of these, without the data of any one other task), "baseline", "mixture" (of a coin),
        "pruned set" (the paper's), "trial" (no certificate: a charge), or "none".
    budget_left
        What is left, after this decision, of `trial_budget` or `max_loss`; None: there is none.
    weighed
        What is known of all actions: `certified` and `table` read it. It is computed when it is
        asked for, by what was known at the decision.
    label
        The label of the action: of its row in a DataFrame's index, or in `labels`; else None.
    value
        (K,): what each action is worth to the caller; None where no value was given.
    cost, cost_left
        What the play was charged with, and what is then left of the `budget`; None: there is none.

    Examples
    --------
    >>> import guardband as gb
    >>> agent = gb.Agent(dim=2)
    >>> _ = agent.learn([[0.6, 0.2], [0.1, 0.9]] * 200, [0.4, 0.8] * 200)
    >>> decision = agent.decide([[0.6, 0.2], [0.1, 0.9]], baseline=0)
    >>> print(decision.action, decision.kind, f"{decision.lower:.2f} above {decision.floor:.2f}")
    1 learned 0.65 above 0.49
    """

    id: str
    action: int
    kind: str
    reason: str
    mean: float
    lower: float
    upper: float
    floor: float
    propensity: float
    margin: float
    promise: str
    certificate: str
    budget_left: float | None
    weighed: Weighed
    label: Any = None
    value: Floats | None = None
    cost: float | None = None
    cost_left: float | None = None

    def _repr_html_(self) -> str:
        played = self.action if self.label is None else f"{self.label} (row {self.action})"
        rows = [
            ("action", played),
            ("kind", self.kind),
            ("reason", self.reason),
            ("promise", f"{self.promise}, by {self.certificate}"),
            ("expected reward", f"{self.mean:.4g}, between {self.lower:.4g} and {self.upper:.4g}"),
            ("floor", "none" if math.isnan(self.floor) else f"{self.floor:.4g}"),
            ("margin", "none" if math.isnan(self.margin) else f"{self.margin:.4g}"),
            ("propensity", f"{self.propensity:.4g}"),
            ("certified", f"{self.certified.sum():,} of {self.certified.size:,} actions"),
        ]
        if self.budget_left is not None:
            rows.append(("budget left", f"{self.budget_left:.4g}"))
        return html_table(f"Decision {self.id}", rows)

    @property
    def certified(self) -> NDArray[np.bool_]:
        """One boolean per action: whether it is certified to clear the floor."""
        return self.weighed.certified

    @property
    def table(self) -> Floats | None:
        """(3, K): the estimated reward of every action, its lower confidence bound, its margin.

        The margin is the certified lead over the floor; `choices` reads it.
        """
        return self.weighed.table

    @property
    def safe_actions(self) -> list[int]:
        """The actions that are certified to clear the floor."""
        return [int(k) for k in np.flatnonzero(self.certified)]

    @property
    def choices(self) -> list[CertifiedAction]:
        """The certified actions, best first: by value, else by estimated reward."""
        if self.table is None:
            return []
        (mean, lower, margin), value = self.table.tolist(), self.value
        worth = mean if value is None else value.tolist()
        order = sorted(self.safe_actions, key=lambda k: (-worth[k], -mean[k], k))
        return [
            CertifiedAction(k, lower[k], margin[k], None if value is None else worth[k])
            for k in order
        ]


def chosen_words(reason: str, *, itself: bool, known: bool) -> tuple[str, str]:
    """Return the kind and the reason of an action that the algorithm preferred.

    Parameters
    ----------
    reason
        Why, if the action was learned.
    itself
        Whether the action is the baseline.
    known
        Whether there were data to learn from.
    """
    if known and not itself:
        return "learned", reason
    return "baseline", "itself" if known else "no-data"
