"""The folder that holds raw data files, and what is in it.

The folder follows the platform's convention for caches; `GUARDBAND_DATA` names another one.
A file may lie in the layout of this cache (`movielens/u.data`) or in that of the original
archive (`ml-100k/u.data`).
"""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

import platformdirs

from guardband.data.catalogue import CATALOGUE, DataError, Dataset, dataset

__all__ = ["Status", "find", "home", "is_original", "root", "status", "writing_to"]


def root() -> Path:
    """Return the folder that holds all data sets; it need not exist."""
    chosen = os.environ.get("GUARDBAND_DATA")
    if chosen:
        return Path(chosen).expanduser()
    return platformdirs.user_cache_path("guardband", appauthor=False) / "data"


def home(entry: Dataset) -> Path:
    """Return where the file of a data set is put."""
    return root() / entry.name / entry.file


def find(name: str) -> Path | None:
    """Find the raw file of a data set.

    Parameters
    ----------
    name
        One of `NAMES`.

    Returns
    -------
    The path of the file, or None if it is not there. Its content is not checked.
    """
    entry = dataset(name)
    places = (home(entry), root() / entry.folder / entry.file)
    return next((path for path in places if path.is_file()), None)


class Status(NamedTuple):
    """What is known of one data set on this machine."""

    name: str
    title: str
    state: Literal["missing", "ready", "altered"]
    path: Path  # where the file is, or where it would be put
    size: int  # bytes of the file; 0 if missing
    licence: str


def status() -> list[Status]:
    """Tell, for each data set, whether its raw file is there and is the original one.

    Returns
    -------
    One record per data set, in the order of `NAMES`.
    """
    return [_status(entry) for entry in CATALOGUE.values()]


def _status(entry: Dataset) -> Status:
    path = find(entry.name)
    if path is None:
        return Status(entry.name, entry.title, "missing", home(entry), 0, entry.licence)
    state: Literal["ready", "altered"] = "ready" if is_original(path, entry) else "altered"
    return Status(entry.name, entry.title, state, path, path.stat().st_size, entry.licence)


def is_original(path: Path, entry: Dataset) -> bool:
    """Tell whether a file is, byte for byte, the one in the catalogue."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == entry.sha256


@contextmanager
def writing_to(folder: Path) -> Iterator[None]:
    """Turn a failure to write into a `DataError` that says what to do."""
    try:
        yield
    except OSError as error:
        raise DataError(
            folder,
            error.strerror or str(error),
            "a folder that can be written to, with room left",
            "Free it, or set GUARDBAND_DATA to another folder.",
        ) from error
