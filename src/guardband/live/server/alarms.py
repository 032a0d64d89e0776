"""What the monitors of tasks notice, in words for operators."""

from __future__ import annotations

from typing import NamedTuple

from guardband.live.protocol.space import SpaceSettings

__all__ = ["ALARMS", "Noticed", "watches_fit"]

# What monitors notice, in a sentence, and what to do about it.
ALARMS = {
    "assumptions": (
        "rewards contradict one linear, lasting parameter: the world has changed, or features "
        "do not fit",
        "see what changed; where the world is known to move, declare a window; then say that you "
        "have looked (resume the task)",
    ),
    "certificates": (
        "learned plays earned less than was certified: promises may have failed before it",
        "see what those plays had in common, and whether their rewards are reported right; then "
        "say that you have looked (resume the task)",
    ),
    "fit": (
        "its rewards contradict those that tasks have pooled: it goes on without the others",
        "compare what its features and rewards mean with the others; then readmit it, or give it a "
        "space of its own",
    ),
}


class Noticed(NamedTuple):
    """What monitors have noticed, and nobody has looked at yet."""

    times: int
    round: int  # of the last time, by the task's decisions
    age_s: float  # of the last time


def watches_fit(space: SpaceSettings) -> bool:
    """Tell whether tasks look by themselves whether they fit the others, and leave if not."""
    policy = space.learner()
    return bool(space.agents > 1 and getattr(policy, "delta_alarm", None) and not space.drift)
