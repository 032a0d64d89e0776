"""What an agent's monitors have noticed, and what is done about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from guardband.reasons import sentence

__all__ = ["Alarm", "AlarmLog", "Health"]


class Alarm(NamedTuple):
    """Something that was noticed.

    Attributes
    ----------
    kind
        "assumptions": the task's rewards contradict one linear, lasting parameter. "certificates":
        learned plays earned less than their certified lower bounds. "fit": the task's own data
        contradict what tasks have pooled.
    round
        After how many of the agent's decisions.
    evidence
        The natural logarithm of the e-value: how many times more probable, by that, the rewards
        are if something is wrong.
    """

    kind: str
    round: int
    evidence: float


@dataclass(frozen=True)
class Health:
    """Whether an agent's monitors have noticed anything.

    Attributes
    ----------
    ok
        No alarm was raised since a person last looked, which `agent.resume()` says.
    alarms
        All of them, the oldest first.
    watched
        The kinds of alarms that can be raised; none for algorithms without monitors.
    """

    ok: bool
    alarms: tuple[Alarm, ...]
    watched: tuple[str, ...]

    def __str__(self) -> str:
        """Return it in words, one line for each alarm."""
        if not self.watched:
            return "Nothing is watched."
        state = "Nothing was noticed" if self.ok else "Something was noticed"
        lines = [f"{state}; watched are {', '.join(self.watched)}."]
        lines += [
            f"  round {each.round:,}: {sentence(each.kind)} (evidence {each.evidence:.1f})"
            for each in self.alarms
        ]
        return "\n".join(lines)


class AlarmLog:
    """The alarms of one agent, and how many of them a person has looked at."""

    def __init__(self, alarms: list[Alarm] | None = None, looked_at: int = 0) -> None:
        self.alarms, self.looked_at = alarms or [], looked_at

    @property
    def news(self) -> list[Alarm]:
        """The alarms that nobody has looked at."""
        return self.alarms[self.looked_at :]

    def told(self, reason: str) -> str:
        """Return the reason of a decision, and what was noticed."""
        kinds = dict.fromkeys(each.kind for each in self.news)
        return "; ".join([reason, *map(sentence, kinds)])

    def health(self, watched: tuple[str, ...]) -> Health:
        """Return what there is to see."""
        return Health(not self.news, tuple(self.alarms), watched)
