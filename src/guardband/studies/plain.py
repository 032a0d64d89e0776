"""Features that are numbers already: columns as they are, or whole menus as tables."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from guardband.checks import as_array
from guardband.errors import InvalidValueError
from guardband.features import Rows
from guardband.kernels.types import Floats
from guardband.studies.logs import Ints, MenuLists, StudyLogs

__all__ = ["PlainColumns", "check_lengths", "logs_of_menus", "stacked"]

SLACK = 1.0 + 1e-9  # lengths are met up to rounding


class PlainColumns:
    """Columns of numbers that are features as they are: no row of them is longer than 1.

    Parameters
    ----------
    columns
        Their names, in order.
    """

    def __init__(self, columns: Sequence[str]) -> None:
        self.columns = self.names = tuple(columns)

    @property
    def dim(self) -> int:
        """The number of features, d."""
        return len(self.columns)

    def table(self, data: Any, *, labels: Sequence[Any] | None = None) -> Floats:
        """Return the features of rows of data, (n, d)."""
        rows = Rows(data, dict.fromkeys(self.columns, 1), labels)
        table = np.empty((rows.count, self.dim))
        for place, name in enumerate(self.columns):
            values = rows.column(name)
            try:
                table[:, place] = _as_floats(values)
            except (TypeError, ValueError):
                listed = list(values)
                row = next(i for i, value in enumerate(listed) if not _is_number(value))
                raise InvalidValueError(
                    f"column {name!r}, row {rows.label(row)!r}: {listed[row]!r} is not a number."
                ) from None
        wrong = ~np.isfinite(table)
        if wrong.any():
            row, place = (int(i) for i in np.argwhere(wrong)[0])
            raise InvalidValueError(
                f"column {self.columns[place]!r}, row {rows.label(row)!r}: no finite value is "
                "there, and features that are numbers already need one in every row."
            )
        check_lengths(table, rows.label)
        return table


def check_lengths(table: Floats, label: Any = lambda row: row) -> None:
    """Refuse rows that are longer than 1."""
    lengths = np.linalg.norm(table, axis=1)
    if (lengths > SLACK).any():
        row = int(np.argmax(lengths > SLACK))
        raise InvalidValueError(
            f"row {label(row)!r}: its features have length {lengths[row]:.4g}, and agents take up "
            "to 1: divide all features by one number that no row's length exceeds, or describe the "
            "columns by gb.Features, which does."
        )


def stacked(menus: Any, count: int) -> tuple[Floats, Ints]:
    """Return tables of numbers one under the other, and where each begins."""
    try:
        tables = [np.asarray(menu, dtype=np.float64) for menu in menus]
    except (TypeError, ValueError) as error:
        raise InvalidValueError(f"menus must be tables of numbers: {error}.") from None
    if len(tables) != count:
        raise InvalidValueError(f"{len(tables)} menus and {count} rows do not fit.")
    shapes = {table.shape[1:] for table in tables}
    if len(shapes) != 1 or len(next(iter(shapes))) != 1 or not all(map(len, tables)):
        raise InvalidValueError("menus must be tables (K, d): one row per action, and one d.")
    flat = np.concatenate(tables)
    if not np.isfinite(flat).all():
        raise InvalidValueError("menus have numbers that are not finite.")
    check_lengths(flat)
    return flat, np.concatenate(([0], np.cumsum([len(table) for table in tables])))


def logs_of_menus(
    menus: Any,
    actions: Any,
    rewards: Any,
    baselines: Any,
    *,
    names: Sequence[str] | None = None,
    propensities: Any = None,
    total: int | None = None,
) -> StudyLogs:
    """Return logs whose menus are tables of numbers, all of whose rows are looked at.

    Parameters
    ----------
    menus
        (n, K, d), or a list of n tables (K_i, d): the features of the actions on offer.
    actions, baselines
        (n,): the rows of these tables that were played, and of the baselines; labels are these
        places.
    rewards, propensities
        (n,).
    names
        The names of the features; None: x0, x1 ...
    total
        How many rows there are with those that are not looked at; None: these alone.
    """
    count = len(menus)
    flat, starts = stacked(menus, count)
    sizes = np.diff(starts)
    played: Ints = np.asarray(actions, dtype=np.int64)
    trusted: Ints = np.asarray(baselines, dtype=np.int64)
    return StudyLogs(
        encoder=PlainColumns([f"x{i}" for i in range(flat.shape[1])] if names is None else names),
        rewards=as_array("rewards", rewards, (count,)),
        played=flat[starts[:-1] + played],
        actions=played,
        labels=list(range(int(sizes.max()))),
        baselines=trusted,
        menus=MenuLists(np.concatenate([np.arange(size) for size in sizes]), starts),
        numbers=np.arange(count),
        total=count if total is None else total,
        tables=flat,
        menu_given=True,
        baseline_given=True,
        propensities=None
        if propensities is None
        else as_array("propensities", propensities, (count,)),
    )


def _as_floats(values: Any) -> Floats:
    """Return numbers as floats, None as NaN; texts are refused even where they spell numbers."""
    array = np.asarray(values)
    if array.dtype.kind not in "fiubO":
        raise TypeError
    if array.dtype.kind == "O" and not all(map(_is_number, array)):
        raise TypeError
    return array.astype(np.float64)


def _is_number(value: Any) -> bool:
    return value is None or isinstance(value, Real)
