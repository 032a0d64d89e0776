"""The log: one line of JSON per event, without secrets, headers, queries and bodies."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

__all__ = ["JsonLines", "log", "log_lines"]

LOGGER = logging.getLogger("guardband.server")
OURS = (LOGGER.name, "uvicorn", "uvicorn.error", "asyncio")
EVERY_S = 10.0
KINDS = 1_000  # of lines that are remembered


class JsonLines(logging.Formatter):
    """Formats a record as {"at", "level", "event", ...}."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        line: dict[str, Any] = {
            "at": round(record.created, 3),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class Ration(logging.Filter):
    """Lets one line of a kind pass in ten seconds where anybody can cause it, or a full disk.

    The next one says how many were left out.
    """

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[tuple[Any, ...], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether the line is written."""
        fields: dict[str, Any] = getattr(record, "fields", {})
        kind = _kind(record, fields)
        if kind is None:
            return True
        now = time.monotonic()
        at, left_out = self._seen.get(kind, (-EVERY_S, 0))
        if now - at < EVERY_S:
            self._seen[kind] = at, left_out + 1
            return False
        if len(self._seen) >= KINDS:
            self._seen.clear()
        self._seen[kind] = now, 0
        if left_out:
            record.fields = {**fields, "left_out": left_out}
        if record.exc_info and isinstance(record.exc_info[1], OSError):
            record.exc_info = None  # too many files are open, or somebody left
        return True


def _kind(record: logging.LogRecord, fields: dict[str, Any]) -> tuple[Any, ...] | None:
    """Return what a line has in common with those that are like it; None: it is always written."""
    event = record.getMessage()
    if record.name != LOGGER.name:
        return record.name, event[:60]
    if event == "request":
        status = fields.get("status", 0)
        return (event, status) if fields.get("who") is None and 400 <= status < 500 else None
    if event in ("pressure", "store", "too many connections"):
        return event, str(fields.get("detail"))[:60]
    return None


def log(event: str, level: int = logging.INFO, *, trace: bool = False, **fields: Any) -> None:
    """Write a line; `trace` adds that of the exception being handled."""
    if LOGGER.isEnabledFor(level):
        LOGGER.log(level, event, extra={"fields": fields}, exc_info=trace)


@contextmanager
def log_lines(stream: IO[str] | None = None, *, quiet: bool = False) -> Iterator[None]:
    """Send our lines, and those of uvicorn, to a stream (stderr if None is given) for a while.

    Afterwards loggers are what they were: a stream that its owner closes is written to by nobody.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    handler.addFilter(Ration())
    loggers = [logging.getLogger(name) for name in OURS]
    before = [(each.handlers, each.propagate, each.level) for each in loggers]
    for logger in loggers:
        chatty = logger is LOGGER and not quiet
        logger.handlers = [] if logger.name == "uvicorn" else [handler]
        logger.propagate = False
        logger.setLevel(logging.INFO if chatty else logging.WARNING)
    try:
        yield
    finally:
        for logger, (handlers, propagate, level) in zip(loggers, before, strict=True):
            logger.handlers, logger.propagate = handlers, propagate
            logger.setLevel(level)
