"""Progress on standard error, for work that takes longer than a moment: a bar, or lines."""

from __future__ import annotations

import sys
import threading
import time

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

__all__ = ["ProgressBar"]

MOMENT, PAUSE = 2.0, 60.0  # seconds until a bar appears, and between lines where there is none


class ProgressBar:
    """A progress bar; it appears only after a moment, and only on a terminal.

    Into a file or a pipe goes a line once a minute, so that a log shows that the work goes on.

    Parameters
    ----------
    title
        What is being done, in two words.
    show
        True for a bar, False for nothing; None: a bar on a terminal, elsewhere lines.
    """

    def __init__(self, title: str = "running trials", show: bool | None = None) -> None:
        self.title = title
        self.console = Console(stderr=True, soft_wrap=True)
        self._show = sys.stderr.isatty() if show is None else show
        self._lines = show is None and not self._show
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
        self._task = self._progress.add_task(title, total=None)
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._due = self._began + (PAUSE if self._lines else MOMENT)
        self._shown = False
        self._paced: tuple[float, float] | None = (self._began, 0.0)  # what the pace counts from

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._show = self._lines = False
            if self._shown:
                self._progress.stop()

    def expect(self, total: float) -> None:
        """Set how much there is to do."""
        self._progress.update(self._task, total=total)

    def turn_to(self, title: str, *, forecast: bool = True) -> None:
        """Go on with other work: how long the rest takes is forecast by its pace, or not at all."""
        with self._lock:
            self.title, done = title, self._progress.tasks[0].completed
            self._paced = (time.monotonic(), done) if forecast else None
            self._progress.reset(self._task, completed=done, description=title)  # type: ignore[arg-type]

    def reach(self, amount: float) -> None:
        """Set how much is done."""
        self.advance(amount - self._progress.tasks[0].completed)

    def advance(self, amount: float) -> None:
        """Add to what is done; may be called from any thread."""
        self._progress.advance(self._task, amount)
        with self._lock:
            now = time.monotonic()
            if self._show and not self._shown and now > self._due:
                self._shown = True
                self._progress.start()
            if self._lines and now > self._due:
                self._due = now + PAUSE
                self.console.print(self._line(now))

    def say(self, text: str) -> None:
        """Print a line above the bar."""
        self.console.print(text)

    def _line(self, now: float) -> str:
        task, left = self._progress.tasks[0], ""
        share = min(task.completed / task.total, 1.0) if task.total else 0.0
        if task.total and self._paced is not None:
            since, start = self._paced
            rate = (task.completed - start) / max(now - since, 1e-9)
            if rate > 0:
                left = f", about {(1 - share) * task.total / rate / 60:,.0f} min left"
        return f"{self.title}: {100 * share:.0f} % after {(now - self._began) / 60:,.0f} min{left}"
