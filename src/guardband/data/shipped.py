"""The low-rank factors that ship inside the package, and how they are made.

Only factors ship, never ratings or listening counts; see NOTICE. `build` makes them again from
the original file: the same bytes on the same platform.
"""

import io
import json
import zipfile
from collections.abc import Callable
from functools import partial
from importlib import resources
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from guardband.data.cache import find, home, is_original, writing_to
from guardband.data.catalogue import DataError, Dataset, dataset
from guardband.data.factorise import factorise, held_out
from guardband.data.tables import Entries, FloatArray, read_lastfm, read_movielens
from guardband.files import write_atomically

__all__ = [
    "DECIMALS",
    "HELD_OUT",
    "RANK",
    "RECIPES",
    "SEED",
    "Factors",
    "Recipe",
    "build",
    "factors",
]

RANK = 3
DECIMALS = 6
SEED = 1
HELD_OUT = 0.1


class Factors(NamedTuple):
    """Non-negative factors of a users x items matrix with entries in [0, 1].

    The approximate entry of a user and an item is the inner product of their rows.
    """

    users: FloatArray  # (users, 3)
    items: FloatArray  # (items, 3)
    provenance: dict[str, Any]


class Recipe(NamedTuple):
    """How the entries of a data set are read and fitted."""

    read: Callable[[Path], Entries]  # values in [0, 1]
    entries: str  # what they are, in words
    ridge: float
    sweeps: int


def _ratings(path: Path) -> Entries:
    entries = read_movielens(path)
    return entries._replace(values=entries.values / 5)


def _listens(path: Path) -> Entries:
    return Entries.all_of(read_lastfm(path))


# The ridge is the best of 0.3, 0.6, 1, 1.5, 2, 3, 5 by held-out error. The Last.fm matrix has no
# unobserved entries and gets a plain factorisation.
RECIPES = {
    "movielens": Recipe(_ratings, "ratings / 5, observed entries only", ridge=1.5, sweeps=100),
    "lastfm": Recipe(
        _listens,
        "1 if the user listens to the artist, else 0; artists with >= 30 listeners, "
        "then users with >= 30 of them; all entries",
        ridge=0.0,
        sweeps=60,
    ),
}


def factors(name: str) -> Factors:
    """Load the factors of a data set that ship with the package.

    Parameters
    ----------
    name
        One of `NAMES`.

    Returns
    -------
    The factors and where they come from.

    Examples
    --------
    >>> users, items, provenance = factors("movielens")
    >>> users.shape, items.shape
    ((943, 3), (1682, 3))
    """
    folder = resources.files("guardband.data") / "embedded"
    entry = dataset(name)
    try:
        provenance = json.loads((folder / f"{entry.name}.json").read_text("utf-8"))
        with (folder / f"{entry.name}.npz").open("rb") as file, np.load(file) as arrays:
            return Factors(arrays["users"], arrays["items"], provenance)
    except FileNotFoundError as error:
        raise DataError(
            str(folder), "no factors", f"those of {name}", "Install guardband again."
        ) from error


def build(name: str, out: str | PathLike[str]) -> Factors:
    """Make the factors of a data set from its original file.

    Parameters
    ----------
    name
        One of `NAMES`.
    out
        Folder that gets `NAME.npz` (users, items) and `NAME.json` (provenance).

    Returns
    -------
    What was written.

    Raises
    ------
    DataError
        If the original file is not in the cache, or is not the original.
    """
    entry = dataset(name)
    made = _make(entry, _original(entry))
    folder = Path(out)
    text = json.dumps(made.provenance, indent=2) + "\n"
    with writing_to(folder):
        with write_atomically(folder / f"{name}.npz") as file:
            file.write(_npz(users=made.users, items=made.items))
        with write_atomically(folder / f"{name}.json") as file:
            file.write(text.encode())
    return made


def _original(entry: Dataset) -> Path:
    path = find(entry.name)
    if path is None:
        raise DataError(home(entry), "no such file", f"the original {entry.file}", entry.remedy)
    if not is_original(path, entry):
        size = path.stat().st_size
        raise DataError(
            path,
            f"an altered file of {size:,} bytes",
            f"the original {entry.file}: {entry.size:,} bytes with SHA-256 {entry.sha256[:12]}…",
            entry.remedy,
        )
    return path


def _make(entry: Dataset, path: Path) -> Factors:
    recipe = RECIPES[entry.name]
    entries = recipe.read(path)
    fitted = partial(factorise, rank=RANK, ridge=recipe.ridge, sweeps=recipe.sweeps, seed=SEED)
    seen, unseen = held_out(entries, share=HELD_OUT, seed=SEED)
    fit = fitted(entries)
    users, items = (np.round(factor, DECIMALS) + 0.0 for factor in fit)
    provenance = {
        "data": entry.title,
        "source": entry.url,
        "file": entry.file,
        "sha256": entry.sha256,
        "licence": entry.licence,
        "entries": recipe.entries,
        "observed": len(entries.values),
        "shape": list(entries.shape),
        "method": "non-negative factors by coordinate descent, ridge towards the mean",
        "rank": RANK,
        "ridge": recipe.ridge,
        "sweeps": recipe.sweeps,
        "seed": SEED,
        "held_out_share": HELD_OUT,
        "held_out_rmse": round(fitted(seen).rmse(unseen), DECIMALS),
        "rmse": round(fit.rmse(entries), DECIMALS),
        "decimals": DECIMALS,
        "command": f"guardband data build {entry.name}",
    }
    return Factors(users, items, provenance)


def _npz(**arrays: FloatArray) -> bytes:
    """Pack arrays as an npz file whose bytes depend on nothing but the arrays."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            member = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            member.create_system = 3  # the same on every system
            content = io.BytesIO()
            np.lib.format.write_array(content, array, version=(1, 0), allow_pickle=False)
            archive.writestr(member, content.getvalue())
    return packed.getvalue()
