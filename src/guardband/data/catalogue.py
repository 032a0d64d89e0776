"""The data sets guardband knows: where they come from and what their files must be."""

import difflib
from dataclasses import dataclass
from os import PathLike

from guardband.errors import GuardbandError

__all__ = ["CATALOGUE", "NAMES", "DataError", "Dataset", "dataset"]


class DataError(GuardbandError, ValueError):
    """Data that is missing, cut short or not what it should be.

    Parameters
    ----------
    where
        The file, folder, address or argument at fault.
    found
        What is there.
    expected
        What should be there.
    remedy
        What to do about it: a full sentence.
    """

    def __init__(self, where: str | PathLike[str], found: str, expected: str, remedy: str) -> None:
        super().__init__(where, found, expected, remedy)
        self.where, self.found, self.expected, self.remedy = str(where), found, expected, remedy

    def __str__(self) -> str:
        return f"{self.where}: found {self.found}; expected {self.expected}. {self.remedy}"


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """One data set and the single file of its archive that guardband reads."""

    name: str
    title: str
    url: str  # the zip archive at its publisher
    folder: str  # the folder inside the archive
    file: str  # the file inside that folder
    size: int  # of the file, in bytes
    sha256: str  # of the file
    rows: int  # lines of data in the file
    shape: tuple[int, int]  # of the matrix it becomes: users x items
    licence: str

    @property
    def remedy(self) -> str:
        """How a user gets a good copy, for error messages."""
        return (
            f"Run `guardband data fetch {self.name}`, or `guardband data import {self.name} FILE` "
            f"with a {self.file} or its zip archive that you already have."
        )


CATALOGUE = {
    dataset.name: dataset
    for dataset in (
        Dataset(
            name="movielens",
            title="MovieLens-100K",
            url="https://files.grouplens.org/datasets/movielens/ml-100k.zip",
            folder="ml-100k",
            file="u.data",
            size=1_979_173,
            sha256="06416e597f82b7342361e41163890c81036900f418ad91315590814211dca490",
            rows=100_000,
            shape=(943, 1682),
            licence="research use; no redistribution; commercial use only with permission",
        ),
        Dataset(
            name="lastfm",
            title="HetRec 2011 Last.fm",
            url="https://files.grouplens.org/datasets/hetrec2011/hetrec2011-lastfm-2k.zip",
            folder="hetrec2011-lastfm-2k",
            file="user_artists.dat",
            size=1_296_485,
            sha256="6c9b9a05c47a461fdbfb5d6e056b3123059b2a26e885c4df369bfa125e76db87",
            rows=92_834,
            shape=(741, 538),
            licence="non-commercial research use; no redistribution",
        ),
    )
}

NAMES = tuple(CATALOGUE)


def dataset(name: str) -> Dataset:
    """Look a data set up by its name.

    Parameters
    ----------
    name
        One of `NAMES`.

    Returns
    -------
    Its entry of the catalogue.

    Raises
    ------
    DataError
        If there is none of that name; the message suggests the nearest one.
    """
    if name in CATALOGUE:
        return CATALOGUE[name]
    known_as = {
        alias: entry.name
        for entry in CATALOGUE.values()
        for alias in (entry.name, entry.folder, entry.file)
    }
    nearest = difflib.get_close_matches(name.lower(), known_as, n=1, cutoff=0.5)
    raise DataError(
        "data set",
        repr(name),
        "one of " + ", ".join(CATALOGUE),
        f"Did you mean {known_as[nearest[0]]!r}?" if nearest else "Choose one of these names.",
    )
