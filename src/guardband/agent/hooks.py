"""Functions of a user's own that hear of decisions and rewards."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from guardband.agent.decision import Decision
from guardband.errors import InvalidTypeError

__all__ = ["Hooked", "Hooks"]

log = logging.getLogger("guardband")

OnDecision = TypeVar("OnDecision", bound=Callable[[Decision], object])
OnReward = TypeVar("OnReward", bound=Callable[[str, float], object])


class Hooks:
    """The hooks of one agent, which are called when it holds no lock, whatever they do."""

    def __init__(self) -> None:
        self.on_decision: list[Callable[[Decision], object]] = []
        self.on_reward: list[Callable[[str, float], object]] = []
        self._failures = 0

    def decided(self, made: list[Decision]) -> list[Decision]:
        """Tell of decisions, and return them."""
        if self.on_decision:
            for decision in made:
                for hook in self.on_decision:
                    self._call(hook, decision)
        return made

    def rewarded(self, names: Sequence[str], rewards: Sequence[float]) -> None:
        """Tell of rewards that were taken in."""
        if self.on_reward:
            for name, reward in zip(names, rewards, strict=True):
                for hook in self.on_reward:
                    self._call(hook, name, reward)

    def _call(self, hook: Callable[..., object], *about: Any) -> None:
        try:
            hook(*about)
        except Exception:  # whatever it is: the decision was made, and its caller plays it
            self._failures += 1
            if self._failures & (self._failures - 1) == 0:  # 1, 2, 4, 8, ...: logs stay readable
                name = getattr(hook, "__qualname__", repr(hook))
                log.exception("guardband: the hook %s failed (%d so far)", name, self._failures)


class Hooked:
    """What an agent tells to functions of the user's own."""

    _hooks: Hooks

    def on_decision(self, hook: OnDecision) -> OnDecision:
        """Call `hook(decision)` after each decision; it can be used as a decorator.

        It runs in the thread that called `decide`, after the decision was made and kept. What it
        raises is logged, and harms neither the agent nor its caller.

        Parameters
        ----------
        hook
            A plain function that returns soon: whoever asked for the decision waits for it.
        """
        self._hooks.on_decision.append(_checked("on_decision", hook))
        return hook

    def on_reward(self, hook: OnReward) -> OnReward:
        """Call `hook(decision_id, reward)` after each reward was taken in; as `on_decision`.

        A live agent takes the same reward twice, and then calls it twice: go by the id.

        Parameters
        ----------
        hook
            A plain function that returns soon.
        """
        self._hooks.on_reward.append(_checked("on_reward", hook))
        return hook


def _checked(name: str, hook: Any) -> Any:
    if not callable(hook):
        raise InvalidTypeError(f"{name} takes a function, not {hook!r}.")
    if inspect.iscoroutinefunction(hook):
        raise InvalidTypeError(
            f"{name} takes a plain function, not the coroutine {hook.__qualname__}: it runs in the "
            "thread that decides. Let it pass the work on, by "
            "asyncio.run_coroutine_threadsafe(..., loop) or a queue."
        )
    return hook
