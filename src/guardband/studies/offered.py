"""Labels, menus and baselines of logs: from what the columns hold to codes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from guardband.studies.logs import Ints, MenuLists
from guardband.studies.source import Source, key_of

__all__ = ["Labels", "ReadMenus", "choose_baselines", "read_menus"]


class Labels:
    """All labels, and their codes in the order in which they were first seen."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._codes: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.values)

    def code(self, label: Any) -> int:
        """Return the code of a label, a new one if need be."""
        key = key_of(label)
        found = self._codes.get(key)
        if found is None:
            found = self._codes[key] = len(self.values)
            self.values.append(label.item() if isinstance(label, np.generic) else label)
        return found

    def known(self, label: Any) -> int | None:
        """Return the code of a label that was seen; None: it was not."""
        return self._codes.get(key_of(label))

    def codes(self, column: pd.Series) -> Ints:
        """Return the codes of a column of labels."""
        places, values = pd.factorize(column)
        own = np.array([self.code(value) for value in values], np.int64)
        return own[places]


class ReadMenus:
    """Menus as they were read.

    Attributes
    ----------
    lists
        The codes on offer.
    pairs
        Column -> its value for each entry of the menus, where entries are objects.
    """

    def __init__(self, lists: MenuLists, pairs: dict[str, NDArray[Any]]) -> None:
        self.lists, self.pairs = lists, pairs

    def first(self, rows: int) -> ReadMenus:
        """Return the menus of the first rows."""
        lists = self.lists.first(rows)
        pairs = {name: values[: len(lists.codes)] for name, values in self.pairs.items()}
        return ReadMenus(lists, pairs)


def read_menus(
    source: Source, name: str, action: str, labels: Labels, wanted: Sequence[str]
) -> ReadMenus:
    """Return the menus of a column: lists of labels, or of objects, or their JSON texts.

    Parameters
    ----------
    source, name
        The rows, and the column.
    action
        The key of the label, where entries are objects.
    labels
        Gets labels that are new.
    wanted
        Columns of pairs that are features; other keys of objects are ignored.
    """
    codes: list[Ints] = []
    rows: list[Any] = []
    known: dict[str, Ints] = {}  # of texts that were read before: most menus come again
    for row, given in enumerate(source.column(name)):
        if isinstance(given, str) and given in known:
            codes.append(known[given])
            continue
        entries = _entries(source, name, row, given)
        objects = isinstance(entries[0], Mapping)
        if objects:
            listed = [_label(source, name, row, entry, action) for entry in entries]
            rows.append(entries)
        else:
            listed = entries
        found = np.array([labels.code(label) for label in listed], np.int64)
        if len(set(found.tolist())) < len(found):
            raise source.error(name, row, f"a label is on offer twice: {given!s}.")
        codes.append(found)
        if isinstance(given, str) and not objects:
            known[given] = found
    starts = np.concatenate(([0], np.cumsum([len(each) for each in codes])))
    if rows and len(rows) != len(codes):
        raise source.error(name, 0, "menus are objects in some rows and labels alone in others.")
    pairs = _pairs(source, name, rows, action, wanted) if rows else {}
    return ReadMenus(MenuLists(np.concatenate(codes), starts), pairs)


def _entries(source: Source, name: str, row: int, given: Any) -> list[Any]:
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError:
            raise source.error(
                name, row, f'{given!r} is no menu: write a list, such as ["a", "b"].'
            ) from None
    if not isinstance(given, list | tuple | np.ndarray):
        raise source.error(name, row, f"{given!r} is no list of the labels on offer.")
    if len(given) == 0:
        raise source.error(name, row, "nothing is on offer.")
    return list(given)


def _label(source: Source, name: str, row: int, entry: Any, action: str) -> Any:
    if not isinstance(entry, Mapping) or action not in entry:
        raise source.error(name, row, f"{entry!r} has no {action!r}, the label of the action.")
    return entry[action]


def _pairs(
    source: Source, name: str, rows: list[Any], action: str, wanted: Sequence[str]
) -> dict[str, NDArray[Any]]:
    """Return the columns that all objects have."""
    keys = [key for key in rows[0][0] if key != action and (not wanted or key in wanted)]
    found: dict[str, NDArray[Any]] = {}
    for key in keys:
        for row, entries in enumerate(rows):
            for entry in entries:
                if key not in entry:
                    raise source.error(name, row, f"{entry!r} has no {key!r}, and others have.")
        values = pd.Series([entry[key] for entries in rows for entry in entries])
        found[key] = values.to_numpy()
    return found


def choose_baselines(played: Ints, menus: MenuLists, count: int) -> tuple[Ints, int, bool]:
    """Return the most played label of each row's menu, the most played of all, and if they differ.

    Parameters
    ----------
    played
        (n,) codes of what was played.
    menus
        What was on offer.
    count
        How many labels there are.
    """
    plays = np.bincount(played, minlength=count)
    best = int(np.argmax(plays))
    if menus.starts is None:
        return np.full(len(played), best, np.int64), best, False
    order = np.empty(count, np.int64)  # 0 for the most played
    order[np.argsort(-plays, kind="stable")] = np.arange(count)
    ranks = np.minimum.reduceat(order[menus.codes], menus.starts[:-1])
    chosen = np.argsort(order)[ranks]
    return chosen, best, bool((chosen != best).any())
