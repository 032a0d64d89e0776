"""Rows of data: a DataFrame, a list or dict of dicts, a dict of columns or a sparse matrix.

Nothing here imports pandas or SciPy: what is given is known by what it offers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from guardband.checks import nearest
from guardband.errors import InvalidTypeError, InvalidValueError

__all__ = ["Rows", "as_list", "is_frame", "is_missing", "is_named", "is_sparse", "labels_of"]


class Rows:
    """The rows of one set of data, read column by column.

    Parameters
    ----------
    data
        A DataFrame, a list of dicts, a dict of dicts by label, a dict of columns, or a sparse
        matrix.
    widths
        Column -> how many numbers it has. A sparse matrix has the columns in this order.
    labels
        What the rows are called in errors; None: as `labels_of` says, or by number.
    """

    def __init__(
        self, data: Any, widths: Mapping[str, int], labels: Sequence[Any] | None = None
    ) -> None:
        self._data, self._labels = data, labels
        if is_sparse(data):
            self._columns: Any = _split(data.toarray(), widths)
            self.count = data.shape[0]
        elif is_frame(data):
            self._columns, self.count = data, len(data)
        elif _is_labelled(data):
            if set(widths) <= set(data):
                raise InvalidTypeError(
                    "the dict holds a dict for each column, as DataFrame.to_dict() makes it: give "
                    "the DataFrame itself, or a dict for each row, as to_dict('index') makes it."
                )
            self._columns = {name: self._collect([*data.values()], name) for name in widths}
            self.count = len(data)
        elif isinstance(data, Mapping):
            self._columns, self.count = data, _common_length(data, widths)
        else:
            self._columns = {name: self._collect(data, name) for name in widths}
            self.count = len(data)

    def _collect(self, data: Any, name: str) -> list[Any]:
        try:
            return [row[name] for row in data]
        except (KeyError, TypeError, IndexError):
            pass
        if isinstance(data, str | bytes) or not isinstance(data, Sequence):
            raise InvalidTypeError(
                "data must be a DataFrame, a list of dicts, a dict of dicts, a dict of columns or "
                f"a sparse matrix, not {type(data).__name__}."
            )
        i, row = next(
            (i, row)
            for i, row in enumerate(data)
            if not isinstance(row, Mapping) or name not in row
        )
        if not isinstance(row, Mapping):
            raise InvalidTypeError(
                f"row {self.label(i)!r} must be a dict by column, not {type(row).__name__}."
            )
        raise InvalidValueError(
            f"row {self.label(i)!r} has no {name!r}: say None where it is not known."
            f"{nearest(name, [str(key) for key in row])}"
        )

    def column(self, name: str) -> Any:
        """Return the values of one column."""
        columns = self._columns
        if name not in columns:
            there = [str(each) for each in columns]
            raise InvalidValueError(
                f"there is no column {name!r}; there are {', '.join(there) or 'none'}."
                f"{nearest(name, there)}"
            )
        values = columns[name]
        if is_frame(values):
            raise InvalidValueError(f"there are several columns {name!r}: rename them.")
        return _without_masks(values)

    def label(self, row: int) -> Any:
        """Return what a row is called."""
        labels = labels_of(self._data) if self._labels is None else self._labels
        return labels[row] if labels is not None and row < len(labels) else row


def is_frame(data: Any) -> bool:
    """Tell whether this is a DataFrame."""
    kind = type(data)  # asking a DataFrame itself takes a hundred times as long
    return hasattr(kind, "columns") and hasattr(kind, "index")


def is_sparse(data: Any) -> bool:
    """Tell whether this is a sparse matrix."""
    return hasattr(type(data), "toarray")


def is_named(data: Any) -> bool:
    """Tell whether these are rows with columns by name: a frame, dicts, or a dict of columns."""
    if is_frame(data) or isinstance(data, Mapping):
        return True
    return isinstance(data, list | tuple) and len(data) > 0 and isinstance(data[0], Mapping)


def labels_of(data: Any) -> list[Any] | None:
    """Return what rows are called: a frame's index, a dict's keys if it holds dicts, or None."""
    if type(data) is np.ndarray or not is_frame(data):
        return [*data] if _is_labelled(data) else None
    labels: list[Any] = data.index.tolist()
    return labels


def _is_labelled(data: Any) -> bool:
    """Tell whether this is a dict of rows by label, each a dict by column."""
    return isinstance(data, Mapping) and isinstance(next(iter(data.values()), None), Mapping)


def is_missing(value: Any) -> bool:
    """Tell whether a value says that nothing is known: None, NaN, pandas' NA and NaT."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and bool(np.isnan(value))


def as_list(values: Any) -> list[Any]:
    """Return a column's values as Python's own."""
    found: list[Any] = values.tolist() if hasattr(values, "tolist") else list(values)
    return found


def _without_masks(values: Any) -> Any:
    """Return a column with None, or NaN in vectors, in place of what is masked."""
    if isinstance(values, np.ma.MaskedArray):
        return values.tolist() if values.ndim == 1 else _filled(values)
    if isinstance(values, list) and any(isinstance(v, np.ma.MaskedArray) for v in values):
        return [_filled(v) if isinstance(v, np.ma.MaskedArray) else v for v in values]
    return values


def _filled(array: Any) -> Any:
    if array.ndim == 0 or array.dtype.kind not in "fiub":
        return array.tolist()
    return array.astype(np.float64).filled(np.nan)


def _split(table: Any, widths: Mapping[str, int]) -> dict[str, Any]:
    wanted = sum(widths.values())
    if table.ndim != 2 or table.shape[1] != wanted:
        raise InvalidValueError(
            f"a sparse matrix must have {wanted} columns, those of {', '.join(widths)} in this "
            f"order, not shape {table.shape}."
        )
    ends = np.cumsum([*widths.values()]).tolist()
    spans = zip(widths, widths.values(), ends, strict=True)
    return {
        name: table[:, end - width : end] if width > 1 else table[:, end - 1]
        for name, width, end in spans
    }


def _common_length(data: Mapping[str, Any], names: Mapping[str, int]) -> int:
    """Return the number of rows in a dict of columns."""
    lengths = {}
    for name in names:
        if name in data:
            values = data[name]
            if isinstance(values, str | bytes) or not hasattr(values, "__len__"):
                raise InvalidTypeError(
                    f"column {name!r} is {values!r}: a dict has a list of values for each column; "
                    "rows are given as a list of dicts."
                )
            lengths[name] = values.shape[0] if is_sparse(values) else len(values)
    if len(set(lengths.values())) > 1:
        raise InvalidValueError(f"the columns differ in length: {lengths}.")
    return next(iter(lengths.values()), 0)
