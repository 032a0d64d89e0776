"""What logs taught an agent: how well it knew each feature and action before and after."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from guardband.kernels.types import Floats

__all__ = ["Learned", "MenuWidths"]

LITTLE = 0.5  # an interval that shrank by less was hardly learned about
LINES = 12  # of one kind, in a text


@dataclass(frozen=True, eq=False)
class MenuWidths:
    """How well the actions of one menu are known, before and after.

    Attributes
    ----------
    baseline
        The row of the baseline, if it was said.
    before, after
        (K,): half the width of the confidence interval of each action's expected reward.
    lead_before, lead_after
        (K,): the same of each action's lead over (1 - alpha) times the baseline's reward, by which
        it is certified; None without a baseline.
    """

    baseline: int | None
    before: Floats
    after: Floats
    lead_before: Floats | None
    lead_after: Floats | None

    @property
    def not_learned(self) -> list[int]:
        """The actions whose interval did not shrink by half."""
        return _little(self.before, self.after)


@dataclass(frozen=True, eq=False)
class Learned:
    """What `learn` has learned from logs.

    Attributes
    ----------
    rows
        How many rows were learned.
    features
        The task's features, in order.
    before, after
        (size of the task,): half the width of the confidence interval of the parameter of each
        feature, beta sqrt(e_i'V^-1 e_i), before and after the rows.
    menus
        The same for the actions of every menu that was given.
    names
        What the features are called, in the same order; empty where the agent knows no names.
    always
        The share of rows whose propensity was 1, which no other action could have been; None where
        propensities were not given.
    known
        How many rows a live agent left out, because it had learned them before.
    reused
        How many of the rows had been looked at: promises that rest on them are "reused".

    Examples
    --------
    >>> import guardband as gb
    >>> print(gb.Agent(dim=2).learn([[0.6, 0.2], [0.1, 0.9]] * 200, [0.4, 0.8] * 200))
    400 rows learned. Half the widths of confidence intervals:
      feature 0: 3.98 before, 0.262 after
      feature 1: 3.98 before, 0.17 after
    """

    rows: int
    features: tuple[int, ...]
    before: Floats
    after: Floats
    menus: tuple[MenuWidths, ...] = ()
    names: tuple[str, ...] = ()
    always: float | None = None
    known: int = 0
    reused: int = 0

    @property
    def not_learned(self) -> list[int]:
        """The features whose interval did not shrink by half."""
        return [self.features[i] for i in _little(self.before, self.after)]

    @property
    def helps(self) -> bool:
        """Whether something that had been in question is known better.

        With menus: whether the interval of an action other than the baseline has shrunk by half or
        more; without: that of a feature.
        """
        if not self.menus:
            return len(self.not_learned) < len(self.features)
        alternatives = (
            set(range(menu.after.size)) - {menu.baseline} - set(menu.not_learned)
            for menu in self.menus
        )
        return any(alternatives)

    @property
    def _called(self) -> Sequence[str | int]:
        return self.names or self.features

    def __str__(self) -> str:
        """Return the widths, and what the logs say little about, in words."""
        before = f", {self.known:,} known before" if self.known else ""
        again = f", {self.reused:,} of them looked at before" if self.reused else ""
        lines = [
            f"{self.rows:,} rows learned{again}{before}. Half the widths of confidence intervals:"
        ]
        lines += _listed(
            f"  feature {name}: {one:.3g} before, {other:.3g} after"
            for name, one, other in zip(self._called, self.before, self.after, strict=True)
        )
        for number, menu in enumerate(self.menus):
            lines += _listed(
                f"  menu {number}, action {k}: {one:.3g} before, {other:.3g} after"
                for k, (one, other) in enumerate(zip(menu.before, menu.after, strict=True))
            )
        return "\n".join(lines + self._gaps())

    def _gaps(self) -> list[str]:
        """Return what the rows say little about, of actions where there are menus, and advice.

        Features that always come together are not known one by one, though actions may be.
        """
        found = [
            f"action{_several(menu.not_learned)} of menu {number}"
            for number, menu in enumerate(self.menus)
            if menu.not_learned
        ]
        if not self.menus and self.not_learned:
            little = [self._called[i] for i in _little(self.before, self.after)]
            found = [f"feature{_several(little)}"]
        if not found:
            return []
        text = f"The rows say little about {', '.join(found)}: the interval did not shrink by half."
        if self.always == 1.0:
            text += " Every row was the only action that could have been played (propensity 1)."
        elif self.always is not None:
            text += f" {self.always:.0%} of the rows had no alternative (propensity 1)."
        advice = (
            " If the rule that was logged plays nothing like that, more of its rows will not help: "
            "rows in which it was played will, or trials by the agent."
        )
        return [
            text + advice + ("" if self.menus else " menus=... shows what is known of actions.")
        ]


def _little(before: Floats, after: Floats) -> list[int]:
    return [int(i) for i in np.flatnonzero(~(after <= LITTLE * before))]


def _listed(lines: Iterator[str]) -> list[str]:
    """Return the first lines, and how many more there are."""
    every = list(lines)
    rest = len(every) - LINES
    return every if rest <= 0 else [*every[:LINES], f"  and {rest} more"]


def _several(numbers: Sequence[str | int]) -> str:
    """Return an `s` where there are several, and the first of them."""
    shown = ", ".join(map(str, numbers[:LINES])) + (", ..." if len(numbers) > LINES else "")
    return f"{'s' if len(numbers) > 1 else ''} {shown}"
