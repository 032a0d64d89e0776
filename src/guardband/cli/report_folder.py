"""Checking, before the work begins, that a report can be written."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

__all__ = ["check_folder"]


def check_folder(folder: Path) -> None:
    """Raise OSError if the folder cannot be written to."""
    made = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OSError(
            f"the report cannot be written to {folder} ({error.strerror or error}): choose another "
            "folder with --out."
        ) from None
    finally:
        for each in made:  # the run may still fail: leave nothing behind
            with contextlib.suppress(OSError):
                each.rmdir()
