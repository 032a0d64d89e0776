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
    followed
        When the task started anew because most of its pool had, and nothing was wrong with its own
        rewards: each time, after how many of the agent's decisions.

    Examples
    --------
    >>> import guardband as gb
    >>> agent = gb.Agent(dim=2)
    >>> agent.observe(agent.decide([[0.6, 0.2], [0.1, 0.9]], baseline=0), reward=0.4)
    >>> print(agent.health)
    Nothing was noticed; watched are assumptions, certificates.
    """

    ok: bool
    alarms: tuple[Alarm, ...]
    watched: tuple[str, ...]
    followed: tuple[int, ...] = ()

    def __str__(self) -> str:
        """Return it in words, one line for each alarm."""
        if not self.watched:
            return "Nothing is watched."
        state = "Nothing was noticed" if self.ok else "Something was noticed"
        if self.ok and self.alarms:
            state += " since somebody looked"
        lines = [f"{state}; watched are {', '.join(self.watched)}."]
        lines += [
            f"  round {each.round:,}: {sentence(each.kind)} (evidence {each.evidence:.1f})"
            for each in self.alarms
        ]
        lines += [f"  round {each:,}: {sentence('followed')}" for each in self.followed]
        return "\n".join(lines)


class AlarmLog:
    """The alarms of one agent, and how many of them a person has looked at.

    `followed` is as in `Health`; `unheeded`: nothing was done about the newest alarm yet.
    """

    def __init__(
        self,
        alarms: list[Alarm] | None = None,
        looked_at: int = 0,
        followed: list[int] | None = None,
    ) -> None:
        self.alarms, self.looked_at, self.followed = alarms or [], looked_at, followed or []
        self.unheeded = False

    @property
    def news(self) -> list[Alarm]:
        """The alarms that nobody has looked at."""
        return self.alarms[self.looked_at :]

    def follows(self, plays: float) -> bool:
        """Tell whether the task started anew because its pool did, and nothing is certified yet.

        `plays` are the learned ones of this start.
        """
        last = self.alarms[-1].round if self.alarms else 0
        return bool(self.followed) and not plays and self.followed[-1] >= last

    def told(self, reason: str, plays: float) -> str:
        """Return the reason of a decision, what was noticed, and whether the task followed."""
        keys = list(dict.fromkeys(each.kind for each in self.news))
        keys += ["followed"] if self.follows(plays) else []
        return "; ".join([reason, *map(sentence, keys)])

    def health(self, watched: tuple[str, ...]) -> Health:
        """Return what there is to see."""
        return Health(not self.news, tuple(self.alarms), watched, tuple(self.followed))
