"""A bar on standard error with the time left, for work that takes longer than a moment."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

__all__ = ["Bar"]

MOMENT = 2.0  # seconds


class Bar:
    """A progress bar; it appears only after a moment, and only on a terminal.

    Parameters
    ----------
    show
        Whether to show it at all; None: on a terminal.
    """

    def __init__(self, show: bool | None = None) -> None:
        self.console = Console(stderr=True, soft_wrap=True)
        self._show = sys.stderr.isatty() if show is None else show
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeRemainingColumn(),
            TextColumn("left"),
            console=self.console,
            transient=True,
            redirect_stdout=False,
        )
        self._task = self._progress.add_task("running trials", total=None)
        self._lock = threading.Lock()
        self._due = time.monotonic() + MOMENT
        self._shown = False

    def __enter__(self) -> Bar:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            self._show = False
            if self._shown:
                self._progress.stop()

    def expect(self, total: float) -> None:
        """Set how much there is to do."""
        self._progress.update(self._task, total=total)

    def advance(self, amount: float) -> None:
        """Say that so much more is done; any thread may."""
        self._progress.advance(self._task, amount)
        with self._lock:
            if self._show and not self._shown and time.monotonic() > self._due:
                self._shown = True
                self._progress.start()

    def say(self, text: str) -> None:
        """Print a line above the bar."""
        self.console.print(text)
