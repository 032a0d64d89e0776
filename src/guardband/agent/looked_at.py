"""Which rows of logs were looked at before an agent was set up, and how they are known again."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from guardband.agent.row_ids import NONE, Digests, digests_of
from guardband.errors import InvalidTypeError, InvalidValueError
from guardband.kernels.types import Floats

__all__ = ["LookedAt", "Recognised"]

FORMAT, VERSION = "guardband rows looked at", 1
BLOCK = 8192  # rows that are hashed at once
SPARE = np.dtype(np.uint32)
LENGTHS = tuple(2**k for k in range(1, 10))  # of runs
BASE = 0x9E3779B97F4A7C15  # an odd number: runs are hashed as polynomials in it


class Recognised(NamedTuple):
    """Which rows of a log were looked at, and what may still be learned after it."""

    rows: NDArray[np.bool_]  # (n,)
    after: LookedAt

    @property
    def reused(self) -> int:
        """How many of the rows were looked at."""
        return int(self.rows.sum())


@dataclass(frozen=True, eq=False)
class LookedAt:
    """The rows of logs that a study has looked at; `of` makes it.

    A row is known by its id, where the logs have ids. Else it is known by what it holds, features
    and reward. Rows that hold the same, as clicks on one of ten links do, cannot be told apart one
    by one. Of a hundred equal rows of which forty were looked at, sixty may be learned, and the
    next one is refused; and so are runs of rows that were looked at, in their order.

    Numbers are compared as float32, so that another processor's last bit makes no other row. Of
    each row 8 bytes of a hash are kept, 8 more of its id, and 16 for runs where rows are equal.

    Attributes
    ----------
    contents
        Rising hashes of what the rows hold.
    spare
        (size of contents,): how many rows that hold the same were not looked at, and are not
        learned yet.
    run, runs
        How many rows a run has, and rising hashes of runs; 0 where none are needed, or none would
        tell.
    ids
        Rising hashes of their ids; empty where the logs have none.
    count
        How many rows were looked at.
    split
        By which rule they were chosen, in words.
    """

    contents: Digests
    spare: NDArray[np.uint32]
    run: int
    runs: Digests
    ids: Digests
    count: int
    split: str

    @classmethod
    def of(
        cls,
        table: Floats,
        rewards: Floats,
        looked: NDArray[np.bool_],
        ids: Sequence[Any] | None = None,
        split: str = "",
    ) -> LookedAt:
        """Return the record of a log of which some rows were looked at.

        Parameters
        ----------
        table
            (n, dim): the features of all rows of the log, as `learn` would get them.
        rewards
            (n,): their rewards, the same.
        looked
            (n,): which of them were looked at; the others may be learned.
        ids
            One per row; None: the log has none.
        split
            By which rule they were chosen, in words that go on after "the rows that were looked
            at:".
        """
        seen = np.asarray(looked)
        if seen.dtype != np.bool_ or seen.shape != (len(table),) or len(rewards) != len(table):
            raise InvalidValueError(
                f"{len(table)} rows, {len(rewards)} rewards and looked of shape {seen.shape} do "
                "not fit together: give one flag for each row."
            )
        found = _contents(table, rewards)
        contents = np.unique(found[seen])
        at, equal = _places(contents, found[~seen])
        spare = np.bincount(at[equal], minlength=contents.size).astype(SPARE)
        run, runs = _telling_runs(found, seen) if equal.any() else (0, NONE)
        names = NONE if ids is None else np.unique(digests_of(ids)[seen])
        return cls(contents, spare, run, runs, names, int(seen.sum()), split)

    def recognise(
        self, table: Floats | None, rewards: Floats, ids: Sequence[Any] | None = None
    ) -> Recognised:
        """Return which rows were looked at; by their ids, where they and the record have them.

        `table` is (n, dim), or None where the rows lack some of the features.
        """
        if ids is not None and self.ids.size:
            return Recognised(np.isin(digests_of(ids), self.ids), self)
        if table is None:
            remedy = "ids" if self.ids.size else "all features, such as by name"
            raise InvalidValueError(
                "whether these rows were looked at cannot be seen from the features of one task "
                f"alone: give {remedy}."
            )
        found = _contents(table, rewards)
        looked = self._in_runs(found)
        at, equal = _places(self.contents, found)
        left = np.flatnonzero(equal & ~looked)
        at = at[left]
        order = np.argsort(at, kind="stable")
        rank = np.empty(at.size, np.int64)
        rank[order] = np.arange(at.size) - np.searchsorted(at[order], at[order])
        looked[left] = rank >= self.spare[at]
        used = np.bincount(at[~looked[left]], minlength=self.spare.size)
        return Recognised(looked, replace(self, spare=(self.spare - used).astype(SPARE)))

    def _in_runs(self, found: Digests) -> NDArray[np.bool_]:
        """Return which rows are in a run that was looked at."""
        steps = np.zeros(found.size + 1, np.int64)
        if self.run:
            first = np.flatnonzero(_places(self.runs, _runs(found, self.run))[1])
            steps[first] += 1
            steps[first + self.run] -= 1
        return np.cumsum(steps[:-1]) > 0

    def refusal(self, row: int, ids: Sequence[Any] | None = None) -> InvalidValueError:
        """Return the error about a row that was looked at."""
        rule = f" (the rows that were looked at: {self.split})" if self.split else ""
        named, tell = ", or one that holds the same,", ""
        if ids is not None and self.ids.size:
            named = f", with id {ids[row]!r},"
        else:
            how = (
                "give their ids, which tell"
                if self.ids.size
                else "a study of logs with ids can tell"
            )
            tell = (
                " Rows without ids are known by features and reward: if these are others that hold "
                f"the same, {how} them apart."
            )
        return InvalidValueError(
            f"row {row}{named} was looked at by the study{rule}: settings were chosen by it, and a "
            "row that is used twice makes promises look surer than they are. Learn the other rows; "
            "or give reuse=True, and decisions say promise='reused' from then on."
            f"{tell}"
        )

    def to_bytes(self) -> bytes:
        """Return all of it as bytes, compressed, without pickle; `from_bytes` reads them."""
        about = {"format": FORMAT, "version": VERSION, "count": self.count, "split": self.split}
        file = io.BytesIO()
        np.savez_compressed(
            file,
            about=np.array(json.dumps(about)),
            contents=self.contents,
            spare=self.spare,
            run=np.array(self.run),
            runs=self.runs,
            ids=self.ids,
        )
        return file.getvalue()

    @classmethod
    def from_bytes(cls, raw: bytes) -> LookedAt:
        """Return what `to_bytes` wrote."""
        try:
            with np.load(io.BytesIO(raw), allow_pickle=False) as file:
                about = json.loads(str(file["about"]))
                contents, spare, ids = file["contents"], file["spare"], file["ids"]
                run, runs = int(file["run"]), file["runs"]
            if about["format"] != FORMAT:
                raise InvalidValueError(f"its format is {about['format']!r}")
            if about["version"] <= VERSION:
                about_rows = (int(about["count"]), str(about["split"]))
                return _checked(cls(contents, spare, run, runs, ids, *about_rows))
        except (
            ArithmeticError,
            AttributeError,
            EOFError,
            LookupError,
            OSError,
            TypeError,
            ValueError,
            zipfile.BadZipFile,
            zlib.error,
        ) as error:
            detail = "" if "pickle" in str(error) else f" ({error})"
            raise InvalidValueError(
                f"this is no record of rows that were looked at, or it is damaged{detail}."
            ) from None
        raise InvalidValueError(
            f"the record of rows that were looked at has format version {about['version']}, newer "
            f"than the {VERSION} this version of guardband reads: upgrade guardband."
        )


def _checked(found: LookedAt) -> LookedAt:
    for digests in (found.contents, found.runs, found.ids):
        if digests.dtype != NONE.dtype or digests.ndim != 1 or (digests[1:] <= digests[:-1]).any():
            raise InvalidValueError("the hashes do not fit")
    if found.spare.dtype != SPARE or found.spare.shape != found.contents.shape:
        raise InvalidValueError("the counts do not fit")
    return found


def _places(contents: Digests, found: Digests) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return where hashes are among rising ones, and whether they are there at all."""
    if not contents.size:
        return np.zeros(found.size, np.intp), np.zeros(found.size, np.bool_)
    at = np.minimum(np.searchsorted(contents, found), contents.size - 1)
    return at, contents[at] == found


def _contents(table: Floats, rewards: Floats) -> Digests:
    """Return a hash of the features and the reward of every row."""
    if np.ndim(table) != 2:
        raise InvalidTypeError(f"rows must be a table of numbers, not shape {np.shape(table)}.")
    found = np.empty(len(table), np.uint64)
    for start in range(0, len(table), BLOCK):
        part = slice(start, start + BLOCK)
        block = np.column_stack([table[part], rewards[part]]).astype("<f4") + np.float32(0.0)
        whole = b"".join(blake2b(row, digest_size=8).digest() for row in block)
        found[part] = np.frombuffer(whole, "<u8")
    return found


def _telling_runs(found: Digests, seen: NDArray[np.bool_]) -> tuple[int, Digests]:
    """Return how many rows it takes until no run that was looked at is one of the others, too.

    And the hashes of such runs: of those that were looked at, as they follow each other, and of all
    rows of the log up to one that was looked at. Twice as many rows are taken as it takes, so that
    runs of other logs are told apart as well.
    """
    for length in LENGTHS[:-1]:
        looked, others = _runs(found[seen], length), _runs(found[~seen], length)
        if looked.size and not np.isin(looked, others).any():
            twice = 2 * length
            whole = _runs(found, twice)[seen[twice - 1 :]]
            both = np.unique(np.concatenate([_runs(found[seen], twice), whole]))
            # The last row of a run may hold the same as the next that was not looked at.
            return twice, both[~np.isin(both, _runs(found[~seen], twice))]
    return 0, NONE


def _runs(found: Digests, length: int) -> Digests:
    """Return a hash of every run of so many rows, a power of 2; the k-th begins with row k."""
    hashes, reach = found, 1
    while reach < length:
        factor = np.uint64(pow(BASE, reach, 2**64))
        hashes = hashes[:-reach] * factor + hashes[reach:]
        reach *= 2
    return hashes if found.size >= length else NONE
