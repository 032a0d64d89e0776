"""What happens to live agents when their process forks, as web servers do."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Protocol

__all__ = ["Forkable", "survive_forks"]


class Forkable(Protocol):
    """What must be told about a fork."""

    def hold(self) -> None:
        """Let nothing change until the fork is over."""

    def let_go(self) -> None:
        """Go on, in the parent."""

    def left_behind(self) -> None:
        """Begin anew, in the child."""


def survive_forks(those: Iterable[Forkable]) -> None:
    """Tell whoever is among `those` when a fork happens, where the system has forks."""
    if not hasattr(os, "register_at_fork"):
        return
    held: list[Forkable] = []

    def before() -> None:
        held[:] = list(those)
        for each in held:
            each.hold()

    def in_parent() -> None:
        for each in held:
            each.let_go()
        held.clear()

    def in_child() -> None:
        for each in held:
            each.left_behind()
        held.clear()

    os.register_at_fork(before=before, after_in_parent=in_parent, after_in_child=in_child)
