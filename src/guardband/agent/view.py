"""What can be read of an agent: its name, its counts, its estimate, and how it is shown."""

from __future__ import annotations

from typing import Any

import numpy as np

from guardband.agent.alarms import resume
from guardband.agent.group import AgentGroup
from guardband.agent.health import Health
from guardband.features import Features
from guardband.html_tables import html_table
from guardband.kernels.types import Floats

__all__ = ["AgentView", "about_group"]


class AgentView:
    """What can be read of an agent of a group."""

    _group: AgentGroup
    _number: int

    def __repr__(self) -> str:
        group = self._group
        state = f"{self.rounds:,} decisions, {self.pending:,} without a reward"
        used = f"{group.coords[self._number].size} of {group.dim} features"
        return f"<Agent {self.name!r}: {group.algorithm.name}, {used}, {state}>"

    def _repr_html_(self) -> str:
        group = self._group
        with group.lock:
            rows = [
                *about_group(group),
                ("decisions", f"{self.rounds:,}"),
                ("without a reward", f"{self.pending:,}"),
                ("rows of logs", f"{group.rows[self._number]:,}"),
                ("rows looked at before", f"{group.engine.reused(self._number):,}"),
                ("alarms", f"{len(group.alarms[self._number].alarms):,}"),
            ]
        return html_table(f"Agent {self.name!r}", rows)

    @property
    def name(self) -> str:
        """The task's name."""
        return self._group.names[self._number]

    @property
    def features(self) -> Features | None:
        """The named features that it was made with; `features.counts` says what did not fit."""
        return self._group.features

    @property
    def pending(self) -> int:
        """How many decisions still wait for their reward."""
        return len(self._group.pending[self._number])

    @property
    def rounds(self) -> int:
        """How many decisions this agent has made."""
        return self._group.rounds[self._number]

    @property
    def theta(self) -> Floats:
        """(d,): the estimate of the parameter, from the agent's own and the pooled data."""
        with self._group.lock:
            theta: Floats = self._group.states[self._number].estimate.theta.copy()
            return theta

    @property
    def health(self) -> Health:
        """What the agent's monitors have noticed; `gb.Health`."""
        with self._group.lock:
            return self._group.alarms[self._number].health(self._group.watched)

    def resume(self) -> None:
        """Say that a person has looked at the alarms: the agent is held to the baseline no longer.

        A task that left the pool stays apart; `gb.Fleet.readmit` lets it back.
        """
        with self._group.lock:
            resume(self._group, self._number)


def about_group(group: AgentGroup) -> list[tuple[str, str]]:
    """Return what all agents of a group have in common, in words."""
    alpha = getattr(group.algorithm, "alpha", None)
    names = [] if group.features is None else list(group.features.columns)
    features = f"{group.dim}" + (f": from {', '.join(names)}" if names else "")
    return [
        ("algorithm", group.algorithm.name),
        ("alpha", "no constraint" if alpha is None else _numbers(alpha)),
        ("features", features),
    ]


def _numbers(alpha: Any) -> str:
    return ", ".join(f"{each:g}" for each in np.atleast_1d(alpha).tolist())
