"""The log: one line of JSON per event, without secrets, headers, queries and bodies."""

from __future__ import annotations

import json
import logging
import sys
from typing import IO, Any

__all__ = ["JsonLines", "log", "set_up"]

LOGGER = logging.getLogger("guardband.server")
OURS = (LOGGER.name, "uvicorn", "uvicorn.error")


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


def log(event: str, level: int = logging.INFO, *, trace: bool = False, **fields: Any) -> None:
    """Write a line; `trace` adds that of the exception being handled."""
    if LOGGER.isEnabledFor(level):
        LOGGER.log(level, event, extra={"fields": fields}, exc_info=trace)


def set_up(stream: IO[str] | None = None, *, quiet: bool = False) -> None:
    """Send our lines, and those of uvicorn, to a stream (stderr if None is given)."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    for name in OURS:
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.WARNING if quiet or name != LOGGER.name else logging.INFO)
    logging.getLogger("uvicorn").handlers = []
