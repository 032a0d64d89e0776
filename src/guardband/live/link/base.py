"""The interface of links: what an agent can ask its coordinator, over any transport."""

from __future__ import annotations

from typing import Protocol

from guardband.errors import GuardbandError
from guardband.live.protocol.messages import (
    Alarmed,
    AlarmKept,
    News,
    Register,
    Registered,
    Report,
    Revision,
    Upload,
    Uploaded,
)
from guardband.live.protocol.space import SpaceSettings

__all__ = ["Link", "Unreachable"]


class Unreachable(GuardbandError, ConnectionError):  # noqa: N818 - an answer will come
    """The coordinator does not answer now; try again later."""

    def __init__(self, detail: str, retry_after_s: float = 0.0) -> None:
        super().__init__(detail)
        self.retry_after_s = retry_after_s


class Link(Protocol):
    """Calls that return the coordinator's answer, or raise `Refused` or `Unreachable`.

    Several threads may use one link.
    """

    def space(self, name: str) -> tuple[SpaceSettings, int]:
        """Return a space and its config_version."""

    def create_space(self, space: SpaceSettings) -> int:
        """Make a space; return its config_version."""

    def looked_at(self, name: str) -> bytes:
        """Return a space's record of rows of logs that were looked at."""

    def register(self, name: str, request: Register) -> Registered:
        """Make a stream known."""

    def upload(self, stream: str, request: Upload) -> Uploaded:
        """Hand in a checkpoint; it is stored durably when this returns."""

    def news(
        self,
        name: str,
        stream: str | None,
        *,
        after: int,
        open_after: int,
        config_version: int,
        wait_s: float,
        compares: bool = False,
    ) -> News | None:
        """Return what is new, waiting for it at most so long; None: nothing is.

        Who `compares` hears the sums without each other task as well.
        """

    def report(self, stream: str, report: Report) -> None:
        """Send the agent's report."""

    def alarm(self, stream: str, alarm: Alarmed) -> AlarmKept:
        """Tell what the agent's monitors noticed; hear whether a person has looked at it."""

    def seal(self, stream: str, revision: Revision) -> None:
        """End the stream at what is stored of it."""

    def close(self) -> None:
        """Close connections and files."""

    def hold(self) -> None:
        """Use no file until `let_go`; the process forks."""

    def let_go(self) -> None:
        """Go on, in the parent."""

    def after_fork(self) -> None:
        """Begin anew in a forked process, leaving the parent's connections alone."""
