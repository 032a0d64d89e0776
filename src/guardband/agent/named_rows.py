"""Menus as rows of data: their labels, and the features of rows by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.agent.inputs import as_plain_array, as_row
from guardband.checks import check_ordered, nearest
from guardband.errors import InvalidTypeError, InvalidValueError
from guardband.features import Features, is_frame, is_named, is_sparse

__all__ = ["as_labels", "as_table", "find_row", "labelled_row", "named_map"]

FEW = 8  # labels that an error shows


def as_table(rows: Any, features: Features | None, labels: list[Any] | None) -> NDArray[Any]:
    """Return rows as an array: by the named features, where there are some and rows have names."""
    if features is not None and (is_named(rows) or is_sparse(rows)):
        return features.table(rows, labels=labels)
    if is_sparse(rows):
        dense: NDArray[Any] = rows.toarray()
        return dense
    if is_frame(rows):
        for name, dtype in rows.dtypes.items():
            if dtype.kind not in "fiu":
                raise InvalidValueError(
                    f"column {name!r} has no numbers but {dtype}: agents that are made with "
                    "features=gb.Features(...) take other columns."
                )
    elif is_named(rows):
        raise InvalidTypeError(
            "features are given by name, but this agent knows no names: make it with "
            "features=gb.Features(...)."
        )
    return as_plain_array(rows)


def named_map(
    feature_map: Callable[[Any, Any], Any], features: Features
) -> Callable[[Any, Any], Any]:
    """Return the feature map with dicts by name turned into features."""

    def mapped(action: Any, context: Any) -> Any:
        found = feature_map(action, context)
        return features.table([found])[0] if isinstance(found, Mapping) else found

    return mapped if callable(feature_map) else feature_map


def as_labels(labels: Any) -> list[Any]:
    """Return labels as a list."""
    if isinstance(labels, str | bytes) or not hasattr(labels, "__iter__"):
        raise InvalidTypeError(f"labels must be a list, one for each action, not {labels!r}.")
    check_ordered("labels", labels)
    found: list[Any] = labels.tolist() if hasattr(labels, "tolist") else list(labels)
    return found


def labelled_row(baseline: Any, labels: list[Any]) -> int:
    """Return the row that the baseline's label stands for."""
    try:
        rows = [i for i, label in enumerate(labels) if label is baseline or label == baseline]
        rows = [i for i in rows if _is_flag(labels[i]) == _is_flag(baseline)]  # True == 1
    except (TypeError, ValueError):  # neither equal nor not: an array, or pandas' NA
        raise InvalidTypeError(f"baseline must be the label of a row, not {baseline!r}.") from None
    if len(rows) == 1:
        return rows[0]
    remedy = "give every action a label of its own, such as by frame.reset_index(drop=True)."
    if len(rows) > 1:
        raise InvalidValueError(f"baseline {baseline!r} is the label of {len(rows)} rows: {remedy}")
    if isinstance(baseline, float) and math.isnan(baseline):
        raise InvalidValueError(f"baseline {baseline!r} cannot be told from other labels: {remedy}")
    texts = [label for label in labels if isinstance(label, str)]
    shown = ", ".join(map(repr, labels[:FEW])) + (", ..." if len(labels) > FEW else "")
    raise InvalidValueError(
        f"baseline {baseline!r} is not the label of a row: rows with an index go by it. There are "
        f"{shown}.{nearest(baseline, texts) if isinstance(baseline, str) else ''}"
    )


def _is_flag(label: Any) -> bool:
    return isinstance(label, bool | np.bool_)


def find_row(baseline: Any, labels: list[Any] | None, actions: int) -> int:
    """Return the baseline's row, which is given as such, or by its label where there are labels."""
    if labels is None:
        return as_row(baseline, actions)
    if len(labels) != actions:
        raise InvalidValueError(f"there are {len(labels)} labels for {actions} actions.")
    return labelled_row(baseline, labels)
