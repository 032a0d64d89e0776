"""Which rows of logs were looked at before an agent was set up, and how they are known again."""

from __future__ import annotations

import copy
import io
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from guardband.agent.row_ids import NONE, Digests, digests_of
from guardband.agent.saved_parts import read_parts
from guardband.errors import InvalidTypeError, InvalidValueError
from guardband.kernels.types import Floats

__all__ = ["LookedAt", "Recognised"]

FORMAT, VERSION = "guardband rows looked at", 2
LARGEST_RECORD = 2**30  # bytes, unpacked: of a log of 60 million rows
BLOCK = 8192  # rows that are hashed at once
LENGTHS = tuple(2**k for k in range(10))  # of runs
BASE = 0x9E3779B97F4A7C15  # an odd number: runs are hashed as polynomials in it
WHOLE = re.compile(r"0*(\d+)(?:\.0+)?", re.ASCII)

Flags = NDArray[np.bool_]


class Recognised(NamedTuple):
    """Which rows of a log were looked at, or may have been, and the record after the others."""

    rows: Flags  # (n,)
    after: LookedAt

    @property
    def reused(self) -> int:
        """How many of the rows were looked at."""
        return int(self.rows.sum())


@dataclass(frozen=True, eq=False)
class LookedAt:
    """The rows of logs that a study has looked at; `of` makes it.

    Where the studied log has ids, a row is known by its id. Else it is known by what it holds,
    features and reward. A row that holds what no row that was looked at holds is another one. Rows
    that hold the same, as clicks on one of ten links do, cannot be told apart one by one: they are
    taken for rows that were looked at, unless they come as the rest of the studied log, from its
    first row on and in its order, in one call or in several. So whatever passes is, in what it
    holds and in its order, what was not looked at.

    A row with an id that the studied log does not have is a new one. Two mistakes are found even
    so: more than half of the rows hold what only rows that were looked at hold; or runs of them
    follow each other as rows that were looked at did.

    Numbers are compared as float32, so that another processor's last bit makes no other row; ids
    without leading zeros. Of each row that was looked at, or holds the same as one, 8 bytes of a
    hash are kept, and of each row 8 of its id.

    Attributes
    ----------
    rows
        Hashes of what was looked at, and of the log's other rows that hold the same, in its order.
    looked
        (size of rows,): which of them were looked at.
    ids, others
        Rising hashes of the ids of rows that were looked at, and of the others; empty where the log
        has none.
    count
        How many rows were looked at.
    split
        By which rule they were chosen, in words.
    learned
        How many of `rows` that were not looked at are learned by now: the first ones.
    """

    rows: Digests
    looked: Flags
    ids: Digests
    others: Digests
    count: int
    split: str
    learned: int = 0

    @classmethod
    def of(
        cls,
        table: Floats,
        rewards: Floats,
        looked: Flags,
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
        alike = _among(found, np.unique(found[seen]))
        named = others = NONE
        if ids is not None:
            digests = _digests(ids)
            named = np.unique(digests[seen])
            others = np.setdiff1d(digests[~seen], named)
        return cls(found[alike], seen[alike], named, others, int(seen.sum()), split)

    @property
    def has_ids(self) -> bool:
        """Whether the studied log has ids."""
        return self.ids.size + self.others.size > 0

    @cached_property
    def _contents(self) -> Digests:
        """What was looked at."""
        return np.unique(self.rows[self.looked])

    @cached_property
    def _rest(self) -> Digests:
        """What was not looked at and holds the same as what was, in its order."""
        return self.rows[~self.looked]

    @cached_property
    def _only(self) -> Digests:
        """What only rows hold that were looked at."""
        return np.setdiff1d(self._contents, self._rest)

    @cached_property
    def _telling(self) -> tuple[int, Digests]:
        return _telling_runs(self.rows, self.looked)

    def after(self, count: int) -> LookedAt:
        """Return the record after so many more rows of the rest were learned."""
        found = copy.copy(self)  # with what was computed of it
        object.__setattr__(found, "learned", self.learned + count)
        return found

    def recognise(
        self, table: Floats | None, rewards: Floats, ids: Sequence[Any] | None = None
    ) -> Recognised:
        """Return which of the next rows were looked at, or cannot be told from such.

        `table` is (n, dim), or None where the rows lack some of the features.
        """
        looked, alike, found = self._alike(table, rewards, ids)
        follow = _follows(found, self._rest[self.learned :])
        looked[alike[follow:]] = True
        return Recognised(looked, self.after(follow))

    def leave_out(
        self, table: Floats | None, rewards: Floats, ids: Sequence[Any] | None, place: int
    ) -> tuple[Flags, int]:
        """Return which rows of a log were looked at for certain.

        By ids; by what only such rows hold; or because the log is the studied one, as far as it was
        read: `place` is how many of `rows` came before these. It comes back with those among these.
        """
        looked, alike, found = self._alike(table, rewards, ids)
        follow = _follows(found, self.rows[place:])
        if follow < min(found.size, self.rows.size - place):
            follow = 0  # another log, whatever its first rows hold
        looked[alike[:follow]] = self.looked[place : place + follow]
        looked[alike[follow:]] = _among(found[follow:], self._only)
        return looked, place + follow

    def _alike(
        self, table: Floats | None, rewards: Floats, ids: Sequence[Any] | None
    ) -> tuple[Flags, NDArray[np.intp], Digests]:
        """Return which rows were looked at by ids, and which others only their order may tell.

        The latter as their places and hashes.
        """
        looked, unseen = self._by_ids(len(rewards), ids)
        none = np.zeros(0, np.intp)
        if not unseen.any():
            return looked, none, NONE
        found = self._hold(table, rewards)
        if ids is not None and self.has_ids:
            looked[unseen] = self._under_other_ids(found[unseen])
            return looked, none, NONE
        alike = np.flatnonzero(_among(found, self._contents))
        return looked, alike, found[alike]

    def _by_ids(self, count: int, ids: Sequence[Any] | None) -> tuple[Flags, Flags]:
        """Return which rows were looked at by their ids, and of which ids do not tell."""
        if ids is None or not self.has_ids:
            return np.zeros(count, np.bool_), np.ones(count, np.bool_)
        named = _digests(ids)
        looked = _among(named, self.ids)
        return looked, ~(looked | _among(named, self.others))

    def _hold(self, table: Floats | None, rewards: Floats) -> Digests:
        """Return hashes of what rows hold."""
        if table is None:
            remedy = "the ids that the study saw, or " if self.has_ids else ""
            raise InvalidValueError(
                "whether these rows were looked at cannot be seen from the features of one task "
                f"alone: give {remedy}all features, such as by name."
            )
        return _contents(table, rewards)

    def _under_other_ids(self, found: Digests) -> Flags:
        """Return which rows were looked at under other ids than those that they have now."""
        looked = _among(found, self._only)
        if 2 * looked.sum() <= looked.size:
            looked[:] = False
        run, runs = self._telling
        alike = np.flatnonzero(_among(found, self._contents))
        if run and alike.size >= run:
            first = np.flatnonzero(np.isin(_runs(found[alike], run), runs))
            steps = np.zeros(alike.size + 1, np.int64)
            steps[first] += 1
            steps[first + run] -= 1
            looked[alike] |= np.cumsum(steps[:-1]) > 0
        return looked

    def refusal(self, row: int, ident: Any = None) -> InvalidValueError:
        """Return the error about a row that was looked at; `ident` is its id, if it has one."""
        rule = f" (the rows that were looked at: {self.split})" if self.split else ""
        named, tell = ", or one that holds the same,", ""
        if ident is not None and self.has_ids:
            named = f", with id {ident!r},"
            if _digests([ident])[0] not in self.ids:
                named = f", with another id than {ident!r},"
        else:
            how = "give their ids, which" if self.has_ids else "ids, of the study's rows too,"
            tell = (
                " Rows without ids are known by features and reward. Those that hold the same as "
                "one that was looked at are learned as the rest of the studied log alone: all of "
                f"it, in its order, each once. If these are others, {how} tell them apart."
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
            about=np.array(json.dumps(about | {"learned": self.learned})),
            rows=self.rows,
            looked=self.looked,
            ids=self.ids,
            others=self.others,
        )
        return file.getvalue()

    @classmethod
    def from_bytes(cls, raw: bytes) -> LookedAt:
        """Return what `to_bytes` wrote."""
        try:
            arrays = read_parts(io.BytesIO(raw), LARGEST_RECORD)
            about = json.loads(str(arrays.pop("about")))
            if about["format"] != FORMAT:
                raise InvalidValueError(f"its format is {about['format']!r}")
            version = about["version"]
            if version == VERSION:
                told = {name: about[name] for name in ("count", "split", "learned")}
                return _checked(cls(**arrays, **told))
        except Exception as error:  # anything may be in it
            raise InvalidValueError(
                "this is no record of rows that were looked at, or it is damaged "
                f"({str(error)[:200]})."
            ) from None
        raise InvalidValueError(
            f"the record of rows that were looked at has format version {version!r}, and this "
            f"version of guardband reads {VERSION}: "
            + ("run the study again." if version == 1 else "upgrade guardband.")
        )


def _checked(found: LookedAt) -> LookedAt:
    for digests in (found.rows, found.ids, found.others):
        if digests.dtype != NONE.dtype or digests.ndim != 1:
            raise InvalidValueError("the hashes do not fit")
    for digests in (found.ids, found.others):
        if (digests[1:] <= digests[:-1]).any():
            raise InvalidValueError("the hashes do not fit")
    if found.looked.dtype != np.bool_ or found.looked.shape != found.rows.shape:
        raise InvalidValueError("the flags do not fit")
    if type(found.count) is not int or found.count != int(found.looked.sum()):
        raise InvalidValueError("the count does not fit")
    if type(found.learned) is not int or not 0 <= found.learned <= found.rows.size - found.count:
        raise InvalidValueError("the number of rows that were learned does not fit")
    if not isinstance(found.split, str):
        raise InvalidValueError("the rule of the split is no text")
    return found


def _among(found: Digests, rising: Digests) -> Flags:
    """Return which hashes are among rising ones."""
    if not rising.size:
        return np.zeros(found.size, np.bool_)
    places = np.minimum(np.searchsorted(rising, found), rising.size - 1)
    there: Flags = rising[places] == found
    return there


def _follows(found: Digests, expected: Digests) -> int:
    """Return how many of the first hashes are those that are expected, in order."""
    size = min(found.size, expected.size)
    differ = np.flatnonzero(found[:size] != expected[:size])
    return int(differ[0]) if differ.size else size


def _digests(ids: Sequence[Any]) -> Digests:
    """Return hashes of ids; 7, "7", "007" and "7.0" are one, as files do not tell them apart."""
    return digests_of([_spelt(each) for each in ids])


def _spelt(each: Any) -> Any:
    found = WHOLE.fullmatch(each.strip()) if isinstance(each, str) else None
    return found[1] if found else each


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


def _telling_runs(found: Digests, seen: Flags) -> tuple[int, Digests]:
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
