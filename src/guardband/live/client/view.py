"""What can be read of a live agent: its name, its counts, its estimate, and how it is shown."""

from __future__ import annotations

from pathlib import Path

from guardband.agent import Health, Outlook
from guardband.features import Features
from guardband.html_tables import html_table
from guardband.kernels.types import Floats
from guardband.live.client.agent_store import AgentStore
from guardband.live.client.look_ahead import make_outlook
from guardband.live.client.self_report import make_report
from guardband.live.protocol.messages import Report
from guardband.live.protocol.space import SpaceSettings
from guardband.uplift import LEVEL, Uplift, uplift_of

__all__ = ["LiveAgentView"]


class LiveAgentView:
    """What can be read of a live agent."""

    _store: AgentStore
    _folder: Path
    _closed: bool

    def _opened(self) -> AgentStore:
        """Return the store; refuse once closed."""
        raise NotImplementedError

    def __repr__(self) -> str:
        state = "closed"
        if not self._closed:
            state = f"{self.rounds:,} decisions, {self.pending:,} without a reward"
        space, setup = self._store.state.space, self._store.setup
        used = f"{len(setup.uses)} of {space.dim} features"
        return f"<LiveAgent {self.name!r}: {space.algorithm}, {used}, {state}>"

    def _repr_html_(self) -> str:
        space, setup = self._store.state.space, self._store.setup
        alpha = space.alphas.get(setup.task, space.alpha)
        rows = [
            ("space", setup.space),
            ("state folder", self._folder),
            ("algorithm", space.algorithm),
            ("alpha", "no constraint" if alpha is None else f"{alpha:g}"),
            ("features", f"{len(setup.uses)} of {space.dim}"),
        ]
        if not self._closed:
            with self._opened() as state:
                rows += [
                    ("decisions", f"{state.last:,}"),
                    ("without a reward", f"{self._store.pending:,}"),
                    ("counted", f"{state.n:,}"),
                    ("epoch", f"{state.stream.epoch:,}"),
                    ("rows looked at before", f"{state.learner.reused:,}"),
                ]
        return html_table(f"Live agent {self.name!r}{' (closed)' if self._closed else ''}", rows)

    @property
    def name(self) -> str:
        """The task's name."""
        return self._store.setup.task

    @property
    def state_dir(self) -> Path:
        """Where the journal is."""
        return self._folder

    @property
    def settings(self) -> SpaceSettings:
        """The settings of the space, as far as the agent knows them."""
        with self._opened() as state:
            return state.space

    @property
    def features(self) -> Features | None:
        """The named features of the space, where it has them; they count what did not fit."""
        return self.settings.named

    @property
    def pending(self) -> int:
        """How many decisions have not ended: their reward, or their turn, is still to come."""
        with self._opened():
            return self._store.pending

    @property
    def rounds(self) -> int:
        """How many decisions are in this agent's journal, or have been."""
        with self._opened() as state:
            return state.last

    @property
    def counted(self) -> int:
        """How many observations of this agent's stream count; a new start begins with none."""
        with self._opened() as state:
            return state.n

    @property
    def health(self) -> Health:
        """What its monitors have noticed; see `gb.Health`."""
        with self._opened() as state:
            return state.alarms.health(state.learner.monitors.kinds)

    @property
    def epoch(self) -> int:
        """The epoch whose sums are in use; 0: none."""
        with self._opened() as state:
            return state.stream.epoch

    @property
    def theta(self) -> Floats:
        """(d,): the estimate of the parameter, from the agent's own and the pooled data."""
        with self._opened() as state:
            theta: Floats = state.learner.state.estimate.theta.copy()
            return theta

    def outlook(self) -> Outlook:
        """Return whether the agent will leave the baseline, what is in its way and what helps.

        It is rough, computed from the newest decisions in the journal in a fraction of a second.
        """
        return make_outlook(self._opened())

    def uplift(self, level: float = LEVEL) -> Uplift:
        """Return what its choices earn over the baseline, per round; it needs a holdback.

        As `gb.Agent.uplift`, since the holdback was last changed: across restarts, alarms and new
        streams. A copy of a state folder begins anew.
        """
        with self._opened() as state:
            sums = state.before.gains.plus(*state.gains)
            return uplift_of(sums, state.learner.group.reach, level)

    def report(self) -> Report:
        """Return the report of the agent that the dashboard shows."""
        store = self._opened()
        return store.undamaged(lambda: make_report(store))

    @property
    def full_speed(self) -> bool:
        """Whether its kernels are compiled; until then it decides slowly, or by the baseline."""
        return self._opened().state.learner.full_speed
