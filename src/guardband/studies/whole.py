"""All rows of a log, with those that a study does not look at: their features alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.errors import InputError
from guardband.kernels.types import Floats
from guardband.studies.logs import Encoder

__all__ = ["WholeLog"]

BLOCK = 65_536  # rows whose features are made at once


class WholeLog:
    """The rows of a log as an agent would learn them; nothing of them is looked at here.

    Parameters
    ----------
    encoder
        What makes features.
    rewards
        (n,).
    columns
        The columns of what was played; or
    table
        (n, d): its features.
    source
        Names rows in errors.
    """

    def __init__(
        self,
        encoder: Encoder,
        *,
        rewards: Floats,
        columns: Mapping[str, NDArray[Any]] | None = None,
        table: Floats | None = None,
        source: Any = None,
    ) -> None:
        self.encoder, self.rewards = encoder, rewards
        self.ids: NDArray[Any] | None = None
        self.columns, self._table, self._source = columns, table, source

    def check(self, first: int) -> None:
        """Refuse features of the rows from `first` on that cannot be learned."""
        for start in range(first, len(self.rewards), BLOCK):
            self.table(slice(start, start + BLOCK))

    def table(self, rows: slice | None = None, kind: Any = np.float64) -> Floats:
        """Return the features of these rows, of all if none are named."""
        first, last, _ = (rows or slice(None)).indices(len(self.rewards))
        if self._table is not None:
            return self._table[first:last]
        assert self.columns is not None
        found = np.empty((last - first, self.encoder.dim), kind)
        for start in range(first, last, BLOCK):
            part = slice(start, min(start + BLOCK, last))
            named = None if self._source is None else self._source.row_names[part]
            block = {name: values[part] for name, values in self.columns.items()}
            try:
                found[part.start - first : part.stop - first] = self.encoder.table(
                    block, labels=named
                )
            except InputError as error:
                raise self._source.named(error) from None
        return found
