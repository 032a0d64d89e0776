"""The logs of a study as arrays: what was played, what was on offer, what it earned.

A row of a log holds the features of the action that was *played*. A study also needs those of the
actions that were not. Its columns are therefore of three kinds:

context
    Columns of the round: the customer, the hour. Every action on offer in a row has the row's own
    value.
action
    Columns of the action: its price, its format. An action has the value that was logged last for
    its label, in this row or before; the first one logged, where there is none before. What was
    played has its row's own value, as an agent would learn it, missing or not. Where a
    table of actions is given, its columns are of this kind and have one value per label.
pair
    Columns of both, such as a model's score of this action for this customer. They are known where
    the menus themselves hold them, label by label, and cannot be known otherwise.

Which columns are which is declared (`action_columns`) or found: a column is taken for one of the
action where every label has one value alone, or nearly so (a price that was wrong in a row, missing
in some, or changed once), and not all labels the same. What was found, or is unclear, is said in
`StudyLogs.notes`. The column of the action itself may be a feature, too: a category, one column
per label. Features and crosses of these columns are made by `gb.Features` (or are numbers already,
`PlainColumns`). Or the menus are tables of numbers, and there is nothing to look up.

Without menus all labels are on offer in every row. Without baselines the baseline is the label that
was played most, or, where it is not on offer, the one most played among those that are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from guardband.kernels.types import Floats

if TYPE_CHECKING:
    from guardband.studies.whole import WholeLog

__all__ = ["Encoder", "Ints", "LabelValues", "Menu", "MenuLists", "Offers", "StudyLogs"]

Ints: TypeAlias = NDArray[np.int64]
Columns: TypeAlias = Mapping[str, NDArray[Any]]


class Encoder(Protocol):
    """What makes features of columns: `gb.Features`, or numbers that are features already."""

    names: tuple[str, ...]
    columns: tuple[str, ...]

    @property
    def dim(self) -> int:
        """The number of features, d."""

    def table(self, data: Any, *, labels: Sequence[Any] | None = None) -> Floats:
        """Return the features of rows of data, (n, d)."""


class Menu(NamedTuple):
    """What was on offer in one row."""

    features: Floats  # (K, d)
    baseline: int  # the row of the baseline in it
    played: int  # the row of what was played
    labels: Ints  # (K,) codes, see `StudyLogs.labels`


class Offers(NamedTuple):
    """What was on offer in several rows, one menu under the other."""

    features: Floats  # (total, d)
    starts: Ints  # (n + 1,) where each menu begins, and the end
    labels: Ints  # (total,) codes
    baselines: Ints  # (n,) places of the baselines in `features`
    played: Ints  # (n,) places of what was played


class MenuLists:
    """The menus of all rows, as lists of codes of labels: all the same, or one per row.

    Parameters
    ----------
    codes
        The labels on offer, one menu after the other.
    starts
        (n + 1,): where each row's menu begins; None: `codes` is the menu of every row.
    """

    def __init__(self, codes: Ints, starts: Ints | None = None) -> None:
        self.codes, self.starts = codes, starts

    def of(self, rows: Ints) -> tuple[Ints, Ints, Ints]:
        """Return (starts, owner, place) of these rows: each entry's row, and its place in codes."""
        if self.starts is None:
            size = len(self.codes)
            starts = np.arange(len(rows) + 1, dtype=np.int64) * size
            owner = np.repeat(np.arange(len(rows)), size)
            return starts, owner, np.tile(np.arange(size), len(rows))
        sizes = self.starts[rows + 1] - self.starts[rows]
        starts = np.concatenate(([0], np.cumsum(sizes)))
        owner = np.repeat(np.arange(len(rows)), sizes)
        return starts, owner, np.arange(starts[-1]) - starts[owner] + self.starts[rows][owner]

    def places(self, wanted: Ints) -> Ints:
        """Return where each row's wanted label is in `codes`; every menu has it once."""
        if self.starts is None:
            where = np.empty(int(self.codes.max()) + 1, np.int64)
            where[self.codes] = np.arange(len(self.codes))
            found: Ints = where[wanted]
            return found
        owner = np.repeat(np.arange(len(wanted)), np.diff(self.starts))
        return np.flatnonzero(self.codes == wanted[owner])

    def first(self, rows: int) -> MenuLists:
        """Return the menus of the first rows."""
        if self.starts is None:
            return self
        return MenuLists(self.codes[: self.starts[rows]], self.starts[: rows + 1])

    def sizes(self, count: int) -> Ints:
        """Return how many actions were on offer in each of `count` rows."""
        if self.starts is None:
            return np.full(count, len(self.codes), np.int64)
        return np.diff(self.starts)


class LabelValues:
    """The values of a column of the action, by label and row.

    Parameters
    ----------
    values
        One per label; or, with `actions`, one per row: what was logged for the row's own label.
    actions
        (n,) codes of the labels that were played, in the order of time.
    """

    def __init__(self, values: NDArray[Any], actions: Ints | None = None) -> None:
        self._values, self._keys = values, None
        if actions is not None:
            self._count = len(actions)
            order = np.argsort(actions, kind="stable")
            self._values, self._codes = values[order], actions[order]
            self._keys = self._codes * self._count + order

    def of(self, labels: Ints, rows: Ints) -> NDArray[Any]:
        """Return the values of labels in rows: logged last before, or else first after."""
        if self._keys is None:
            found: NDArray[Any] = self._values[labels]
            return found
        last = np.searchsorted(self._keys, labels * self._count + rows, side="right") - 1
        later = (last < 0) | (self._codes[last] != labels)  # not yet logged: the next one is first
        found = self._values[last + later]
        return found


@dataclass
class StudyLogs:
    """Logs that were read and checked: the rows that a study looks at, in the order of time.

    Attributes
    ----------
    encoder
        What makes features of columns; `named` is it, where it is a `gb.Features`.
    rewards
        (n,), in [0, 1].
    played
        (n, d): the features of what was played.
    actions
        (n,): the codes of what was played; `labels[code]` is its label.
    labels
        All labels that were played or on offer.
    baselines
        (n,): the codes of the baselines; `baseline_given` tells whether the logs name them.
    numbers
        (n,): the rows' places in the data that were given, from 0.
    total
        How many rows the data have; those that are not here were not looked at.
    propensities
        (n,): the probability with which the action was played; None if it is not known.
    times
        (n,): seconds, from any origin; None if they are not known. `dated`: they are dates, since
        1970.
    tasks
        (n,): codes of tasks; None if the logs do not name them.
    ids
        (n,): None if there are none.
    notes
        What was found out or decided while reading, in sentences.
    whole
        All rows, with those that were not looked at.
    """

    encoder: Encoder
    rewards: Floats
    played: Floats
    actions: Ints
    labels: list[Any]
    baselines: Ints
    menus: MenuLists
    numbers: Ints
    total: int
    context: Columns = field(default_factory=dict)
    by_label: Mapping[str, LabelValues] = field(default_factory=dict)
    by_pair: Columns = field(default_factory=dict)  # one value per entry of the menus
    tables: Floats | None = None  # (entries of the menus, d), where menus are tables of numbers
    menu_given: bool = False
    baseline_given: bool = False
    propensities: Floats | None = None
    times: Floats | None = None
    dated: bool = False
    tasks: Ints | None = None
    ids: NDArray[Any] | None = None
    notes: list[str] = field(default_factory=list)
    whole: WholeLog | None = None

    def __len__(self) -> int:
        return len(self.rewards)

    @property
    def dim(self) -> int:
        """The number of features, d."""
        return int(self.played.shape[1])

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the features."""
        return self.encoder.names

    @property
    def left(self) -> int:
        """How many rows were not looked at and are there to be learned."""
        return self.total - len(self)

    def menu(self, row: int) -> Menu:
        """Return what was on offer in one row."""
        offers = self.offers(np.array([row]))
        baseline, played = int(offers.baselines[0]), int(offers.played[0])
        return Menu(offers.features, baseline, played, offers.labels)

    def offers(self, rows: Ints) -> Offers:
        """Return what was on offer in several rows; features are made here, so take blocks."""
        starts, owner, place = self.menus.of(rows)
        labels, within = self.menus.codes[place], rows[owner]
        if self.tables is not None:
            features = self.tables[place]
        else:
            columns: dict[str, NDArray[Any]] = {k: v[within] for k, v in self.context.items()}
            columns |= {k: v.of(labels, within) for k, v in self.by_label.items()}
            columns |= {k: v[place] for k, v in self.by_pair.items()}
            features = self.encoder.table(columns)
        baselines = _places(labels, owner, self.baselines[rows])
        played = _places(labels, owner, self.actions[rows])
        features[played] = self.played[rows]
        return Offers(features, starts, labels, baselines, played)


def _places(labels: Ints, owner: Ints, wanted: Ints) -> Ints:
    """Return where each row's wanted label is; every menu has it once."""
    found = np.flatnonzero(labels == wanted[owner])
    assert len(found) == len(wanted), "a menu lacks its baseline or what was played"
    return found
