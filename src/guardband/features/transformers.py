"""What a fitted transformer of scikit-learn does, written down as columns with limits.

Nothing is imported from scikit-learn: transformers are known by their classes' names, and what
they were fitted to is read from their documented attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import numpy as np

from guardband.checks import check_positive
from guardband.errors import InvalidTypeError, InvalidValueError
from guardband.features.columns import Category, Number
from guardband.features.definitions import as_plain_value
from guardband.features.reading import Value
from guardband.features.rows import is_missing

__all__ = ["Fitted", "read_transformer"]


@dataclass
class Fitted:
    """What was found in a transformer."""

    numbers: dict[str, Any] = field(default_factory=dict)
    categories: dict[str, Any] = field(default_factory=dict)
    missing: dict[str, Value] = field(default_factory=dict)
    treatments: set[str] = field(default_factory=set)
    origin: list[dict[str, Any]] = field(default_factory=list)

    @property
    def unknown(self) -> str:
        """What happens to categories that are not listed."""
        if len(self.treatments) > 1:
            raise InvalidValueError(
                "the encoders differ in handle_unknown: give all of them the same."
            )
        return next(iter(self.treatments), "zeros")

    def check_new(self, name: str) -> None:
        """Refuse a column that another transformer has used."""
        if name in self.numbers or name in self.categories:
            raise InvalidValueError(
                f"column {name!r} is transformed twice: give a copy of it another name."
            )


def read_transformer(transformer: Any, limit: float | None) -> Fitted:
    """Return what a fitted transformer does to which columns; see `Features.from_sklearn`."""
    found = Fitted()
    try:
        _read(transformer, None, found, None if limit is None else check_positive("limit", limit))
    except AttributeError as error:
        raise InvalidValueError(f"the transformer is not fitted: {error}.") from error
    if not found.numbers and not found.categories:
        raise InvalidValueError("the transformer keeps no column.")
    return found


def _read(transformer: Any, columns: Sequence[str] | None, found: Fitted, limit: Any) -> None:
    """Add what one transformer does to `columns`; None: to those that it was fitted to."""
    kind = type(transformer).__name__
    if not type(transformer).__module__.startswith("sklearn.") or kind not in READERS:
        shown = transformer if isinstance(transformer, str) else type(transformer).__name__
        raise InvalidTypeError(
            f"{shown!r} cannot be written down with its limits; what can is {', '.join(READERS)}. "
            "Compute such columns before, and give them to gb.Features as numbers with limits."
        )
    READERS[kind](transformer, columns, found, limit)


def _column_transformer(transformer: Any, columns: Any, found: Fitted, limit: Any) -> None:
    _refuse(transformer, transformer_weights=None)
    for _, each, chosen in transformer.transformers_:
        if isinstance(each, str) and each == "drop":
            continue
        if np.size(chosen) > 0:
            _read(each, None, found, limit)


def _pipeline(transformer: Any, columns: Any, found: Fitted, limit: Any) -> None:
    steps = [step for _, step in transformer.steps if step not in (None, "passthrough")]
    if not steps:
        raise InvalidValueError("the Pipeline has no step that gives its columns limits.")
    columns = _names(steps[0], columns)
    for step in steps[:-1]:
        if type(step).__name__ != "SimpleImputer":
            raise InvalidTypeError(
                f"{type(step).__name__} comes before another step: only SimpleImputer may."
            )
        columns = _imputer(step, columns, found)
    _read(steps[-1], columns, found, limit)


def _imputer(step: Any, columns: Sequence[str], found: Fitted) -> list[str]:
    """Note what stands for missing values; return the columns that are kept.

    Those that had no value at all are dropped, or have NaN for what stands for them.
    """
    _refuse(step, add_indicator=False)
    if not is_missing(step.missing_values):
        raise InvalidValueError(
            f"SimpleImputer replaces {step.missing_values!r}: only None and NaN are missing here."
        )
    filled = dict(zip(columns, map(as_plain_value, step.statistics_), strict=True))
    kept = {name: value for name, value in filled.items() if not is_missing(value)}
    found.missing |= kept
    _note(step, columns, found)
    return list(kept)


def _encoder(transformer: Any, columns: Any, found: Fitted, limit: Any) -> None:
    columns = _names(transformer, columns)
    _refuse(transformer, min_frequency=None, max_categories=None)
    drops = transformer.drop_idx_
    drops = [None] * len(columns) if drops is None else drops
    for name, values, drop in zip(columns, transformer.categories_, drops, strict=True):
        listed = [as_plain_value(value) for value in values]
        dropped = () if drop is None else (listed.pop(int(drop)),)
        found.check_new(name)
        if not listed:
            raise InvalidValueError(f"column {name!r} has one value only, which is dropped.")
        found.categories[name] = Category(tuple(listed), dropped)
    found.treatments.add("error" if transformer.handle_unknown == "error" else "zeros")
    _note(transformer, columns, found)


def _min_max(transformer: Any, columns: Any, found: Fitted, limit: Any) -> None:
    start, stop = map(float, transformer.feature_range)
    limits = zip(transformer.data_min_, transformer.data_max_, strict=True)
    _add_numbers(transformer, columns, found, [(*pair, start, stop) for pair in limits])


def _max_abs(transformer: Any, columns: Any, found: Fitted, limit: Any) -> None:
    _add_numbers(transformer, columns, found, [(-m, m, -1.0, 1.0) for m in transformer.max_abs_])


def _standard(transformer: Any, columns: Any, found: Fitted, limit: Any) -> None:
    if limit is None:
        raise InvalidValueError(
            "StandardScaler has no limits: state limit=..., such as 4, the number of standard "
            "deviations beyond which values are clipped."
        )
    count = transformer.n_features_in_
    mean = transformer.mean_ if transformer.with_mean else np.zeros(count)
    scale = transformer.scale_ if transformer.with_std else np.ones(count)
    reach = limit * scale
    rows = [(m - r, m + r, -limit, limit) for m, r in zip(mean, reach, strict=True)]
    _add_numbers(transformer, columns, found, rows)


def _add_numbers(
    transformer: Any, columns: Any, found: Fitted, rows: list[tuple[Any, ...]]
) -> None:
    columns = _names(transformer, columns)
    for name, (low, high, start, stop) in zip(columns, rows, strict=True):
        found.check_new(name)
        if not low < high:
            raise InvalidValueError(f"column {name!r} has the same value in every row: drop it.")
        found.numbers[name] = Number(float(low), float(high), start=start, stop=stop)
    _note(transformer, columns, found)


READERS: dict[str, Callable[[Any, Any, Fitted, Any], None]] = {
    "ColumnTransformer": _column_transformer,
    "Pipeline": _pipeline,
    "OneHotEncoder": _encoder,
    "MinMaxScaler": _min_max,
    "MaxAbsScaler": _max_abs,
    "StandardScaler": _standard,
}


def _names(transformer: Any, columns: Sequence[str] | None) -> list[str]:
    """Return the names of the columns that a transformer was fitted to."""
    names = columns if columns is not None else getattr(transformer, "feature_names_in_", None)
    if names is None:
        raise InvalidValueError(
            f"{type(transformer).__name__} does not know its columns' names: fit it to a DataFrame."
        )
    return [str(name) for name in names]


def _note(transformer: Any, columns: Sequence[str], found: Fitted) -> None:
    """Write down which class of which version the columns come from."""
    kind = type(transformer)
    found.origin.append(
        {
            "class": f"{kind.__module__.split('._')[0]}.{kind.__name__}",
            "version": version("scikit-learn"),
            "columns": list(columns),
        }
    )


def _refuse(transformer: Any, **only: Any) -> None:
    """Refuse parameters that change what a transformer does in ways that are not written down."""
    for name, value in only.items():
        if getattr(transformer, name) != value:
            raise InvalidValueError(
                f"{type(transformer).__name__} has {name}={getattr(transformer, name)!r}, which "
                f"cannot be written down: fit it with {name}={value!r}."
            )
