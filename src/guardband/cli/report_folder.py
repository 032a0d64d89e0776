"""Checking, before the work begins, that a report can be written; files that must be new."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

from guardband.files import plain_errors, write_atomically

__all__ = ["check_folder", "write_new"]


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


def write_new(path: Path, text: str) -> None:
    """Write a file where there is none."""
    if path.exists():
        raise FileExistsError(f"{path} is there already; choose another name, or remove it.")
    told = "it cannot be written; choose another name"
    with plain_errors(path, told), write_atomically(path) as file:
        file.write(text.encode())
