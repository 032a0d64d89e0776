"""Checking, before the work begins, that a report can be written."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

__all__ = ["check_place"]


def check_place(place: Path) -> None:
    """Raise OSError if the folder cannot be written to."""
    made = [folder for folder in (place, *place.parents) if not folder.exists()]
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        raise OSError(
            f"the report cannot be written to {place} ({error.strerror or error}): choose another "
            "folder with --out."
        ) from None
    finally:
        for folder in made:  # the run may still fail: leave nothing behind
            with contextlib.suppress(OSError):
                folder.rmdir()
