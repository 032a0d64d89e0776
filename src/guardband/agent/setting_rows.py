"""The settings of agents as kernels read them, and those that change while agents run."""

from __future__ import annotations

from guardband.kernels.types import Floats, Terms, Trigger

__all__ = ["SettingRows"]

CONFIDENCE, ALLOWANCE = (Terms._fields.index(name) for name in ("confidence", "allowance"))
MOVED, ALARM = (Terms._fields.index(name) for name in ("moved", "alarm"))
TRIGGER = [Terms._fields.index(name) for name in ("trigger", "budget", "agents")]


class SettingRows:
    """Rows of settings, one for each agent.

    Parameters
    ----------
    known, unknown
        With the baseline's reward known, and without.
    """

    def __init__(self, known: list[Floats], unknown: list[Floats]) -> None:
        self.known, self.unknown = known, unknown

    def _set(self, place: int, value: float) -> None:
        for row in (*self.known, *self.unknown):
            row[place] = value

    @property
    def confidence(self) -> float:
        """2 log(1 / delta) as it is used now."""
        return float(self.known[0][CONFIDENCE])

    def set_confidence(self, confidence: float) -> None:
        """Let `confidence` stand for 2 log(1 / delta) from now on, in what is called epoch 1."""
        self._set(CONFIDENCE, confidence)

    def set_alarm(self, enough: float) -> None:
        """Let monitors raise alarms once their evidence is `enough`, in the first start."""
        self._set(ALARM, enough)

    @property
    def terms_now(self) -> Terms:
        """The terms as they are used now, of the first agent."""
        return Terms(*self.known[0][: len(Terms._fields)].tolist())

    @property
    def allowance(self) -> float:
        """What agents may be charged with in all; NaN: there is none."""
        return float(self.known[0][ALLOWANCE])

    def set_allowance(self, allowance: float) -> None:
        """Let `allowance` be what agents may be charged with in all from now on; NaN: none."""
        self._set(ALLOWANCE, allowance)

    def set_moved(self, moved: float) -> None:
        """Let `moved` be what a declared drift has changed by now."""
        self._set(MOVED, moved)

    def set_trigger(self, trigger: Trigger, budget: float, agents: int) -> None:
        """Let `learn` call for a pooling by this trigger, among so many agents."""
        for row in self.known:
            row[TRIGGER] = trigger, budget, agents
