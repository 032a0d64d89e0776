"""Values that do not fit: what happens to them, where they were, and how many there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from guardband.errors import InvalidValueError
from guardband.features.rows import Rows, as_list, is_sparse

__all__ = ["Reading", "Treatment", "Value"]

Value: TypeAlias = str | int | float | bool
Mask: TypeAlias = NDArray[np.bool_]


class Treatment(NamedTuple):
    """What happens to values that do not fit."""

    unknown: str  # categories that were not listed: "zeros" or "error"
    beyond: str  # numbers and vectors beyond their limits: "clip" or "error"
    missing: str | Mapping[str, Value]  # "error", "zeros", or what to take instead, by column


class Reading:
    """The reading of one column of one set of data: names the row in errors, counts what was off.

    Parameters
    ----------
    name
        The column.
    rows
        All rows.
    treatment
        What happens to values that do not fit.
    counts
        ("unknown", "beyond" or "missing", column) -> how many there were; added to.
    """

    def __init__(
        self, name: str, rows: Rows, treatment: Treatment, counts: Counter[tuple[str, str]]
    ) -> None:
        self.name, self.values = name, rows.column(name)
        self._rows, self._treatment, self._counts = rows, treatment, counts

    def error(self, row: int, what: str) -> InvalidValueError:
        """Return the error that names the column and the row."""
        return InvalidValueError(f"column {self.name!r}, row {self._rows.label(row)!r}: {what}")

    def beyond(self, off: Mask, limits: str) -> None:
        """Count the rows whose values are beyond the limits, or refuse the first."""
        self._note("beyond", off, self._treatment.beyond, f"is not {limits}")

    def unknown(self, off: Mask) -> None:
        """Count the rows whose values are not listed, or refuse the first."""
        self._note("unknown", off, self._treatment.unknown, "is not one of the listed values")

    def instead(self, off: Mask) -> Value | None:
        """Count the rows without a value; return what to take instead, None: zeros."""
        missing = self._treatment.missing
        if isinstance(missing, str):
            self._note("missing", off, missing, "there is no value, and missing='error'")
            return None
        self._note("missing", off, "fill" if self.name in missing else "error", "there is no value")
        return missing[self.name]

    def _note(self, kind: str, off: Mask, treatment: str, what: str) -> None:
        count = int(np.count_nonzero(off))
        if count == 0:
            return
        if treatment == "error":
            row = int(np.argmax(off))
            shown = "" if kind == "missing" else f"{self._shown(row)} "
            raise self.error(row, f"{shown}{what}.")
        self._counts[kind, self.name] += count

    def _shown(self, row: int) -> str:
        value = as_list(self.values)[row] if not is_sparse(self.values) else "it"
        return "it" if isinstance(value, list | tuple | np.ndarray) else repr(value)
